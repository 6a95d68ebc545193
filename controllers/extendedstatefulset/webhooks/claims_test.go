package webhooks

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
)

// TestANameWhoseClaimsAreInUse checks for which other objects a new set is rejected.
func TestANameWhoseClaimsAreInUse(t *testing.T) {
	claim := func(label string) client.Object {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data-db-2"}}
		if label != "" {
			c.Labels = map[string]string{v1alpha1.LabelSet: label}
		}
		return c
	}
	owner := func(name string) client.Object {
		return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{v1alpha1.LabelSet: "db"}},
			Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}}}
	}
	for _, row := range []struct {
		name                string
		have                client.Object
		inUse, orphansExist string
	}{
		{"no other object", &corev1.Node{}, "", ""},
		{"a claim of a deleted set of the same name", claim("db"), "", ""},
		{"a claim of another owner", claim(""), `metadata.name: Invalid value: "db": claim data-db-2 belongs to another owner`, ""},
		{"a claim of another set", claim("web"), `metadata.name: Invalid value: "db": claim data-db-2 belongs to ExtendedStatefulSet web`, ""},
		{"a StatefulSet with the same claims", owner("db"), `metadata.name: Invalid value: "db": the claims of template "data" have the same names as those of StatefulSet db`, ""},
		{"an orphaned StatefulSet", owner("db-v1"), "", `metadata.name: Invalid value: "db": `},
		{"a StatefulSet with another name", owner("db-other"), "", ""},
	} {
		c := simulation.New(fixture.Noon)
		c.Put(row.have)
		v := &Validator{Live: c}
		for what, r := range map[string]struct{ got, want string }{
			"claims":  {first(v.claimsInUse(t.Context(), fixture.Volumes())), row.inUse},
			"orphans": {first(v.orphansExist(t.Context(), fixture.Volumes())), row.orphansExist},
		} {
			if (r.got == "") != (r.want == "") || !strings.HasPrefix(r.got, r.want) {
				t.Errorf("%s: %s: %q, want %q", row.name, what, r.got, r.want)
			}
		}
	}
}

func first(errs field.ErrorList) string {
	if len(errs) == 0 {
		return ""
	}
	return errs[0].Error()
}
