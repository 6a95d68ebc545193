package status_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// statusWriter keeps the statuses that are written. If err is set, no write succeeds.
type statusWriter struct {
	err   error
	tries int
	last  v1alpha1.ReplicatedStatefulSetStatus
}

func (s *statusWriter) Run(_ context.Context, _ types.NamespacedName, steps action.Steps) (outcomes []action.Outcome) {
	a := steps[0][0][0]
	s.tries++
	if s.err == nil {
		s.last = a.Object.(*v1alpha1.ReplicatedStatefulSet).Status
	}
	return []action.Outcome{{Action: a, Answer: a.Object, Err: s.err}}
}

// TestV25DecisionsAreWrittenWithTheNextStatus tests V25: events cause no status write. The next one has
// them, and those that it announces itself.
func TestV25DecisionsAreWrittenWithTheNextStatus(t *testing.T) {
	told, writes := &heard{}, &statusWriter{}
	r := &status.Reporter{Events: told, Reader: &observe.Reader{}, Runner: writes}
	w := fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"))
	report := func(outcomes ...action.Outcome) {
		p := rules.Decide(w)
		r.Report(context.Background(), &p, outcomes)
	}
	report()
	w.Set.Status = *writes.last.DeepCopy()
	w.Set.Status.Decisions, *told, writes.tries = nil, nil, 0

	deleted := action.Outcome{Action: action.Action{Verb: action.Delete, Object: w.Members[1].Pod, Reason: facts.ReasonRenew, Detail: "its template changed"}}
	report(deleted)
	report(deleted)
	report()
	if len(*told) != 2 || writes.tries != 0 {
		t.Fatalf("%d status writes were made for events %q", writes.tries, *told)
	}

	w.Set.Status.Members.Primary = nil
	writes.err = errors.New("timeout")
	report()
	if len(*told) != 2 || writes.tries != 1 {
		t.Fatalf("after a failed write, the events are %q", *told)
	}
	writes.err = nil
	report()
	now := metav1.NewTime(w.Now)
	want := []v1alpha1.Decision{
		{Time: now, Reason: v1alpha1.EventMemberUpdated, Message: "recreating pod rss-db-1: its template changed", Count: 2},
		{Time: now, Reason: v1alpha1.EventPromoted, Message: "rss-db-0 is primary"},
	}
	got := writes.last.Decisions
	if !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("the decisions are %v, want %v", got, want)
	}
	if !slices.Contains(*told, "Normal Promoted: rss-db-0 is primary") {
		t.Errorf("after the write, the events are %q", *told)
	}

	for _, tries := range []int{3, 4} {
		w.Set.Status = *writes.last.DeepCopy()
		w.Set.Status.Selector = "edited"
		report()
		if writes.tries != tries || !apiequality.Semantic.DeepEqual(writes.last.Decisions, got) {
			t.Errorf("the next write changes the decisions from %v to %v", got, writes.last.Decisions)
		}
		r.Reader = &observe.Reader{} // a new process of the operator
	}
}
