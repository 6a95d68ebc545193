package extendedstatefulset

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
)

// denial says why a pod that is being created must not have the claims of its ordinal:
// a pod of another owner has them, or they belong to another owner. "" if it may.
//
// It is read live: a cache may still lack the other pod, and has no claims of others.
func denial(ctx context.Context, live client.Reader, namespace string, pod *incomingPod) (why string, err error) {
	if why, err := sharesClaims(ctx, live, namespace, pod); why != "" || err != nil {
		return why, err
	}
	return takesClaims(ctx, live, namespace, pod)
}

// takesClaims says which claim of a new pod belongs to another owner. One that is not there
// yet will be ours.
func takesClaims(ctx context.Context, live client.Reader, namespace string, pod *incomingPod) (why string, err error) {
	m, _ := memberOf(pod)
	for _, v := range pod.mounts(m) {
		key := client.ObjectKey{Namespace: namespace, Name: m.claim(v.name)}
		one := &metav1.PartialObjectMetadata{}
		one.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
		err := live.Get(ctx, key, one)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return "", fmt.Errorf("get claim %s: %w", key.Name, err)
		case !mayHave(m.set, one):
			return askOwner(namespace, m.set, one), nil
		}
	}
	return "", nil
}

// sharesClaims says why a pod that is being created must not have the claims of its
// ordinal yet: one of another version is there, also one that ends. "" if it may. The
// operator gives no version such an ordinal, but whoever scales a StatefulSet by hand does,
// and then the StatefulSet controller is faster than the operator.
func sharesClaims(ctx context.Context, live client.Reader, namespace string, pod *incomingPod) (why string, err error) {
	m, _ := memberOf(pod)
	if len(pod.mounts(m)) == 0 {
		return "", nil
	}
	others := &metav1.PartialObjectMetadataList{}
	others.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := live.List(ctx, others, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelSet: m.set,
		v1alpha1.LabelStatefulSet: m.stem, appsv1.PodIndexLabel: strconv.Itoa(m.ordinal)}); err != nil {
		return "", fmt.Errorf("list the pods of ordinal %d: %w", m.ordinal, err)
	}
	for i := range others.Items {
		other := &others.Items[i]
		if _, stranger := memberOf(other); stranger != "" || other.Name == pod.Name {
			continue
		}
		if shared, err := mayShare(ctx, live, client.ObjectKey{Namespace: namespace, Name: m.set}); shared || err != nil {
			return "", err
		}
		return fmt.Sprintf(
			"pod %s has the claims of ordinal %d, and two pods never share them; this one is created when that is gone",
			other.Name, m.ordinal,
		), nil
	}
	return "", nil
}

// mayShare reports whether a set wants the pods of two versions on the same claims.
// Where the set is gone, it does not.
func mayShare(ctx context.Context, live client.Reader, key client.ObjectKey) (bool, error) {
	var set v1alpha1.ExtendedStatefulSet
	if err := live.Get(ctx, key, &set); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if u := set.Status.Update; u != nil && u.Handover == v1alpha1.HandoverCoexist {
		return true, nil
	}
	return handoverOf(&set) == v1alpha1.HandoverCoexist, nil
}

// leftBehind refuses the name of a set that was deleted and left its StatefulSets
// behind: their pods are on the claims that would be ours.
func (v *validator) leftBehind(ctx context.Context, set *v1alpha1.ExtendedStatefulSet) field.ErrorList {
	var list appsv1.StatefulSetList
	if v.live.List(ctx, &list, ofSet(set)...) != nil {
		return nil // a condition will say
	}
	for i := range list.Items {
		if _, _, ok := parseChild(set.Name, list.Items[i].Name); ok {
			if errs := elsewhere(set, &list.Items[i]); len(errs) > 0 {
				return errs
			}
		}
	}
	return nil
}

// claimsTrial is how many claims of a new set are looked for. What is beyond, a
// condition will say.
const claimsTrial = 32

// claimsInUse refuses a new set whose claims would belong to another owner: a StatefulSet's
// now or one day, or such as are there and were not given to it.
func (v *validator) claimsInUse(ctx context.Context, set *v1alpha1.ExtendedStatefulSet) field.ErrorList {
	ctx, cancel := context.WithTimeout(ctx, claimsTrialTime)
	defer cancel()
	at := field.NewPath("metadata", "name")
	w := &world{set: set, zones: zonesOf(set, &set.Status), replicas: replicasOf(set)}
	asked, taken := 0, []metav1.Object(nil)
	for _, name := range w.storage().claimNames() {
		if asked++; asked > claimsTrial {
			break
		}
		var one corev1.PersistentVolumeClaim
		if v.live.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, &one) == nil && !mayHave(set.Name, &one) {
			taken = append(taken, &one)
		}
	}
	for _, t := range set.Spec.Template.Spec.VolumeClaimTemplates {
		other, err := claimantOf(ctx, v.live, set.Namespace, t.Name, w.zones[0].stem(set.Name))
		if err == nil && other != "" {
			return field.ErrorList{field.Invalid(at, set.Name, fmt.Sprintf(
				"the claims of template %q would be those of StatefulSet %s; choose another name, or delete the StatefulSet first: its claims stay, and each can be given: %s",
				t.Name, other, consent(set.Namespace, set.Name, "<claim>")))}
		}
	}
	if len(taken) > 0 {
		return field.ErrorList{field.Invalid(at, set.Name, askOwner(set.Namespace, set.Name, taken...)+"; or choose another name")}
	}
	return nil
}
