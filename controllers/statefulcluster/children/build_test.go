package children_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestWhatANewMemberIs(t *testing.T) {
	s := fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) {
		s.ServiceName = "peers"
		s.Template.Annotations = map[string]string{"note": "kept"}
		s.Template.Labels["tier"] = "gold"
		s.Template.Spec.Volumes = []corev1.Volume{{Name: "scratch"}}
		s.VolumeClaimTemplates[0].Labels = map[string]string{"backup": "daily"}
		s.VolumeClaimTemplates[0].Annotations = map[string]string{"why": "kept"}
	}).Retention(v1alpha1.DeleteClaims, v1alpha1.RetainClaims, v1alpha1.RetainClaims).Replicas(1)
	chain := fixture.PlanOf(fixture.Seen(s)).Steps[0][0]
	p, claim := chain[0].Object.(*corev1.Pod), chain[1].Object.(*corev1.PersistentVolumeClaim)
	volumes := make([]string, 0, 2)
	for _, v := range p.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	for what, ok := range map[string]bool{
		"SC-2 pod and claim have the same id":            p.Name == "db-f1" && claim.Name == "db-data-f1" && p.Namespace == "ns" && claim.Namespace == "ns",
		"SC-2 the pod mounts the claim":                  p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName == claim.Name,
		"SC-3 both have the labels of the selector":      p.Labels["app"] == "db" && claim.Labels["app"] == "db",
		"SC-3 the pod is controlled by the set":          metav1.IsControlledBy(p, s),
		"SC-15 labels and annotations are kept":          p.Labels["tier"] == "gold" && p.Annotations["note"] == "kept",
		"SC-15 volumes are kept":                         slices.Equal(volumes, []string{"data", "scratch"}),
		"claims keep their labels and annotations":       claim.Labels["backup"] == "daily" && claim.Annotations["why"] == "kept",
		"SC-26 hostname and subdomain are set":           p.Spec.Hostname == "db-f1" && p.Spec.Subdomain == "peers",
		"the pod has its revision":                       facts.RevisionOf(p) == "now",
		"both have the labels that the cache selects":    p.Labels[v1alpha1.LabelClusterUID] == "uid-of-set" && claim.Labels[v1alpha1.LabelMember] == "f1",
		"SC-27 claims are owned with whenDeleted Delete": len(claim.OwnerReferences) == 1 && claim.OwnerReferences[0].UID == s.UID && claim.OwnerReferences[0].Controller == nil,
		"the pod replaces no member":                     p.Annotations[v1alpha1.AnnotationReplaces] == "",
	} {
		if !ok {
			t.Errorf("not true: %s", what)
		}
	}
	bare := fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) { s.Template.Labels = nil }).Replicas(1)
	chain = fixture.PlanOf(fixture.Seen(bare)).Steps[0][0]
	if got := chain[0].Object.GetLabels()["app"]; got != "db" {
		t.Errorf("SC-1 label app from a template without labels is %q, want that of the selector", got)
	}
	if refs := chain[1].Object.GetOwnerReferences(); len(refs) > 0 {
		t.Errorf("SC-27 owner references with whenDeleted Retain: %v", refs)
	}
}
