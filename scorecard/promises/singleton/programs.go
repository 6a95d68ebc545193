package singleton

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/observer"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
	"github.com/stateful-operator/stateful-operator/test/faults/witnessset"
)

// The gate is invisible to a program.

// awkward are arguments that a shell, sed or JSON could corrupt.
var awkward = []string{
	"-g", "daemon off;", "two words", "a,b", "[x]", `"quoted"`, `it's`, `back\slash`, "semi;colon", "$(id -u)", "$(POD)", "$$(POD)", "`date`", "$HOME",
	"&& true", "| cat", "*", "~", "{a,b}", "line\nbreak", "tab\t", "", " ", "<>&", "äöü ✓", "--", "-",
}

// arguments compares the arguments of a program behind a gate with those of a program without one.
func arguments(ctx context.Context, c *kit.Cluster) {
	say := program(func(p *corev1.Container) { p.Command, p.Args = []string{"/witness", "in the command", ""}, awkward })
	plain := newApplication(c, "plain", say)
	plain.pod(ctx, "plain")
	want := plain.one(ctx)
	for _, mode := range []v1.GateMode{v1.GateBinary, v1.GateScript, v1.GateInit} {
		name := strings.ToLower(string(mode))
		a := newApplication(c, name, say, program(func(p *corev1.Container) { p.Image = c.WitnessShell }))
		a.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.GateMode = mode })
		a.pod(ctx, name)
		got := a.one(ctx)
		expected := slices.Clone(want.Args)
		for i := range expected {
			if expected[i] == want.Pod { // $(POD), which Kubernetes itself expands
				expected[i] = got.Pod
			}
		}
		c.Expect(slices.Equal(got.Args, expected)).To(BeTrue(), "in mode %s process %d got %q, and without a gate process %d %q", mode, got.PID, got.Args, want.PID, expected)
		c.Expect(got.PID).To(Equal(want.PID), "in mode %s process %d got %q, and without a gate process %d %q", mode, got.PID, got.Args, want.PID, expected)
	}
}

// noCommand has a program that is the image's entrypoint. The whole pod waits, or the pod is
// refused if the mode does not allow that.
func noCommand(ctx context.Context, c *kit.Cluster) {
	silent := program(func(p *corev1.Container) { p.Command, p.Args = nil, []string{"an argument"} })
	a, _ := startApplication(ctx, c, 2, "silent", silent)
	run := a.one(ctx)
	c.Expect(slices.Equal(run.Args, []string{"an argument"})).To(BeTrue(), "it got %q", run.Args)

	a.handover(ctx, "deletion with Init", func(old testimony.Run) { a.delete(ctx, old) })
	b := newApplication(c, "refused", silent)
	b.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.GateMode = v1.GateBinary })
	c.Until(ctx, "a pod that the gate cannot start to be refused because of its command", func(ctx context.Context) {
		_, err := b.tryPod(ctx, "refused")
		c.Expect(err).To(MatchError(ContainSubstring("containers[0].command")))
	})
}

// process1 deletes a waiting pod with a long grace period, which must not be used up, and checks
// how a program ends.
func process1(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "one", grace(3600))
	a.hold(ctx)
	ends := func(t *corev1.PodTemplateSpec) { t.Spec.RestartPolicy = corev1.RestartPolicyNever }
	a.pod(ctx, "first", ends, behave("WITNESS_EXIT_CODE", "7"), behave("WITNESS_EXIT_AFTER", "6s"))
	first := a.one(ctx)
	c.Expect(first.PID).To(BeNumerically("==", 1), "it is process %d", first.PID)
	second := a.pod(ctx, "second")
	a.held(ctx, 1)
	c.Remove(ctx, second)
	// A pod that used up its grace period would be deleted in an hour.
	c.Gone(ctx, second)
	a.pod(ctx, "third")
	// The first pod has ended with its own exit status, and the next one takes over.
	third := a.one(ctx, first)
	pod := a.podOf(ctx, first)
	s := pod.Status.ContainerStatuses[0].State.Terminated
	c.Expect(s).NotTo(BeNil(), "it ended with %+v, want 7", s)
	c.Expect(s.ExitCode).To(BeNumerically("==", 7), "it ended with %+v, want 7", s)
	// SIGTERM reaches the program, or its grace period would be used up.
	a.delete(ctx, third)
	a.none(ctx)
	a.oldStopped(third)
}

