package status

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
)

// lossesListed returns status.lost after the pass. New entries are added at the front for the members
// that this pass deleted as lost, that others deleted, that vanished, or that cannot return because
// claims are gone.
func lossesListed(f *facts.Facts, p *rules.Plan, done Results) []v1alpha1.LostMember {
	lost := slices.DeleteFunc(slices.Clone(f.Set.Status.Lost), func(l v1alpha1.LostMember) bool { return isBack(f, l) })
	add := func(name string, reason v1alpha1.LossReason, claims []string) {
		if !facts.Listed(lost, name) {
			lost = slices.Insert(lost, 0, v1alpha1.LostMember{Name: name, Reason: reason, Time: metav1.NewTime(f.Now), Claims: claims})
		}
	}
	for _, m := range f.Unlisted() {
		add(m.Name(), facts.DepartureReason(m, f.HasSuccessor[m.Name()]), facts.RetainedClaims(f.World, m.SortedClaims()))
	}
	for _, name := range facts.LostVanished(f) {
		add(name, v1alpha1.LossDeleted, facts.RetainedClaims(f.World, facts.LooseClaims(f.World, name)))
	}
	if done.wroteStatus() {
		for _, name := range p.Dropped {
			add(name, v1alpha1.LossClaimGone, nil)
		}
	}
	for _, l := range f.Lost {
		if done.deleted(l.Pod.UID) {
			add(l.Name(), l.Reason, facts.RetainedClaims(f.World, l.SortedClaims()))
		}
	}
	return lost[:min(len(lost), facts.MaxLost)]
}

// isBack reports whether a listed member exists again, on claims that were given back to the set.
func isBack(f *facts.Facts, l v1alpha1.LostMember) bool {
	return f.Live && slices.ContainsFunc(f.Members, func(m *facts.Member) bool {
		return m.Name() == l.Name && !m.Terminating() && m.Pod.Annotations[v1alpha1.AnnotationUpdated] == facts.Restored &&
			!m.Pod.CreationTimestamp.Before(&l.Time)
	})
}

// stillCreating returns the names that stay recorded after the pass. Names whose pod was created,
// or that the pod of another owner has, are removed.
func stillCreating(f *facts.Facts, p *rules.Plan, done Results) []string {
	names := p.Creating
	if p.Recorded && !done.wroteStatus() {
		names = facts.StillWanted(f)
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(done.Outcomes, func(o action.Outcome) bool { return usesName(o, name) })
	})
}

// usesName reports whether a name is used up: a pod was created with it, or another pod already had
// it.
func usesName(o action.Outcome, name string) bool {
	if !facts.CreatesNew(o) || o.Object.GetName() != name {
		return false
	}
	return o.Err == nil || apierrors.IsAlreadyExists(o.Err)
}

// claimsOnRecord returns status.claims after the pass, sorted by name. If there are more than
// facts.MaxClaims, those of members whose pods are gone, terminating or on a bad Node come first.
func claimsOnRecord(f *facts.Facts, done Results) []v1alpha1.RecordedClaim {
	var going, staying []v1alpha1.RecordedClaim
	for _, c := range f.Loose {
		if f.OnRecord(c) && c.DeletionTimestamp == nil && !done.deleted(c.UID) {
			going = append(going, claimEntry(c))
		}
	}
	for _, m := range f.Members {
		if m.Terminating() || m.OnBadNode() {
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
	all = all[:min(len(all), facts.MaxClaims)]
	slices.SortStableFunc(all, byName)
	return slices.CompactFunc(all, func(a, b v1alpha1.RecordedClaim) bool { return a.Name == b.Name })
}

// claimEntries returns the entries of status.claims for the claims of a member.
func claimEntries(m *facts.Member) []v1alpha1.RecordedClaim {
	entries := make([]v1alpha1.RecordedClaim, 0, len(m.Claims))
	for _, c := range m.SortedClaims() {
		entries = append(entries, claimEntry(c))
	}
	return entries
}

// claimEntry returns the entry of status.claims for a claim.
func claimEntry(c metav1.Object) v1alpha1.RecordedClaim {
	return v1alpha1.RecordedClaim{Name: c.GetName(), UID: c.GetUID()}
}

// updatingOnRecord returns the entries of status.updating after the pass: those of the plan, unless
// the step that writes them failed.
func updatingOnRecord(f *facts.Facts, p *rules.Plan, done Results) []v1alpha1.UpdatingMember {
	if p.Recorded && !done.wroteStatus() {
		return facts.StillReturning(f.World)
	}
	return p.Updating
}

// stillUpdating drops the entries whose new pod was created, at once, so that the member is lost if
// a user deletes that pod. It also drops the entries whose pod deletion failed with NotFound or
// Conflict: others changed or deleted the pod first, so the operator does not undo it.
func stillUpdating(entries []v1alpha1.UpdatingMember, done Results) []v1alpha1.UpdatingMember {
	return slices.DeleteFunc(slices.Clone(entries), func(e v1alpha1.UpdatingMember) bool {
		return slices.ContainsFunc(done.Outcomes, func(o action.Outcome) bool { return endsEntry(o, e) })
	})
}

// endsEntry reports whether the result of an action removes an entry of status.updating.
func endsEntry(o action.Outcome, e v1alpha1.UpdatingMember) bool {
	switch {
	case o.Verb == action.Create && o.Reason == facts.ReasonReturned && o.Object.GetName() == e.Name:
		return o.Err == nil
	case o.Verb == action.Delete && o.Object.GetUID() == e.UID:
		return apierrors.IsNotFound(o.Err) || apierrors.IsConflict(o.Err)
	}
	return false
}
