// Package report converts the outcome of a reconcile into a result of controller-runtime. The outcomes
// are done, wait, retry and stop.
package report

import (
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Outcome is the outcome of a reconcile.
type Outcome struct {
	after    time.Duration // requeue delay; 0 means no requeue
	priority int
	err      error
}

// Done returns the outcome of a reconcile that has nothing left to do until something changes.
func Done() Outcome { return Outcome{} }

// Wait returns an outcome that requeues the key after at most the given time, because no event is
// expected. A time of 0 or less means Done.
func Wait(after time.Duration) Outcome { return Outcome{after: max(after, 0)} }

// Retry returns an outcome that retries with exponential backoff after an API error.
func Retry(err error) Outcome { return Outcome{err: err} }

// Stop returns the outcome of an object that needs manual intervention. Its conditions describe it, and
// an edit requeues the key. For controller-runtime it equals Done.
func Stop() Outcome { return Outcome{} }

// Later is the priority of keys that only need bookkeeping. User requests, deletions and expired timers
// have priority 0 and are processed first.
const Later = -1

// Later returns the same outcome with lower priority.
func (o Outcome) Later() Outcome {
	o.priority = Later
	return o
}

// Result returns the outcome as a result of controller-runtime.
func (o Outcome) Result() (reconcile.Result, error) {
	if o.err != nil || o.after == 0 {
		return reconcile.Result{}, o.err
	}
	return reconcile.Result{RequeueAfter: o.after, Priority: ptr.To(o.priority)}, nil
}
