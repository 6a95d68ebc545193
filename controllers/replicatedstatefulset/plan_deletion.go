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
// when nobody is waited for.
func (w *world) deadline() time.Time {
	return w.watch.Deadline(w.set.DeletionTimestamp.Time, patience)
}

func (w *world) lastDeadline() time.Time {
	return w.watch.Deadline(w.set.DeletionTimestamp.Time, 2*patience)
}

func (w *world) overdue() bool { return w.deleting() && !w.now.Before(w.deadline()) }

// letsGo tells whether the pods go their own way: with their namespace, or because
// the object was deleted without them.
func (w *world) letsGo() bool {
	return w.deleting() && (w.namespaceGoes || w.invalid != "" || slices.Contains(w.set.Finalizers, metav1.FinalizerOrphanDependents))
}

// keepObject holds the object back from being gone while members run. It comes
// before the first start.
func keepObject(w *world, p *plan) {
	if w.deleting() || w.held() || w.invalid != "" || w.namespaceGoes {
		return
	}
	set := w.set.DeepCopy()
	controllerutil.AddFinalizer(set, v1alpha1.FinalizerStop)
	p.Do(action.Chain{{Verb: action.Patch, Object: set, From: w.set, Unchanged: true, Reason: reasonKeep}})
}

// letGo takes all finalizers off at once.
func letGo(w *world, p *plan) {
	if !w.letsGo() {
		return
	}
	held := w.among((*member).protected)
	for _, m := range held {
		p.Do(action.Chain{unprotect(m)})
	}
	if len(held) == 0 {
		free(w, p)
	}
}

// finishDeletion lets the object go when its pods are gone, or its time is over.
func finishDeletion(w *world, p *plan) {
	if !w.deleting() {
		return
	}
	p.WaitFor(v1alpha1.ReasonStopping, "the members are being stopped, since the object is being deleted")
	if len(w.members) == 0 && (w.stateful == nil || !w.ours(w.stateful) || *w.stateful.Spec.Replicas == 0 || w.stateful.DeletionTimestamp != nil) {
		free(w, p)
		return
	}
	if w.now.Before(w.lastDeadline()) {
		p.LookAgain(w.lastDeadline().Sub(w.now))
		return
	}
	held := w.among((*member).protected)
	for _, m := range held { // they are where nobody answers, and nobody will start beside them
		p.Do(action.Chain{unprotect(m)})
	}
	if len(held) == 0 {
		free(w, p)
	}
}

// free takes our finalizer off the object; others may hold it still.
func free(w *world, p *plan) {
	if !w.held() {
		return
	}
	set := w.set.DeepCopy()
	controllerutil.RemoveFinalizer(set, v1alpha1.FinalizerStop)
	p.Do(action.Chain{{Verb: action.Patch, Object: set, From: w.set, Unchanged: true, Reason: reasonRelease}})
}
