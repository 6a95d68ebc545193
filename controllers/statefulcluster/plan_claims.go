package statefulcluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
)

// missingClaims returns the claim templates for which the member has no claim.
func missingClaims(w *world, m *member) []corev1.PersistentVolumeClaim {
	var missing []corev1.PersistentVolumeClaim
	for _, t := range w.set.Spec.VolumeClaimTemplates {
		if m.claims[claim.Name(w.set.Name, t.Name, m.id)] == nil {
			missing = append(missing, t)
		}
	}
	return missing
}

// waitsForClaims reports whether a member cannot be scheduled before createClaims has created its
// claims. A quota may refuse them for days, and would refuse the claims of a replacement too.
func waitsForClaims(w *world, m *member) bool { return !m.hasRun() && len(missingClaims(w, m)) > 0 }

// claimsSince returns the creation time of the member's newest claim. The scheduler could not place
// the pod before that.
func (m *member) claimsSince() (newest time.Time) {
	for _, c := range m.claims {
		newest = latest(newest, c.CreationTimestamp.Time)
	}
	return newest
}

// createClaims creates the missing claims of pods whose creation was interrupted or refused before
// their claims were created. A member that has run does not get an empty claim for a missing one;
// it is lost.
func createClaims(f *facts, p *plan) {
	var chains []action.Chain
	for _, m := range f.alive {
		if m.hasRun() {
			continue
		}
		var chain action.Chain
		for _, t := range missingClaims(f.world, m) {
			chain = append(chain, action.Action{Verb: action.Create, Object: buildClaim(f.settings, &t, m.id), Reason: reasonClaim})
		}
		if len(chain) > 0 {
			chains = append(chains, chain)
		}
	}
	if len(chains) == 0 {
		return
	}
	if f.refusedNow(reasonClaim) {
		p.tryLater(f, reasonClaim)
		return
	}
	p.Then(chains...)
}

// setAside labels the claims that have lost their pod or belong to a deleted set of the same name,
// removes the label from claims of running members, deletes the claims that the retention policy
// deletes, and keeps owner references as whenDeleted requires.
func setAside(f *facts, p *plan) {
	if f.refusedNow(reasonRetention) {
		p.tryLater(f, reasonRetention)
		return
	}
	returning := map[string]bool{}
	for _, e := range f.returning {
		returning[f.idOf(e.Name)] = true
	}
	var chains []action.Chain
	for _, name := range f.pendingEnds {
		returning[f.idOf(name)] = true
	}
	if len(f.pendingEnds) > 0 {
		p.LookAgain(statusInterval)
	}
	if inOutage(f) {
		for _, name := range f.vanished() {
			returning[f.idOf(name)] = returning[f.idOf(name)] || (sparesUnseen(f, name) && !endKnown(f, name))
		}
	}
	for _, c := range f.loose {
		if at := deletedAt(f, c); !at.IsZero() {
			p.lookAgain(at)
			p.look = p.look || (!f.live && f.aside[c.UID].IsZero()) // only live reads count
		}
		if a, ok := looseClaim(f, c, returning[memberOf(c)]); ok {
			chains = append(chains, action.Chain{a})
		}
	}
	for _, m := range f.members {
		for _, c := range m.sortedClaims() {
			if a, ok := memberClaim(f.world, m, c); ok {
				chains = append(chains, action.Chain{a})
			}
		}
	}
	for _, c := range f.abandoned {
		chains = append(chains, action.Chain{retain(c, v1alpha1.RetainedDeleted, v1alpha1.RetainClaims)})
	}
	p.Then(chains...)
}

// deletedAt returns the earliest time at which the claim of a lost member may be deleted. It is
// secondLook after the claim was first seen set aside and without a pod. It returns zero if the
// claim is not to be deleted after a second look.
func deletedAt(f *facts, c *corev1.PersistentVolumeClaim) time.Time {
	if !retainedAs(c, v1alpha1.RetainedLost) || !deletable(f.world, c) || f.keepsUnrecorded(c) {
		return time.Time{}
	}
	first, seen := f.aside[c.UID]
	if !seen {
		first = f.now
	}
	return first.Add(secondLook)
}

