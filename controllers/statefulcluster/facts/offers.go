package facts

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/backup"
	"github.com/stateful-operator/stateful-operator/controllers/internal/identity"
)

// A set restored from a backup has a different UID than the labels of its claims. The labels cannot
// show whether the claims belong to it, because a set that is recreated under its name does not
// adopt the claims of its predecessor. So a user has to confirm it with an annotation on the
// claims. Then the next members are created with the ids of these claims, and use them.
//
// A set must not start on empty claims while the claims with its data exist. So a set restored from
// the same backup as such claims creates no member on empty claims before the user has decided.
//
// A claim that this set itself has set aside is given back in the same way: once it has the
// annotation and no pod uses it, its member is created in the next empty slot.

// IDs returns the ids of the given claims, sorted.
func (o *Offers) IDs() []string { return slices.Sorted(maps.Keys(o.Given)) }

// Block makes an id unavailable because a pod that is not a member has the name of its member.
func (o *Offers) Block(id, pod string) {
	delete(o.Given, id)
	o.blocked[id] = true
	o.InTheWay = append(o.InTheWay, pod)
}

// OffersOf returns the offers among claims that have the name of the set in their label. Claims that
// were not given block their ids. So do given ones if the member lacks another claim, or if their name
// has no valid id.
func (w *World) OffersOf(claims []*corev1.PersistentVolumeClaim) Offers {
	o := Offers{Given: map[string][]*corev1.PersistentVolumeClaim{}, blocked: map[string]bool{}}
	taken := w.IDs()
	named, _ := w.NamedAsOurs(claims)
	for _, c := range named {
		id := MemberOf(c)
		switch {
		case w.givenBack(c):
			o.Given[id] = append(o.Given[id], c)
		case c.Labels[v1alpha1.LabelClusterUID] == string(w.Set.UID), taken[id]:
		case w.IsGiven(c):
			o.Given[id] = append(o.Given[id], c)
		default:
			o.blocked[id] = true
			if w.restoredWith(c) {
				o.addRestored(c)
			}
		}
	}
	for id, claims := range o.Given {
		whole := len(claims) == len(w.Set.Spec.VolumeClaimTemplates)
		if !whole || !identity.Valid(id) {
			delete(o.Given, id)
			o.blocked[id] = true
		}
	}
	slices.Sort(o.Restored)
	slices.Sort(o.Namesakes)
	return o
}

// addRestored records a claim that was restored from a backup together with the set.
func (o *Offers) addRestored(c *corev1.PersistentVolumeClaim) {
	o.Restored = append(o.Restored, c.Name)
	if uid := types.UID(c.Labels[v1alpha1.LabelClusterUID]); !slices.Contains(o.Namesakes, uid) {
		o.Namesakes = append(o.Namesakes, uid)
	}
}

// givenBack reports whether a claim that this set itself has set aside was given back to it. No pod
// may have the claim, because two pods never share one.
func (w *World) givenBack(c *corev1.PersistentVolumeClaim) bool {
	if c.Labels[v1alpha1.LabelClusterUID] != string(w.Set.UID) || !IsRetained(c) || !w.IsGiven(c) {
		return false
	}
	id := MemberOf(c)
	returning := slices.ContainsFunc(w.Set.Status.Updating, func(e v1alpha1.UpdatingMember) bool { return w.IDOf(e.Name) == id })
	return !returning && !w.HasPod(id)
}

// restoredWith reports whether a claim comes from the same backup as the set, and was not set aside
// there by a loss or a scale-down.
func (w *World) restoredWith(c *corev1.PersistentVolumeClaim) bool {
	from := backup.Of(w.Set)
	if from == "" || backup.Of(c) != from || c.DeletionTimestamp != nil {
		return false
	}
	return !RetainedAs(c, v1alpha1.RetainedLost) && !RetainedAs(c, v1alpha1.RetainedScaled)
}

// AwaitsDecision reports whether the set was restored together with claims, and the user has not decided
// whether it adopts them. Claims are given one by one, so it stays true while all members are on given
// claims. It also stays true if the last pass waited for the decision, until a pass finds no slot empty.
// So a set that was complete once does not wait again.
func AwaitsDecision(f *Facts) bool {
	return len(f.Offers.Restored) > 0 && (hasOnlyGivenMembers(f) || awaitedBefore(f))
}

// awaitedBefore reports whether the last pass waited for a decision of the user.
func awaitedBefore(f *Facts) bool {
	degraded := meta.FindStatusCondition(f.Set.Status.Conditions, v1alpha1.ConditionDegraded)
	return degraded != nil && degraded.Reason == v1alpha1.ReasonRestoredClaims
}

// hasOnlyGivenMembers reports whether all members that the set ever had were created on claims given to
// it, and none was ever Ready.
func hasOnlyGivenMembers(f *Facts) bool {
	s := &f.Set.Status
	if len(f.Loose)+len(s.Updating)+len(s.Lost) > 0 {
		return false
	}
	ids := map[string]bool{}
	for _, m := range f.Members {
		if m.Pod.Annotations[v1alpha1.AnnotationUpdated] != Restored {
			return false
		}
		ids[m.ID] = true
	}
	for _, name := range s.Creating {
		if id := f.IDOf(name); !ids[id] && len(f.Offers.Given[id]) == 0 {
			return false
		}
	}
	return !slices.ContainsFunc(f.Revisions, func(r *appsv1.ControllerRevision) bool { return f.EverReady(r.Name) })
}

// CountGiven returns how many ids at the beginning of the list have claims that were given to the set.
func (o *Offers) CountGiven(ids []string) int {
	n := slices.IndexFunc(ids, func(id string) bool { return len(o.Given[id]) == 0 })
	if n < 0 {
		return len(ids)
	}
	return n
}
