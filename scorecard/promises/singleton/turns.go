package singleton

import (
	"cmp"
	"context"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
	"github.com/stateful-operator/stateful-operator/test/faults/witnessset"
)

// When a pod may run, and for how long.

// slowShutdown has a hook that takes 10 seconds and then a program that takes 3.
func slowShutdown(ctx context.Context, c *kit.Cluster) {
	a, d := startApplication(ctx, c, 1, "slow", grace(30), behave("WITNESS_STOP_AFTER", "3s"), program(func(p *corev1.Container) {
		p.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/note", "preStop", "10s"}}}}
	}))
	old := a.one(ctx)
	a.handover(ctx, "slow shutdown", func(testimony.Run) { a.rollOut(ctx, d) })
	a.oldStopped(old)
}

// timeout has a program that ignores SIGTERM, so that a handover takes as long as its grace period.
func timeout(ctx context.Context, c *kit.Cluster) {
	a, d := startApplication(ctx, c, 1, "timeout", grace(12), behave("WITNESS_IGNORE_TERM", "true"))
	old := a.one(ctx)
	a.active(ctx, old)
	held := a.singleton(ctx)
	// Set the limit only now: the first start may take longer, and would be reported too.
	kit.Change(ctx, c, held, func(s *v1.StatefulSingleton) { s.Spec.MaxTransitionTime = new(int32(2)) })
	a.rollOut(ctx, d)
	s := a.says(ctx, "that it takes too long", func(s *v1.StatefulSingleton) bool {
		return s.Status.Phase == v1.PhaseFailed && isTrue(v1.ConditionDegraded, v1.ReasonTimeout)(s)
	})
	note := a.event(ctx, v1.EventTransitionTimeout)
	c.Expect(s.Status.Waiting).NotTo(BeEmpty(), "the event should list %s and %v: %s", old.Pod, s.Status.Waiting, note)
	c.Expect(note).To(ContainSubstring(old.Pod), "the event should list %s and %v: %s", old.Pod, s.Status.Waiting, note)
	c.Expect(note).To(ContainSubstring(s.Status.Waiting[0]), "the event should list %s and %v: %s", old.Pod, s.Status.Waiting, note)
	a.stays(old)
	next := a.one(ctx, old)
	a.active(ctx, next)
	times := 0
	for _, e := range a.Events(ctx, held, v1.EventTransitionTimeout, "") {
		times += max(1, int(e.Count), int(ptr.Deref(e.Series, corev1.EventSeries{}).Count))
	}
	c.Expect(times).To(Equal(1), "the number of events")
}

// timeoutDeletes has a holder that cannot start, and a pod that could. The holder was created after
// the object: earlier pods are never deleted for a timeout.
func timeoutDeletes(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "late")
	a.hold(ctx, func(s *v1.StatefulSingletonSpec) {
		s.GateMode, s.MaxTransitionTime, s.OnTimeout = v1.GateInit, new(int32(2)), v1.TimeoutDeletesOld
	})
	a.pod(ctx, "stuck", program(func(p *corev1.Container) { p.Image = "localhost/there-is-no-such-image:1" }))
	a.says(ctx, "that the pod that cannot start has the grant", func(s *v1.StatefulSingleton) bool { return s.Status.ActivePod == "stuck" })
	a.pod(ctx, "able")
	note := a.event(ctx, v1.EventPodDeleted)
	c.Expect(note).To(ContainSubstring("stuck"), "the event should list stuck: %s", note)
	a.active(ctx, a.one(ctx))
}

// timeoutSpares has a pod from before the object.
func timeoutSpares(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "spared")
	a.pod(ctx, "early")
	early := a.one(ctx)
	a.hold(ctx, func(s *v1.StatefulSingletonSpec) {
		s.MaxTransitionTime, s.OnTimeout = new(int32(2)), v1.TimeoutDeletesOld
	})
	a.pod(ctx, "next")
	a.says(ctx, "that the handover takes too long", func(s *v1.StatefulSingleton) bool { return s.Status.Phase == v1.PhaseFailed })
	a.stays(early)
	next := a.handover(ctx, "deletion of the earlier pod", func(old testimony.Run) { a.delete(ctx, old) })
	a.active(ctx, next)
}

