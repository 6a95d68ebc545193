package singleton

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// act is a kind of handover.
type act struct {
	kind string
	// fits reports whether it applies to a subject. nil means all subjects.
	fits func(*subject) bool
	// operator is true if it disturbs the operator or needs it.
	operator bool
	// fault is true if it disturbs something that other subjects need too.
	fault bool
	// do ends the present program, and returns the last run that it ended on purpose.
	do func(ctx context.Context, s *subject, old testimony.Run) testimony.Run
}

const scale131 = "scale 1-3-1"

var acts = []act{
	{kind: "rollout", fits: hasWorkload, do: ends(func(ctx context.Context, s *subject, _ testimony.Run) { s.rollOut(ctx, s.workload) })},
	{kind: "rapid images", fits: takesAnyImage, do: ends(changesImages)},
	{kind: "delete", do: ends(deletes)},
	{kind: "evict", do: ends(func(ctx context.Context, s *subject, old testimony.Run) { s.evict(ctx, old) })},
	{kind: "drain", do: ends(drains)},
	{kind: "force delete", do: ends(func(ctx context.Context, s *subject, old testimony.Run) {
		s.delete(ctx, old, client.GracePeriodSeconds(0))
	})},
	{kind: "crash", do: ends(crashes)},
	{kind: "crash loop", do: crashesAgain},
	{kind: "label edit", do: ends(relabels)},
	{kind: scale131, fits: hasWorkload, do: ends(scales)},
	{kind: "kubelet stopped", fault: true, do: ends(losesKubelet)},
	{kind: "node cut off", fault: true, do: ends(isCutOff)},
	{kind: "operator killed", operator: true, fault: true, do: ends(losesOperator)},
	{kind: "operator at 0", fits: needsOperator, operator: true, fault: true, do: ends(hasNoOperator)},
	{kind: "webhook down", operator: true, fault: true, do: ends(hasNoWebhook)},
}

func hasWorkload(s *subject) bool { return s.workload != nil }

// needsOperator reports whether no program of a subject starts without the operator. A Lease can name the next one.
func needsOperator(s *subject) bool { return !s.leased }

// takesAnyImage reports whether the gate of a subject needs no shell in the image.
func takesAnyImage(s *subject) bool { return hasWorkload(s) && s.Name != "script" }

// changesImages creates several revisions with two alternating images, without waiting for any of
// them.
func changesImages(ctx context.Context, s *subject, _ testimony.Run) {
	for _, image := range []string{s.WitnessShell, s.Witness, s.WitnessShell, s.Witness} {
		s.revise(ctx, s.workload, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = image })
	}
}

// ends wraps an act that ends the given run.
func ends(do func(context.Context, *subject, testimony.Run)) func(context.Context, *subject, testimony.Run) testimony.Run {
	return func(ctx context.Context, s *subject, old testimony.Run) testimony.Run {
		do(ctx, s, old)
		return old
	}
}

func deletes(ctx context.Context, s *subject, old testimony.Run) { s.delete(ctx, old) }

// drains cordons the node until the next program runs elsewhere.
func drains(ctx context.Context, s *subject, old testimony.Run) {
	s.Cordon(ctx, old.Node, true)
	defer s.Cordon(context.WithoutCancel(ctx), old.Node, false)
	s.evict(ctx, old)
	s.one(ctx, old)
}

// crashes kills the program. Its container restarts and takes over again. A container that has
// restarted before would be in back-off.
func crashes(ctx context.Context, s *subject, old testimony.Run) {
	if s.restarted(ctx, old) {
		s.delete(ctx, old)
	} else {
		s.Check(s.Folder.Kill(old.ID))
	}
}

func (s *subject) restarted(ctx context.Context, run testimony.Run) bool {
	return slices.ContainsFunc(s.podOf(ctx, run).Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 })
}

// crashesAgain kills the program until its container is in back-off, and then deletes its pod.
func crashesAgain(ctx context.Context, s *subject, old testimony.Run) testimony.Run {
	restarted := s.restarted(ctx, old)
	s.Check(s.Folder.Kill(old.ID))
	last := old
	if !restarted {
		last = s.one(ctx, old)
		s.Expect(last.UID).To(Equal(old.UID), "%s took over from %s, which restarts", last.Pod, old.Pod)
		s.Check(s.Folder.Kill(last.ID))
	}
	s.goesOn(ctx, time.Second, nil)
	s.delete(ctx, last)
	return last
}

