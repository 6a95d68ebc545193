package status_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unstored"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

// TestV25DecisionsAreWrittenWithTheNextStatus tests V25: events cause no status write. The next one has
// them, and those that it announces itself.
func TestV25DecisionsAreWrittenWithTheNextStatus(t *testing.T) {
	sent, writes := events.NewFakeRecorder(10), &simtest.StatusWriter[*v1.StatefulSingleton]{}
	r := &status.Reporter{Events: sent, Reader: &observe.Reader{}, Runner: writes}
	w := fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1))
	report := func(outcomes ...action.Outcome) {
		f := facts.Derive(w)
		p := rules.Decide(f)
		r.Report(context.Background(), fixture.Key, f, &p, outcomes)
	}
	report()
	w.Object.Status = *writes.Last.Status.DeepCopy()
	writes.Tries = 0

	deleted := action.Outcome{Action: rules.Deletion(&fixture.Granted("b", 1).Member, rules.ReasonSuperseded, "pod a has the grant")[0]}
	report(deleted)
	report(deleted)
	report()
	if len(sent.Events) != 2 || writes.Tries != 0 {
		t.Fatalf("%d status writes were made for %d events", writes.Tries, len(sent.Events))
	}

	w.Pods = append(w.Pods, &fixture.Ungated("c").Protect().Member)
	writes.Err = errors.New("timeout")
	report()
	if len(sent.Events) != 2 || writes.Tries != 1 {
		t.Fatalf("after a failed write, there are %d events", len(sent.Events))
	}
	writes.Err = nil
	report()
	got := writes.Last.Status.Decisions
	first := v1.Decision{Time: metav1.NewTime(w.Now), Reason: v1.EventPodDeleted, Message: "pod b: pod a has the grant", Count: 2}
	if len(got) != 2 || !apiequality.Semantic.DeepEqual(got[0], first) || got[1].Reason != v1.EventSeveralRunning || !got[1].Warning {
		t.Errorf("the decisions are %v, want %v and a warning", got, first)
	}
	if len(sent.Events) != 3 {
		t.Errorf("after the write, there are %d events", len(sent.Events))
	}

	for _, tries := range []int{3, 4} {
		w.Object.Status = *writes.Last.Status.DeepCopy()
		w.Object.Status.Message = "edited"
		report()
		if writes.Tries != tries || !apiequality.Semantic.DeepEqual(writes.Last.Status.Decisions, got) {
			t.Errorf("the next write changes the decisions from %v to %v", got, writes.Last.Status.Decisions)
		}
		r.Reader = &observe.Reader{} // a new process of the operator
	}
}

// TestAFieldThatIsNotStoredCausesNoFurtherWrites tests that the status is not written in each pass if the CRD is
// older than the operator. Each write would change status.statusTimestamp, and so cause the next pass.
func TestAFieldThatIsNotStoredCausesNoFurtherWrites(t *testing.T) {
	sent, writes := events.NewFakeRecorder(10), &simtest.StatusWriter[*v1.StatefulSingleton]{Prune: func(object *v1.StatefulSingleton) {
		object.Status.ActivePod, object.Status.Message = "", ""
	}}
	r := &status.Reporter{Events: sent, Reader: &observe.Reader{}, Runner: writes}
	w := fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1))
	for i, step := range []struct {
		after func()
		tries int
	}{
		{func() {}, 1},
		{func() { w.Now = w.Now.Add(time.Minute) }, 1},
		{func() { w.Object.Status.Phase = "edited" }, 2},
		{func() { w.Now = w.Now.Add(time.Minute) }, 2},
		{func() { w.Now = w.Now.Add(unstored.RetryAfter) }, 3},
		{func() { w.Now = w.Now.Add(time.Minute) }, 3},
	} {
		step.after()
		f := facts.Derive(w)
		p := rules.Decide(f)
		r.Report(context.Background(), fixture.Key, f, &p, nil)
		if writes.Tries != step.tries {
			t.Fatalf("after pass %d there are %d writes, want %d", i, writes.Tries, step.tries)
		}
		w.Object.Status = *writes.Last.Status.DeepCopy()
	}
}
