package observe_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
)

// TestPodsThatGetNoClaims checks for which other objects a new pod of ordinal 2 is refused.
func TestPodsThatGetNoClaims(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	alone := children.Zone{Index: children.NoZone}
	set := func(how v1alpha1.Handover) *v1alpha1.ExtendedStatefulSet {
		s := fixture.Volumes()
		s.Spec.UpdateStrategy.Handover = how
		return s
	}
	pod := func(version int64) *corev1.Pod {
		p := fixture.NewPod(fixture.Volumes(), alone, version)
		p.Namespace = "ns"
		return p
	}
	labelled := func(label string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data-db-2"}}
		if label != "" {
			c.Labels = map[string]string{v1alpha1.LabelSet: label}
		}
		return c
	}
	for _, r := range []struct {
		name string
		have []client.Object
		want string
	}{
		{"no claim exists yet", []client.Object{set(v1alpha1.HandoverPerOrdinal)}, ""},
		{"the claim belongs to the set", []client.Object{set(v1alpha1.HandoverPerOrdinal), labelled("db")}, ""},
		{"the claim belongs to another owner", []client.Object{set(v1alpha1.HandoverPerOrdinal), labelled("")}, "claim data-db-2 belongs to another owner"},
		{"the claim belongs to another set", []client.Object{set(v1alpha1.HandoverPerOrdinal), labelled("web")}, "claim data-db-2 belongs to ExtendedStatefulSet web"},
		{"a pod of another version has the ordinal", []client.Object{set(v1alpha1.HandoverPerOrdinal), pod(1)}, "pod db-v1-2 has the claims of ordinal 2"},
		{"a pod of another version has the ordinal with Coexist", []client.Object{set(v1alpha1.HandoverCoexist), pod(1)}, ""},
		{"a pod of another version has the ordinal, and the set is deleted", []client.Object{pod(1)}, "pod db-v1-2 has the claims of ordinal 2"},
		{"the pod itself exists", []client.Object{set(v1alpha1.HandoverPerOrdinal), pod(2)}, ""},
	} {
		live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(r.have...).Build()
		got, err := observe.Denial(context.Background(), live, "ns", fixture.ReadBorn(t, pod(2)))
		if err != nil || r.want == "" && got != "" || !strings.HasPrefix(got, r.want) {
			t.Errorf("%s: %q, %v; want %q", r.name, got, err, r.want)
		}
	}
}
