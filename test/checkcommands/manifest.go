package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// manifest is what a file says.
type manifest struct {
	sets   []*v1alpha1.ReplicatedStatefulSet
	others []*unstructured.Unstructured // what their pods may need
}

func readManifest(file string) (manifest, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return manifest{}, err
	}
	m, err := parseManifest(content)
	if err == nil && len(m.sets) == 0 {
		err = errors.New("there is no ReplicatedStatefulSet in it")
	}
	if err != nil {
		return manifest{}, fmt.Errorf("reading %s: %w", file, err)
	}
	return m, nil
}

func parseManifest(content []byte) (m manifest, err error) {
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return m, err
		}
		switch {
		case len(object.Object) == 0: // comments only
		case object.GetKind() == "ReplicatedStatefulSet":
			var set v1alpha1.ReplicatedStatefulSet
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &set, true); err != nil {
				return m, err
			}
			m.sets = append(m.sets, &set)
		default:
			m.others = append(m.others, object)
		}
	}
}