// restarts ends a waiting gate, and then a program while another pod waits. Both restart in their
// pods, and only the holder's gate opens.
func restarts(ctx context.Context, c *kit.Cluster) {
	a, _ := startApplication(ctx, c, 2, "restart", program(func(p *corev1.Container) { p.Image = c.WitnessShell }))
	waiting := a.held(ctx, 1)
	old := a.one(ctx)
	a.gateRestarts(ctx, &waiting[0])
	a.stays(old)
	before := a.says(ctx, "the holder", func(s *v1.StatefulSingleton) bool { return s.Status.ActivePod == old.Pod && s.Status.Holder != nil })
	next := a.handover(ctx, "killed program", func(old testimony.Run) { c.Check(a.Folder.Kill(old.ID)) })
	after := a.singleton(ctx)
	c.Expect(next.UID).To(Equal(old.UID), "%s ran in epoch %d and %s runs in epoch %d", old.Pod, before.Status.Holder.Epoch, next.Pod, after.Status.Holder.Epoch)
	c.Expect(after.Status.Holder.Epoch).To(Equal(before.Status.Holder.Epoch), "%s ran in epoch %d and %s runs in epoch %d", old.Pod, before.Status.Holder.Epoch, next.Pod, after.Status.Holder.Epoch)
}

// gateRestarts ends the gate of a waiting pod, and waits until it runs again.
func (a *application) gateRestarts(ctx context.Context, pod *corev1.Pod) {
	_, _ = a.TryExec(ctx, client.ObjectKeyFromObject(pod), witnessset.Program, "/bin/sh", "-c", "kill 1") // the command may be killed too
	a.Until(ctx, "the gate of "+pod.Name+" to run again", func(ctx context.Context) {
		a.Read(ctx, pod)
		s := pod.Status.ContainerStatuses[0]
		a.Expect(s.RestartCount).NotTo(BeZero(), "it restarted %d times, and is %+v", s.RestartCount, s.State)
		a.Expect(s.State.Running).NotTo(BeNil(), "it restarted %d times, and is %+v", s.RestartCount, s.State)
		log := a.log(ctx, pod)
		a.Expect(log).To(ContainSubstring("StatefulSingleton: waiting for the start signal"), "its log has %q", log)
	})
}

// probes has a liveness probe that fails while the gate waits, and would restart the container
// after three seconds. A lower threshold would not leave the program time to listen.
func probes(ctx context.Context, c *kit.Cluster) {
	alive := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/alive", Port: intstr.FromInt32(8080)}}
	a, _ := startApplication(ctx, c, 2, "probed", behave("WITNESS_ALIVE", ":8080"), program(func(p *corev1.Container) {
		p.LivenessProbe = &corev1.Probe{ProbeHandler: alive, PeriodSeconds: 1, FailureThreshold: 3, TimeoutSeconds: 10}
		p.ReadinessProbe = &corev1.Probe{ProbeHandler: alive, PeriodSeconds: 1, TimeoutSeconds: 10}
	}))
	waiting := a.held(ctx, 1)
	for _, p := range waiting[0].Spec.InitContainers {
		c.Expect(p.Name).NotTo(Equal(v1.ContainerWait), "the whole pod waits, so no probe runs")
	}
	c.Until(ctx, "several probes to pass", func(context.Context) {
		since := time.Since(waiting[0].Status.ContainerStatuses[0].State.Running.StartedAt.Time)
		c.Expect(since).To(BeNumerically(">=", 8*time.Second), "it has waited for %s", since)
	})
	next := a.handover(ctx, "deletion with probes", func(old testimony.Run) { a.delete(ctx, old) })
	a.ready(ctx, next)
	pod := a.podOf(ctx, next)
	c.Expect(pod.UID).To(Equal(waiting[0].UID), "%s restarted %d times", pod.Name, pod.Status.ContainerStatuses[0].RestartCount)
	c.Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeZero(), "%s restarted %d times", pod.Name, pod.Status.ContainerStatuses[0].RestartCount)
}