// relabels tries to remove the labels of the selector from the running pod, which is refused, and
// then deletes the pod. Without the guard the relabeling would not be refused.
func relabels(ctx context.Context, s *subject, old testimony.Run) {
	if !s.soaking.gated {
		s.delete(ctx, old)
		return
	}
	var pod corev1.Pod
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: old.Pod}, &pod)
	if apierrors.IsNotFound(err) {
		return
	}
	s.Check(err)
	s.Expect(string(pod.UID)).To(Equal(old.UID), "pod %s is not the pod that was running", old.Pod)
	from := pod.DeepCopy()
	pod.Labels["app"] = "nobody"
	err = s.Client.Patch(ctx, &pod, client.MergeFrom(from))
	s.Expect(apierrors.IsForbidden(err) || apierrors.IsInvalid(err)).To(BeTrue(), "the guard should refuse to remove a running pod from the selector: %v", err)
	s.delete(ctx, old)
}

// scales adds standbys, deletes the running pod, and removes the standbys again.
func scales(ctx context.Context, s *subject, old testimony.Run) {
	s.scale(ctx, s.workload, 3)
	switch {
	case !s.soaking.gated:
		s.together(ctx)
	case s.chance.IntN(2) == 0:
		s.held(ctx, 2)
	}
	s.delete(ctx, old)
	if s.soaking.gated {
		s.one(ctx, old)
	}
	s.scale(ctx, s.workload, s.replicas)
}

// together waits until several programs run, which nothing prevents without the gate.
func (s *subject) together(ctx context.Context) {
	s.Until(ctx, "several programs of "+s.Name+" to run", func(context.Context) {
		live := s.living()
		s.Expect(len(live)).To(BeNumerically(">=", 2), "%d runs", len(live))
	})
}

// goesOn checks for some time that nothing changes: only want runs. There is no check if want is
// nil.
func (s *subject) goesOn(ctx context.Context, length time.Duration, want *testimony.Run) {
	s.Throughout(ctx, length, func() {
		if want != nil && s.soaking.gated {
			s.stays(*want)
		}
	})
}

// aWhile returns up to 8 seconds. In long soaks it sometimes returns a minute, so that Kubernetes
// detects the lost node too.
func (s *subject) aWhile() time.Duration {
	if s.Handovers > 100 && s.chance.IntN(4) == 0 {
		return time.Minute
	}
	return time.Second + time.Duration(s.chance.Int64N(int64(7*time.Second)))
}

// losesKubelet stops the kubelet and deletes the pod: the program continues to run until the
// kubelet is back.
func losesKubelet(ctx context.Context, s *subject, old testimony.Run) {
	s.Check(s.Nodes.StopKubelet(old.Node))
	defer func() { s.Check(s.Nodes.StartKubelet(old.Node)) }()
	s.deletesInVain(ctx, old)
}

// isCutOff disconnects the node and deletes the pod: the program continues to run until the node is connected, or ends
// when its Lease was not renewed.
func isCutOff(ctx context.Context, s *subject, old testimony.Run) {
	s.Check(s.Nodes.Cut(old.Node))
	defer func() { s.Check(s.Nodes.Heal(old.Node)) }()
	if s.leased {
		s.delete(ctx, old)
		s.goesOn(ctx, s.aWhile(), nil)
		return
	}
	s.deletesInVain(ctx, old)
}

func (s *subject) deletesInVain(ctx context.Context, old testimony.Run) {
	var options []client.DeleteOption
	if s.chance.IntN(2) == 0 {
		options = append(options, client.GracePeriodSeconds(0))
	}
	s.delete(ctx, old, options...)
	s.goesOn(ctx, s.aWhile(), &old)
}

func losesOperator(ctx context.Context, s *subject, old testimony.Run) {
	s.delete(ctx, old)
	s.KillOperators(ctx)
}

// hasNoOperator deletes a pod while no operator runs: no other program starts.
func hasNoOperator(ctx context.Context, s *subject, old testimony.Run) {
	s.WhileNoOperator(ctx, func() {
		s.delete(ctx, old)
		s.none(ctx)
		s.Throughout(ctx, 2*time.Second, func() { s.Expect(pods(s.living())).To(BeEmpty(), "started without an operator") })
	})
}

// hasNoWebhook deletes a pod, or creates a new revision, while new pods that match are refused.
func hasNoWebhook(ctx context.Context, s *subject, old testimony.Run) {
	whileNoWebhook(ctx, s.Cluster, func() {
		// It takes a moment until the API server sees no endpoint.
		s.Until(ctx, "a pod that matches to be refused", func(ctx context.Context) {
			probe, err := s.tryPod(ctx, "refused", func(t *corev1.PodTemplateSpec) { t.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "never"}} })
			if err == nil {
				s.Remove(ctx, probe)
			}
			s.Expect(apierrors.IsForbidden(err) || apierrors.IsInvalid(err)).To(BeTrue(), "it was not: %v", err)
		})
		s.delete(ctx, old)
		s.Until(ctx, "the old program to end", func(context.Context) {
			for _, r := range s.runs() {
				s.Expect(r.ID == old.ID && r.Alive()).To(BeFalse(), "it runs")
			}
		})
	})
}
