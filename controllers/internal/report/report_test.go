package report

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestResult(t *testing.T) {
	failed := errors.New("failed")
	for name, r := range map[string]struct {
		outcome Outcome
		result  reconcile.Result
		err     error
	}{
		"done":                      {Done(), reconcile.Result{}, nil},
		"wait":                      {Wait(time.Minute), reconcile.Result{RequeueAfter: time.Minute, Priority: ptr.To(0)}, nil},
		"wait behind others":        {Wait(time.Minute).Later(), reconcile.Result{RequeueAfter: time.Minute, Priority: ptr.To(Later)}, nil},
		"wait for nothing":          {Wait(0), reconcile.Result{}, nil},
		"wait for what is over":     {Wait(-time.Second), reconcile.Result{}, nil},
		"retry":                     {Retry(failed), reconcile.Result{}, failed},
		"stop until a person edits": {Stop(), reconcile.Result{}, nil},
	} {
		if result, err := r.outcome.Result(); !reflect.DeepEqual(result, r.result) || !errors.Is(err, r.err) {
			t.Errorf("%s: %v, %v", name, result, err)
		}
	}
}
