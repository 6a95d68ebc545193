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

// A set that comes out of a backup has another UID than its claims say, and no label can
// tell whether they are its own: a set that is made again under its name does not take
// what its namesake left. So a person says it, by an annotation on the claims. Then the
// next members are made under the ids of these claims, and on them.
//
// Nobody may find a set that runs on empty claims beside those with the data: one that was
// restored from the backup that the claims come from makes no member on empty claims before.
//
// A claim of this very set is given back to it in the same way: once it was set aside, no pod
// has it, and its annotation says so, the next empty slot gets its member.

// restored is what AnnotationUpdated says of a member that came back on claims that were
// given to the set.
const restored = "Restore"

// offers are claims of namesakes.
type offers struct {
	// given are the claims of the members that were given to the set whole, by id.
	given map[string][]*corev1.PersistentVolumeClaim
	// others are the ids of the claims that were not, or whose name a pod has: no new
	// member may have these.
	others map[string]bool
	// restored are the names of claims that come from the backup that the set comes from
	// and were not given to it, and namesakes the UIDs of the sets that had them.
	restored  []string
	namesakes []types.UID
	// inTheWay are pods that have the names of members whose claims were given.
	inTheWay []string
}

// ids are those of claims that were given, in order.
func (o *offers) ids() []string { return slices.Sorted(maps.Keys(o.given)) }

// block takes an id away whose name another pod has.
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

// add notes a claim that was restored with the set.
func (o *offers) add(c *corev1.PersistentVolumeClaim, restored bool) {
	if !restored {
		return
	}
	o.restored = append(o.restored, c.Name)
	if uid := types.UID(c.Labels[v1alpha1.LabelClusterUID]); !slices.Contains(o.namesakes, uid) {
		o.namesakes = append(o.namesakes, uid)
	}
}

// givenBack reports whether a claim of this very set, which was set aside, was given back
// to it. No pod has it: two never share a claim.
func (w *world) givenBack(c *corev1.PersistentVolumeClaim) bool {
	if c.Labels[v1alpha1.LabelClusterUID] != string(w.set.UID) || !isRetained(c) || !w.mayHave(c) {
		return false
	}
	id := memberOf(c)
	returning := slices.ContainsFunc(w.set.Status.Updating, func(e v1alpha1.UpdatingMember) bool { return w.idOf(e.Name) == id })
	return !returning && !w.hasPod(id)
}

// mayHave reports whether who may write the claim has given it to the set.
func (w *world) mayHave(c *corev1.PersistentVolumeClaim) bool {
	if c.DeletionTimestamp != nil || metav1.GetControllerOf(c) != nil {
		return false
	}
	return c.Annotations[v1alpha1.AnnotationAdopt] == w.set.Name
}

// restoredWith reports whether a claim comes from the backup that the set comes from, and
// was not set aside there by a loss or a scale-down.
func (w *world) restoredWith(c *corev1.PersistentVolumeClaim) bool {
	from := backup.Of(w.set)
	if from == "" || backup.Of(c) != from || c.DeletionTimestamp != nil {
		return false
	}
	return !retainedAs(c, v1alpha1.RetainedLost) && !retainedAs(c, v1alpha1.RetainedScaled)
}

// restore is about a set that was restored, and about claims that are given to it.
type restore struct{ *facts }

// awaitsWord reports whether the set was restored together with claims of which nobody has
// said yet whether they are its own. Claims are given one by one. So the answer stays true
// while the only members are those on claims that were given, and after that until all slots
// are filled once. A set that is complete does not ask again.
func (f restore) awaitsWord() bool {
	return len(f.offers.restored) > 0 && (f.hasOnlyGiven() || f.asked())
}

// asked reports whether the last pass waited for the word of a person.
func (f restore) asked() bool {
	degraded := meta.FindStatusCondition(f.set.Status.Conditions, v1alpha1.ConditionDegraded)
	return degraded != nil && degraded.Reason == v1alpha1.ReasonRestoredClaims
}

