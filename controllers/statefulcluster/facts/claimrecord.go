package facts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
)

// Anyone who may patch a claim can set the same labels and annotations as the operator. This must
// not allow them to have a claim deleted, or to make it the claim of a member. So a claim is
// deleted only if its name is one that the set would give, and status.claims has it with its UID. A
// vanished member is recreated only on such claims. A claim is recorded when the operator creates it,
// and while a member whose pod the set controls has it. Only the operator writes the status. If the
// status is older than this record, or was restored, the first pass records the claims of the members.
// Claims that lost their pod before that are kept.

// MaxClaims bounds the record, so that the object stays far below the etcd limit (1.5 MiB). If
// there are more, claims whose pod is gone, terminating or on a lost Node come first.
const MaxClaims = 2000

// NamedAsOurs separates the claims whose name is one that the set gives to claims from the others.
func (w *World) NamedAsOurs(claims []*corev1.PersistentVolumeClaim) (ours, others []*corev1.PersistentVolumeClaim) {
	for _, c := range claims {
		id := MemberOf(c)
		if slices.ContainsFunc(w.Set.Spec.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool {
			return claim.Name(w.Set.Name, t.Name, id) == c.Name
		}) {
			ours = append(ours, c)
		} else {
			others = append(others, c)
		}
	}
	return ours, others
}

// OnRecord reports whether status.claims has the claim as that of a member, present or past.
func (f *Facts) OnRecord(c *corev1.PersistentVolumeClaim) bool {
	return f.claimRecord[v1alpha1.RecordedClaim{Name: c.Name, UID: c.UID}]
}

// Deletable reports whether the policy deletes a claim that was set aside.
func Deletable(w *World, c *corev1.PersistentVolumeClaim) bool {
	policyThen := c.Annotations[v1alpha1.AnnotationRetention]
	if policyThen != string(v1alpha1.DeleteClaims) {
		return false // a claim that was set aside under Retain is kept, even if the policy changes later
	}
	policy := w.Retention()
	switch c.Labels[v1alpha1.LabelRetained] {
	case v1alpha1.RetainedLost:
		return policy.WhenLost == v1alpha1.DeleteClaims
	case v1alpha1.RetainedScaled:
		return policy.WhenScaled == v1alpha1.DeleteClaims
	}
	return false
}

// KeepsUnrecorded reports whether a claim without a pod would be deleted, now or with the set, but
// is kept because it is not on record.
func (f *Facts) KeepsUnrecorded(c *corev1.PersistentVolumeClaim) bool {
	if !IsRetained(c) || c.DeletionTimestamp != nil || f.OnRecord(c) {
		return false
	}
	wouldGoWithSet := f.DeletesClaims() && !f.Owns(c)
	return wouldGoWithSet || Deletable(f.World, c)
}

// Owns reports whether the claim has an owner reference to the set, so that the garbage collector
// deletes it with the set.
func (w *World) Owns(c *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(c.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == w.Set.UID })
}

// Unrecorded returns the names of the claims that carry the set's labels and are kept, because no
// record shows that they belong to the set.
func (f *Facts) Unrecorded() (names []string) {
	for _, c := range f.Misnamed {
		names = append(names, c.Name)
	}
	for _, c := range f.Loose {
		if f.KeepsUnrecorded(c) {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// wasMember reports whether the claims of a vanished member are recorded, so that they belonged to a
// member: anyone who may create claims can copy labels and names. It is also true if the record is
// empty, because an older operator had none, and if it is full, because it then lacks claims.
func wasMember(f *Facts, name string) bool {
	if n := len(f.claimRecord); n == 0 || n >= MaxClaims {
		return true
	}
	return !slices.ContainsFunc(LooseClaims(f.World, name), func(c *corev1.PersistentVolumeClaim) bool { return !f.OnRecord(c) })
}
