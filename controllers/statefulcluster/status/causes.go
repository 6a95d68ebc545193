package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/kstatus"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// This file reports to users why members do not start. No rule uses it: a member is replaced when a
// deadline of the spec has passed, whatever the cause.

// hinderedMembers returns the members that do not start, or whose old pod must be deleted before
// they can return.
func hinderedMembers(f *facts.Facts) []causes.Hindered {
	return slices.DeleteFunc(f.Causes.Stopped(), func(h causes.Hindered) bool { return hasDeparted(f, h.Name) })
}

// hasDeparted reports whether the member with that name has departed.
func hasDeparted(f *facts.Facts, name string) bool {
	return slices.ContainsFunc(f.Departed, func(m *facts.Member) bool { return m.Name() == name })
}

// withCauses adds the reasons why members do not run to condition Degraded. The condition keeps its
// reason if it needs manual intervention anyway, or if the set waits for room on purpose.
func withCauses(f *facts.Facts, c metav1.Condition) metav1.Condition {
	why := hinderedNotice(f)
	bad := c.Status == metav1.ConditionTrue
	switch {
	case why.Reason == "":
		return c
	case bad && (Effects.NeedsPerson(c.Reason) || c.Reason == v1alpha1.ReasonDrainBlocked):
		c.Message += "; " + why.Message
		return c
	case bad:
		why.Message += "; " + c.Message
	}
	c.Status, c.Reason, c.Message = metav1.ConditionTrue, why.Reason, why.Message
	return c
}

// hinderedNotice returns which member does not start, why, and how to fix it. It is empty if no member
// has been hindered for long. A reported member stays reported until a read shows that its cause is gone.
func hinderedNotice(f *facts.Facts) engine.Notice {
	if !f.Served() {
		return engine.Notice{}
	}
	last := meta.FindStatusCondition(f.Set.Status.Conditions, v1alpha1.ConditionDegraded)
	return f.Causes.Notice(hinderedMembers(f), v1alpha1.ReasonMembersCannotStart, "member", f.Set.Namespace, last)
}

// waitsForPerson reports whether a member cannot start without manual intervention.
func waitsForPerson(f *facts.Facts) bool {
	if slices.ContainsFunc(hinderedMembers(f), causes.Hindered.NeedsPerson) {
		return true
	}
	last := meta.FindStatusCondition(f.Set.Status.Conditions, kstatus.Stalled)
	return f.Causes.Unread && last != nil && last.Status == metav1.ConditionTrue && last.Reason == v1alpha1.ReasonMembersCannotStart
}

// withKstatus adds the conditions that tools wait for.
func withKstatus(f *facts.Facts, conditions []metav1.Condition) []metav1.Condition {
	v := Effects.Of(conditions)
	bad := meta.FindStatusCondition(conditions, v1alpha1.ConditionDegraded)
	switch {
	case bad.Reason == v1alpha1.ReasonMembersCannotStart && waitsForPerson(f):
		v.Blocker, v.Obstacle = kstatus.Notice(bad), engine.Notice{}
	case bad.Reason == v1alpha1.ReasonWriteRefused && causes.Refused(bad.Message).Effect() == kstatus.Passes:
		v.Blocker, v.Obstacle = engine.Notice{}, v.Blocker
	}
	return kstatus.With(conditions, v)
}
