// Package bounds validates the max sizes of a spec. The schemas contain most of these limits. They are
// checked here again for objects that are older than their schema, and for limits that a schema cannot
// express.
package bounds

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The max numbers of parts of a pod, of a selector, and of claims.
const (
	Containers = 32
	Volumes    = 128
	Claims     = 32
	Words      = 64 // entries of a map of strings, such as labels
	Terms      = 32 // requirements of a selector, and values of one requirement
	// Bytes is the max size of a spec as JSON. kubectl apply has the same limit: it stores a copy in an
	// annotation, and this is the max total size of annotations.
	Bytes = 256 << 10
)

// PodBytes is the max total size of the pods of a set as JSON. All of them are read at once, including
// the fields that the API server adds.
const PodBytes = 64 << 20

// AtMost returns an error if n is greater than most.
func AtMost(n, most int, at *field.Path) field.ErrorList {
	if n <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(at, n, fmt.Sprintf("there may be at most %d; remove the others", most))}
}

// Template returns errors for a pod template that has more parts than allowed.
func Template(t *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	errs := AtMost(len(t.Labels), Words, at.Child("metadata", "labels"))
	errs = append(errs, AtMost(len(t.Annotations), Words, at.Child("metadata", "annotations"))...)
	spec := at.Child("spec")
	errs = append(errs, AtMost(len(t.Spec.InitContainers), Containers, spec.Child("initContainers"))...)
	errs = append(errs, AtMost(len(t.Spec.Containers), Containers, spec.Child("containers"))...)
	return append(errs, AtMost(len(t.Spec.Volumes), Volumes, spec.Child("volumes"))...)
}

// Selector returns errors for a selector that is expensive to evaluate.
func Selector(s *metav1.LabelSelector, at *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := AtMost(len(s.MatchLabels), Terms, at.Child("matchLabels"))
	errs = append(errs, AtMost(len(s.MatchExpressions), Terms, at.Child("matchExpressions"))...)
	for i, e := range s.MatchExpressions[:min(len(s.MatchExpressions), Terms)] {
		errs = append(errs, AtMost(len(e.Values), Terms, at.Child("matchExpressions").Index(i).Child("values"))...)
	}
	return errs
}

// Pods returns an error if n pods of the template are larger than PodBytes.
func Pods(n int, template any, at *field.Path) field.ErrorList {
	text, err := json.Marshal(template)
	if err != nil {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "cannot be encoded as JSON: "+err.Error())}
	}
	if n <= PodBytes/max(1, len(text)) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, n, fmt.Sprintf("pods with a template of %d bytes as JSON exceed %d MiB in total; "+
		"lower the number, or move scripts and configuration to the image or a ConfigMap", len(text), PodBytes>>20))}
}

// Spec returns an error if the spec is larger than Bytes.
func Spec(spec any, at *field.Path) field.ErrorList {
	text, err := json.Marshal(spec)
	if err != nil {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "cannot be encoded as JSON: "+err.Error())}
	}
	if len(text) <= Bytes {
		return nil
	}
	return field.ErrorList{field.Invalid(at, field.OmitValueType{}, fmt.Sprintf(
		"has %d bytes as JSON, and may have at most %d; move scripts and configuration to the image or a ConfigMap", len(text), Bytes))}
}
