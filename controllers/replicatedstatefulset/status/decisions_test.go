package status_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unstored"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// TestV25DecisionsAreWrittenWithTheNextStatus tests V25: events cause no status write. The next one has
// them, and those that it announces itself.
func TestV25DecisionsAreWrittenWithTheNextStatus(t *testing.T) {
	sent, writes := &heard{}, &simtest.StatusWriter[*v1alpha1.ReplicatedStatefulSet]{}
	r := &status.Reporter{Events: sent, Reader: &observe.Reader{}, Runner: writes}
	w := fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"))
	report := func(outcomes ...action.Outcome) {
		p := rules.Decide(w)
		r.Report(context.Background(), &p, outcomes)
	}
	report()
	w.Set.Status = *writes.Last.Status.DeepCopy()
	w.Set.Status.Decisions, *sent, writes.Tries = nil, nil, 0

	deleted := action.Outcome{Action: action.Action{Verb: action.Delete, Object: w.Members[1].Pod, Reason: facts.ReasonRenew, Detail: "its template changed"}}
	report(deleted)
	report(deleted)
	report()
	if len(*sent) != 2 || writes.Tries != 0 {
		t.Fatalf("%d status writes were made for events %q", writes.Tries, *sent)
	}

	w.Set.Status.Members.Primary = nil
	writes.Err = errors.New("timeout")
	report()
	if len(*sent) != 2 || writes.Tries != 1 {
		t.Fatalf("after a failed write, the events are %q", *sent)
	}
	writes.Err = nil
	report()
	now := metav1.NewTime(w.Now)
	want := []v1alpha1.Decision{
		{Time: now, Reason: v1alpha1.EventMemberUpdated, Message: "recreating pod rss-db-1: its template changed", Count: 2},
		{Time: now, Reason: v1alpha1.EventPromoted, Message: "rss-db-0 is primary"},
	}
	got := writes.Last.Status.Decisions
	if !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("the decisions are %v, want %v", got, want)
	}
	if !slices.Contains(*sent, "Normal Promoted: rss-db-0 is primary") {
		t.Errorf("after the write, the events are %q", *sent)
	}

	for _, tries := range []int{3, 4} {
		w.Set.Status = *writes.Last.Status.DeepCopy()
		w.Set.Status.Selector = "edited"
		report()
		if writes.Tries != tries || !apiequality.Semantic.DeepEqual(writes.Last.Status.Decisions, got) {
			t.Errorf("the next write changes the decisions from %v to %v", got, writes.Last.Status.Decisions)
		}
		r.Reader = &observe.Reader{} // a new process of the operator
	}
}

// TestAFieldThatIsNotStoredCausesNoFurtherWrites tests that the status is not written in each pass if the CRD is
// older than the operator.
func TestAFieldThatIsNotStoredCausesNoFurtherWrites(t *testing.T) {
	sent, writes := &heard{}, &simtest.StatusWriter[*v1alpha1.ReplicatedStatefulSet]{Prune: func(set *v1alpha1.ReplicatedStatefulSet) {
		set.Status.AvailableReplicas, set.Status.Members.Ready = 0, nil
	}}
	r := &status.Reporter{Events: sent, Reader: &observe.Reader{}, Runner: writes}
	w := fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"))
	for i, step := range []struct {
		after func()
		tries int
	}{
		{func() {}, 1},
		{func() {}, 1},
		{func() { w.Set.Status.Selector = "edited" }, 2},
		{func() {}, 2},
		{func() { w.Now = w.Now.Add(unstored.RetryAfter) }, 3},
		{func() {}, 3},
	} {
		step.after()
		p := rules.Decide(w)
		p.Steps = nil // the status is written by passes without other writes
		r.Report(context.Background(), &p, nil)
		if writes.Tries != step.tries {
			t.Fatalf("after pass %d there are %d writes, want %d", i, writes.Tries, step.tries)
		}
		w.Set.Status = *writes.Last.Status.DeepCopy()
	}
}
