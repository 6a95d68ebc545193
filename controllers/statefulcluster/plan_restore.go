package statefulcluster

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
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

// restored is the value of AnnotationUpdated for a member that was created on claims given to the
// set.
const restored = "Restore"

// offers are claims of earlier sets with this name, and claims given back to the set.
type offers struct {
	// given are the claims that were given to the set, by member id. All claims of the member must
	// have been given.
	given map[string][]*corev1.PersistentVolumeClaim
	// others are the ids of claims that were not given, or whose name a pod has. No new member may
	// use these ids.
	others map[string]bool
	// restored are the names of claims that come from the same backup as the set and were not given
	// to it. namesakes are the UIDs of the sets that owned them.
	restored  []string
	namesakes []types.UID
	// inTheWay are pods that have the names of members whose claims were given.
	inTheWay []string
}

// ids returns the ids of the given claims, sorted.
func (o *offers) ids() []string { return slices.Sorted(maps.Keys(o.given)) }

// block makes an id unavailable because another pod has its name.
func (o *offers) block(id, pod string) {
	delete(o.given, id)
	o.others[id] = true
	o.inTheWay = append(o.inTheWay, pod)
}

// offersOf sorts the claims that carry the name of the set.
func (w *world) offersOf(claims []*corev1.PersistentVolumeClaim) offers {
	o := offers{given: map[string][]*corev1.PersistentVolumeClaim{}, others: map[string]bool{}}
	taken := w.ids()
	named, _ := w.namedAsOurs(claims)
	for _, c := range named {
		id := memberOf(c)
		switch {
		case w.givenBack(c):
			o.given[id] = append(o.given[id], c)
		case c.Labels[v1alpha1.LabelClusterUID] == string(w.set.UID), taken[id]:
		case w.mayHave(c):
			o.given[id] = append(o.given[id], c)
		default:
			o.others[id] = true
			o.add(c, w.restoredWith(c))
		}
	}
	for id, claims := range o.given {
		whole := len(claims) == len(w.set.Spec.VolumeClaimTemplates)
		if !whole || !identity.Valid(id) {
			delete(o.given, id)
			o.others[id] = true
		}
	}
	slices.Sort(o.restored)
	slices.Sort(o.namesakes)
	return o
}

// add records a claim that was restored with the set.
func (o *offers) add(c *corev1.PersistentVolumeClaim, restored bool) {
	if !restored {
		return
	}
	o.restored = append(o.restored, c.Name)
	if uid := types.UID(c.Labels[v1alpha1.LabelClusterUID]); !slices.Contains(o.namesakes, uid) {
		o.namesakes = append(o.namesakes, uid)
	}
}

// givenBack reports whether a claim that this set itself has set aside was given back to it. No pod
// may have the claim, because two pods never share one.
func (w *world) givenBack(c *corev1.PersistentVolumeClaim) bool {
	if c.Labels[v1alpha1.LabelClusterUID] != string(w.set.UID) || !isRetained(c) || !w.mayHave(c) {
		return false
	}
	id := memberOf(c)
	returning := slices.ContainsFunc(w.set.Status.Updating, func(e v1alpha1.UpdatingMember) bool { return w.idOf(e.Name) == id })
	return !returning && !w.hasPod(id)
}

// mayHave reports whether a user has given the claim to the set.
func (w *world) mayHave(c *corev1.PersistentVolumeClaim) bool {
	if c.DeletionTimestamp != nil || metav1.GetControllerOf(c) != nil {
		return false
	}
	return c.Annotations[v1alpha1.AnnotationAdopt] == w.set.Name
}

// restoredWith reports whether a claim comes from the same backup as the set, and was not set aside
// there by a loss or a scale-down.
func (w *world) restoredWith(c *corev1.PersistentVolumeClaim) bool {
	from := backup.Of(w.set)
	if from == "" || backup.Of(c) != from || c.DeletionTimestamp != nil {
		return false
	}
	return !retainedAs(c, v1alpha1.RetainedLost) && !retainedAs(c, v1alpha1.RetainedScaled)
}

// awaitsWord reports whether the set was restored together with claims about which the user has not
// yet decided. Claims are given one by one, so it stays true while the only members are those on
// given claims, and after that until all slots have been filled once. It is not true again for a
// complete set.
func awaitsWord(f *facts) bool {
	return len(f.offers.restored) > 0 && (hasOnlyGiven(f) || asked(f))
}

// asked reports whether the last pass waited for a decision of the user.
func asked(f *facts) bool {
	degraded := meta.FindStatusCondition(f.set.Status.Conditions, v1alpha1.ConditionDegraded)
	return degraded != nil && degraded.Reason == v1alpha1.ReasonRestoredClaims
}

// hasOnlyGiven reports whether the only members the set ever had were created on claims given to
// it, and no member was ever Ready.
func hasOnlyGiven(f *facts) bool {
	s := &f.set.Status
	if len(f.loose)+len(s.Updating)+len(s.Lost) > 0 {
		return false
	}
	known := map[string]bool{}
	for _, m := range f.members {
		if m.pod.Annotations[v1alpha1.AnnotationUpdated] != restored {
			return false
		}
		known[m.id] = true
	}
	for _, name := range s.Creating {
		if id := f.idOf(name); !known[id] && len(f.offers.given[id]) == 0 {
			return false
		}
	}
	return !slices.ContainsFunc(f.revisions, func(r *appsv1.ControllerRevision) bool { return f.everReady(r.Name) })
}