// nothingRuns has an init container, a postStart hook and a startup probe. Auto can only make the
// whole pod wait for these.
func nothingRuns(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "whole", program(func(p *corev1.Container) {
		p.StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/alive"}}}, PeriodSeconds: 1, FailureThreshold: 5, TimeoutSeconds: 10}
		p.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/note", "postStart"}}}}
	}))
	a.change = append(a.change, func(t *corev1.PodTemplateSpec) {
		t.Spec.InitContainers = append(t.Spec.InitContainers, a.set().Container("prepare", "/note", "init"))
	})
	a.hold(ctx)
	a.deploy(ctx, 2, surge())
	a.held(ctx, 1)
	old := a.one(ctx)
	next := a.handover(ctx, "deletion with Init and hooks", func(old testimony.Run) { a.delete(ctx, old) })
	a.ready(ctx, next)
	a.notedAfter(old, next, "init", "postStart")
}

// notedAfter checks that the next pod wrote its notes after the old program had ended.
func (a *application) notedAfter(old, next testimony.Run, notes ...string) {
	runs := a.runs()
	old = runs[slices.IndexFunc(runs, func(r testimony.Run) bool { return r.ID == old.ID })]
	lines, err := a.Folder.Lines()
	a.Check(err)
	for _, note := range notes {
		i := slices.IndexFunc(lines, func(l testimony.Line) bool { return l.What == testimony.Note && l.Text == note && l.UID == next.UID })
		a.Expect(i).To(BeNumerically(">=", 0), "%s of %s never ran", note, next.Pod)
		early := time.Duration(old.End - lines[i].At)
		a.Expect(early).To(BeNumerically("<=", 0), "%s of %s ran %s before the program of %s had ended", note, next.Pod, early, old.Pod)
	}
}

// sideContainers has a container other than the program, with a witness folder of its own. It runs
// in every pod at the same time.
func sideContainers(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "sided")
	a.change = append(a.change, func(t *corev1.PodTemplateSpec) {
		side := a.set().Container("side")
		side.Env = append(side.Env, corev1.EnvVar{Name: "WITNESS_DIR", Value: "/witness.d/side"})
		t.Spec.Containers = append(t.Spec.Containers, side)
	})
	side, err := observer.Open(filepath.Join(a.Folder.Dir(), "side"))
	c.Check(err)
	defer side.Close()
	a.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.Containers = []string{witnessset.Program} })
	a.deploy(ctx, 2, surge())
	a.held(ctx, 1)
	a.one(ctx)
	c.Until(ctx, "both side containers to run", func(context.Context) {
		runs, err := side.Runs()
		c.Check(err)
		c.Expect(testimony.Overlaps(runs, testimony.Now())).NotTo(BeEmpty(), "%d have", len(runs))
	})
	a.handover(ctx, "deletion with side containers", func(old testimony.Run) { a.delete(ctx, old) })
}

// smallStorage has a program whose limit of ephemeral storage is less than the size of the gate.
// Another pod, which writes more than this limit, shows that the kubelet enforces it.
func smallStorage(ctx context.Context, c *kit.Cluster) {
	limit := corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("1Mi")}
	a := newApplication(c, "small", func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources.Limits = limit })
	a.hold(ctx)
	a.deploy(ctx, 1, surge())
	run := a.one(ctx)
	a.ready(ctx, run)
	large := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "large", Namespace: c.Namespace}, Spec: corev1.PodSpec{
		NodeName: run.Node, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(1)),
		Volumes: []corev1.Volume{{Name: "much", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		Containers: []corev1.Container{{
			Name: "writer", Image: c.Image, Resources: corev1.ResourceRequirements{Limits: limit},
			Command:      []string{"/bin/sh", "-c", "head -c 3000000 /dev/zero > /much/bytes" + kit.Idle},
			VolumeMounts: []corev1.VolumeMount{{Name: "much", MountPath: "/much"}},
		}},
	}}
	c.Put(ctx, large)
	c.Until(ctx, "the pod that writes too much to be evicted", func(ctx context.Context) {
		c.Read(ctx, large)
		c.Expect(large.Status.Reason).To(Equal("Evicted"), "%s", large.Status.Message)
	})
	now := a.one(ctx)
	c.Expect(now.Pod).To(Equal(run.Pod), "the pod with the gate was replaced")
}
