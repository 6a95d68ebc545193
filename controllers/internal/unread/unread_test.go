package unread

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/requester"
)

func TestSet(t *testing.T) {
	conditions := []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue, Reason: "Available"}}
	set(&conditions, message("port: cannot unmarshal"), 3)
	for kind, want := range map[string]metav1.ConditionStatus{"Available": metav1.ConditionTrue, "Degraded": metav1.ConditionTrue,
		"Stalled": metav1.ConditionTrue, "Ready": metav1.ConditionFalse, "Reconciling": metav1.ConditionFalse} {
		c := meta.FindStatusCondition(conditions, kind)
		if c == nil || c.Status != want {
			t.Errorf("got %s %+v", kind, c)
		}
	}
	c := meta.FindStatusCondition(conditions, "Degraded")
	if c.Reason != "InvalidSpec" || !strings.Contains(c.Message, "port: cannot unmarshal") || c.ObservedGeneration != 3 {
		t.Errorf("Degraded is %+v", c)
	}
}

// N12: metadata that the API server does not limit is not kept.
func TestN12Bound(t *testing.T) {
	words := func(bytes int) map[string]string { return map[string]string{"a": strings.Repeat("x", bytes-1)} }
	for _, row := range []struct {
		name    string
		meta    metav1.ObjectMeta
		spec    any
		problem string
	}{
		{"a usual object", metav1.ObjectMeta{Labels: words(100), Annotations: words(100)}, "spec", ""},
		{"labels of the max size", metav1.ObjectMeta{Labels: words(maxLabels)}, "spec", ""},
		{"labels above the max size", metav1.ObjectMeta{Labels: words(maxLabels + 1)}, "spec", "metadata.labels has 24321 bytes, and may have at most 24320"},
		{"annotations of the max size", metav1.ObjectMeta{Annotations: words(requester.MaxAnnotationBytes)}, "spec", ""},
		{"annotations above the max size", metav1.ObjectMeta{Annotations: words(requester.MaxAnnotationBytes + 1)}, "spec", "metadata.annotations has 65537 bytes"},
		{"the last-applied-configuration annotation of kubectl", metav1.ObjectMeta{Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: words(256 << 10)["a"]}}, "spec", ""},
		{"a spec above the max size", metav1.ObjectMeta{}, strings.Repeat("x", bounds.Bytes), "spec: Invalid value: has 262146 bytes as JSON"},
	} {
		t.Run(row.name, func(t *testing.T) {
			labels := len(row.meta.Labels)
			row.meta.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "a"}}
			problem := Bound(&row.meta, row.spec)
			if !strings.Contains(problem, row.problem) || (problem == "") != (row.problem == "") {
				t.Errorf("problem %q", problem)
			}
			if row.meta.ManagedFields != nil || row.meta.Annotations[corev1.LastAppliedConfigAnnotation] != "" {
				t.Error("unused fields are kept")
			}
			if problem == "" && len(row.meta.Labels) != labels {
				t.Error("labels are dropped")
			}
			if problem != "" && size(row.meta.Labels)+size(row.meta.Annotations) > 0 {
				t.Error("labels or annotations are kept")
			}
		})
	}
}

func TestValidate(t *testing.T) {
	if errs := Validate(""); len(errs) > 0 {
		t.Errorf("a decoded object is refused: %v", errs)
	}
	if got := Validate("port: a").ToAggregate().Error(); got != "spec: Invalid value: cannot be decoded: port: a" {
		t.Errorf("message %q", got)
	}
}