// mayDelete reports whether a claim that the policy deletes may be deleted now: while a member is
// Ready, or if replicas is 0. The claim of a lost member needs a Ready member and a second look.
func mayDelete(f *facts, c *corev1.PersistentVolumeClaim) bool {
	someReady := !f.up.IsZero()
	if retainedAs(c, v1alpha1.RetainedLost) {
		return someReady && f.reached(deletedAt(f, c))
	}
	return someReady || f.replicas() == 0
}

// looseClaim returns the action for a claim without a pod. A claim is deleted only if an earlier
// pass labelled it, so its pod was missing twice. It must also be on record, because anyone who may
// patch a claim can set its labels and annotations.
func looseClaim(f *facts, c *corev1.PersistentVolumeClaim, returning bool) (action.Action, bool) {
	switch {
	case returning, c.DeletionTimestamp != nil:
		return action.Action{}, false
	case !isRetained(c):
		return retain(c, v1alpha1.RetainedLost, f.retention().WhenLost), true
	case f.mayHave(c): // given back by the user
		return action.Action{}, false
	case f.keepsUnrecorded(c):
		return action.Action{}, false
	case deletable(f.world, c) && !mayDelete(f, c):
		return action.Action{}, false
	case deletable(f.world, c):
		return action.Action{Verb: action.Delete, Object: c, Reason: c.Labels[v1alpha1.LabelRetained],
			Detail: "as set by persistentVolumeClaimRetentionPolicy"}, true
	}
	return ownAsPolicySays(f.world, c)
}

func memberClaim(w *world, m *member, c *corev1.PersistentVolumeClaim) (action.Action, bool) {
	if isRetained(c) && !m.terminating() {
		return action.Action{Verb: action.Patch, Object: withoutNotes(c), From: c, Reason: reasonRetention, Detail: "its member still exists"}, true
	}
	return ownAsPolicySays(w, c)
}

// isRetained reports whether a claim was set aside.
func isRetained(c *corev1.PersistentVolumeClaim) bool { return !retainedAs(c, "") }

// retainedAs reports whether a claim was set aside for that reason; "" means not set aside.
func retainedAs(c *corev1.PersistentVolumeClaim, why string) bool {
	return c.Labels[v1alpha1.LabelRetained] == why
}

// ownAsPolicySays adds or removes the owner reference that makes the garbage collector delete the
// claim with the set.
func ownAsPolicySays(w *world, c *corev1.PersistentVolumeClaim) (action.Action, bool) {
	owned := w.owns(c)
	if owned == w.deletesClaims() || c.DeletionTimestamp != nil {
		return action.Action{}, false
	}
	changed := c.DeepCopy()
	if owned {
		changed.OwnerReferences = slices.DeleteFunc(changed.OwnerReferences,
			func(o metav1.OwnerReference) bool { return o.UID == w.set.UID })
		return action.Action{Verb: action.Patch, Object: changed, From: c, Reason: reasonRetention, Detail: "the claim is kept when the set is deleted"}, true
	}
	changed.OwnerReferences = append(changed.OwnerReferences, claimOwner(w.settings))
	return action.Action{Verb: action.Patch, Object: changed, From: c, Reason: reasonRetention, Detail: "the claim is deleted with the set"}, true
}

// retain labels a claim with the reason why it is set aside, and records the retention policy of
// this moment. A later change of the policy to Delete does not affect the claim.
func retain(c *corev1.PersistentVolumeClaim, why string, policy v1alpha1.RetentionPolicy) action.Action {
	labelled := c.DeepCopy()
	if labelled.Annotations == nil {
		labelled.Annotations = map[string]string{}
	}
	labelled.Annotations[v1alpha1.AnnotationRetention] = string(policy)
	if labelled.Labels == nil {
		labelled.Labels = map[string]string{}
	}
	labelled.Labels[v1alpha1.LabelRetained] = why
	return action.Action{Verb: action.Patch, Object: labelled, From: c, Reason: reasonRetention, Detail: "labeled " + v1alpha1.LabelRetained + "=" + why}
}

