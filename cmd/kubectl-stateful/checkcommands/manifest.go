package checkcommands

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
)

// Manifest contains the objects of a manifest.
type Manifest struct {
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

// Decode decodes the objects of a manifest. It returns an error if there is no ReplicatedStatefulSet.
func Decode(objects []*unstructured.Unstructured) (m Manifest, err error) {
	for _, object := range objects {
		if object.GroupVersionKind().GroupKind() != kinds.ReplicatedStatefulSet.GroupKind() {
			m.others = append(m.others, object)
			continue
		}
		var set strictSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &set, true); err != nil {
			return m, fmt.Errorf("decode ReplicatedStatefulSet %s: %w", object.GetName(), err)
		}
		m.sets = append(m.sets, &v1alpha1.ReplicatedStatefulSet{TypeMeta: set.TypeMeta, ObjectMeta: set.ObjectMeta,
			Spec: v1alpha1.ReplicatedStatefulSetSpec(set.Spec), Status: v1alpha1.ReplicatedStatefulSetStatus(set.Status)})
	}
	if len(m.sets) == 0 {
		return m, errors.New("the manifest contains no ReplicatedStatefulSet")
	}
	return m, nil
}
