package status_test

import (
	"context"
	"errors"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

// statusWriter keeps the statuses that are written. If err is set, no write succeeds.
type statusWriter struct {
	err   error
	tries int
	last  v1.StatefulSingletonStatus
}

func (s *statusWriter) Run(_ context.Context, _ types.NamespacedName, steps action.Steps) (outcomes []action.Outcome) {
	a := steps[0][0][0]
	s.tries++
	if s.err == nil {
		s.last = a.Object.(*v1.StatefulSingleton).Status
	}
	return []action.Outcome{{Action: a, Answer: a.Object, Err: s.err}}
}

// TestV25DecisionsAreWrittenWithTheNextStatus tests V25: events cause no status write. The next one has
// them, and those that it announces itself.
func TestV25DecisionsAreWrittenWithTheNextStatus(t *testing.T) {
	told, writes := events.NewFakeRecorder(10), &statusWriter{}
	r := &status.Reporter{Events: told, Reader: &observe.Reader{}, Runner: writes}
	w := fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1))
	report := func(outcomes ...action.Outcome) {
		f := facts.Derive(w)
		p := rules.Decide(f)
		r.Report(context.Background(), fixture.Key, f, &p, outcomes)
	}
	report()
	w.Object.Status = *writes.last.DeepCopy()
	writes.tries = 0

	deleted := action.Outcome{Action: rules.Deletion(&fixture.Granted("b", 1).Member, rules.ReasonSuperseded, "pod a has the grant")[0]}
	report(deleted)
	report(deleted)
	report()
	if len(told.Events) != 2 || writes.tries != 0 {
		t.Fatalf("%d status writes were made for %d events", writes.tries, len(told.Events))
	}

	w.Pods = append(w.Pods, &fixture.Ungated("c").Protect().Member)
	writes.err = errors.New("timeout")
	report()
	if len(told.Events) != 2 || writes.tries != 1 {
		t.Fatalf("after a failed write, there are %d events", len(told.Events))
	}
	writes.err = nil
	report()
	got := writes.last.Decisions
	first := v1.Decision{Time: metav1.NewTime(w.Now), Reason: v1.EventPodDeleted, Message: "pod b: pod a has the grant", Count: 2}
	if len(got) != 2 || !apiequality.Semantic.DeepEqual(got[0], first) || got[1].Reason != v1.EventSeveralRunning || !got[1].Warning {
		t.Errorf("the decisions are %v, want %v and a warning", got, first)
	}
	if len(told.Events) != 3 {
		t.Errorf("after the write, there are %d events", len(told.Events))
	}

	for _, tries := range []int{3, 4} {
		w.Object.Status = *writes.last.DeepCopy()
		w.Object.Status.Message = "edited"
		report()
		if writes.tries != tries || !apiequality.Semantic.DeepEqual(writes.last.Decisions, got) {
			t.Errorf("the next write changes the decisions from %v to %v", got, writes.last.Decisions)
		}
		r.Reader = &observe.Reader{} // a new process of the operator
	}
}
