package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
)

// Causes are the reasons why members do not start, for example a missing image. They are only
// reported. No rule uses them: a member that cannot start is started as soon as it can.

// withCauses returns condition Degraded. It replaces c by the cause why members cannot start,
// unless c needs manual intervention. Otherwise c may be only a consequence of the cause.
func withCauses(f *facts.Facts, c metav1.Condition) metav1.Condition {
	why := membersNotStarting(f)
	if why.Reason == "" || needsIntervention(f, c) {
		return c
	}
	c.Status, c.Reason, c.Message = metav1.ConditionTrue, why.Reason, why.Message
	return c
}

// needsIntervention reports whether condition Degraded stays until a user intervenes.
func needsIntervention(f *facts.Facts, c metav1.Condition) bool {
	if c.Status != metav1.ConditionTrue {
		return false
	}
	needs := lastingReasons[c.Reason]
	return Effects.NeedsPerson(c.Reason) || (needs != nil && needs(f))
}

// membersNotStarting states which member does not start, why, and what helps. It is empty if no
// member has been kept from starting for a long time. A reported cause stays until it is known to
// be gone.
func membersNotStarting(f *facts.Facts) facts.Notice {
	was := meta.FindStatusCondition(f.Set.Status.Conditions, v1alpha1.ConditionDegraded)
	return f.Causes.Notice(hinderedMembers(f), v1alpha1.ReasonMembersCannotStart, "member", f.Set.Namespace, was)
}

// hinderedMembers returns the members that do not start. It excludes parked members. It also
// excludes members that run and are not Ready, which NotServing and MembersNotReady report.
func hinderedMembers(f *facts.Facts) []causes.Hindered {
	return slices.DeleteFunc(f.Causes.Stopped(), func(h causes.Hindered) bool {
		m := f.Named(h.Name)
		return m != nil && m.Parked
	})
}

// needsInterventionToStart reports whether a member does not start without manual intervention.
func needsInterventionToStart(f *facts.Facts) bool {
	return slices.ContainsFunc(f.Causes.Stopped(), causes.Hindered.NeedsPerson)
}

// differsFromSpec reports whether a set differs from its spec. It is used for paused sets.
func differsFromSpec(f *facts.Facts) bool {
	switch {
	case len(f.Members) != f.Wanted():
		return true
	case f.Wanted() > 0 && !f.ShownWellStaffed():
		return true
	}
	return slices.ContainsFunc(f.Members, func(m *facts.Member) bool { return !m.UpToDate })
}
