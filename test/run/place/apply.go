package place

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Namespace is where samples are applied.
const Namespace = "default"

// Apply applies the objects of a sample as they are, but for what change does.
func (p Place) Apply(ctx context.Context, file string, change func(*unstructured.Unstructured) error) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		var object unstructured.Unstructured
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		object.SetNamespace(Namespace)
		if err := change(&object); err != nil {
			return fmt.Errorf("changing %s of %s: %w", object.GetKind(), file, err)
		}
		err = p.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&object), client.FieldOwner("make-run"), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s of %s: %w", object.GetKind(), file, err)
		}
	}
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
