package statefulcluster

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// Anyone who may patch a claim can label it.
func TestALabelMakesNoClaimOurs(t *testing.T) {
	s := newStage(t, fixture.Set("db").Retention(fixture.Remove, fixture.Remove, fixture.Remove))
	s.settle(time.Minute)
	for _, name := range []string{"payroll", "db-payroll", "payroll-data-aaaaaaaaaa", "db-other-aaaaaaaaaa", "db-data-aaaaaaaaaa"} {
		labelled := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns",
			Labels: map[string]string{v1alpha1.LabelCluster: "db", v1alpha1.LabelClusterUID: string(s.set().UID),
				v1alpha1.LabelMember: "aaaaaaaaaa", v1alpha1.LabelRetained: fixture.Lost},
			Annotations: map[string]string{v1alpha1.AnnotationRetention: string(fixture.Remove)}}}
		s.Put(labelled)
		s.settle(time.Minute)
		s.Check(t)
		var after corev1.PersistentVolumeClaim
		if err := s.Get(context.Background(), client.ObjectKeyFromObject(labelled), &after); err != nil || len(after.OwnerReferences) > 0 {
			t.Errorf("%s: %v, owners %v", name, err, after.OwnerReferences)
		}
		if got := fixture.Says(s.set().Status, v1alpha1.ConditionDegraded); !strings.HasPrefix(got, "True UnrecordedClaims") || !strings.Contains(got, name) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
