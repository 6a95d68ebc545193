package promises

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Whose turn it is, and until when.

// slowShutdown has a hook that takes 10 seconds and then a program that takes 3.
func slowShutdown(ctx context.Context, c *Cluster) error {
	a, err := c.application("slow", grace(30), behave("WITNESS_STOP_AFTER", "3s"), program(func(p *corev1.Container) {
		p.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/note", "preStop", "10s"}}}}
	}))
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	d, err := a.deploy(ctx, 1, surge())
	if err != nil {
		return err
	}
	old, err := a.one(ctx)
	if err != nil {
		return err
	}
	if _, err := a.handover(ctx, "slow shutdown", func(testimony.Run) error { return a.rollOut(ctx, d) }); err != nil {
		return err
	}
	return a.oldStopped(old)
}

// timeout has a program that ignores SIGTERM, so that a handover takes as long
// as its grace period.
func timeout(ctx context.Context, c *Cluster) error {
	a, err := c.application("timeout", grace(12), behave("WITNESS_IGNORE_TERM", "true"))
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	d, err := a.deploy(ctx, 1, surge())
	if err != nil {
		return err
	}
	old, err := a.one(ctx)
	if err != nil {
		return err
	}
	if err := a.active(ctx, old); err != nil {
		return err
	}
	held, err := a.singleton(ctx)
	if err != nil {
		return err
	}
	// From now on: the first start may take longer, and would be told of too.
	err = change(ctx, c, held, func(s *v1.StatefulSingleton) { s.Spec.MaxTransitionTime = new(int32(2)) })
	if err := errors.Join(err, a.rollOut(ctx, d)); err != nil {
		return err
	}
	s, err := a.says(ctx, "that it takes too long", func(s *v1.StatefulSingleton) bool {
		return s.Status.Phase == v1.PhaseFailed && isTrue(v1.ConditionDegraded, v1.ReasonTimeout)(s)
	})
	if err != nil {
		return err
	}
	note, err := a.event(ctx, v1.EventTransitionTimeout)
	if err != nil {
		return err
	}
	if len(s.Status.Waiting) == 0 || !strings.Contains(note, old.Pod) || !strings.Contains(note, s.Status.Waiting[0]) {
		return fmt.Errorf("the event should name %s and %v: %s", old.Pod, s.Status.Waiting, note)
	}
	if err := a.stays(old); err != nil {
		return err
	}
	next, err := a.one(ctx, old)
	if err != nil {
		return err
	}
	if err := a.active(ctx, next); err != nil {
		return err
	}
	if times, _, err := a.told(ctx, v1.EventTransitionTimeout); err != nil || times != 1 {
		return errors.Join(err, fmt.Errorf("it was told %d times", times))
	}
	return nil
}

func timeoutDeletes(ctx context.Context, c *Cluster) error {
	a, err := c.application("late")
	if err != nil {
		return err
	}
	if _, err := a.pod(ctx, "early"); err != nil {
		return err
	}
	early, err := a.one(ctx)
	if err != nil {
		return err
	}
	err = a.hold(ctx, func(s *v1.StatefulSingletonSpec) {
		s.MaxTransitionTime, s.OnTimeout = new(int32(2)), v1.TimeoutDeletesOld
	})
	if err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 1, surge()); err != nil {
		return err
	}
	next, err := a.one(ctx, early)
	if err != nil {
		return err
	}
	note, err := a.event(ctx, v1.EventPodDeleted)
	if err == nil && !strings.Contains(note, early.Pod) {
		err = fmt.Errorf("the event should name %s: %s", early.Pod, note)
	}
	return errors.Join(err, a.oldStopped(early), a.active(ctx, next))
}

// crashLoop looks at a program that ends as soon as it starts, while another
// pod waits for its turn.
func crashLoop(ctx context.Context, c *Cluster) error {
	a, err := c.application("crash", behave("WITNESS_EXIT_AFTER", "100ms"), behave("WITNESS_EXIT_CODE", "1"))
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 2, surge()); err != nil {
		return err
	}
	var victim corev1.Pod
	err = until(ctx, "a pod to restart 4 times and be in back-off", func(ctx context.Context) error {
		pods, err := a.pods(ctx)
		if err != nil {
			return err
		}
		for i := range pods {
			for _, s := range pods[i].Status.ContainerStatuses {
				if s.RestartCount >= 4 && s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff" {
					victim = pods[i]
					return nil
				}
			}
		}
		return errors.New("none has")
	})
	if err != nil {
		return err
	}
	runs, err := a.folder.Runs()
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.UID != string(victim.UID) {
			return fmt.Errorf("%s ran too, while %s restarted: %s", r.Pod, victim.Name, story(runs))
		}
	}
	if len(runs) < 5 {
		return fmt.Errorf("only %d runs are known of 5", len(runs))
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	if err := a.Client.Delete(ctx, &victim); err != nil {
		return err
	}
	return until(ctx, "another pod to take over", func(context.Context) error {
		runs, err := a.folder.Runs()
		if last := runs[len(runs)-1]; err == nil && last.UID == string(victim.UID) {
			err = errors.New("none has started")
		}
		return err
	})
}