// relabel restores the operator's labels on pods, claims and revisions. The cache selects objects
// by these labels.
func relabel(f *facts, p *plan) {
	if f.refusedNow(reasonRelabel) {
		p.tryLater(f, reasonRelabel)
		return
	}
	var chains []action.Chain
	for _, m := range f.members {
		chains = append(chains, putBack(m.pod, memberLabels(f.settings, m.id), "membership depends on the owner, not on labels")...)
		for _, c := range m.sortedClaims() {
			chains = append(chains, putBack(c, memberLabels(f.settings, m.id), "")...)
		}
	}
	for _, rev := range f.revisions {
		chains = append(chains, putBack(rev, clusterLabels(f.settings), "")...)
	}
	p.Then(chains...)
}

// object is an object that has labels and can be patched.
type object interface {
	metav1.Object
	runtime.Object
}

// putBack returns the chain that adds missing labels to an object; nil if none is missing.
func putBack(obj object, want map[string]string, detail string) []action.Chain {
	labels := maps.Clone(obj.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, want)
	if maps.Equal(labels, obj.GetLabels()) {
		return nil
	}
	found := obj.DeepCopyObject().(object)
	found.SetLabels(labels)
	return []action.Chain{{{Verb: action.Patch, Object: found, From: obj, Reason: reasonRelabel, Detail: detail}}}
}

// claimsFate returns the event text about the claims of a member that is deleted.
func claimsFate(m *member) string {
	if len(m.claims) == 0 {
		return "it has no claims"
	}
	return fmt.Sprintf("claims %s", strings.Join(slices.Sorted(maps.Keys(m.claims)), ", "))
}

func (m *member) sortedClaims() []*corev1.PersistentVolumeClaim {
	sorted := make([]*corev1.PersistentVolumeClaim, 0, len(m.claims))
	for _, name := range slices.Sorted(maps.Keys(m.claims)) {
		sorted = append(sorted, m.claims[name])
	}
	return sorted
}

// labelAbandoned returns the steps that label claims of a deleted StatefulCluster.
func labelAbandoned(claims []*corev1.PersistentVolumeClaim) action.Steps {
	var step action.Step
	for _, c := range claims {
		step = append(step, action.Chain{retain(c, v1alpha1.RetainedDeleted, v1alpha1.RetainClaims)})
	}
	return action.Steps{step}
}

// unexplained returns the names of missing pods: pods with a claim that was not set aside, and that
// are not in status.updating.
func unexplained(w *world, pods []*corev1.Pod, claims []*corev1.PersistentVolumeClaim) (names []string) {
	known := make(map[string]bool, len(pods))
	for _, p := range pods {
		known[p.Name] = true
	}
	for _, e := range w.set.Status.Updating {
		known[e.Name] = true
	}
	for _, c := range claims {
		if name := w.nameOf(memberOf(c)); !known[name] && !isRetained(c) {
			known[name] = true
			names = append(names, name)
		}
	}
	return names
}

// memberOf returns the id of the member that a claim belongs to: the end of its name. Anyone who
// may patch the claim can change its label.
func memberOf(c *corev1.PersistentVolumeClaim) string {
	return c.Name[strings.LastIndex(c.Name, "-")+1:]
}

// looseClaims returns the claims of a member whose pod is gone.
func looseClaims(w *world, name string) []*corev1.PersistentVolumeClaim {
	return slices.DeleteFunc(slices.Clone(w.loose), func(c *corev1.PersistentVolumeClaim) bool { return w.nameOf(memberOf(c)) != name })
}

// retainedClaims returns the names of the claims of a lost member that the policy keeps: all or
// none.
func retainedClaims(w *world, claims []*corev1.PersistentVolumeClaim) (names []string) {
	if w.retention().WhenLost == v1alpha1.DeleteClaims {
		return nil
	}
	for _, c := range claims {
		names = append(names, c.Name)
	}
	return names
}
