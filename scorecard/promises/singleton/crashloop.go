package singleton

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// handsOver is fencing by a Lease, with onCrashLoop Handover.
func handsOver(s *v1.StatefulSingletonSpec) {
	byLease(s)
	s.OnCrashLoop = v1.CrashLoopHandsOver
}

// The variables with which the witness ends by itself.
const (
	exitAfter = "WITNESS_EXIT_AFTER"
	exitCode  = "WITNESS_EXIT_CODE"
)

// endsAtOnce ends the program with exit code 1 soon after its start.
func endsAtOnce(t *corev1.PodTemplateSpec) {
	behave(exitAfter, "100ms")(t)
	behave(exitCode, "1")(t)
}

// crashLoopHandsOver rolls out a revision whose program ends at once. A standby of the old revision takes over, and
// keeps running although the pod of the new revision waits. A correct revision replaces both.
func crashLoopHandsOver(ctx context.Context, c *kit.Cluster) {
	c.PermitFencing(ctx)
	a := newApplication(c, "loops")
	a.hold(ctx, handsOver)
	d := a.deploy(ctx, 2, surge())
	first := a.one(ctx)
	a.active(ctx, first)
	a.revise(ctx, d, endsAtOnce)
	var next testimony.Run
	a.says(ctx, "that the rollout is held", func(s *v1.StatefulSingleton) bool {
		held := meta.FindStatusCondition(s.Status.Conditions, v1.ConditionRolloutHeld)
		return held != nil && held.Reason == v1.ReasonCrashLooped
	})
	c.Until(ctx, "a standby of the old revision to run", func(ctx context.Context) {
		next = a.one(ctx, first)
		c.Expect(a.podOf(ctx, next).Spec.Containers[0].Env).NotTo(ContainElement(HaveField("Name", exitAfter)), "%s is of the new revision", next.Pod)
	})
	c.Log("%s took over: %s", next.Pod, kit.Story(a.runs()))
	a.active(ctx, next)
	c.Throughout(ctx, 5*time.Second, func() { a.stays(next) })
	a.revise(ctx, d, mends)
	last := a.one(ctx, first, next)
	a.active(ctx, last)
	a.Until(ctx, "the rollout to continue", func(ctx context.Context) {
		held := meta.FindStatusCondition(a.singleton(ctx).Status.Conditions, v1.ConditionRolloutHeld)
		a.Expect(held).NotTo(HaveField("Reason", v1.ReasonCrashLooped))
	})
}

// mends removes what endsAtOnce has added.
func mends(t *corev1.PodTemplateSpec) {
	env := &t.Spec.Containers[0].Env
	*env = slices.DeleteFunc(*env, func(e corev1.EnvVar) bool { return e.Name == exitAfter || e.Name == exitCode })
}

// crashLoopsAlternate starts two pods whose programs end at once. Each gets its turn, and the second one keeps it.
func crashLoopsAlternate(ctx context.Context, c *kit.Cluster) {
	c.PermitFencing(ctx)
	a := newApplication(c, "loops-twice", endsAtOnce)
	a.hold(ctx, handsOver)
	a.deploy(ctx, 2, surge())
	var order []string // the pods of the runs, without repetitions
	c.Until(ctx, "the second pod to restart", func(context.Context) {
		order = slices.Compact(pods(a.runs()))
		c.Expect(len(order)).To(BeNumerically(">=", 2), "only one pod has started")
		restarts := len(a.runs()) - slices.Index(pods(a.runs()), order[1])
		c.Expect(restarts).To(BeNumerically(">=", 4), "%s has started %d times", order[1], restarts)
	})
	c.Expect(order).To(HaveLen(2), "the pods alternate: %s", kit.Story(a.runs()))
	a.says(ctx, "that no other pod starts", func(s *v1.StatefulSingleton) bool {
		c := meta.FindStatusCondition(s.Status.Conditions, v1.ConditionDegraded)
		return s.Status.ActivePod == order[1] && c != nil && c.Reason == v1.ReasonPodFailing
	})
}
