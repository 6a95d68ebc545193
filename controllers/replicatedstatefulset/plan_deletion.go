package replicatedstatefulset

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// deadline returns when the ordered stop of a deleted object ends. lastDeadline returns when the
// operator stops waiting for pods.
func (w *world) deadline() time.Time {
	return w.watch.Deadline(w.set.DeletionTimestamp.Time, patience)
}

func (w *world) lastDeadline() time.Time {
	return w.watch.Deadline(w.set.DeletionTimestamp.Time, 2*patience)
}

func (w *world) overdue() bool { return w.deleting() && !w.now.Before(w.deadline()) }

// letsGo reports whether the operator must release the pods: their namespace is being deleted, or
// the object was deleted with orphaned dependents.
func (w *world) letsGo() bool {
	if !w.deleting() {
		return false
	}
	return !w.keeps() || slices.Contains(w.set.Finalizers, metav1.FinalizerOrphanDependents)
}

// keepObject adds the finalizer that keeps the object while members run. It is added before the
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

// letGo removes all finalizers at once.
func letGo(f *facts, p *plan) {
	if f.letsGo() {
		freeAll(f, p)
	}
}

// freeAll removes the finalizers of the pods, and then of the object.
func freeAll(f *facts, p *plan) {
	held := f.among((*member).protected)
	for _, m := range held {
		p.Do(action.Chain{unprotect(m)})
	}
	if len(held) == 0 {
		free(f, p)
	}
}

// finishDeletion removes the finalizer of the object when its pods are gone or lastDeadline has
// passed. The remaining pods are on unreachable Nodes, and no member starts any more.
func finishDeletion(f *facts, p *plan) {
	if !f.deleting() {
		return
	}
	p.WaitFor(
		v1alpha1.ReasonStopping,
		"stopping the members, because the object is being deleted",
	)
	claims := claimsToDelete(f.world)
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

// isEmpty reports whether the set has no pods and gets none.
func (w *world) isEmpty() bool {
	if len(w.members) > 0 {
		return false
	}
	return !w.hasStatefulSet() || *w.stateful.Spec.Replicas == 0
}

// free removes our finalizer from the object. It may have other finalizers.
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
