package statefulcluster

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/kstatus"
)

// This file reports to users why members do not start. No rule uses it: a member is replaced when a
// deadline of the spec has passed, whatever the cause.

// causesOf returns the pods to find causes for: those of all members, and those still to be
// recreated.
func causesOf(w *world) []causes.Named {
	var all []causes.Named
	has := map[string]bool{}
	for _, m := range w.members {
		has[m.name()] = true
		all = append(all, causes.Named{Name: m.name(), In: m.replaces(), Pod: m.pod})
	}
	for _, e := range w.set.Status.Updating {
		if !has[e.Name] {
			all = append(all, causes.Named{Name: e.Name})
		}
	}
	return all
}

// hinderedMembers returns the members that do not start, or whose old pod must be deleted before
// they can return.
func hinderedMembers(f *facts) []causes.Hindered {
	return slices.DeleteFunc(f.causes.Stopped(), func(h causes.Hindered) bool { return hasDeparted(f, h.Name) })
}

func hasDeparted(f *facts, name string) bool {
	return slices.ContainsFunc(f.departed, func(m *member) bool { return m.name() == name })
}

// departedMessage returns a message about departed pods that stay terminating and that the set does
// not wait for; "" if there are none.
func departedMessage(f *facts) string {
	found := slices.DeleteFunc(causes.Lasting(f.causes.Stopped()), func(h causes.Hindered) bool { return !hasDeparted(f, h.Name) })
	if len(found) == 0 {
		return ""
	}
	return "; " + causes.TellOf("pod", f.set.Namespace, found)
}

// withCauses adds the reasons why members do not run to condition Degraded. The condition keeps its
// reason if it needs manual intervention anyway, or if the set waits for room on purpose.
func withCauses(f *facts, c metav1.Condition) metav1.Condition {
	why := membersKept(f)
	bad := c.Status == metav1.ConditionTrue
	switch {
	case why.Reason == "":
		return c
	case bad && (effects.NeedsPerson(c.Reason) || c.Reason == v1alpha1.ReasonDrainBlocked):
		c.Message += "; " + why.Message
		return c
	case bad:
		why.Message += "; " + c.Message
	}
	c.Status, c.Reason, c.Message = metav1.ConditionTrue, why.Reason, why.Message
	return c
}

// membersKept returns which member does not start, why, and how to fix it. It is empty if no member
// has been hindered for long. A reported member stays reported until its cause is known to be gone.
func membersKept(f *facts) engine.Notice {
	if !f.served() {
		return engine.Notice{}
	}
	was := meta.FindStatusCondition(f.set.Status.Conditions, v1alpha1.ConditionDegraded)
	return f.causes.Notice(hinderedMembers(f), v1alpha1.ReasonMembersCannotStart, "member", f.set.Namespace, was)
}

// waitsForPerson reports whether a member cannot start without manual intervention.
func waitsForPerson(f *facts) bool {
	if slices.ContainsFunc(hinderedMembers(f), causes.Hindered.NeedsPerson) {
		return true
	}
	was := meta.FindStatusCondition(f.set.Status.Conditions, kstatus.Stalled)
	return f.causes.Unread && was != nil && was.Status == metav1.ConditionTrue && was.Reason == v1alpha1.ReasonMembersCannotStart
}

// withKstatus adds the conditions that tools wait for.
func withKstatus(f *facts, conditions []metav1.Condition) []metav1.Condition {
	v := effects.Of(conditions)
	bad := meta.FindStatusCondition(conditions, v1alpha1.ConditionDegraded)
	switch {
	case bad.Reason == v1alpha1.ReasonMembersCannotStart && waitsForPerson(f):
		v.Blocker, v.Obstacle = kstatus.Notice(bad), engine.Notice{}
	case bad.Reason == v1alpha1.ReasonCreateFailing && causes.Refused(bad.Message).Effect() == kstatus.Passes:
		v.Blocker, v.Obstacle = engine.Notice{}, v.Blocker
	}
	return kstatus.With(conditions, v)
}

// advised returns the message of a refusal, with advice if a pod or a claim was refused.
func advised(f *facts, reason, message string) string {
	if message == "" || !slices.Contains(makesPods, reason) {
		return message
	}
	return message + "; " + causes.Refused(message).Help(f.set.Namespace, "")
}

// makesPods are the reasons of the writes that create pods and claims, and of the dry-run create of
// a pod.
var makesPods = append(slices.Clone(createReasons), reasonReturned, reasonClaim, reasonTrial)

// webhookUnanswered reports whether a write failed because an admission webhook did not respond.
// Like a refused write, it is reported and retried with backoff.
func webhookUnanswered(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}
