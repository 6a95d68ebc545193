package promises

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// act is a kind of handover.
type act struct {
	kind string
	// fits says which subjects it is for; nil means all.
	fits func(*subject) bool
	// operator is true if it disturbs the operator or asks for its work.
	operator bool
	// fault is true if it disturbs what others need too.
	fault bool
	// do ends the present program in its way, and returns the last run that it
	// meant to end.
	do func(ctx context.Context, s *subject, old testimony.Run) (testimony.Run, error)
}

var acts = []act{
	{kind: "rollout", fits: hasWorkload, do: ends(func(ctx context.Context, s *subject, _ testimony.Run) error { return s.rollOut(ctx, s.workload) })},
	{kind: "rapid images", fits: takesAnyImage, do: ends(changesImages)},
	{kind: "delete", do: ends(deletes)},
	{kind: "evict", do: ends(func(ctx context.Context, s *subject, old testimony.Run) error { return s.evict(ctx, old) })},
	{kind: "drain", do: ends(drains)},
	{kind: "force delete", do: ends(func(ctx context.Context, s *subject, old testimony.Run) error {
		return s.delete(ctx, old, client.GracePeriodSeconds(0))
	})},
	{kind: "crash", do: ends(crashes)},
	{kind: "crash loop", do: crashesAgain},
	{kind: "label edit", do: ends(relabels)},
	{kind: "scale 1-3-1", fits: hasWorkload, do: ends(scales)},
	{kind: "kubelet stopped", fault: true, do: ends(losesKubelet)},
	{kind: "node cut off", fault: true, do: ends(isCutOff)},
	{kind: "operator killed", operator: true, fault: true, do: ends(losesOperator)},
	{kind: "operator at 0", operator: true, fault: true, do: ends(hasNoOperator)},
	{kind: "webhook down", operator: true, fault: true, do: ends(hasNoWebhook)},
}

func hasWorkload(s *subject) bool { return s.workload != nil }

// takesAnyImage is true of one whose gate needs no shell in the image.
func takesAnyImage(s *subject) bool { return hasWorkload(s) && s.name != "script" }

// changesImages makes revision after revision, with one image and another, and
// waits for none of them.
func changesImages(ctx context.Context, s *subject, _ testimony.Run) error {
	for _, image := range []string{s.WitnessShell, s.Witness, s.WitnessShell, s.Witness} {
		err := s.revise(ctx, s.workload, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = image })
		if err != nil {
			return err
		}
	}
	return nil
}

// ends is an act that ends the run that it found.
func ends(do func(context.Context, *subject, testimony.Run) error) func(context.Context, *subject, testimony.Run) (testimony.Run, error) {
	return func(ctx context.Context, s *subject, old testimony.Run) (testimony.Run, error) {
		return old, do(ctx, s, old)
	}
}

func deletes(ctx context.Context, s *subject, old testimony.Run) error { return s.delete(ctx, old) }

// drains closes the node until the next program runs elsewhere.
func drains(ctx context.Context, s *subject, old testimony.Run) (err error) {
	if err := s.closed(ctx, old.Node, true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.closed(context.WithoutCancel(ctx), old.Node, false)) }()
	if err := s.evict(ctx, old); err != nil {
		return err
	}
	_, err = s.one(ctx, old)
	return err
}

// crashes kills the program; its container restarts, and it is its own
// successor. A container that has done so before would be in back-off.
func crashes(ctx context.Context, s *subject, old testimony.Run) error {
	restarted, err := s.restarted(ctx, old)
	if err != nil {
		return err
	}
	if restarted {
		return s.delete(ctx, old)
	}
	return s.folder.Kill(old.ID)
}

func (s *subject) restarted(ctx context.Context, run testimony.Run) (bool, error) {
	pod, err := s.podOf(ctx, run)
	if err != nil {
		return false, err
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.RestartCount > 0 {
			return true, nil
		}
	}
	return false, nil
}

// crashesAgain kills the program until its container is in back-off, and then
// deletes its pod.
func crashesAgain(ctx context.Context, s *subject, old testimony.Run) (testimony.Run, error) {
	restarted, err := s.restarted(ctx, old)
	if err != nil {
		return old, err
	}
	if err := s.folder.Kill(old.ID); err != nil {
		return old, err
	}
	last := old
	if !restarted {
		if last, err = s.one(ctx, old); err != nil {
			return old, err
		}
		if last.UID != old.UID {
			return last, fmt.Errorf("%s took over from %s, which restarts", last.Pod, old.Pod)
		}
		if err := s.folder.Kill(last.ID); err != nil {
			return last, err
		}
	}
	if err := s.goesOn(ctx, time.Second, nil); err != nil {
		return last, err
	}
	return last, s.delete(ctx, last)
}

// relabels tries to take the running pod out of the selector, which is refused,
// and then deletes it. Without the guard it is not refused.
func relabels(ctx context.Context, s *subject, old testimony.Run) error {
	if !s.soaking.gated {
		return s.delete(ctx, old)
	}
	pod, err := s.podOf(ctx, old)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	from := pod.DeepCopy()
	pod.Labels["app"] = "nobody"
	err = s.Client.Patch(ctx, pod, client.MergeFrom(from))
	if err == nil || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return errors.Join(err, errors.New("the guard should refuse to take a pod that runs out of the selector"))
	}
	return s.delete(ctx, old)
}

