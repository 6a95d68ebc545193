package rules

import (
	"maps"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// A member whose owner reference was removed stays a member, and the reference is restored, as in
// StatefulSet. Unlike in StatefulSet, labels do not prove membership, because any user who may create
// pods can copy them. A pod is adopted only if this process observed its UID while the set controlled
// it. Other pods without an owner are orphans: after a restart of the operator it is unknown whether
// they were members. Then a user has to decide, and no successor is created while an orphan has the
// claims of a member.

// adoptOrphans restores the owner reference of members that lost it.
func adoptOrphans(f *facts.Facts, p *Plan) {
	var chains []action.Chain
	for _, m := range f.Members {
		if m.Terminating() || children.Controls(f.Set, m.Pod) {
			continue // facts.World.Members has pods without an owner only if they were members before
		}
		adopted := m.Pod.DeepCopy()
		if adopted.Labels == nil {
			adopted.Labels = map[string]string{}
		}
		maps.Copy(adopted.Labels, children.MemberLabels(f.Settings, m.ID)) // the cache only contains pods with these labels
		adopted.OwnerReferences = append(adopted.OwnerReferences, children.Owner(f.Settings))
		chains = append(chains, action.Chain{{Verb: action.Patch, Object: adopted, From: m.Pod, Reason: facts.ReasonAdopted,
			Detail: "its owner reference was missing"}})
	}
	switch {
	case len(chains) == 0:
	case f.RefusedNow(facts.ReasonAdopted):
		p.tryLater(f, facts.ReasonAdopted)
	default:
		p.Then(chains...)
	}
}
