package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// tracking reads the owner references of the ConfigMaps and Secrets of an object. It returns nil if
// there are none to manage. If references are no longer wanted, it reads live: the finalizer may be
// removed only if no object has a reference.
func (r *ConfigReader) tracking(ctx context.Context, set *v1alpha1.ExtendedStatefulSet, templates ...*corev1.PodSpec) (*facts.Tracking, error) {
	t := &facts.Tracking{Set: set, Origins: configuration.Origins(templates...)}
	inNamespace, ofSet := client.InNamespace(set.Namespace), client.MatchingFields{indexOwner: string(set.UID)}
	switch {
	case !t.WantsReferences() && !t.HasFinalizer():
		return nil, nil
	case !t.WantsReferences():
		return t, r.list(ctx, r.Live, t, inNamespace)
	}
	for _, o := range t.Origins {
		m := configuration.Metadata(o.Kind)
		if !o.Possible() {
			continue
		}
		if err := r.Cache.Get(ctx, types.NamespacedName{Namespace: set.Namespace, Name: o.Name}, m); err == nil {
			t.Objects = append(t.Objects, m)
		} else if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("get %s: %w", o, err)
		}
	}
	if err := r.list(ctx, r.Cache, t, inNamespace, ofSet); err != nil {
		return nil, err
	}
	if len(t.Chains()) == 0 {
		return t, nil
	}
	var namespace corev1.Namespace
	if err := r.Live.Get(ctx, types.NamespacedName{Name: set.Namespace}, &namespace); err != nil {
		return nil, fmt.Errorf("get namespace: %w", err)
	}
	t.Namespace = namespace.UID
	return t, nil
}

// list adds the ConfigMaps and Secrets that concern the object, without duplicates.
func (r *ConfigReader) list(ctx context.Context, from client.Reader, t *facts.Tracking, options ...client.ListOption) error {
	for _, kind := range []string{configuration.KindConfigMap, configuration.KindSecret} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := from.List(ctx, list, options...); err != nil {
			return fmt.Errorf("list %ss: %w", kind, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
			listed := slices.ContainsFunc(t.Objects, func(m *metav1.PartialObjectMetadata) bool { return m.UID == o.UID })
			if t.Concerns(o) && !listed {
				t.Objects = append(t.Objects, o)
			}
		}
	}
	return nil
}
