package status_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

// statusWriter keeps the statuses that are written. If err is set, no write succeeds.
type statusWriter struct {
	err   error
	tries int
	last  v1alpha1.StatefulClusterStatus
}

func (s *statusWriter) Run(_ context.Context, _ types.NamespacedName, steps action.Steps) (outcomes []action.Outcome) {
	a := steps[0][0][0]
	s.tries++
	if s.err == nil {
		s.last = a.Object.(*v1alpha1.StatefulCluster).Status
	}
	return []action.Outcome{{Action: a, Answer: a.Object, Err: s.err}}
}

// TestV25DecisionsAreWrittenWithTheNextStatus tests V25: events cause no status write. The next one has
// them, and those that it announces itself.
func TestV25DecisionsAreWrittenWithTheNextStatus(t *testing.T) {
	var told eventLog
	writes := &statusWriter{}
	r := &status.Reporter{Events: &told, Reader: &observe.Reader{Now: func() time.Time { return fixture.Noon }}, Runner: writes}
	w := fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C())
	report := func(outcomes ...action.Outcome) {
		w.Now = w.Now.Add(time.Minute)
		f := facts.Derive(w)
		p := rules.Decide(f)
		r.Report(context.Background(), f, &p, outcomes)
	}
	report()
	w.Set.Status = *writes.last.DeepCopy()
	w.Set.Status.Decisions, told, writes.tries = nil, nil, 0

	pod := w.Members[0].Pod
	retired := action.Outcome{Action: action.Action{Verb: action.Delete, Object: pod, Reason: facts.ReasonRetired}, Answer: pod}
	report(retired)
	report(retired)
	report()
	if len(told) != 2 || writes.tries != 0 {
		t.Fatalf("%d status writes were made for events %q", writes.tries, told)
	}

	last := metav1.NewTime(w.Now.Add(-time.Minute))
	w.Set.Status.Lost = nil
	pod.DeletionTimestamp = &last
	writes.err = errors.New("timeout")
	report()
	if len(told) != 2 || writes.tries != 1 {
		t.Fatalf("after a failed write, the events are %q", told)
	}
	writes.err = nil
	report()
	now := metav1.NewTime(w.Now)
	want := []v1alpha1.Decision{
		{Time: last, Reason: v1alpha1.EventMemberRetired, Message: "Retired: db-a", Count: 2},
		{Time: now, Reason: v1alpha1.EventMemberLost, Message: "PodDeleted: db-a; will not come back, and will be replaced under another name", Warning: true},
	}
	if !apiequality.Semantic.DeepEqual(writes.last.Decisions, want) {
		t.Errorf("the decisions are %v, want %v", writes.last.Decisions, want)
	}
	if len(told) != 3 {
		t.Errorf("after the write, the events are %q", told)
	}

	for _, tries := range []int{3, 4} {
		w.Set.Status = *writes.last.DeepCopy()
		w.Set.Status.Selector = "edited"
		report()
		if writes.tries != tries || !apiequality.Semantic.DeepEqual(writes.last.Decisions, want) {
			t.Errorf("the next write changes the decisions to %v", writes.last.Decisions)
		}
		r.Reader = &observe.Reader{Now: r.Reader.Now} // a new process of the operator
	}
}
