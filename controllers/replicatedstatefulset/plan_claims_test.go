package replicatedstatefulset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// claimSized returns a claim or claim template.
func claimSized(name, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Spec: corev1.PersistentVolumeClaimSpec{
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}}}
}

// grows returns a set whose StatefulSet was created with claims of one size, and which requests
// another size now.
func grows(from, to string) *v1alpha1.ReplicatedStatefulSet {
	set := setOf(2, 1)
	set.Spec.Pod.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimSized("data", to)}
	set.Annotations = map[string]string{"made with": from}
	return set
}

// there adds a claim of that phase that lacks our labels, so that no cache has it.
func there(name, size string, phase corev1.PersistentVolumeClaimPhase) thing {
	c := claimSized(name, size)
	c.Status.Phase = phase
	return with(func(w *facts.World) {
		if w.Claims == nil {
			w.Claims = map[string]*corev1.PersistentVolumeClaim{}
		}
		w.Claims[name] = &c
		was := claimSized("data", w.Set.Annotations["made with"])
		w.Stateful.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{was}
	})
}

// TestClaimsGrow tests RS-88: claims grow with their templates, whatever else is in progress, and
// change in no other way.
func TestClaimsGrow(t *testing.T) {
	const bound = corev1.ClaimBound
	grown := func(pod string) string {
		return "patch persistentvolumeclaim data-" + pod + ": Expand, grows to 2Gi"
	}
	members := func(more ...thing) []thing {
		return append([]thing{pod(0).primary(), pod(1).secondary()}, more...)
	}
	check(t, []row{
		{"two smaller claims", worldOf(grows("1Gi", "2Gi"), members(there("data-rss-db-0", "1Gi", bound), there("data-rss-db-1", "1Gi", bound))...), []string{grown("0"), grown("1")}},
		{"one of two claims has the wanted size", worldOf(grows("1Gi", "2Gi"), members(there("data-rss-db-0", "2Gi", bound), there("data-rss-db-1", "1Gi", bound))...), []string{grown("1")}},
		{"a claim that a user made larger", worldOf(grows("1Gi", "2Gi"), members(there("data-rss-db-0", "5Gi", bound))...), nil},
		{"a claim without a volume", worldOf(grows("1Gi", "2Gi"), members(there("data-rss-db-0", "1Gi", corev1.ClaimPending))...), nil},
		{"a claim with another name", worldOf(grows("1Gi", "2Gi"), members(there("data-rss-db-2", "1Gi", bound))...), nil},
		{"a template with a smaller size that bypassed admission", worldOf(grows("2Gi", "1Gi"), members(there("data-rss-db-0", "2Gi", bound))...), nil},
		{"a claim that was smaller when the set was created", worldOf(grows("2Gi", "2Gi"), members(there("data-rss-db-0", "1Gi", bound))...), nil},
		{"a paused set", worldOf(grows("1Gi", "2Gi"), members(there("data-rss-db-0", "1Gi", bound), with(func(w *facts.World) { w.Set.Spec.Paused = true }))...), []string{grown("0")}},
		{"the claim of a foreign pod", worldOf(grows("1Gi", "2Gi"), pod(0).primary(), pod(1).strange(), there("data-rss-db-1", "1Gi", bound)), nil},
	})
}

// TestAGrownClaim tests RS-88: an older claim gets our labels with its new size, and keeps its own
// labels.
func TestAGrownClaim(t *testing.T) {
	p := rules.Decide(worldOf(grows("1Gi", "2Gi"), pod(0).primary(), pod(1).secondary(), there("data-rss-db-0", "1Gi", corev1.ClaimBound),
		with(func(w *facts.World) { w.Claims["data-rss-db-0"].Labels = map[string]string{"mine": "yes"} })))
	a := lastOf(&p)[0]
	if labels := a.Object.GetLabels(); labels["mine"] != "yes" || labels[v1alpha1.LabelManaged] != v1alpha1.True || !a.Unchanged {
		t.Errorf("%+v", a)
	}
	if was := a.From.(*corev1.PersistentVolumeClaim); len(was.Labels) != 1 {
		t.Error("the claim that was read was modified")
	}
}