// countGiven returns how many of the first ids have claims that were given to the set.
func (o *offers) countGiven(ids []string) int {
	n := slices.IndexFunc(ids, func(id string) bool { return len(o.given[id]) == 0 })
	if n < 0 {
		return len(ids)
	}
	return n
}

// firstIDs returns the ids of the next new members as far as they are determined: those on record,
// then those of claims given to the set.
func firstIDs(w *world) []string {
	first := unusedNames(w)
	for _, id := range w.offers.ids() {
		if !slices.Contains(first, id) {
			first = append(first, id)
		}
	}
	return first
}

// onGivenClaims marks the pod of a new member as one that existed before, and returns the writes
// that make the claims those of the set. The pod is created first: after a crash the next pass
// finds a member that has run, and labels its claims.
func onGivenClaims(f *facts, pod *corev1.Pod, id string) action.Chain {
	pod.Annotations[v1alpha1.AnnotationUpdated] = restored
	var chain action.Chain
	for _, c := range f.offers.given[id] {
		mine := withoutNotes(c)
		maps.Copy(mine.Labels, memberLabels(f.settings, id))
		chain = append(chain, action.Action{Verb: action.Patch, Object: mine, From: c, Reason: reasonClaim,
			Detail: "adopted as its annotation requests"})
	}
	return chain
}

// cameBack reports whether the member's pod was recreated with another template, or created on
// claims given to the set.
func (m *member) cameBack() bool {
	why := m.pod.Annotations[v1alpha1.AnnotationUpdated]
	return why == string(v1alpha1.UpdatingUpdate) || why == restored
}

// withoutNotes returns the claim without the label and annotations of a claim that was set aside or
// given.
func withoutNotes(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	used := c.DeepCopy()
	delete(used.Labels, v1alpha1.LabelRetained)
	delete(used.Annotations, v1alpha1.AnnotationRetention)
	delete(used.Annotations, v1alpha1.AnnotationAdopt)
	return used
}

// asideMessage returns which claims of lost members were set aside, and how to bring the members
// back; "" if there are none.
func asideMessage(f *facts) string {
	var aside, waiting []string
	var member string
	for _, c := range f.loose {
		switch {
		case !retainedAs(c, v1alpha1.RetainedLost), c.DeletionTimestamp != nil, deletable(f.world, c):
		case f.mayHave(c):
			waiting = append(waiting, c.Name)
		default:
			aside, member = append(aside, c.Name), memberOf(c)
		}
	}
	var message string
	if len(aside) > 0 {
		message = fmt.Sprintf("; data of lost members was set aside on these claims: %s; to restore a member: "+
			"`kubectl -n %s annotate pvc -l %s=%s,%s=%s %s=%s`, then delete the pod of the member to replace, or raise replicas",
			atMost(3, aside), f.set.Namespace, v1alpha1.LabelCluster, f.set.Name, v1alpha1.LabelMember, member, v1alpha1.AnnotationAdopt, f.set.Name)
	}
	if len(waiting) > 0 {
		message += fmt.Sprintf("; claims annotated for adoption wait until all claims of their member are annotated, its old pod is deleted and a slot is empty: %s; "+
			"delete the pod of the member to replace, or raise replicas", atMost(3, waiting))
	}
	return message
}

// adviseOnRestored returns the message about the decision that the user has to make.
func adviseOnRestored(f *facts) string {
	var several string
	if n := len(f.offers.namesakes); n > 1 {
		several = fmt.Sprintf(" (of %d sets: kubectl -n %s get pvc -L %s)", n, f.set.Namespace, v1alpha1.LabelClusterUID)
	}
	return fmt.Sprintf("the set was restored from backup %s, and so were claims of a set with the same name%s: %s. No member is created on empty claims until you decide whether the set adopts them. "+
		"To adopt them, delete the pods that were restored with them, and annotate them: kubectl -n %s annotate pvc -l '%s=%s,%s notin (%s,%s)' %s=%s. "+
		"To start with empty claims: kubectl -n %s label stc %s %s-",
		backup.Of(f.set), several, atMost(3, f.offers.restored),
		f.set.Namespace, v1alpha1.LabelClusterUID, f.offers.namesakes[0],
		v1alpha1.LabelRetained, v1alpha1.RetainedLost, v1alpha1.RetainedScaled, v1alpha1.AnnotationAdopt, f.set.Name,
		f.set.Namespace, f.set.Name, backup.Label)
}

// podsInTheWay returns the message about the pods that prevent members from using their claims.
func podsInTheWay(f *facts) string {
	pods := f.offers.inTheWay
	return fmt.Sprintf("pods that the set does not own have the names of members whose claims were given to it, so these members are not created: %s. "+
		"Delete each of these pods (their claims are kept): kubectl -n %s delete pod %s", someOf(pods), f.set.Namespace, pods[0])
}
