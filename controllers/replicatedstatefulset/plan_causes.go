package replicatedstatefulset

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// Why members do not start, in words for users. No rule looks at it: what cannot start is
// started as soon as it can.

// mostAlso is how many other members are named beside the first.
const mostAlso = 3

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
	found := lastingCauses(f)
	was := meta.FindStatusCondition(f.set.Status.Conditions, v1alpha1.ConditionDegraded)
	told := was != nil && was.Status == metav1.ConditionTrue && was.Reason == v1alpha1.ReasonMembersCannotStart
	switch {
	case len(found) > 0:
		return notice{Reason: v1alpha1.ReasonMembersCannotStart, Message: tellOf(f, found)}
	case told && (f.causes.unread || len(hinderedMembers(f)) > 0):
		return notice{Reason: was.Reason, Message: was.Message}
	}
	return notice{}
}

// hinderedMembers are the members that do not start, but for those that a person works on, and
// those that run and are not Ready: NotServing and MembersNotReady speak of them.
func hinderedMembers(f *facts) []hindered {
	return slices.DeleteFunc(slices.Clone(f.causes.found), func(h hindered) bool {
		m := f.named(h.name)
		return h.RunsUnready() || (m != nil && m.parked)
	})
}

// lastingCauses are those of them that have lasted, first those that need a person.
func lastingCauses(f *facts) []hindered {
	found := slices.DeleteFunc(hinderedMembers(f), func(h hindered) bool { return !h.Lasts })
	slices.SortStableFunc(found, func(a, b hindered) int { return rank(a) - rank(b) })
	return found
}

func rank(h hindered) int {
	if h.NeedsPerson() {
		return 0
	}
	return 1
}

// waitsForPerson reports whether a member does not start before a person does something.
func waitsForPerson(f *facts) bool {
	return slices.ContainsFunc(f.causes.found, func(h hindered) bool { return h.NeedsPerson() && !h.RunsUnready() })
}

func tellOf(f *facts, found []hindered) string {
	first := found[0]
	text := first.Tell("member "+first.name, f.set.Namespace, first.name)
	if len(found) == 1 {
		return text
	}
	var others []string
	for _, h := range found[1:min(len(found), 1+mostAlso)] {
		others = append(others, fmt.Sprintf("%s (%s)", h.name, h.Word))
	}
	text += "; also: " + strings.Join(others, ", ")
	if more := len(found) - 1 - mostAlso; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// isShownRunning reports whether a member was shown as one that runs.
func isShownRunning(all *v1alpha1.Members, name string) bool {
	return slices.Contains(all.Primary, name) || slices.Contains(all.Secondary, name)
}
