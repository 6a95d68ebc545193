package main

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/manifest"
)

// contents are what a file says.
type contents struct {
	sets   []*v1alpha1.ReplicatedStatefulSet
	others []*unstructured.Unstructured // what their pods may need
}

func readManifest(file string) (contents, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return contents{}, err
	}
	m, err := parseManifest(content)
	if err == nil && len(m.sets) == 0 {
		err = errors.New("there is no ReplicatedStatefulSet in it")
	}
	if err != nil {
		return contents{}, fmt.Errorf("reading %s: %w", file, err)
	}
	return m, nil
}

func parseManifest(content []byte) (m contents, err error) {
	objects, err := manifest.Read[*unstructured.Unstructured](content)
	if err != nil {
		return m, err
	}
	for _, object := range objects {
		if object.GetKind() != "ReplicatedStatefulSet" {
			m.others = append(m.others, object)
			continue
		}
		var set v1alpha1.ReplicatedStatefulSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &set, true); err != nil {
			return m, err
		}
		m.sets = append(m.sets, &set)
	}
	return m, nil
}
