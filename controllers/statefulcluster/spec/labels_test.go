package spec_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

func TestWhichPodsASetSelects(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "db", "tier": "one"}}}
	for _, r := range []struct {
		name     string
		selector *metav1.LabelSelector
		want     bool
	}{
		{"a subset of the labels", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, true},
		{"another value", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, false},
		{"a label that the pod lacks", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db", "zone": "a"}}, false},
		{"an expression", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"one", "two"}}}}, true},
		{"an invalid expression selects nothing", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near"}}}, false},
		{"no selector selects nothing", nil, false},
	} {
		set := &v1alpha1.StatefulCluster{Spec: v1alpha1.StatefulClusterSpec{Selector: r.selector}}
		if got := spec.Selects(set, pod); got != r.want {
			t.Errorf("%s: %t", r.name, got)
		}
	}
}
