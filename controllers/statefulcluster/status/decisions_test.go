package status_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unstored"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

// TestV25DecisionsAreWrittenWithTheNextStatus tests V25: events cause no status write. The next one has
// them, and those that it announces itself.
func TestV25DecisionsAreWrittenWithTheNextStatus(t *testing.T) {
	var sent eventLog
	writes := &simtest.StatusWriter[*v1alpha1.StatefulCluster]{}
	r := &status.Reporter{Events: &sent, Reader: &observe.Reader{Now: func() time.Time { return fixture.Noon }}, Runner: writes}
	w := fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C())
	report := func(outcomes ...action.Outcome) {
		w.Now = w.Now.Add(time.Minute)
		f := facts.Derive(w)
		p := rules.Decide(f)
		r.Report(context.Background(), f, &p, outcomes)
	}
	report()
	w.Set.Status = *writes.Last.Status.DeepCopy()
	w.Set.Status.Decisions, sent, writes.Tries = nil, nil, 0

	pod := w.Members[0].Pod
	retired := action.Outcome{Action: action.Action{Verb: action.Delete, Object: pod, Reason: facts.ReasonRetired}, Answer: pod}
	report(retired)
	report(retired)
	report()
	if len(sent) != 2 || writes.Tries != 0 {
		t.Fatalf("%d status writes were made for events %q", writes.Tries, sent)
	}

	last := metav1.NewTime(w.Now.Add(-time.Minute))
	w.Set.Status.Lost = nil
	pod.DeletionTimestamp = &last
	writes.Err = errors.New("timeout")
	report()
	if len(sent) != 2 || writes.Tries != 1 {
		t.Fatalf("after a failed write, the events are %q", sent)
	}
	writes.Err = nil
	report()
	now := metav1.NewTime(w.Now)
	want := []v1alpha1.Decision{
		{Time: last, Reason: v1alpha1.EventMemberRetired, Message: "Retired: db-a", Count: 2},
		{Time: now, Reason: v1alpha1.EventMemberLost, Message: "PodDeleted: db-a; will not come back, and will be replaced under another name", Warning: true},
	}
	if !apiequality.Semantic.DeepEqual(writes.Last.Status.Decisions, want) {
		t.Errorf("the decisions are %v, want %v", writes.Last.Status.Decisions, want)
	}
	if len(sent) != 3 {
		t.Errorf("after the write, the events are %q", sent)
	}

	for _, tries := range []int{3, 4} {
		w.Set.Status = *writes.Last.Status.DeepCopy()
		w.Set.Status.Selector = "edited"
		report()
		if writes.Tries != tries || !apiequality.Semantic.DeepEqual(writes.Last.Status.Decisions, want) {
			t.Errorf("the next write changes the decisions to %v", writes.Last.Status.Decisions)
		}
		r.Reader = &observe.Reader{Now: r.Reader.Now} // a new process of the operator
	}
}

// TestAFieldThatIsNotStoredCausesNoFurtherWrites tests that the status is not written in each pass if the CRD is
// older than the operator.
func TestAFieldThatIsNotStoredCausesNoFurtherWrites(t *testing.T) {
	var sent eventLog
	writes := &simtest.StatusWriter[*v1alpha1.StatefulCluster]{Prune: func(set *v1alpha1.StatefulCluster) {
		set.Status.AvailableReplicas, set.Status.UpdateRevision = 0, ""
	}}
	r := &status.Reporter{Events: &sent, Reader: &observe.Reader{Now: func() time.Time { return fixture.Noon }}, Runner: writes}
	w := fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C())
	for i, step := range []struct {
		after func()
		tries int
	}{
		{func() {}, 1},
		{func() { w.Now = w.Now.Add(time.Minute) }, 1},
		{func() { w.Set.Status.Selector = "edited" }, 2},
		{func() { w.Now = w.Now.Add(time.Minute) }, 2},
		{func() { w.Now = w.Now.Add(unstored.RetryAfter) }, 3},
		{func() { w.Now = w.Now.Add(time.Minute) }, 3},
	} {
		step.after()
		w.Now = w.Now.Add(time.Minute)
		f := facts.Derive(w)
		p := rules.Decide(f)
		r.Report(context.Background(), f, &p, nil)
		if writes.Tries != step.tries {
			t.Fatalf("after pass %d there are %d writes, want %d", i, writes.Tries, step.tries)
		}
		w.Set.Status = *writes.Last.Status.DeepCopy()
	}
}
