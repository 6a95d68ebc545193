package replicatedstatefulset

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
)

// Causes explain to users why members do not start. No rule uses them: a member that cannot start
// is started as soon as it can.

// withCauses returns condition Degraded. It replaces the condition by the reason why members cannot
// start if the former needs no manual intervention, because it may be a consequence.
func withCauses(f *facts, c metav1.Condition) metav1.Condition {
	why := membersKept(f)
	if why.Reason == "" || blocks(f, c) {
		return c
	}
	c.Status, c.Reason, c.Message = metav1.ConditionTrue, why.Reason, why.Message
	return c
}

// blocks reports whether condition Degraded stays until a user intervenes.
func blocks(f *facts, c metav1.Condition) bool {
	if c.Status != metav1.ConditionTrue {
		return false
	}
	lasts := lasting[c.Reason]
	return effects.NeedsPerson(c.Reason) || (lasts != nil && lasts(f))
}

// membersKept states which member does not start, why, and what helps. It is empty if no member has
// been kept from starting for a long time. A reported cause stays until it is known to be gone.
func membersKept(f *facts) notice {
	was := meta.FindStatusCondition(f.set.Status.Conditions, v1alpha1.ConditionDegraded)
	return f.causes.Notice(hinderedMembers(f), v1alpha1.ReasonMembersCannotStart, "member", f.set.Namespace, was)
}

// hinderedMembers returns the members that do not start. It excludes parked members. It also
// excludes members that run and are not Ready, which NotServing and MembersNotReady report.
func hinderedMembers(f *facts) []causes.Hindered {
	return slices.DeleteFunc(f.causes.Stopped(), func(h causes.Hindered) bool {
		m := f.named(h.Name)
		return m != nil && m.parked
	})
}

// waitsForPerson reports whether a member does not start without manual intervention.
func waitsForPerson(f *facts) bool {
	return slices.ContainsFunc(f.causes.Stopped(), causes.Hindered.NeedsPerson)
}

// isShownRunning reports whether the status lists a member as primary or secondary.
func isShownRunning(all *v1alpha1.Members, name string) bool {
	return slices.Contains(all.Primary, name) || slices.Contains(all.Secondary, name)
}
