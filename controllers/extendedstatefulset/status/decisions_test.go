package status_test

import (
	"context"
	"errors"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unstored"
)

// TestV25DecisionsAreWrittenWithTheNextStatus tests V25: events cause no status write. The next one has
// them, and those that it announces itself.
func TestV25DecisionsAreWrittenWithTheNextStatus(t *testing.T) {
	sent, writes := events.NewFakeRecorder(10), &simtest.StatusWriter[*v1alpha1.ExtendedStatefulSet]{}
	r := &status.Reporter{Events: sent, Reader: &observe.Reader{}, Runner: writes}
	scene := fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3})
	report := func(outcomes ...action.Outcome) {
		f, p := fixture.Decided(scene.W)
		r.Report(context.Background(), f, p, outcomes)
	}
	report()
	scene.W.Set.Status = *writes.Last.Status.DeepCopy()
	scene.W.Set.Status.Decisions, writes.Tries = nil, 0

	restored := action.Outcome{Action: action.Action{Verb: action.Patch, Object: scene.W.Children[0].Set, Reason: v1alpha1.EventEditUndone}}
	report(restored)
	report(restored)
	report()
	if len(sent.Events) != 2 || writes.Tries != 0 {
		t.Fatalf("%d status writes were made for %d events", writes.Tries, len(sent.Events))
	}

	scene.Edited()
	writes.Err = errors.New("timeout")
	report()
	if len(sent.Events) != 2 || writes.Tries != 1 {
		t.Fatalf("after a failed write, there are %d events", len(sent.Events))
	}
	writes.Err = nil
	report()
	now := metav1.NewTime(scene.W.Now)
	want := []v1alpha1.Decision{
		{Time: now, Reason: v1alpha1.EventEditUndone, Message: "StatefulSet db-v1 was edited by another client; the edit was undone", Warning: true, Count: 2},
		{Time: now, Reason: v1alpha1.EventUpgradeBegun, Message: "upgrade from version 1 to 2"},
	}
	if !apiequality.Semantic.DeepEqual(writes.Last.Status.Decisions, want) {
		t.Errorf("the decisions are %v, want %v", writes.Last.Status.Decisions, want)
	}
	if len(sent.Events) != 3 {
		t.Errorf("after the write, there are %d events", len(sent.Events))
	}

	for _, tries := range []int{3, 4} {
		scene.W.Set.Status = *writes.Last.Status.DeepCopy()
		scene.W.Set.Status.Selector = "edited"
		report()
		if writes.Tries != tries || !apiequality.Semantic.DeepEqual(writes.Last.Status.Decisions, want) {
			t.Errorf("the next write changes the decisions to %v", writes.Last.Status.Decisions)
		}
		r.Reader = &observe.Reader{} // a new process of the operator
	}
}

// TestAFieldThatIsNotStoredCausesNoFurtherWrites tests that the status is not written in each pass if the CRD is
// older than the operator.
func TestAFieldThatIsNotStoredCausesNoFurtherWrites(t *testing.T) {
	sent, writes := events.NewFakeRecorder(10), &simtest.StatusWriter[*v1alpha1.ExtendedStatefulSet]{Prune: func(set *v1alpha1.ExtendedStatefulSet) {
		set.Status.ReadyReplicas, set.Status.Selector = 0, ""
	}}
	r := &status.Reporter{Events: sent, Reader: &observe.Reader{}, Runner: writes}
	scene := fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3})
	set := scene.W.Set
	for i, step := range []struct {
		after func()
		tries int
	}{
		{func() {}, 1},
		{func() {}, 1},
		{func() { set.Status.Replicas = 7 }, 2},
		{func() {}, 2},
		{func() { scene.W.Now = scene.W.Now.Add(unstored.RetryAfter) }, 3},
		{func() {}, 3},
	} {
		step.after()
		f, p := fixture.Decided(scene.W)
		r.Report(context.Background(), f, p, nil)
		if writes.Tries != step.tries {
			t.Fatalf("after pass %d there are %d writes, want %d", i, writes.Tries, step.tries)
		}
		set.Status = *writes.Last.Status.DeepCopy()
	}
}