// scales adds standbys, deletes the pod that runs, and takes them away again.
func scales(ctx context.Context, s *subject, old testimony.Run) error {
	if err := s.scale(ctx, s.workload, 3); err != nil {
		return err
	}
	switch {
	case !s.soaking.gated:
		if err := s.together(ctx); err != nil {
			return err
		}
	case s.chance.IntN(2) == 0:
		if _, err := s.held(ctx, 2); err != nil {
			return err
		}
	}
	if err := s.delete(ctx, old); err != nil {
		return err
	}
	if s.soaking.gated {
		if _, err := s.one(ctx, old); err != nil {
			return err
		}
	}
	return s.scale(ctx, s.workload, s.replicas)
}

// together waits until several programs run, which nothing prevents without the
// gate.
func (s *subject) together(ctx context.Context) error {
	return until(ctx, "several programs of "+s.name+" to run", func(context.Context) error {
		live, err := s.living()
		if err == nil && len(live) < 2 {
			err = fmt.Errorf("%d runs", len(live))
		}
		return err
	})
}

// goesOn looks for some time at what must not change: want runs alone, or none
// but what restarts if want is nil.
func (s *subject) goesOn(ctx context.Context, length time.Duration, want *testimony.Run) error {
	var found error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, length, true, func(context.Context) (bool, error) {
		if want != nil && s.soaking.gated {
			found = s.stays(*want)
		}
		return found != nil, nil
	})
	if found != nil || !wait.Interrupted(err) {
		return errors.Join(found, err)
	}
	return ctx.Err()
}

// aWhile is up to 8 seconds, and sometimes so long that the node is lost to
// Kubernetes too, when many handovers are made.
func (s *subject) aWhile() time.Duration {
	if s.Handovers > 100 && s.chance.IntN(4) == 0 {
		return time.Minute
	}
	return time.Second + time.Duration(s.chance.Int64N(int64(7*time.Second)))
}

// losesKubelet deletes a pod whose kubelet does not hear it: the program runs on
// until it does.
func losesKubelet(ctx context.Context, s *subject, old testimony.Run) (err error) {
	if err := s.Nodes.StopKubelet(old.Node); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Nodes.StartKubelet(old.Node)) }()
	return s.deletesInVain(ctx, old)
}

func isCutOff(ctx context.Context, s *subject, old testimony.Run) (err error) {
	if err := s.Nodes.Cut(old.Node); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Nodes.Heal(old.Node)) }()
	return s.deletesInVain(ctx, old)
}

func (s *subject) deletesInVain(ctx context.Context, old testimony.Run) error {
	var options []client.DeleteOption
	if s.chance.IntN(2) == 0 {
		options = append(options, client.GracePeriodSeconds(0))
	}
	if err := s.delete(ctx, old, options...); err != nil {
		return err
	}
	return s.goesOn(ctx, s.aWhile(), &old)
}

func losesOperator(ctx context.Context, s *subject, old testimony.Run) error {
	first, second := s.delete(ctx, old), s.killOperators(ctx)
	return errors.Join(first, second)
}

// hasNoOperator deletes a pod while there is no operator: nobody starts.
func hasNoOperator(ctx context.Context, s *subject, old testimony.Run) (err error) {
	was, err := s.scaleOperator(ctx, 0)
	defer func() {
		_, back := s.scaleOperator(context.WithoutCancel(ctx), was)
		err = errors.Join(err, back)
	}()
	if err != nil {
		return err
	}
	if err := s.delete(ctx, old); err != nil {
		return err
	}
	if err := s.none(ctx); err != nil {
		return err
	}
	var started error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*time.Second, true, func(context.Context) (bool, error) {
		live, err := s.living()
		if started = err; err == nil && len(live) > 0 {
			started = fmt.Errorf("%s started without an operator", live[0].Pod)
		}
		return started != nil, nil
	})
	if started != nil || !wait.Interrupted(err) {
		return errors.Join(started, err)
	}
	return ctx.Err()
}

// hasNoWebhook deletes a pod, or makes a new revision, while new pods that match
// are refused.
func hasNoWebhook(ctx context.Context, s *subject, old testimony.Run) (err error) {
	restore, err := s.cutWebhook(ctx)
	if restore != nil {
		defer func() { err = errors.Join(err, restore(context.WithoutCancel(ctx))) }()
	}
	if err != nil {
		return err
	}
	// It takes a moment until the API server has no endpoint any more.
	err = until(ctx, "a pod that matches to be refused", func(ctx context.Context) error {
		probe, err := s.tryPod(ctx, "refused", func(t *corev1.PodTemplateSpec) { t.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "never"}} })
		if err == nil {
			return errors.Join(s.Client.Delete(ctx, probe), errors.New("it was not"))
		}
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.delete(ctx, old); err != nil {
		return err
	}
	return until(ctx, "the old program to end", func(context.Context) error {
		runs, err := s.folder.Runs()
		for _, r := range runs {
			if r.ID == old.ID && r.Alive() {
				err = errors.New("it runs")
			}
		}
		return err
	})
}
