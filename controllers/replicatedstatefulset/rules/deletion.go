package rules

import (
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
)

// addObjectFinalizer adds the finalizer that keeps the object while members run. It is added before
// the first start.
func addObjectFinalizer(f *facts.Facts, p *Plan) {
	if f.Deleting() || f.HasFinalizer() || !f.ManagesChildren() {
		return
	}
	set := f.Set.DeepCopy()
	controllerutil.AddFinalizer(set, v1alpha1.FinalizerStop)
	p.Do(action.Chain{{
		Verb:      action.Patch,
		Object:    set,
		From:      f.Set,
		Unchanged: true,
		Reason:    facts.ReasonKeep,
	}})
}

// releaseAll removes all finalizers at once if the set must release its pods.
func releaseAll(f *facts.Facts, p *Plan) {
	if f.ReleasesPods() {
		removeAllFinalizers(f, p)
	}
}

// removeAllFinalizers removes the finalizers of the pods, and then of the object.
func removeAllFinalizers(f *facts.Facts, p *Plan) {
	held := f.Among((*facts.Member).Protected)
	for _, m := range held {
		p.Do(action.Chain{Unprotect(m)})
	}
	if len(held) == 0 {
		removeObjectFinalizer(f, p)
	}
}

// finishDeletion removes the finalizer of the object when its pods are gone or LastDeadline has
// passed. The remaining pods are on unreachable Nodes, and no member starts any more.
func finishDeletion(f *facts.Facts, p *Plan) {
	if !f.Deleting() {
		return
	}
	p.WaitFor(
		v1alpha1.ReasonStopping,
		"stopping the members, because the object is being deleted",
	)
	claims := claimsToDelete(f.World)
	switch {
	case len(claims) > 0:
		deleteClaims(p, claims)
	case f.IsEmpty():
		removeObjectFinalizer(f, p)
	case f.Now.Before(f.LastDeadline()):
		p.LookAgain(f.LastDeadline().Sub(f.Now))
	default:
		removeAllFinalizers(f, p)
	}
}

// removeObjectFinalizer removes our finalizer from the object. It may have other finalizers.
func removeObjectFinalizer(f *facts.Facts, p *Plan) {
	if !f.HasFinalizer() {
		return
	}
	set := f.Set.DeepCopy()
	controllerutil.RemoveFinalizer(set, v1alpha1.FinalizerStop)
	p.Do(action.Chain{{
		Verb:      action.Patch,
		Object:    set,
		From:      f.Set,
		Unchanged: true,
		Reason:    facts.ReasonRelease,
	}})
}
