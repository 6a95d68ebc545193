package hostile

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// older creates objects that no schema and no webhook allows now, like objects from before the limits.
func (s *site) older(ctx context.Context) {
	crds := &unstructured.UnstructuredList{}
	crds.SetAPIVersion("apiextensions.k8s.io/v1")
	crds.SetKind("CustomResourceDefinitionList")
	back := s.change(ctx, crds, func(o client.Object) { dropBounds(o.(*unstructured.Unstructured).Object["spec"]) })
	defer back()
	defer s.change(ctx, &admissionv1.ValidatingWebhookConfigurationList{}, func(o client.Object) {
		o.(*admissionv1.ValidatingWebhookConfiguration).Webhooks = nil
	})()
	h, huge := s.hostile, int32(1<<31-1)
	refused := error(nil)
	_ = poll(ctx, func() bool { // the API server applies the change after a moment
		set := newExtended(h.name, "huge")
		set.Spec.Template.Spec.Replicas = &huge
		refused = client.IgnoreAlreadyExists(h.Create(ctx, set))
		return refused == nil
	})
	h.makes(ctx, 5, func(name string) client.Object {
		set := newCluster(h.name, name)
		set.Spec.Replicas = &huge
		return set
	})
	h.makes(ctx, 5, func(name string) client.Object {
		set := newReplicated(h.name, name)
		set.Spec.Replicas = &huge
		return set
	})
	h.makes(ctx, 60, func(name string) client.Object {
		set := newSingleton(h.name, name)
		e := metav1.LabelSelectorRequirement{Key: "key", Operator: metav1.LabelSelectorOpNotIn}
		for j := range 7000 {
			e.Values = append(e.Values, strings.Repeat("x", 55)+fmt.Sprint(j))
		}
		set.Spec.Selector.MatchExpressions = append(set.Spec.Selector.MatchExpressions, e)
		return set
	})
}

// change changes all objects of a list, and returns a function that reverts the changes.
func (s *site) change(ctx context.Context, list client.ObjectList, do func(client.Object)) (back func()) {
	if err := s.admin.List(ctx, list); err != nil {
		panic(err) // the administrator has the right, and the API server runs
	}
	objects, _ := meta.ExtractList(list)
	update := func(object runtime.Object, do func(client.Object)) {
		changed := object.DeepCopyObject().(client.Object)
		do(changed)
		if err := s.admin.Update(ctx, changed); err != nil {
			panic(err)
		}
	}
	for _, o := range objects {
		update(o, do)
	}
	return func() {
		for _, o := range objects {
			update(o, func(was client.Object) {
				now := was.DeepCopyObject().(client.Object)
				if err := s.admin.Get(ctx, client.ObjectKeyFromObject(was), now); err != nil {
					panic(err)
				}
				was.SetResourceVersion(now.GetResourceVersion())
			})
		}
	}
}

// dropBounds removes the limits of values from a schema.
func dropBounds(part any) {
	switch part := part.(type) {
	case []any:
		for _, p := range part {
			dropBounds(p)
		}
	case map[string]any:
		for _, bound := range []string{"maximum", "maxItems", "maxLength", "maxProperties", "pattern", "x-kubernetes-validations"} {
			if _, isField := part[bound].(map[string]any); !isField {
				delete(part, bound)
			}
		}
		for _, p := range part {
			dropBounds(p)
		}
	}
}
