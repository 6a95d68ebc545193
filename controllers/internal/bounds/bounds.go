// Package bounds says what of a spec is more than a set may have. The schemas say
// most of it too; it is said again for objects that are older than a schema, and for
// what no schema can say.
package bounds

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The most that there may be of the parts of a pod, of a selector, and in all.
const (
	Containers = 32
	Volumes    = 128
	Claims     = 32
	Words      = 64 // labels, or annotations, or what else is a map of strings
	Terms      = 32 // of a selector, and values of one
	// Bytes is how long a spec may be, as JSON. More than that kubectl cannot apply
	// either: it keeps a copy in an annotation, and all annotations have that room.
	Bytes = 256 << 10
)

// PodBytes is how long all pods of a set may be together, as JSON. They are read at one
// time, with what the API server adds to each.
const PodBytes = 64 << 20

// AtMost refuses more than that of something.
func AtMost(n, most int, at *field.Path) field.ErrorList {
	if n <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(at, n, fmt.Sprintf("there may be at most %d; remove the others", most))}
}

// Template refuses a pod with more parts than a pod may have.
func Template(t *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	errs := AtMost(len(t.Labels), Words, at.Child("metadata", "labels"))
	errs = append(errs, AtMost(len(t.Annotations), Words, at.Child("metadata", "annotations"))...)
	spec := at.Child("spec")
	errs = append(errs, AtMost(len(t.Spec.InitContainers), Containers, spec.Child("initContainers"))...)
	errs = append(errs, AtMost(len(t.Spec.Containers), Containers, spec.Child("containers"))...)
	return append(errs, AtMost(len(t.Spec.Volumes), Volumes, spec.Child("volumes"))...)
}

// Selector refuses one that is long to evaluate.
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

// Pods refuses so many pods of a template that they are longer than PodBytes.
func Pods(n int, template any, at *field.Path) field.ErrorList {
	text, err := json.Marshal(template)
	if err != nil {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "cannot be written as JSON: "+err.Error())}
	}
	if n <= PodBytes/max(1, len(text)) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, n, fmt.Sprintf("pods with a template of %d bytes as JSON are more than %d MiB in all; "+
		"lower the number, or put scripts and configuration into the image or a ConfigMap", len(text), PodBytes>>20))}
}

// Spec refuses one that is longer than Bytes.
func Spec(spec any, at *field.Path) field.ErrorList {
	text, err := json.Marshal(spec)
	if err != nil {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "cannot be written as JSON: "+err.Error())}
	}
	if len(text) <= Bytes {
		return nil
	}
	return field.ErrorList{field.Invalid(at, field.OmitValueType{}, fmt.Sprintf(
		"has %d bytes as JSON, and may have at most %d; put scripts and configuration into the image or a ConfigMap", len(text), Bytes))}
}
