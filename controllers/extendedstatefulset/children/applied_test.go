package children_test

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

func TestAppliedIsReadBack(t *testing.T) {
	for text, want := range map[string]children.Applied{
		"abc/7": {Hash: "abc", Generation: 7},
		"abc":   {Hash: "abc"},
		"abc/x": {Hash: "abc"},
		"":      {},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationApplied: text}}}
		if got := children.AppliedOf(set); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	if got := (children.Applied{Hash: "abc", Generation: 7}).String(); got != "abc/7" {
		t.Errorf("the text is %q", got)
	}
}

// TestContentHash checks that ordinals and annotations that restart no pods are no content.
func TestContentHash(t *testing.T) {
	child := func(change func(*appsv1.StatefulSet)) string {
		set := children.BuildChild(fixture.Volumes(), children.Zone{Index: children.NoZone}, children.Version{Number: 1}, children.Span{Replicas: 3})
		change(set)
		return children.ContentHash(set)
	}
	plain := child(func(*appsv1.StatefulSet) {})
	for name, r := range map[string]struct {
		change func(*appsv1.StatefulSet)
		same   bool
	}{
		"replicas":           {func(s *appsv1.StatefulSet) { s.Spec.Replicas = ptr.To(int32(9)) }, true},
		"ordinals":           {func(s *appsv1.StatefulSet) { s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 2} }, true},
		"the list of zones":  {func(s *appsv1.StatefulSet) { s.Spec.Template.Annotations[v1alpha1.AnnotationZones] = "[]" }, true},
		"an image":           {func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "two" }, false},
		"another annotation": {func(s *appsv1.StatefulSet) { metav1.SetMetaDataAnnotation(&s.Spec.Template.ObjectMeta, "mine", "x") }, false},
	} {
		if got := child(r.change); (got == plain) != r.same {
			t.Errorf("%s: %s, and %s without the change", name, got, plain)
		}
	}
}

func TestKeepLazy(t *testing.T) {
	template := func(annotations map[string]string) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	}
	next := template(map[string]string{v1alpha1.AnnotationZones: "new", v1alpha1.AnnotationHostnames: "new", "other": "new"})
	children.KeepLazy(next, template(map[string]string{v1alpha1.AnnotationZones: "old", "other": "old"}))
	if want := map[string]string{v1alpha1.AnnotationZones: "old", "other": "new"}; !maps.Equal(next.Annotations, want) {
		t.Errorf("%v, want %v", next.Annotations, want)
	}
}
