package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/kstatus"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// Messages about why the pod whose turn it is does not run. No rule depends on them.

// withCauses adds to condition Degraded why the pod whose turn it is does not run. A reason
// that needs manual intervention anyway is kept.
func withCauses(f *facts.Facts, c metav1.Condition) metav1.Condition {
	why := delayNotice(f)
	bad := c.Status == metav1.ConditionTrue
	switch {
	case why.Reason == "":
		return c
	case bad && c.Reason == v1.ReasonTimeout:
		c.Message += "; " + why.Message
		return c
	case bad && Effects.NeedsPerson(c.Reason):
		return c
	case bad && c.Reason != why.Reason:
		why.Message += "; " + c.Message
	}
	c.Status, c.Reason, c.Message = metav1.ConditionTrue, why.Reason, why.Message
	return c
}

// delayNotice returns why the pod whose turn it is does not run, and the remedy; empty if it runs,
// or has not been delayed for long. A reported cause is kept until a read shows that it is
// resolved.
func delayNotice(f *facts.Facts) engine.Notice {
	d := &f.Delay
	switch {
	case d.Lasts && !d.RunsUnready():
		return engine.Notice{Reason: v1.ReasonPodFailing, Message: delayMessage(f)}
	case d.Unread || (d.Known() && d.Pod == ""):
		return lastNotice(f, v1.ConditionDegraded)
	}
	return engine.Notice{}
}

// delayMessage returns the message about the pod that does not run.
func delayMessage(f *facts.Facts) string {
	d := &f.Delay
	text := d.Tell(d.What, f.Object.Namespace, d.Pod)
	if m := f.Active; m != nil && m.Name() == d.Pod && m.Lives() && m.HasTurn() {
		text += "; " + whenOtherStarts(f)
	}
	return text
}

// lastNotice returns the reason and message of a condition in the last pass, if it was True with
// reason PodFailing; else it returns an empty notice.
func lastNotice(f *facts.Facts, kind string) engine.Notice {
	last := meta.FindStatusCondition(f.Object.Status.Conditions, kind)
	if last == nil || last.Status != metav1.ConditionTrue || last.Reason != v1.ReasonPodFailing {
		return engine.Notice{}
	}
	return kstatus.Notice(last)
}

// waitsForPerson reports whether the pod whose turn it is needs manual intervention to run.
func waitsForPerson(f *facts.Facts) bool {
	switch d := &f.Delay; {
	case delayNotice(f).Reason == "":
		return false
	case f.Active != nil && f.Active.CrashLoops: // another pod takes over
		return false
	case d.Known():
		return d.NeedsPerson()
	}
	return lastNotice(f, v1.ConditionStalled).Reason != ""
}

// endedByNode returns a reason and message of condition Degraded if the newest ended pod was
// rejected or evicted by its kubelet, and no pod is Ready or a handover is in progress. Its
// owner recreates the pod, and the new one may end in the same way.
func endedByNode(f *facts.Facts) engine.Notice {
	ready := f.Active != nil && podstate.Ready(f.Active.Pod)
	if ready && !f.Handover {
		return engine.Notice{}
	}
	m := f.LastEnded()
	if m == nil {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1.ReasonPodFailing, Message: causes.Of(m.Pod).Tell("pod "+m.Name(), m.Pod.Namespace, m.Name())}
}
