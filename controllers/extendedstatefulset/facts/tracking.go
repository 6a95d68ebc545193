package facts

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

// Configuration is tracked by owner references only if the user requests it.
//
// The garbage collector deletes an object that has no solid owner. An owner is not solid if it
// does not exist, or if it waits in a foreground deletion for its dependents. This wait happens before
// finalizers of other controllers are processed. With only an owner reference to an
// ExtendedStatefulSet, `kubectl delete --cascade=foreground` could therefore delete the user's Secrets
// before the operator removes the reference. The same write therefore adds an owner reference to the
// namespace, the guard, which is solid for as long as the object can exist. If at least one owner is
// solid, the garbage collector only removes the references to the other owners, and deletes nothing.
// Annotation guard marks a guard that the operator added.

// Tracking has the owner references on ConfigMaps and Secrets that exist or are wanted.
type Tracking struct {
	Set *v1alpha1.ExtendedStatefulSet
	// Origins are the sources that the template or a StatefulSet uses.
	Origins []configuration.Origin
	// Objects are the existing objects of origins, and all other objects with an owner reference to
	// this set, as metadata.
	Objects []*metav1.PartialObjectMetadata
	// Namespace is the UID of the namespace.
	Namespace types.UID
}

// WantsReferences reports whether the user requests owner references, and new ones may be added.
func (t *Tracking) WantsReferences() bool {
	return t.Set.Spec.UpdateOnEnvChange && t.Set.Spec.ConfigTracking == v1alpha1.TrackByOwnerReference && t.Set.DeletionTimestamp == nil
}

// HasFinalizer reports whether the set has the finalizer, which blocks its deletion until all owner
// references to it are removed.
func (t *Tracking) HasFinalizer() bool {
	return controllerutil.ContainsFinalizer(t.Set, v1alpha1.Finalizer)
}

// NeedsFinalizer reports whether the finalizer must be added. It must exist before the first owner
// reference.
func (t *Tracking) NeedsFinalizer() bool { return t.WantsReferences() && !t.HasFinalizer() }

// NeedsNoFinalizer reports whether the finalizer can be removed: no object has an owner reference to
// this set.
func (t *Tracking) NeedsNoFinalizer() bool {
	return t.HasFinalizer() && !t.WantsReferences() && len(t.Chains()) == 0
}

// Reasons of the patches of the object's finalizer. They have no event.
const (
	reasonFinalizer   = "Finalizer"
	reasonNoFinalizer = "NoFinalizer"
)

// Finalizer returns the patch that adds or removes the finalizer.
func (t *Tracking) Finalizer(on bool) action.Chain {
	set := t.Set.DeepCopy()
	reason := reasonFinalizer
	if on {
		controllerutil.AddFinalizer(set, v1alpha1.Finalizer)
	} else {
		reason = reasonNoFinalizer
		controllerutil.RemoveFinalizer(set, v1alpha1.Finalizer)
	}
	return action.Chain{{Verb: action.Patch, Object: set, From: t.Set, Unchanged: true, Reason: reason}}
}

// Chains returns the patches of ConfigMaps and Secrets. Each is bound to the resourceVersion that was
// read, so it never overwrites changes of other clients.
func (t *Tracking) Chains() (chains []action.Chain) {
	for _, o := range t.Objects {
		if chain := t.chain(o); chain != nil {
			chains = append(chains, chain)
		}
	}
	return chains
}

// chain returns the patch of one object; nil if nothing has to change.
func (t *Tracking) chain(o *metav1.PartialObjectMetadata) action.Chain {
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

// wants reports whether an object must have the owner reference.
func (t *Tracking) wants(o *metav1.PartialObjectMetadata) bool {
	return t.WantsReferences() && slices.Contains(t.Origins, configuration.Origin{Kind: o.Kind, Name: o.Name}) && o.DeletionTimestamp == nil
}

// needsReference reports whether the owner reference or the guard must be added to an object. The
// finalizer of the set must exist first, or the reference could be left behind forever.
func (t *Tracking) needsReference(o *metav1.PartialObjectMetadata) bool {
	if !t.wants(o) || !t.HasFinalizer() {
		return false
	}
	return !t.refersTo(o) || !guarded(o)
}

// needsNoReference reports whether the owner reference or a leftover guard must be removed from an
// object.
func (t *Tracking) needsNoReference(o *metav1.PartialObjectMetadata) bool {
	return !t.wants(o) && (t.refersTo(o) || guardLeft(o))
}

// refersTo reports whether an object has an owner reference to this set.
func (t *Tracking) refersTo(o metav1.Object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == t.Set.UID })
}

// OfOurKind reports whether an owner reference is to any ExtendedStatefulSet.
func OfOurKind(r metav1.OwnerReference) bool {
	return r.Kind == v1alpha1.Kind && r.APIVersion == v1alpha1.GroupVersion.String()
}

// ToNamespace reports whether an owner reference is to a namespace.
func ToNamespace(r metav1.OwnerReference) bool { return r.Kind == "Namespace" && r.APIVersion == "v1" }

// guarded reports whether the namespace is one of the owners.
func guarded(o metav1.Object) bool { return slices.ContainsFunc(o.GetOwnerReferences(), ToNamespace) }

// guardLeft reports whether a guard is left although no reference to an ExtendedStatefulSet remains:
// the garbage collector removed the other references.
func guardLeft(o metav1.Object) bool {
	return o.GetAnnotations()[v1alpha1.AnnotationGuard] != "" && !slices.ContainsFunc(o.GetOwnerReferences(), OfOurKind)
}

// add adds the owner reference, after the guard if that is missing.
func (t *Tracking) add(o *metav1.PartialObjectMetadata) {
	if !guarded(o) {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "Namespace", Name: t.Set.Namespace, UID: t.Namespace,
		})
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.AnnotationGuard, v1alpha1.True)
	}
	if !t.refersTo(o) {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind, Name: t.Set.Name, UID: t.Set.UID,
			Controller: ptr.To(false), BlockOwnerDeletion: ptr.To(true),
		})
	}
}

// remove removes the owner reference, and the guard if the operator added it and it is no longer
// needed.
func (t *Tracking) remove(o *metav1.PartialObjectMetadata) {
	o.OwnerReferences = slices.DeleteFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == t.Set.UID })
	if guardLeft(o) {
		delete(o.Annotations, v1alpha1.AnnotationGuard)
		o.OwnerReferences = slices.DeleteFunc(o.OwnerReferences, ToNamespace)
	}
}

// Concerns reports whether an object is relevant for this set: the set uses it, it has an owner
// reference to the set, or it has a leftover guard.
func (t *Tracking) Concerns(o *metav1.PartialObjectMetadata) bool {
	return slices.Contains(t.Origins, configuration.Origin{Kind: o.Kind, Name: o.Name}) || t.refersTo(o) || guardLeft(o)
}
