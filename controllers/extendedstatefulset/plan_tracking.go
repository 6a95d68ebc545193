package extendedstatefulset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// Configuration is tracked by owner references only where the user asks for it.
//
// The garbage collector deletes an object when none of its owners is solid: one is
// not when it is gone, or when it waits in a foreground deletion for its dependents
// to go, which it does before any finalizer of ours is looked at. So an owner
// reference to an ExtendedStatefulSet alone would let `kubectl delete
// --cascade=foreground` take the user's Secrets along in a race with us. Beside it
// goes, in the same write, one to the namespace: that owner is solid as long as the
// object can be there at all, and of references beside a solid one the garbage
// collector takes off those that are not, and deletes nothing.

// tracking is what is known about owner references on ConfigMaps and Secrets.
type tracking struct {
	set *v1alpha1.ExtendedStatefulSet
	// origins that any live version uses, or the template.
	origins []configuration.Origin
	// objects that there are of those, and all others that carry a reference to this
	// set, as metadata.
	objects []*metav1.PartialObjectMetadata
	// namespace is the UID of the namespace.
	namespace types.UID
}

// owns reports whether the user wants owner references, and there may be new ones.
func (t *tracking) owns() bool {
	return t.set.Spec.UpdateOnEnvChange && t.set.Spec.ConfigTracking == v1alpha1.TrackByOwnerReference && t.set.DeletionTimestamp == nil
}

func (t *tracking) held() bool { return controllerutil.ContainsFinalizer(t.set, v1alpha1.Finalizer) }

// needsFinalizer reports whether the finalizer has to go on, before the first
// reference does.
func (t *tracking) needsFinalizer() bool { return t.owns() && !t.held() }

// needsNoFinalizer reports whether it may go: no object has a reference any more.
func (t *tracking) needsNoFinalizer() bool {
	return t.held() && !t.owns() && len(t.chains()) == 0
}

// finalizer is the write that puts our finalizer on the object or takes it off.
func (t *tracking) finalizer(on bool) action.Chain {
	set := t.set.DeepCopy()
	reason := v1alpha1.EventTracked
	if on {
		controllerutil.AddFinalizer(set, v1alpha1.Finalizer)
	} else {
		reason = v1alpha1.EventUntracked
		controllerutil.RemoveFinalizer(set, v1alpha1.Finalizer)
	}
	return action.Chain{{Verb: action.Patch, Object: set, From: t.set, Unchanged: true, Reason: reason}}
}

// chains are the writes on ConfigMaps and Secrets. Each is bound to the version that
// was read, and so adds to what others wrote and takes nothing of theirs.
func (t *tracking) chains() (chains []action.Chain) {
	for _, o := range t.objects {
		if chain := t.chain(o); chain != nil {
			chains = append(chains, chain)
		}
	}
	return chains
}

// chain is the write on one of them; nil if it is as it has to be.
func (t *tracking) chain(o *metav1.PartialObjectMetadata) action.Chain {
	change := o.DeepCopy()
	switch {
	case t.needsReference(o):
		t.add(change)
		return action.Chain{{
			Verb:      action.Patch,
			Object:    change,
			From:      o,
			Unchanged: true,
			Reason:    v1alpha1.EventTracked,
		}}
	case t.needsNoReference(o):
		t.remove(change)
		return action.Chain{{
			Verb:      action.Patch,
			Object:    change,
			From:      o,
			Unchanged: true,
			Reason:    v1alpha1.EventUntracked,
		}}
	}
	return nil
}

// wants reports whether an object has to have our reference.
func (t *tracking) wants(o *metav1.PartialObjectMetadata) bool {
	return t.owns() && slices.Contains(t.origins, configuration.Origin{Kind: o.Kind, Name: o.Name}) && o.DeletionTimestamp == nil
}

// needsReference reports whether our reference goes on an object, or the guard. The
// finalizer of the set goes on first: else the reference would never be taken off.
func (t *tracking) needsReference(o *metav1.PartialObjectMetadata) bool {
	if !t.wants(o) || !t.held() {
		return false
	}
	return !t.refersTo(o) || !guarded(o)
}

// needsNoReference reports whether our reference is taken off an object, or a guard that
// is left.
func (t *tracking) needsNoReference(o *metav1.PartialObjectMetadata) bool {
	return !t.wants(o) && (t.refersTo(o) || guardLeft(o))
}

func (t *tracking) refersTo(o metav1.Object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == t.set.UID })
}

// ofOurKind reports whether a reference is to an ExtendedStatefulSet, of any name.
func ofOurKind(r metav1.OwnerReference) bool {
	return r.Kind == v1alpha1.Kind && r.APIVersion == v1alpha1.GroupVersion.String()
}

func toNamespace(r metav1.OwnerReference) bool { return r.Kind == "Namespace" && r.APIVersion == "v1" }

// guarded reports whether the namespace is among the owners.
func guarded(o metav1.Object) bool { return slices.ContainsFunc(o.GetOwnerReferences(), toNamespace) }

// guardLeft reports whether the guard has nothing to guard any more: the garbage
// collector took off the references beside it.
func guardLeft(o metav1.Object) bool {
	return o.GetAnnotations()[v1alpha1.AnnotationGuard] != "" && !slices.ContainsFunc(o.GetOwnerReferences(), ofOurKind)
}

// keepTracking keeps owner references where they are wanted, and takes them off
// elsewhere: before an object goes, and before its finalizer does. Its children have
// its owner reference and are the garbage collector's, its claims are the user's.
func keepTracking(w *world, p *plan) {
	t := w.tracking
	if t == nil {
		return
	}
	if t.needsFinalizer() {
		p.Do(t.finalizer(true))
	}
	p.Do(t.chains()...)
	if t.needsNoFinalizer() {
		p.Do(t.finalizer(false))
	}
}

// add puts our reference on, and the guard in front of it unless there is one.
func (t *tracking) add(o *metav1.PartialObjectMetadata) {
	if !guarded(o) {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "Namespace", Name: t.set.Namespace, UID: t.namespace,
		})
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.AnnotationGuard, v1alpha1.True)
	}
	if !t.refersTo(o) {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind, Name: t.set.Name, UID: t.set.UID,
			Controller: ptr.To(false), BlockOwnerDeletion: ptr.To(true),
		})
	}
}

// remove takes our reference off, and the guard if it was ours and guards nothing
// any more.
func (t *tracking) remove(o *metav1.PartialObjectMetadata) {
	o.OwnerReferences = slices.DeleteFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == t.set.UID })
	if guardLeft(o) {
		delete(o.Annotations, v1alpha1.AnnotationGuard)
		o.OwnerReferences = slices.DeleteFunc(o.OwnerReferences, toNamespace)
	}
}

// concerns reports whether an object is any of this set's: it uses it, has a reference
// on it, or goes and may have left a guard.
func (t *tracking) concerns(o *metav1.PartialObjectMetadata) bool {
	return slices.Contains(t.origins, configuration.Origin{Kind: o.Kind, Name: o.Name}) || t.refersTo(o) || guardLeft(o)
}
