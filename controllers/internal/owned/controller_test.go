package owned

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// N3: a forged reference has the UID of the owner, but another group, kind or name.
func TestN3By(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "enge.me", Version: "v1alpha1", Kind: "StatefulCluster"}
	owner := &metav1.ObjectMeta{Name: "db", UID: "u"}
	honest := metav1.OwnerReference{APIVersion: "enge.me/v1alpha1", Kind: "StatefulCluster", Name: "db", UID: "u", Controller: ptr.To(true)}
	for _, row := range []struct {
		name   string
		change func(*metav1.OwnerReference)
		want   bool
	}{
		{"the operator's own group, version and kind", func(*metav1.OwnerReference) {}, true},
		{"another version of the group", func(o *metav1.OwnerReference) { o.APIVersion = "enge.me/v1" }, true},
		{"another group", func(o *metav1.OwnerReference) { o.APIVersion = "x.example/v1" }, false},
		{"no group", func(o *metav1.OwnerReference) { o.APIVersion = "v1" }, false},
		{"a group with the same prefix", func(o *metav1.OwnerReference) { o.APIVersion = "enge.me.example/v1" }, false},
		{"no version", func(o *metav1.OwnerReference) { o.APIVersion = "a/b/c" }, false},
		{"another kind", func(o *metav1.OwnerReference) { o.Kind = "Foo" }, false},
		{"another name", func(o *metav1.OwnerReference) { o.Name = "other" }, false},
		{"another UID", func(o *metav1.OwnerReference) { o.UID = "v" }, false},
		{"no controller", func(o *metav1.OwnerReference) { o.Controller = nil }, false},
	} {
		reference := *honest.DeepCopy()
		row.change(&reference)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{reference}}}
		if got := By(pod, owner, kind); got != row.want {
			t.Errorf("%s: %t", row.name, got)
		}
		child := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{honest}}}
		if got := Alike(pod, child); got != row.want {
			t.Errorf("%s: same controller %t", row.name, got)
		}
		if got := Alike(child, pod); got != row.want {
			t.Errorf("%s: same controller %t with swapped arguments", row.name, got)
		}
	}
	if !Alike(&corev1.Pod{}, &corev1.Pod{}) {
		t.Error("two pods without owners have different controllers")
	}
	if By(&corev1.Pod{}, owner, kind) {
		t.Error("a pod without owners has a controller")
	}
}
