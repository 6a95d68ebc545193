package observe

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// Index fields of the cache.
const (
	// indexUses indexes ExtendedStatefulSets and StatefulSets that follow configuration by the
	// ConfigMaps and Secrets that they use, as kind/name.
	indexUses = "uses"
	// indexOwner indexes ConfigMaps and Secrets by the UIDs of their ExtendedStatefulSet owners.
	indexOwner = "owner"
)

// IndexConfig adds these indexes to the cache.
func IndexConfig(c client.FieldIndexer) error {
	for _, index := range []struct {
		object client.Object
		field  string
		values client.IndexerFunc
	}{
		{&v1alpha1.ExtendedStatefulSet{}, indexUses, usesIndex},
		{&appsv1.StatefulSet{}, indexUses, usesIndex},
		{&appsv1.StatefulSet{}, configuration.IndexRestarts, configuration.RestartIndex(facts.RestartsSince)},
		{configuration.Metadata(configuration.KindConfigMap), indexOwner, ownerIndex},
	} {
		if err := c.IndexField(context.Background(), index.object, index.field, index.values); err != nil {
			return err
		}
	}
	return nil
}

// IndexSecrets adds indexOwner to a cache of Secrets.
func IndexSecrets(c client.FieldIndexer) error {
	return c.IndexField(context.Background(), configuration.Metadata(configuration.KindSecret), indexOwner, ownerIndex)
}

// usesIndex returns the values of indexUses for an object.
func usesIndex(o client.Object) (all []string) {
	var template *corev1.PodSpec
	switch o := o.(type) {
	case *v1alpha1.ExtendedStatefulSet:
		if o.Spec.UpdateOnEnvChange {
			template = &o.Spec.Template.Spec.Template.Spec
		}
	case *appsv1.StatefulSet:
		if facts.RecordOf(o) != nil {
			template = &o.Spec.Template.Spec
		}
	}
	if template == nil {
		return nil
	}
	for _, from := range configuration.Origins(template) {
		all = append(all, from.String())
	}
	return all
}

// ownerIndex returns the values of indexOwner for a ConfigMap or Secret.
func ownerIndex(o client.Object) (uids []string) {
	for _, r := range o.GetOwnerReferences() {
		if facts.OfOurKind(r) {
			uids = append(uids, string(r.UID))
		}
	}
	return uids
}

// Users returns the objects that use a ConfigMap or Secret: in the template, in the template of an
// existing StatefulSet, or because of an owner reference that may have to be restored.
func (r *ConfigReader) Users(ctx context.Context, o client.Object) (requests []reconcile.Request) {
	add := func(name string) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}})
	}
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil
	}
	options := []client.ListOption{client.InNamespace(m.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingFields{indexUses: configuration.Origin{Kind: m.Kind, Name: m.Name}.String()}}
	var sets v1alpha1.ExtendedStatefulSetList
	var children appsv1.StatefulSetList
	if err := errors.Join(r.Cache.List(ctx, &sets, options...), r.Cache.List(ctx, &children, options...)); err != nil {
		log.FromContext(ctx).Error(err, "list objects that reference configuration", "object", m.Name)
	}
	for i := range sets.Items {
		add(sets.Items[i].Name)
	}
	for i := range children.Items {
		if owner := metav1.GetControllerOf(&children.Items[i]); owner != nil && owner.Kind == v1alpha1.Kind {
			add(owner.Name)
		}
	}
	for _, owner := range m.OwnerReferences {
		if facts.OfOurKind(owner) {
			add(owner.Name)
		}
	}
	return requests
}
