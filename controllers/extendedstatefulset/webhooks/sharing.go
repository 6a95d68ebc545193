package webhooks

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// Denial returns the reason why a new pod must not get the claims of its ordinal: a pod of another
// version uses them, or they belong to another owner. "" means that it may. It reads live: the cache
// may lack the other pod, and does not hold claims of other owners.
func Denial(ctx context.Context, live client.Reader, namespace string, pod *children.IncomingPod) (why string, err error) {
	if why, err := sharesClaims(ctx, live, namespace, pod); why != "" || err != nil {
		return why, err
	}
	return takesClaims(ctx, live, namespace, pod)
}

// takesClaims returns the reason if a claim of a new pod belongs to another owner. A claim that does
// not exist yet will belong to this object.
func takesClaims(ctx context.Context, live client.Reader, namespace string, pod *children.IncomingPod) (why string, err error) {
	m, _ := children.MemberOf(pod)
	for _, v := range pod.Mounts(m) {
		key := client.ObjectKey{Namespace: namespace, Name: m.Claim(v.Name)}
		one := &metav1.PartialObjectMetadata{}
		one.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
		err := live.Get(ctx, key, one)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return "", fmt.Errorf("get claim %s: %w", key.Name, err)
		case !children.MayHave(m.Set, one):
			return children.AskOwner(namespace, m.Set, one), nil
		}
	}
	return "", nil
}

// sharesClaims returns the reason why a new pod must not get the claims of its ordinal yet: a pod of
// another version on that ordinal exists, possibly terminating. "" means that it may. The operator
// never assigns such an ordinal, but a user who scales a StatefulSet manually does. The StatefulSet
// controller then creates the pod before the operator reacts.
func sharesClaims(ctx context.Context, live client.Reader, namespace string, pod *children.IncomingPod) (why string, err error) {
	m, _ := children.MemberOf(pod)
	if len(pod.Mounts(m)) == 0 {
		return "", nil
	}
	others := &metav1.PartialObjectMetadataList{}
	others.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := live.List(ctx, others, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelSet: m.Set,
		v1alpha1.LabelStatefulSet: m.Stem, appsv1.PodIndexLabel: strconv.Itoa(m.Ordinal)}); err != nil {
		return "", fmt.Errorf("list pods of ordinal %d: %w", m.Ordinal, err)
	}
	for i := range others.Items {
		other := &others.Items[i]
		if _, stranger := children.MemberOf(other); stranger != "" || other.Name == pod.Name {
			continue
		}
		if shared, err := mayShare(ctx, live, client.ObjectKey{Namespace: namespace, Name: m.Set}); shared || err != nil {
			return "", err
		}
		return fmt.Sprintf(
			"pod %s has the claims of ordinal %d, and two pods must not share them; this pod is created after the other one is deleted",
			other.Name, m.Ordinal,
		), nil
	}
	return "", nil
}

// mayShare reports whether the pods of two versions may use the same claims. It returns false if the
// set does not exist.
func mayShare(ctx context.Context, live client.Reader, key client.ObjectKey) (bool, error) {
	var set v1alpha1.ExtendedStatefulSet
	if err := live.Get(ctx, key, &set); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if u := set.Status.Update; u != nil && u.Handover == v1alpha1.HandoverCoexist {
		return true, nil
	}
	return spec.HandoverOf(&set) == v1alpha1.HandoverCoexist, nil
}

// orphansExist rejects the name of a deleted set whose StatefulSets were orphaned. Their pods use the
// claims that the new set would use.
func (v *Validator) orphansExist(ctx context.Context, set *v1alpha1.ExtendedStatefulSet) field.ErrorList {
	var list appsv1.StatefulSetList
	if v.Live.List(ctx, &list, observe.OfSet(set)...) != nil {
		return nil // the operator reports it in a condition
	}
	for i := range list.Items {
		if _, _, ok := children.ParseChild(set.Name, list.Items[i].Name); ok {
			if errs := elsewhere(set, &list.Items[i]); len(errs) > 0 {
				return errs
			}
		}
	}
	return nil
}

// claimsTrial is the max number of claims of a new set that admission reads. The operator reports
// problems with further claims in a condition.
const claimsTrial = 32

// claimsInUse rejects a new set whose claims would belong to another owner: to a StatefulSet with the
// same claim names, or to the owner of existing claims that has not given consent.
func (v *Validator) claimsInUse(ctx context.Context, set *v1alpha1.ExtendedStatefulSet) field.ErrorList {
	ctx, cancel := context.WithTimeout(ctx, spec.ClaimsTrialTime)
	defer cancel()
	at := field.NewPath("metadata", "name")
	w := &facts.World{Set: set, Zones: children.ZonesOf(set, &set.Status), Replicas: spec.ReplicasOf(set)}
	read, taken := 0, []metav1.Object(nil)
	for _, name := range facts.ClaimNames(w) {
		if read++; read > claimsTrial {
			break
		}
		var one corev1.PersistentVolumeClaim
		if v.Live.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, &one) == nil && !children.MayHave(set.Name, &one) {
			taken = append(taken, &one)
		}
	}
	for _, t := range set.Spec.Template.Spec.VolumeClaimTemplates {
		other, err := observe.ClaimantOf(ctx, v.Live, set.Namespace, t.Name, w.Zones[0].Stem(set.Name))
		if err == nil && other != "" {
			return field.ErrorList{field.Invalid(at, set.Name, fmt.Sprintf(
				"the claims of template %q have the same names as those of StatefulSet %s; choose another name, or delete the StatefulSet first: its claims are kept, and you can assign each of them: %s",
				t.Name, other, children.Consent(set.Namespace, set.Name, "<claim>")))}
		}
	}
	if len(taken) > 0 {
		return field.ErrorList{field.Invalid(at, set.Name, children.AskOwner(set.Namespace, set.Name, taken...)+"; or choose another name")}
	}
	return nil
}