// crashLoop tests a program that exits as soon as it starts, while another pod waits.
func crashLoop(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "crash", behave("WITNESS_EXIT_AFTER", "100ms"), behave("WITNESS_EXIT_CODE", "1"))
	a.hold(ctx)
	a.deploy(ctx, 2, surge())
	var victim corev1.Pod
	// It is in back-off then, which the kubelet reports only when it syncs the pod again.
	c.Until(ctx, "a pod to restart 3 times and not run", func(ctx context.Context) {
		pods := a.pods(ctx)
		for i := range pods {
			for _, s := range pods[i].Status.ContainerStatuses {
				if s.RestartCount >= 3 && s.State.Running == nil {
					victim = pods[i]
					return
				}
			}
		}
		c.Fail("none has")
	})
	runs := a.runs()
	for _, r := range runs {
		c.Expect(r.UID).To(Equal(string(victim.UID)), "%s ran too, while %s restarted: %s", r.Pod, victim.Name, kit.Story(runs))
	}
	c.Expect(len(runs)).To(BeNumerically(">=", 4), "known runs")
	a.held(ctx, 1)
	c.Remove(ctx, &victim)
	c.Until(ctx, "another pod to take over", func(context.Context) {
		runs := a.runs()
		last := runs[len(runs)-1]
		c.Expect(last.UID).NotTo(Equal(string(victim.UID)), "none has started")
	})
}

// brokenSide has a side container with a missing image, so that the holder is never Ready.
func brokenSide(ctx context.Context, c *kit.Cluster) {
	broken := func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: "side", Image: "localhost/there-is-no-such-image:1",
			ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"/side"}})
	}
	a := newApplication(c, "broken")
	a.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.Containers = []string{witnessset.Program} })
	a.pod(ctx, "first", broken)
	run := a.one(ctx)
	a.pod(ctx, "second")
	a.held(ctx, 1)
	s := a.says(ctx, "that second waits and first is not Ready", func(s *v1.StatefulSingleton) bool {
		return s.Status.WaitingCount == 1 && s.Status.ActivePod == "first"
	})
	c.Expect(isTrue(v1.ConditionAvailable, v1.ReasonActive)(s)).To(BeFalse(), "a pod with a failing container is reported as available")
	a.stays(run)
	a.handover(ctx, "deletion of the failing pod", func(old testimony.Run) { a.delete(ctx, old) })
}

func replicas(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "three")
	a.hold(ctx)
	// Standbys are never Ready, so a rollout must tolerate two unavailable pods.
	a.deploy(ctx, 3, witnessset.Rolling(1, 2))
	for range 2 {
		old := a.one(ctx)
		waiting := a.held(ctx, 2)
		slices.SortFunc(waiting, func(a, b corev1.Pod) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
		a.says(ctx, "that two wait, the older one first", func(s *v1.StatefulSingleton) bool {
			return s.Status.WaitingCount == 2 && slices.Equal(s.Status.Waiting, []string{waiting[0].Name, waiting[1].Name}) && s.Status.ActivePod == old.Pod
		})
		next := a.handover(ctx, "deletion with standbys", func(old testimony.Run) { a.delete(ctx, old) })
		c.Expect(next.UID).To(Equal(string(waiting[0].UID)), "%s runs, and %s and %s waited in that order", next.Pod, waiting[0].Name, waiting[1].Name)
	}
}

func unmanaged(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "early")
	a.pod(ctx, "early")
	early := a.one(ctx)
	a.hold(ctx)
	a.deploy(ctx, 1, surge())
	a.held(ctx, 1)
	s := a.says(ctx, "that a pod has no gate", isTrue(v1.ConditionUnmanagedPod, v1.ReasonPodWithoutGate))
	c.Expect(strings.Contains(describe(s), early.Pod)).To(BeTrue(), "it does not list %s: %s", early.Pod, describe(s))
	a.stays(early)
	next := a.handover(ctx, "deletion of a pod without the gate", func(old testimony.Run) { a.delete(ctx, old) })
	a.says(ctx, "no more events", func(s *v1.StatefulSingleton) bool {
		return s.Status.ActivePod == next.Pod && !isTrue(v1.ConditionUnmanagedPod, v1.ReasonPodWithoutGate)(s)
	})
}

func orphan(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "orphan")
	a.hold(ctx)
	d := a.deploy(ctx, 1, witnessset.Recreate())
	run := a.one(ctx)
	lonely := a.pod(ctx, "lonely")
	a.held(ctx, 1)
	a.active(ctx, run)
	a.stays(run)
	// When the Deployment is scaled to 0, the pod without an owner is next.
	next := a.handover(ctx, "scaling to none", func(testimony.Run) { a.scale(ctx, d, 0) })
	c.Expect(next.UID).To(Equal(string(lonely.UID)), "%s runs", next.Pod)
}

func deletedByForce(ctx context.Context, c *kit.Cluster) {
	// Long enough for a successor to exist while the old program still runs.
	a := newApplication(c, "force", grace(30), behave("WITNESS_IGNORE_TERM", "true"))
	a.hold(ctx)
	a.deploy(ctx, 2, surge())
	for range 3 {
		a.held(ctx, 1)
		a.handover(ctx, "deletion by force", func(old testimony.Run) {
			a.delete(ctx, old, client.GracePeriodSeconds(0))
		})
	}
}
