package slim

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAChildOfOursIsKeptWhole(t *testing.T) {
	g := NewWithT(t)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"record": strings.Repeat("x", 200<<10)}},
		Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 64)}}}}
	want := set.DeepCopy()
	set.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
	g.Expect(Child(set)).To(Equal(want))
}

func TestOfALargeChildItsMetadataIsKept(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	many := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 5000)}}
	meta := metav1.ObjectMeta{Name: "a", UID: "u", Labels: map[string]string{"app": "a"}}
	for _, object := range []client.Object{
		&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Template: many}},
		&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{ServiceName: long}},
		&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: many}},
		&appsv1.ControllerRevision{ObjectMeta: meta, Data: runtime.RawExtension{Raw: []byte(long)}},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: long}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ExternalName: long}},
		&policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": long}}}},
	} {
		g := NewWithT(t)
		kept, err := Child(object)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept.(interface{ Size() int }).Size()).To(BeNumerically("<", 1000), "%T", object)
		g.Expect(kept.(client.Object).GetUID()).To(BeEquivalentTo("u"), "%T", object)
		g.Expect(kept.(client.Object).GetLabels()).To(HaveKey("app"), "%T", object)
	}
}