// brokenSide has a side container whose image there is not, so that the holder
// is never Ready.
func brokenSide(ctx context.Context, c *Cluster) error {
	broken := func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: "side", Image: "localhost/there-is-no-such-image:1",
			ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"/side"}})
	}
	a, err := c.application("broken")
	if err != nil {
		return err
	}
	if err := a.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.Containers = []string{programName} }); err != nil {
		return err
	}
	if _, err := a.pod(ctx, "first", broken); err != nil {
		return err
	}
	run, err := a.one(ctx)
	if err != nil {
		return err
	}
	if _, err := a.pod(ctx, "second"); err != nil {
		return err
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	s, err := a.says(ctx, "that second waits and first is not Ready", func(s *v1.StatefulSingleton) bool {
		return s.Status.WaitingCount == 1 && s.Status.ActivePod == "first"
	})
	if err != nil {
		return err
	}
	if isTrue(v1.ConditionAvailable, v1.ReasonActive)(s) {
		return errors.New("a pod with a broken container is said to be available")
	}
	if err := a.stays(run); err != nil {
		return err
	}
	_, err = a.handover(ctx, "deletion of the broken pod", func(old testimony.Run) error { return a.delete(ctx, old) })
	return err
}

func replicas(ctx context.Context, c *Cluster) error {
	a, err := c.application("three")
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	// Standbys are never Ready, so that is what a rollout may miss.
	if _, err := a.deploy(ctx, 3, rolling(1, 2)); err != nil {
		return err
	}
	for range 2 {
		old, err := a.one(ctx)
		if err != nil {
			return err
		}
		waiting, err := a.held(ctx, 2)
		if err != nil {
			return err
		}
		s, err := a.says(ctx, "that two wait", func(s *v1.StatefulSingleton) bool {
			return s.Status.WaitingCount == 2 && len(s.Status.Waiting) == 2 && s.Status.ActivePod == old.Pod
		})
		if err != nil {
			return err
		}
		next, err := a.handover(ctx, "deletion with standbys", func(old testimony.Run) error { return a.delete(ctx, old) })
		if err != nil {
			return err
		}
		if next.Pod != s.Status.Waiting[0] || !slices.ContainsFunc(waiting, func(p corev1.Pod) bool { return p.UID == types.UID(next.UID) }) {
			return fmt.Errorf("%s runs, and %v waited in that order", next.Pod, s.Status.Waiting)
		}
	}
	return nil
}

func unmanaged(ctx context.Context, c *Cluster) error {
	a, err := c.application("early")
	if err != nil {
		return err
	}
	if _, err := a.pod(ctx, "early"); err != nil {
		return err
	}
	early, err := a.one(ctx)
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 1, surge()); err != nil {
		return err
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	s, err := a.says(ctx, "that a pod has no gate", isTrue(v1.ConditionUnmanagedPod, v1.ReasonPodWithoutGate))
	if err != nil {
		return err
	}
	if !strings.Contains(tell(s), early.Pod) {
		return fmt.Errorf("it does not name %s: %s", early.Pod, tell(s))
	}
	if err := a.stays(early); err != nil {
		return err
	}
	next, err := a.handover(ctx, "deletion of a pod without the gate", func(old testimony.Run) error { return a.delete(ctx, old) })
	if err != nil {
		return err
	}
	_, err = a.says(ctx, "no more of it", func(s *v1.StatefulSingleton) bool {
		return s.Status.ActivePod == next.Pod && !isTrue(v1.ConditionUnmanagedPod, v1.ReasonPodWithoutGate)(s)
	})
	return err
}

func orphan(ctx context.Context, c *Cluster) error {
	a, err := c.application("orphan")
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	d, err := a.deploy(ctx, 1, recreate())
	if err != nil {
		return err
	}
	run, err := a.one(ctx)
	if err != nil {
		return err
	}
	lonely, err := a.pod(ctx, "lonely")
	if err != nil {
		return err
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	if err := errors.Join(a.active(ctx, run), a.stays(run)); err != nil {
		return err
	}
	// When the Deployment goes, the pod of nobody is next.
	next, err := a.handover(ctx, "scaling to none", func(testimony.Run) error { return a.scale(ctx, d, 0) })
	if err == nil && next.UID != string(lonely.UID) {
		err = fmt.Errorf("%s runs", next.Pod)
	}
	return err
}

func deletedByForce(ctx context.Context, c *Cluster) error {
	// Long enough for a successor to be there while the old program runs on.
	a, err := c.application("force", grace(30), behave("WITNESS_IGNORE_TERM", "true"))
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 2, surge()); err != nil {
		return err
	}
	for range 3 {
		if _, err := a.held(ctx, 1); err != nil {
			return err
		}
		_, err := a.handover(ctx, "deletion by force", func(old testimony.Run) error {
			return a.delete(ctx, old, client.GracePeriodSeconds(0))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
