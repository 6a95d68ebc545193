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

// Configuration is tracked by owner references only if the user requests it.
//
// The garbage collector deletes an object that has no solid owner. An owner is not solid if it
// does not exist, or if it waits in a foreground deletion for its dependents. This wait happens before
// finalizers of other controllers are processed. With only an owner reference to an
// ExtendedStatefulSet, `kubectl delete --cascade=foreground` could therefore delete the user's Secrets
// before the operator removes the reference. The same write therefore adds an owner reference to the
// namespace, which is solid for as long as the object can exist. If at least one owner is solid, the
// garbage collector only removes the references to the other owners, and deletes nothing.

// tracking has the owner references on ConfigMaps and Secrets.
type tracking struct {
	set *v1alpha1.ExtendedStatefulSet
	// origins are the sources that the template or a StatefulSet uses.
	origins []configuration.Origin
	// objects are the existing objects of origins, and all other objects with an owner reference to
	// this set, as metadata.
	objects []*metav1.PartialObjectMetadata
	// namespace is the UID of the namespace.
	namespace types.UID
}

// owns reports whether the user requests owner references, and new ones may be added.
func (t *tracking) owns() bool {
	return t.set.Spec.UpdateOnEnvChange && t.set.Spec.ConfigTracking == v1alpha1.TrackByOwnerReference && t.set.DeletionTimestamp == nil
}

func (t *tracking) held() bool { return controllerutil.ContainsFinalizer(t.set, v1alpha1.Finalizer) }

// needsFinalizer reports whether the finalizer must be added. It must exist before the first owner
// reference.
func (t *tracking) needsFinalizer() bool { return t.owns() && !t.held() }

// needsNoFinalizer reports whether the finalizer can be removed: no object has an owner reference to
// this set.
func (t *tracking) needsNoFinalizer() bool {
	return t.held() && !t.owns() && len(t.chains()) == 0
}

// finalizer returns the patch that adds or removes the finalizer.
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

// chains returns the patches of ConfigMaps and Secrets. Each is bound to the resourceVersion that was
// read, so it never overwrites changes of other clients.
func (t *tracking) chains() (chains []action.Chain) {
	for _, o := range t.objects {
		if chain := t.chain(o); chain != nil {
			chains = append(chains, chain)
		}
	}
	return chains
}

// chain returns the patch of one object; nil if nothing has to change.
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

// wants reports whether an object must have the owner reference.
func (t *tracking) wants(o *metav1.PartialObjectMetadata) bool {
	return t.owns() && slices.Contains(t.origins, configuration.Origin{Kind: o.Kind, Name: o.Name}) && o.DeletionTimestamp == nil
}

// needsReference reports whether the owner reference or the guard must be added to an object. The
// finalizer of the set must exist first, or the reference could be left behind forever.
func (t *tracking) needsReference(o *metav1.PartialObjectMetadata) bool {
	if !t.wants(o) || !t.held() {
		return false
	}
	return !t.refersTo(o) || !guarded(o)
}

// needsNoReference reports whether the owner reference or a leftover guard must be removed from an
// object.
func (t *tracking) needsNoReference(o *metav1.PartialObjectMetadata) bool {
	return !t.wants(o) && (t.refersTo(o) || guardLeft(o))
}

func (t *tracking) refersTo(o metav1.Object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == t.set.UID })
}

// ofOurKind reports whether an owner reference is to any ExtendedStatefulSet.
func ofOurKind(r metav1.OwnerReference) bool {
	return r.Kind == v1alpha1.Kind && r.APIVersion == v1alpha1.GroupVersion.String()
}

func toNamespace(r metav1.OwnerReference) bool { return r.Kind == "Namespace" && r.APIVersion == "v1" }

// guarded reports whether the namespace is one of the owners.
func guarded(o metav1.Object) bool { return slices.ContainsFunc(o.GetOwnerReferences(), toNamespace) }

// guardLeft reports whether a guard is left although no reference to an ExtendedStatefulSet remains:
// the garbage collector removed the other references.
func guardLeft(o metav1.Object) bool {
	return o.GetAnnotations()[v1alpha1.AnnotationGuard] != "" && !slices.ContainsFunc(o.GetOwnerReferences(), ofOurKind)
}

// keepTracking adds wanted owner references and removes all others. It removes them before the object
// and its finalizer are deleted. Children with an owner reference to the set are deleted by the garbage
// collector; claims are kept for the user.
func keepTracking(f *facts, p *plan) {
	t := f.tracking
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

// add adds the owner reference, after the guard if that is missing.
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

// remove removes the owner reference, and the guard if the operator added it and it is no longer
// needed.
func (t *tracking) remove(o *metav1.PartialObjectMetadata) {
	o.OwnerReferences = slices.DeleteFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == t.set.UID })
	if guardLeft(o) {
		delete(o.Annotations, v1alpha1.AnnotationGuard)
		o.OwnerReferences = slices.DeleteFunc(o.OwnerReferences, toNamespace)
	}
}

// concerns reports whether an object is relevant for this set: the set uses it, it has an owner
// reference to the set, or it has a leftover guard.
func (t *tracking) concerns(o *metav1.PartialObjectMetadata) bool {
	return slices.Contains(t.origins, configuration.Origin{Kind: o.Kind, Name: o.Name}) || t.refersTo(o) || guardLeft(o)
}
