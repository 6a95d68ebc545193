package extendedstatefulset

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// sharesClaims says why a pod that is being created must not have the claims of its
// ordinal yet: one of another version is there, also one that ends. "" if it may. The
// operator gives nobody such an ordinal, but whoever scales a StatefulSet by hand does,
// and then the StatefulSet controller is faster than the operator.
//
// It is read live: a cache may still lack the other pod.
func sharesClaims(ctx context.Context, live client.Reader, namespace string, pod *corev1.Pod) (why string, err error) {
	m, _ := memberOf(pod)
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return unassigned(&v, m.set) }) {
		return "", nil
	}
	var others corev1.PodList
	if err := live.List(ctx, &others, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelSet: m.set,
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
		return fmt.Sprintf("pod %s has the claims of ordinal %d, and two pods never share them; this one is created when that is gone", other.Name, m.ordinal), nil
	}
	return "", nil
}

// mayShare tells whether a set wants the pods of two versions on the same claims.
// Where the set is gone, nobody says so.
func mayShare(ctx context.Context, live client.Reader, key client.ObjectKey) (bool, error) {
	var set v1alpha1.ExtendedStatefulSet
	if err := live.Get(ctx, key, &set); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	u := set.Status.Update
	return handoverOf(&set) == v1alpha1.HandoverCoexist || u != nil && u.Handover == v1alpha1.HandoverCoexist, nil
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

// claimsInUse refuses the name of a StatefulSet whose claims would be ours too:
// two pods would have one claim.
func (v *validator) claimsInUse(ctx context.Context, set *v1alpha1.ExtendedStatefulSet) field.ErrorList {
	var other appsv1.StatefulSet
	if len(set.Spec.Template.Spec.VolumeClaimTemplates) == 0 || len(set.Spec.Zones) > 0 ||
		v.live.Get(ctx, client.ObjectKeyFromObject(set), &other) != nil {
		return nil // nothing to share, or nobody to share it with
	}
	for _, t := range other.Spec.VolumeClaimTemplates {
		if slices.ContainsFunc(set.Spec.Template.Spec.VolumeClaimTemplates, func(o corev1.PersistentVolumeClaim) bool { return o.Name == t.Name }) {
			return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), set.Name, fmt.Sprintf(
				"the claims of template %q would be those of StatefulSet %s; choose another name, or delete the StatefulSet first: its claims stay, and are taken over", t.Name, other.Name))}
		}
	}
	return nil
}
