package statefulsingleton

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/kstatus"
)

// Why the pod whose turn it is does not run, in words for users. No rule looks at it.

// withCauses is condition Degraded with what keeps the pod from running whose turn it is. The
// reason stays where a person has to act on it anyway.
func withCauses(f *facts, c metav1.Condition) metav1.Condition {
	why := turnKept(f)
	bad := c.Status == metav1.ConditionTrue
	switch {
	case why.Reason == "":
		return c
	case bad && c.Reason == v1.ReasonTimeout:
		c.Message += "; " + why.Message
		return c
	case bad && effects.NeedsPerson(c.Reason):
		return c
	case bad && c.Reason != why.Reason:
		why.Message += "; " + c.Message
	}
	c.Status, c.Reason, c.Message = metav1.ConditionTrue, why.Reason, why.Message
	return c
}

// turnKept says what has kept the pod from running whose turn it is, and what helps; it is
// empty where nothing does for long. What was told stays until it is known that its cause is
// gone.
func turnKept(f *facts) engine.Notice {
	d := &f.delay
	switch {
	case d.Lasts && !d.RunsUnready():
		return engine.Notice{Reason: v1.ReasonPodFailing, Message: toldOf(f)}
	case d.unread || (d.Known() && d.pod == ""):
		return keptFrom(f, v1.ConditionDegraded)
	}
	return engine.Notice{}
}

// toldOf is the sentence about the pod that does not run.
func toldOf(f *facts) string {
	d := &f.delay
	text := d.Tell(d.what, f.object.Namespace, d.pod)
	if m := f.active; m != nil && m.name() == d.pod && m.lives() && m.granted() {
		text += "; no other pod starts until it is deleted"
	}
	return text
}

// keptFrom is a condition of the last pass if it is about a pod that fails.
func keptFrom(f *facts, kind string) engine.Notice {
	was := meta.FindStatusCondition(f.object.Status.Conditions, kind)
	if was == nil || was.Status != metav1.ConditionTrue || was.Reason != v1.ReasonPodFailing {
		return engine.Notice{}
	}
	return kstatus.Notice(was)
}

// waitsForPerson reports whether the pod whose turn it is does not run before a person does
// something.
func waitsForPerson(f *facts) bool {
	switch d := &f.delay; {
	case turnKept(f).Reason == "":
		return false
	case d.Known():
		return d.NeedsPerson()
	}
	return keptFrom(f, v1.ConditionStalled).Reason != ""
}
