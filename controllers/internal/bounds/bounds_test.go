package bounds

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func words(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprint("k", i)] = "v"
	}
	return all
}

func expressions(n, values int) []metav1.LabelSelectorRequirement {
	all := make([]metav1.LabelSelectorRequirement, n)
	all[n-1].Values = make([]string, values)
	return all
}

func TestBounds(t *testing.T) {
	at := field.NewPath("spec")
	template := func(t corev1.PodTemplateSpec) field.ErrorList { return Template(&t, at) }
	pod := func(s corev1.PodSpec) field.ErrorList { return template(corev1.PodTemplateSpec{Spec: s}) }
	selector := func(s metav1.LabelSelector) field.ErrorList { return Selector(&s, at) }
	for _, r := range []struct {
		name  string
		most  int
		check func(n int) field.ErrorList
		want  string
	}{
		{"containers", Containers, func(n int) field.ErrorList { return pod(corev1.PodSpec{Containers: make([]corev1.Container, n)}) },
			"spec.spec.containers: Invalid value: 33: there may be at most 32; remove the others"},
		{"init containers", Containers, func(n int) field.ErrorList {
			return pod(corev1.PodSpec{InitContainers: make([]corev1.Container, n)})
		}, "spec.spec.initContainers: Invalid value: 33"},
		{"volumes", Volumes, func(n int) field.ErrorList { return pod(corev1.PodSpec{Volumes: make([]corev1.Volume, n)}) }, "spec.spec.volumes: Invalid value: 129"},
		{"labels", Words, func(n int) field.ErrorList {
			return template(corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: words(n)}})
		}, "spec.metadata.labels: Invalid value: 65"},
		{"annotations", Words, func(n int) field.ErrorList {
			return template(corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: words(n)}})
		}, "spec.metadata.annotations: Invalid value: 65"},
		{"labels of a selector", Terms, func(n int) field.ErrorList { return selector(metav1.LabelSelector{MatchLabels: words(n)}) }, "spec.matchLabels: Invalid value: 33"},
		{"expressions", Terms, func(n int) field.ErrorList {
			return selector(metav1.LabelSelector{MatchExpressions: expressions(n, 1)})
		}, "spec.matchExpressions: Invalid value: 33"},
		{"values of one expression", Terms, func(n int) field.ErrorList {
			return selector(metav1.LabelSelector{MatchExpressions: expressions(2, n)})
		}, "spec.matchExpressions[1].values: Invalid value: 33"},
		{"total bytes", Bytes, func(n int) field.ErrorList { return Spec(strings.Repeat("x", n-2), at) },
			"spec: Invalid value: has 262145 bytes as JSON, and may have at most 262144; move scripts and configuration to the image or a ConfigMap"},
		{"pods of 64 KiB", 1024, func(n int) field.ErrorList { return Pods(n, strings.Repeat("x", 64<<10-2), at) },
			"spec: Invalid value: 1025: pods with a template of 65536 bytes as JSON exceed 64 MiB in total"},
	} {
		if errs := r.check(r.most); len(errs) > 0 {
			t.Errorf("%d %s: %v", r.most, r.name, errs)
		}
		if errs := r.check(r.most + 1); len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), r.want) {
			t.Errorf("%d %s: %v, want %s", r.most+1, r.name, errs, r.want)
		}
	}
	if errs := Selector(nil, at); len(errs) > 0 {
		t.Error(errs)
	}
}
