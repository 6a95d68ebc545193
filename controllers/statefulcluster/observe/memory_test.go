package observe_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

var things = schema.GroupResource{Resource: "things"}

// remembering returns the memory of a set after a live pass.
func remembering(w *facts.World) *observe.Remembered {
	known := (&observe.Reader{}).Of(w.Set)
	w.Live = true
	known.Recall(w)
	return known
}

// TestRefusedWritesAreRemembered checks which errors are retried immediately, and which with backoff.
func TestRefusedWritesAreRemembered(t *testing.T) {
	for _, r := range []struct {
		name    string
		verb    action.Verb
		reason  string
		err     error
		refused bool
		retried bool
	}{
		{"a successful write", action.Create, facts.ReasonMissing, nil, false, false},
		{"a write that admission refused", action.Create, facts.ReasonMissing, apierrors.NewForbidden(things, "x", errors.New("quota")), true, false},
		{"a webhook that did not respond", action.Create, facts.ReasonMissing, apierrors.NewInternalError(errors.New("failed calling webhook")), true, false},
		{"an internal error", action.Create, facts.ReasonMissing, apierrors.NewInternalError(errors.New("etcd")), false, true},
		{"a conflict", action.Patch, facts.ReasonUpdate, apierrors.NewConflict(things, "x", errors.New("changed")), false, false},
		{"a deleted pod that is gone", action.Delete, facts.ReasonRetired, apierrors.NewNotFound(things, "x"), false, false},
		{"a pod of another owner with the name of a new member", action.Create, facts.ReasonMissing, apierrors.NewAlreadyExists(things, "x"), false, false},
		{"a lost connection", action.Patch, facts.ReasonUpdate, errors.New("connection reset"), false, true},
	} {
		w := fixture.Seen(fixture.Set("db"), fixture.A())
		known := remembering(w)
		err := known.Learn(facts.Derive(w), nil, []action.Outcome{{Action: action.Action{Verb: r.verb, Reason: r.reason, Object: &corev1.Pod{}}, Err: r.err}})
		if (err != nil) != r.retried {
			t.Errorf("%s: the error for an immediate retry is %v", r.name, err)
		}
		if _, refused := known.Refused[r.reason]; refused != r.refused {
			t.Errorf("%s: the refusals are %v", r.name, known.Refused)
		}
	}
}

// TestRefusalsEnd checks that the backoff of a refused write doubles, and that the next success or
// another generation of the set ends it.
func TestRefusalsEnd(t *testing.T) {
	w := fixture.Seen(fixture.Set("db"), fixture.A())
	known := remembering(w)
	refusal := action.Outcome{Action: action.Action{Verb: action.Create, Reason: facts.ReasonMissing}, Err: apierrors.NewForbidden(things, "x", errors.New("quota"))}
	for times, want := range []time.Duration{spec.FirstRefusal, 2 * spec.FirstRefusal, 4 * spec.FirstRefusal} {
		if err := known.Learn(facts.Derive(w), nil, []action.Outcome{refusal}); err != nil {
			t.Fatal(err)
		}
		if got := known.Refused[facts.ReasonMissing]; got.Until.Sub(w.Now) != want || got.Times != times+1 {
			t.Errorf("refusal %d: %+v, want a retry after %s", times+1, got, want)
		}
	}
	success := refusal
	success.Err = nil
	if err := known.Learn(facts.Derive(w), nil, []action.Outcome{success}); err != nil || len(known.Refused) > 0 {
		t.Errorf("after a success: %v, %v", known.Refused, err)
	}
	_ = known.Learn(facts.Derive(w), nil, []action.Outcome{refusal})
	w.Set.Generation++
	if known.WantsLive(w.Set, w.Now) != true {
		t.Error("a new generation is not read from the API server")
	}
	if known.Recall(w); len(known.Refused) > 0 || known.WantsLive(w.Set, w.Now) {
		t.Errorf("after a live read of a new generation: %v", known.Refused)
	}
}
