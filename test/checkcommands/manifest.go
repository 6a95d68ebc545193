package main

import (
	"errors"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/manifest"
)

// contents are the objects of a manifest.
type contents struct {
	sets   []*v1alpha1.ReplicatedStatefulSet
	others []*unstructured.Unstructured // objects that the pods may need
}

// strictSet decodes a ReplicatedStatefulSet and rejects unknown fields. The API types have custom
// decoders, which these types do not inherit.
type strictSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              strictSpec   `json:"spec"`
	Status            strictStatus `json:"status"`
}

type (
	strictSpec   v1alpha1.ReplicatedStatefulSetSpec
	strictStatus v1alpha1.ReplicatedStatefulSetStatus
)

func readManifest(file string) (contents, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return contents{}, err
	}
	m, err := parseManifest(content)
	if err == nil && len(m.sets) == 0 {
		err = errors.New("it contains no ReplicatedStatefulSet")
	}
	if err != nil {
		return contents{}, fmt.Errorf("read %s: %w", file, err)
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
		var set strictSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &set, true); err != nil {
			return m, err
		}
		m.sets = append(m.sets, &v1alpha1.ReplicatedStatefulSet{TypeMeta: set.TypeMeta, ObjectMeta: set.ObjectMeta,
			Spec: v1alpha1.ReplicatedStatefulSetSpec(set.Spec), Status: v1alpha1.ReplicatedStatefulSetStatus(set.Status)})
	}
	return m, nil
}
