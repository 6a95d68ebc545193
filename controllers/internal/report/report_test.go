package report

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

func TestResult(t *testing.T) {
	failed := errors.New("failed")
	for name, r := range map[string]struct {
		outcome Outcome
		result  reconcile.Result
		err     error
	}{
		"done":                                {Done(), reconcile.Result{}, nil},
		"wait":                                {Wait(time.Minute), reconcile.Result{RequeueAfter: time.Minute, Priority: ptr.To(0)}, nil},
		"waits for other writes":              {Wait(time.Minute).Later(), reconcile.Result{RequeueAfter: time.Minute, Priority: ptr.To(Later)}, nil},
		"waits for no write":                  {Wait(0), reconcile.Result{}, nil},
		"waits for a completed write":         {Wait(-time.Second), reconcile.Result{}, nil},
		"retry":                               {Retry(failed), reconcile.Result{}, failed},
		"stops until a user edits the object": {Stop(), reconcile.Result{}, nil},
	} {
		if result, err := r.outcome.Result(); !reflect.DeepEqual(result, r.result) || !errors.Is(err, r.err) {
			t.Errorf("%s: %v, %v", name, result, err)
		}
	}
}

func TestJudge(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	ending := apierrors.NewForbidden(pods, "a", errors.New("it is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, r := range map[string]struct {
		err  error
		want Verdict
	}{
		"no error":         {nil, Succeeded},
		"a conflict":       {apierrors.NewConflict(pods, "a", errors.New("a changed resourceVersion")), Overtaken},
		"a deleted object": {fmt.Errorf("delete pod a: %w", apierrors.NewNotFound(pods, "a")), Overtaken},
		"a command in a pod with a running command": {fmt.Errorf("exec in pod a: %w", action.ErrNotBegun), Overtaken},
		"a namespace that is being deleted":         {ending, Ending},
		"a quota":                                   {apierrors.NewForbidden(pods, "a", errors.New("quota")), Failed},
		"an error without a status":                 {errors.New("no response"), Failed},
	} {
		if got := Judge(r.err); got != r.want {
			t.Errorf("%s: %d, want %d", name, got, r.want)
		}
	}
}

func TestSooner(t *testing.T) {
	for _, r := range []struct{ a, b, want time.Duration }{{0, 0, 0}, {1, 0, 1}, {0, 1, 1}, {2, 1, 1}, {1, 2, 1}, {-1, 2, 2}, {2, -1, 2}, {-1, -1, 0}} {
		if got := Sooner(r.a, r.b); got != r.want {
			t.Errorf("of %d and %d: %d, want %d", r.a, r.b, got, r.want)
		}
	}
}
