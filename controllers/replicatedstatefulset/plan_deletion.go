package replicatedstatefulset

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// deadline is when a deleted object is not stopped in order any more, and lastDeadline
// when none is waited for.
func (w *world) deadline() time.Time {
	return w.watch.Deadline(w.set.DeletionTimestamp.Time, patience)
}

func (w *world) lastDeadline() time.Time {
	return w.watch.Deadline(w.set.DeletionTimestamp.Time, 2*patience)
}

func (w *world) overdue() bool { return w.deleting() && !w.now.Before(w.deadline()) }

// letsGo reports whether the pods go their own way: with their namespace, or because
// the object was deleted without them.
func (w *world) letsGo() bool {
	if !w.deleting() {
		return false
	}
	return !w.keeps() || slices.Contains(w.set.Finalizers, metav1.FinalizerOrphanDependents)
}

// keepObject holds the object back from being gone while members run. It comes before the
// first start.
func keepObject(f *facts, p *plan) {
	if f.deleting() || f.held() || !f.keeps() {
		return
	}
	set := f.set.DeepCopy()
	controllerutil.AddFinalizer(set, v1alpha1.FinalizerStop)
	p.Do(action.Chain{{
		Verb:      action.Patch,
		Object:    set,
		From:      f.set,
		Unchanged: true,
		Reason:    reasonKeep,
	}})
}

// letGo takes all finalizers off at once.
func letGo(f *facts, p *plan) {
	if f.letsGo() {
		freeAll(f, p)
	}
}

// freeAll takes the finalizers off the pods, and then off the object.
func freeAll(f *facts, p *plan) {
	held := f.among((*member).protected)
	for _, m := range held {
		p.Do(action.Chain{unprotect(m)})
	}
	if len(held) == 0 {
		free(f, p)
	}
}

// finishDeletion lets the object go when its pods are gone, or its time is over: those that
// are left are where nothing answers, and none will start beside them.
func finishDeletion(f *facts, p *plan) {
	if !f.deleting() {
		return
	}
	p.WaitFor(
		v1alpha1.ReasonStopping,
		"the members are being stopped, since the object is being deleted",
	)
	claims := leftovers{f.world}.going()
	switch {
	case len(claims) > 0:
		deleteClaims(p, claims)
	case f.isEmpty():
		free(f, p)
	case f.now.Before(f.lastDeadline()):
		p.LookAgain(f.lastDeadline().Sub(f.now))
	default:
		freeAll(f, p)
	}
}

// isEmpty reports whether the set has no pods, and gets none.
func (w *world) isEmpty() bool {
	if len(w.members) > 0 {
		return false
	}
	return !w.hasStatefulSet() || *w.stateful.Spec.Replicas == 0
}

// free takes our finalizer off the object; others may hold it still.
func free(f *facts, p *plan) {
	if !f.held() {
		return
	}
	set := f.set.DeepCopy()
	controllerutil.RemoveFinalizer(set, v1alpha1.FinalizerStop)
	p.Do(action.Chain{{
		Verb:      action.Patch,
		Object:    set,
		From:      f.set,
		Unchanged: true,
		Reason:    reasonRelease,
	}})
}
