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

// Why members do not start, in words for users. No rule looks at it: a member is replaced when
// the deadlines of the spec have passed, whatever its cause is.

// causesOf returns the pods whose causes are looked for: those of all members, and those that
// are yet to come back.
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

// hinderedMembers are the members that do not start, or have to go before they come back.
func hinderedMembers(f *facts) []causes.Hindered {
	return slices.DeleteFunc(f.causes.Stopped(), func(h causes.Hindered) bool { return hasDeparted(f, h.Name) })
}

func hasDeparted(f *facts, name string) bool {
	return slices.ContainsFunc(f.departed, func(m *member) bool { return m.name() == name })
}

// departedMessage tells of a pod that does not go and that the set does not wait for; "" if
// there is none.
func departedMessage(f *facts) string {
	found := slices.DeleteFunc(causes.Lasting(f.causes.Stopped()), func(h causes.Hindered) bool { return !hasDeparted(f, h.Name) })
	if len(found) == 0 {
		return ""
	}
	return "; " + causes.TellOf("pod", f.set.Namespace, found)
}

// withCauses is condition Degraded with what keeps members from running. The reason stays
// where a person has to act on it anyway, or where the set waits for room on purpose.
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

// membersKept says which member does not start, why, and what helps; it is empty where none
// is kept from it for long. What was told stays until it is known that its cause is gone.
func membersKept(f *facts) engine.Notice {
	if !f.served() {
		return engine.Notice{}
	}
	was := meta.FindStatusCondition(f.set.Status.Conditions, v1alpha1.ConditionDegraded)
	return f.causes.Notice(hinderedMembers(f), v1alpha1.ReasonMembersCannotStart, "member", f.set.Namespace, was)
}

// waitsForPerson reports whether a member does not start before a person does something.
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

// advised is a refusal, with what helps where a pod or a claim was refused.
func advised(f *facts, reason, message string) string {
	if message == "" || !slices.Contains(makesPods, reason) {
		return message
	}
	return message + "; " + causes.Refused(message).Help(f.set.Namespace, "")
}

// makesPods are the reasons of the writes that create pods and claims, and of the dry run of
// one.
var makesPods = append(slices.Clone(createReasons), reasonReturned, reasonClaim, reasonTrial)

// webhookUnanswered reports whether a write failed because an admission webhook did not answer.
// It is tried again at growing intervals like one that is refused, and told of.
func webhookUnanswered(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}
