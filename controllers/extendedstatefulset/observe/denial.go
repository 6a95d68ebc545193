package observe

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
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
