package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// createClaims creates the missing claims of pods whose creation was interrupted or refused before
// their claims were created. A member that has run does not get an empty claim for a missing one;
// it is lost.
func createClaims(f *facts.Facts, p *Plan) {
	var chains []action.Chain
	for _, m := range f.Alive {
		if m.HasRun() {
			continue
		}
		var chain action.Chain
		for _, t := range facts.MissingClaims(f.World, m) {
			chain = append(chain, action.Action{Verb: action.Create, Object: children.BuildClaim(f.Settings, &t, m.ID), Reason: facts.ReasonClaim})
		}
		if len(chain) > 0 {
			chains = append(chains, chain)
		}
	}
	if len(chains) == 0 {
		return
	}
	if f.RefusedNow(facts.ReasonClaim) {
		p.tryLater(f, facts.ReasonClaim)
		return
	}
	p.Then(chains...)
}

// setAside labels the claims that have lost their pod or belong to a deleted set of the same name,
// removes the label from claims of running members, deletes the claims that the retention policy
// deletes, and keeps owner references as whenDeleted requires.
func setAside(f *facts.Facts, p *Plan) {
	if f.RefusedNow(facts.ReasonRetention) {
		p.tryLater(f, facts.ReasonRetention)
		return
	}
	returning := map[string]bool{}
	for _, e := range f.Returning {
		returning[f.IDOf(e.Name)] = true
	}
	var chains []action.Chain
	for _, name := range f.PendingEnds {
		returning[f.IDOf(name)] = true
	}
	if len(f.PendingEnds) > 0 {
		p.LookAgain(spec.StatusInterval)
	}
	if facts.InOutage(f) {
		for _, name := range f.Vanished() {
			returning[f.IDOf(name)] = returning[f.IDOf(name)] || (facts.KeepsVanished(f, name) && facts.EndUnobserved(f, name))
		}
	}
	for _, c := range f.Loose {
		if at := deletedAt(f, c); !at.IsZero() {
			p.RequeueAt(at)
			p.Look = p.Look || (!f.Live && f.Aside[c.UID].IsZero()) // only live reads count
		}
		if a, ok := looseClaim(f, c, returning[facts.MemberOf(c)]); ok {
			chains = append(chains, action.Chain{a})
		}
	}
	for _, m := range f.Members {
		for _, c := range m.SortedClaims() {
			if a, ok := memberClaim(f.World, m, c); ok {
				chains = append(chains, action.Chain{a})
			}
		}
	}
	for _, c := range f.Abandoned {
		chains = append(chains, action.Chain{retain(c, v1alpha1.RetainedDeleted, v1alpha1.RetainClaims)})
	}
	p.Then(chains...)
}

// deletedAt returns the earliest time at which the claim of a lost member may be deleted, which is
// SecondLook after this process first saw that it was set aside and had no pod. It returns zero for
// claims that are not deleted, or for a reason that needs no second look.
func deletedAt(f *facts.Facts, c *corev1.PersistentVolumeClaim) time.Time {
	if !facts.RetainedAs(c, v1alpha1.RetainedLost) || !facts.Deletable(f.World, c) || f.KeepsUnrecorded(c) {
		return time.Time{}
	}
	first, seen := f.Aside[c.UID]
	if !seen {
		first = f.Now
	}
	return first.Add(spec.SecondLook)
}

// mayDelete reports whether a claim that the policy deletes may be deleted now: while a member is
// Ready, or if replicas is 0. The claim of a lost member needs a Ready member and a second look.
func mayDelete(f *facts.Facts, c *corev1.PersistentVolumeClaim) bool {
	someReady := !f.ReadySince.IsZero()
	if facts.RetainedAs(c, v1alpha1.RetainedLost) {
		return someReady && f.Reached(deletedAt(f, c))
	}
	return someReady || f.Replicas() == 0
}

// looseClaim returns the action for a claim without a pod: it is set aside, deleted if the policy
// requires it, or owned by the set as whenDeleted requires. A claim is deleted only if an earlier pass
// set it aside, so that at least two passes found no pod, and if it is recorded, because anyone who may
// patch a claim can set its labels and annotations.
func looseClaim(f *facts.Facts, c *corev1.PersistentVolumeClaim, returning bool) (action.Action, bool) {
	switch {
	case returning, c.DeletionTimestamp != nil:
		return action.Action{}, false
	case !facts.IsRetained(c):
		return retain(c, v1alpha1.RetainedLost, f.Retention().WhenLost), true
	case f.IsGiven(c): // given back by the user
		return action.Action{}, false
	case f.KeepsUnrecorded(c):
		return action.Action{}, false
	case facts.Deletable(f.World, c) && !mayDelete(f, c):
		return action.Action{}, false
	case facts.Deletable(f.World, c):
		return action.Action{Verb: action.Delete, Object: c, Reason: c.Labels[v1alpha1.LabelRetained],
			Detail: "as set by persistentVolumeClaimRetentionPolicy"}, true
	}
	return ownAsPolicySays(f.World, c)
}

// memberClaim returns the action for a claim whose member has a pod. It removes the retained label if the
// member still exists.
func memberClaim(w *facts.World, m *facts.Member, c *corev1.PersistentVolumeClaim) (action.Action, bool) {
	if facts.IsRetained(c) && !m.Terminating() {
		return action.Action{Verb: action.Patch, Object: withoutNotes(c), From: c, Reason: facts.ReasonRetention, Detail: "its member still exists"}, true
	}
	return ownAsPolicySays(w, c)
}

// ownAsPolicySays adds or removes the owner reference that makes the garbage collector delete the
// claim with the set.
func ownAsPolicySays(w *facts.World, c *corev1.PersistentVolumeClaim) (action.Action, bool) {
	owned := w.Owns(c)
	if owned == w.DeletesClaims() || c.DeletionTimestamp != nil {
		return action.Action{}, false
	}
	changed := c.DeepCopy()
	if owned {
		changed.OwnerReferences = slices.DeleteFunc(changed.OwnerReferences,
			func(o metav1.OwnerReference) bool { return o.UID == w.Set.UID })
		return action.Action{Verb: action.Patch, Object: changed, From: c, Reason: facts.ReasonRetention, Detail: "the claim is kept when the set is deleted"}, true
	}
	changed.OwnerReferences = append(changed.OwnerReferences, children.ClaimOwner(w.Settings))
	return action.Action{Verb: action.Patch, Object: changed, From: c, Reason: facts.ReasonRetention, Detail: "the claim is deleted with the set"}, true
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
	return action.Action{Verb: action.Patch, Object: labelled, From: c, Reason: facts.ReasonRetention, Detail: "labeled " + v1alpha1.LabelRetained + "=" + why}
}

// claimsFate returns the event text about the claims of a member that is deleted.
func claimsFate(m *facts.Member) string {
	if len(m.Claims) == 0 {
		return "it has no claims"
	}
	return fmt.Sprintf("claims %s", strings.Join(slices.Sorted(maps.Keys(m.Claims)), ", "))
}

// LabelAbandoned returns the steps that label claims of a deleted StatefulCluster.
func LabelAbandoned(claims []*corev1.PersistentVolumeClaim) action.Steps {
	var step action.Step
	for _, c := range claims {
		step = append(step, action.Chain{retain(c, v1alpha1.RetainedDeleted, v1alpha1.RetainClaims)})
	}
	return action.Steps{step}
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
