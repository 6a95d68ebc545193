// Package report turns the outcome of a reconcile into what controller-runtime
// wants. Outcomes are four: done, wait, retry, stop.
package report

import (
	"time"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Outcome is how a reconcile ended.
type Outcome struct {
	after    time.Duration
	priority int
	err      error
}

// Done: nothing is left to do until something changes.
func Done() Outcome { return Outcome{} }

// Wait: look again after that time at the latest, for no event will come. A
// time of 0 or less is Done.
func Wait(after time.Duration) Outcome { return Outcome{after: max(after, 0)} }

// Retry: the API failed; look again with growing delays.
func Retry(err error) Outcome { return Outcome{err: err} }

// Stop: a person must act; the conditions say what, and an edit wakes the key.
func Stop() Outcome { return Outcome{} }

// Later is the priority of keys with nothing but bookkeeping to do. What users
// ask for, what is gone and what is due has 0 and goes first.
const Later = -1

// Later is the same outcome, behind keys with more to do.
func (o Outcome) Later() Outcome {
	o.priority = Later
	return o
}

// Result is the outcome in controller-runtime's words.
func (o Outcome) Result() (ctrl.Result, error) {
	if o.err != nil || o.after == 0 {
		return reconcile.Result{}, o.err
	}
	return reconcile.Result{RequeueAfter: o.after, Priority: ptr.To(o.priority)}, nil
}
