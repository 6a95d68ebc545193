package statefulcluster

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
)

// Anyone who may patch a claim can set the same labels and annotations as the operator. This must
// not allow them to have a claim deleted, or to make it the claim of a member. So a claim is
// deleted only if the set would give it its name and status.claims has it with its UID, and a
// member whose pod vanished is recreated only on such claims. A claim is recorded when the operator
// creates it, and while a member whose pod the set controls has it; only the operator writes the
// status. If the status is older than this record, or was restored, the first pass records the
// claims of the members. Claims that lost their pod before that are kept.

// maxClaims bounds the record, so that the object stays far below the etcd limit (1.5 MiB). If
// there are more, claims whose pod is gone, terminating or on a lost Node come first.
const maxClaims = 2000

// namedAsOurs separates the claims with a name that the set would give from the others.
func (w *world) namedAsOurs(claims []*corev1.PersistentVolumeClaim) (ours, others []*corev1.PersistentVolumeClaim) {
	for _, c := range claims {
		id := memberOf(c)
		if slices.ContainsFunc(w.set.Spec.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool {
			return claim.Name(w.set.Name, t.Name, id) == c.Name
		}) {
			ours = append(ours, c)
		} else {
			others = append(others, c)
		}
	}
	return ours, others
}

// onRecord reports whether status.claims has the claim as that of a member, present or past.
func (f *facts) onRecord(c *corev1.PersistentVolumeClaim) bool {
	return f.claimRecord[v1alpha1.RecordedClaim{Name: c.Name, UID: c.UID}]
}

// deletable reports whether the policy deletes a claim that was set aside.
func deletable(w *world, c *corev1.PersistentVolumeClaim) bool {
	setAsideTo := c.Annotations[v1alpha1.AnnotationRetention]
	if setAsideTo != string(v1alpha1.DeleteClaims) {
		return false // it was set aside under Retain, which later policy changes do not affect
	}
	policy := w.retention()
	switch c.Labels[v1alpha1.LabelRetained] {
	case v1alpha1.RetainedLost:
		return policy.WhenLost == v1alpha1.DeleteClaims
	case v1alpha1.RetainedScaled:
		return policy.WhenScaled == v1alpha1.DeleteClaims
	}
	return false
}

// keepsUnrecorded reports whether a claim without a pod would be deleted, now or with the set, but
// is kept because it is not on record.
func (f *facts) keepsUnrecorded(c *corev1.PersistentVolumeClaim) bool {
	if !isRetained(c) || c.DeletionTimestamp != nil || f.onRecord(c) {
		return false
	}
	wouldGoWithSet := f.deletesClaims() && !f.owns(c)
	return wouldGoWithSet || deletable(f.world, c)
}

// owns reports whether the claim is deleted with the set.
func (w *world) owns(c *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(c.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == w.set.UID })
}

// claimsOnRecord returns status.claims after the pass, sorted by name.
func claimsOnRecord(f *facts, done results) []v1alpha1.RecordedClaim {
	var going, staying []v1alpha1.RecordedClaim
	for _, c := range f.loose {
		if f.onRecord(c) && c.DeletionTimestamp == nil && !done.deleted(c.UID) {
			going = append(going, claimEntry(c))
		}
	}
	for _, m := range f.members {
		if m.terminating() || m.nodeLost() {
			going = append(going, claimEntries(m)...)
		} else {
			staying = append(staying, claimEntries(m)...)
		}
	}
	for _, c := range done.createdClaims() {
		staying = append(staying, claimEntry(c))
	}
	byName := func(a, b v1alpha1.RecordedClaim) int { return strings.Compare(a.Name, b.Name) }
	slices.SortStableFunc(staying, byName)
	all := slices.DeleteFunc(append(going, staying...), func(r v1alpha1.RecordedClaim) bool { return r.UID == "" })
	all = all[:min(len(all), maxClaims)]
	slices.SortStableFunc(all, byName)
	return slices.CompactFunc(all, func(a, b v1alpha1.RecordedClaim) bool { return a.Name == b.Name })
}

func claimEntries(m *member) []v1alpha1.RecordedClaim {
	entries := make([]v1alpha1.RecordedClaim, 0, len(m.claims))
	for _, c := range m.sortedClaims() {
		entries = append(entries, claimEntry(c))
	}
	return entries
}

func claimEntry(c metav1.Object) v1alpha1.RecordedClaim {
	return v1alpha1.RecordedClaim{Name: c.GetName(), UID: c.GetUID()}
}

// unrecorded returns the names of the claims that carry the set's labels and are kept, because no
// record shows that they belong to the set.
func (f *facts) unrecorded() (names []string) {
	for _, c := range f.misnamed {
		names = append(names, c.Name)
	}
	for _, c := range f.loose {
		if f.keepsUnrecorded(c) {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// keptUnrecorded returns a message that names these claims, with advice.
func keptUnrecorded(f *facts) string {
	names := f.unrecorded()
	return fmt.Sprintf("claims have the set's labels but are not in status.claims, so they are kept regardless of the retention policy: %s; "+
		"to delete one: `kubectl -n %s delete pvc %s`; to keep it, remove it from the set: `kubectl -n %s label pvc %s %s-`",
		someOf(names), f.set.Namespace, names[0], f.set.Namespace, names[0], v1alpha1.LabelClusterUID)
}
