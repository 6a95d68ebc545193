package observe_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
)

// TestClaimants checks which StatefulSet has claims with the names of a template's claims.
func TestClaimants(t *testing.T) {
	set := func(namespace, name, template string) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: template}}}}}
	}
	for _, r := range []struct {
		name string
		have *appsv1.StatefulSet
		want string
	}{
		{"a StatefulSet with the same name and template", set("ns", "my-db", "data"), "my-db"},
		{"a StatefulSet whose name and template form the same name", set("ns", "db", "data-my"), "db"},
		{"a StatefulSet with another template", set("ns", "my-db", "logs"), ""},
		{"a StatefulSet in another namespace", set("other", "my-db", "data"), ""},
	} {
		live := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(r.have).Build()
		if got, err := observe.ClaimantOf(context.Background(), live, "ns", "data", "my-db"); got != r.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", r.name, got, err, r.want)
		}
	}
}
