package place

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stateful-operator/stateful-operator/test/manifest"
)

// Namespace is the namespace of the samples.
const Namespace = "default"

// Apply applies the objects of a sample after change was called for each.
func (p Place) Apply(ctx context.Context, file string, change func(*unstructured.Unstructured) error) error {
	objects, err := manifest.ReadFile[unstructured.Unstructured](file)
	if err != nil {
		return err
	}
	for _, object := range objects {
		object.SetNamespace(Namespace)
		if err := change(&object); err != nil {
			return fmt.Errorf("change %s of %s: %w", object.GetKind(), file, err)
		}
		if err := manifest.Apply(ctx, p.Client, "make-run", &object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// Template changes the pod template of an object, if it has one.
func Template(object *unstructured.Unstructured, change func(*corev1.PodSpec)) error {
	fields, found, err := unstructured.NestedMap(object.Object, "spec", "template", "spec")
	if err != nil || !found {
		return err
	}
	var spec corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &spec); err != nil {
		return err
	}
	change(&spec)
	if fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&spec); err != nil {
		return err
	}
	return unstructured.SetNestedMap(object.Object, fields, "spec", "template", "spec")
}
