package replicatedstatefulset

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
)

// Why members do not start, in words for users. No rule looks at it: what cannot start is
// started as soon as it can.

// withCauses is condition Degraded, or that members cannot start, where that is graver: what
// it says else needs no person, and may follow from it.
func withCauses(f *facts, c metav1.Condition) metav1.Condition {
	why := membersKept(f)
	if why.Reason == "" || blocks(f, c) {
		return c
	}
	c.Status, c.Reason, c.Message = metav1.ConditionTrue, why.Reason, why.Message
	return c
}

// blocks reports whether what condition Degraded says stays until a person does something.
func blocks(f *facts, c metav1.Condition) bool {
	if c.Status != metav1.ConditionTrue {
		return false
	}
	lasts := lasting[c.Reason]
	return effects.NeedsPerson(c.Reason) || (lasts != nil && lasts(f))
}

// membersKept says which member does not start, why, and what helps; it is empty where none
// is kept from it for long. What was told stays until it is known that its cause is gone.
func membersKept(f *facts) notice {
	was := meta.FindStatusCondition(f.set.Status.Conditions, v1alpha1.ConditionDegraded)
	return f.causes.Notice(hinderedMembers(f), v1alpha1.ReasonMembersCannotStart, "member", f.set.Namespace, was)
}

// hinderedMembers are the members that do not start, but for those that a person works on, and
// those that run and are not Ready: NotServing and MembersNotReady speak of them.
func hinderedMembers(f *facts) []causes.Hindered {
	return slices.DeleteFunc(f.causes.Stopped(), func(h causes.Hindered) bool {
		m := f.named(h.Name)
		return m != nil && m.parked
	})
}

// waitsForPerson reports whether a member does not start before a person does something.
func waitsForPerson(f *facts) bool {
	return slices.ContainsFunc(f.causes.Stopped(), causes.Hindered.NeedsPerson)
}

// isShownRunning reports whether a member was shown as one that runs.
func isShownRunning(all *v1alpha1.Members, name string) bool {
	return slices.Contains(all.Primary, name) || slices.Contains(all.Secondary, name)
}