// hasOnlyGiven reports whether the set has and had no members but those that were created on
// claims that were given to it, none of which was Ready yet.
func (f restore) hasOnlyGiven() bool {
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

// countGiven counts the first of these ids whose claims were given to the set.
func (f restore) countGiven(ids []string) int {
	n := slices.IndexFunc(ids, func(id string) bool { return len(f.offers.given[id]) == 0 })
	if n < 0 {
		return len(ids)
	}
	return n
}

// firstIDs are the ids of the next new members as far as they are known before: those on
// record, then those of claims that were given to the set.
func firstIDs(w *world) []string {
	first := unusedNames(w)
	for _, id := range w.offers.ids() {
		if !slices.Contains(first, id) {
			first = append(first, id)
		}
	}
	return first
}

// onGivenClaims makes the pod of a new member that of one that has been there before, and
// returns the writes that make the claims the set's. The pod is created first: whoever
// comes after a crash finds a member that has run, and puts our labels on its claims.
func (f restore) onGivenClaims(pod *corev1.Pod, id string) action.Chain {
	pod.Annotations[v1alpha1.AnnotationUpdated] = restored
	var chain action.Chain
	for _, c := range f.offers.given[id] {
		mine := withoutNotes(c)
		maps.Copy(mine.Labels, memberLabels(f.world, id))
		chain = append(chain, action.Action{Verb: action.Patch, Object: mine, From: c, Reason: reasonClaim,
			Detail: "given by its owner"})
	}
	return chain
}

// cameBack reports whether the pod of a member was made again with another template, or on
// claims that were given to the set.
func (m *member) cameBack() bool {
	why := m.pod.Annotations[v1alpha1.AnnotationUpdated]
	return why == string(v1alpha1.UpdatingUpdate) || why == restored
}

// withoutNotes is a claim without what says that it was set aside, or given.
func withoutNotes(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	used := c.DeepCopy()
	delete(used.Labels, v1alpha1.LabelRetained)
	delete(used.Annotations, v1alpha1.AnnotationRetention)
	delete(used.Annotations, v1alpha1.AnnotationAdopt)
	return used
}

// asideMessage says which data of lost members was set aside, and how it comes back; "" if
// there is none.
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
		message = fmt.Sprintf("; data of lost members was set aside on these claims: %s; to bring a member back: "+
			"`kubectl -n %s annotate pvc -l %s=%s,%s=%s %s=%s`, then delete the pod of the member whose place it takes, or raise replicas",
			atMost(3, aside), f.set.Namespace, v1alpha1.LabelCluster, f.set.Name, v1alpha1.LabelMember, member, v1alpha1.AnnotationAdopt, f.set.Name)
	}
	if len(waiting) > 0 {
		message += fmt.Sprintf("; these claims were given back and wait until all claims of their member were, its old pod is gone and a slot is empty: %s; "+
			"delete the pod of the member whose place it takes, or raise replicas", atMost(3, waiting))
	}
	return message
}

// adviseOnRestored says what a person decides on.
func adviseOnRestored(f *facts) string {
	var several string
	if n := len(f.offers.namesakes); n > 1 {
		several = fmt.Sprintf(" (of %d sets: kubectl -n %s get pvc -L %s)", n, f.set.Namespace, v1alpha1.LabelClusterUID)
	}
	return fmt.Sprintf("the set comes from backup %s, and so do claims of a set of its name%s: %s. No member is made on empty claims before you say whether they are its own. "+
		"If they are, delete the pods that were restored with them, and give them to it: kubectl -n %s annotate pvc -l '%s=%s,%s notin (%s,%s)' %s=%s. "+
		"To begin with empty claims: kubectl -n %s label stc %s %s-",
		backup.Of(f.set), several, atMost(3, f.offers.restored),
		f.set.Namespace, v1alpha1.LabelClusterUID, f.offers.namesakes[0],
		v1alpha1.LabelRetained, v1alpha1.RetainedLost, v1alpha1.RetainedScaled, v1alpha1.AnnotationAdopt, f.set.Name,
		f.set.Namespace, f.set.Name, backup.Label)
}

// podsInTheWay says which pods keep members from their claims.
func podsInTheWay(f *facts) string {
	pods := f.offers.inTheWay
	return fmt.Sprintf("these pods are not the set's and have the names of members whose claims were given to it, so these members are not made: %s. "+
		"Delete each of them (claims stay): kubectl -n %s delete pod %s", someOf(pods), f.set.Namespace, pods[0])
}
