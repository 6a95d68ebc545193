package promises

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/observer"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// What a program notices of the gate: nothing.

// awkward are arguments that a shell, sed or JSON would spoil.
var awkward = []string{
	"-g", "daemon off;", "two words", "a,b", "[x]", `"quoted"`, `it's`, `back\slash`, "semi;colon", "$(id -u)", "$(POD)", "$$(POD)", "`date`", "$HOME",
	"&& true", "| cat", "*", "~", "{a,b}", "line\nbreak", "tab\t", "", " ", "<>&", "äöü ✓", "--", "-",
}

// arguments compares what a program is given with what one is given that no
// gate holds back.
func arguments(ctx context.Context, c *Cluster) error {
	say := program(func(p *corev1.Container) { p.Command, p.Args = []string{"/witness", "in the command", ""}, awkward })
	plain, err := c.application("plain", say)
	if err != nil {
		return err
	}
	if _, err := plain.pod(ctx, "plain"); err != nil {
		return err
	}
	want, err := plain.one(ctx)
	if err != nil {
		return err
	}
	for _, mode := range []v1.GateMode{v1.GateBinary, v1.GateScript, v1.GateInit} {
		name := strings.ToLower(string(mode))
		a, err := c.application(name, say, program(func(p *corev1.Container) { p.Image = c.WitnessShell }))
		if err != nil {
			return err
		}
		if err := a.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.GateMode = mode }); err != nil {
			return err
		}
		if _, err := a.pod(ctx, name); err != nil {
			return err
		}
		got, err := a.one(ctx)
		if err != nil {
			return err
		}
		expected := slices.Clone(want.Args)
		for i := range expected {
			if expected[i] == want.Pod { // $(POD), which Kubernetes itself expands
				expected[i] = got.Pod
			}
		}
		if !slices.Equal(got.Args, expected) || got.PID != want.PID {
			return fmt.Errorf("in mode %s process %d got %q, and without a gate process %d %q", mode, got.PID, got.Args, want.PID, expected)
		}
	}
	return nil
}

// noCommand has an image's entrypoint for its program: it is held back as a
// whole, or refused where that is not wanted.
func noCommand(ctx context.Context, c *Cluster) error {
	silent := program(func(p *corev1.Container) { p.Command, p.Args = nil, []string{"an argument"} })
	a, err := c.application("silent", silent)
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 2, surge()); err != nil {
		return err
	}
	run, err := a.one(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(run.Args, []string{"an argument"}) {
		return fmt.Errorf("it got %q", run.Args)
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	if _, err := a.handover(ctx, "deletion with Init", func(old testimony.Run) error { return a.delete(ctx, old) }); err != nil {
		return err
	}
	b, err := c.application("refused", silent)
	if err != nil {
		return err
	}
	if err := b.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.GateMode = v1.GateBinary }); err != nil {
		return err
	}
	return until(ctx, "a pod that cannot be held back to be refused for its command", func(ctx context.Context) error {
		if _, err := b.tryPod(ctx, "refused"); err == nil || !strings.Contains(err.Error(), "containers[0].command") {
			return errors.Join(err, errors.New("it was not"))
		}
		return nil
	})
}

// process1 deletes a pod that waits with a long grace period, which it must not
// use up, and looks at how a program ends.
func process1(ctx context.Context, c *Cluster) error {
	a, err := c.application("one", grace(3600))
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	ends := func(t *corev1.PodTemplateSpec) { t.Spec.RestartPolicy = corev1.RestartPolicyNever }
	if _, err := a.pod(ctx, "first", ends, behave("WITNESS_EXIT_CODE", "7"), behave("WITNESS_EXIT_AFTER", "6s")); err != nil {
		return err
	}
	first, err := a.one(ctx)
	if err != nil {
		return err
	}
	if first.PID != 1 {
		return fmt.Errorf("it is process %d", first.PID)
	}
	second, err := a.pod(ctx, "second")
	if err != nil {
		return err
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	began := time.Now()
	if err := errors.Join(a.Client.Delete(ctx, second), c.gone(ctx, second)); err != nil {
		return err
	}
	// A busy machine takes seconds; one that waits for the grace period, an hour.
	if took := time.Since(began); took > 30*time.Second {
		return fmt.Errorf("a pod that waited took %s to end", took.Round(time.Second))
	}
	if _, err := a.pod(ctx, "third"); err != nil {
		return err
	}
	// The first pod is done and gives way, with its own exit status.
	third, err := a.one(ctx, first)
	if err != nil {
		return err
	}
	pod, err := a.podOf(ctx, first)
	if err != nil {
		return err
	}
	if s := pod.Status.ContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != 7 {
		return fmt.Errorf("it ended with %+v and not with 7", s)
	}
	// SIGTERM reaches the program, or its grace period would be used up.
	if err := a.delete(ctx, third); err != nil {
		return err
	}
	return errors.Join(a.none(ctx), a.oldStopped(third))
}

// restarts ends a gate that waits, and then a program while another waits. Both
// start again in their pods, and only the holder's gate opens.
func restarts(ctx context.Context, c *Cluster) error {
	a, err := c.application("restart", program(func(p *corev1.Container) { p.Image = c.WitnessShell }))
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 2, surge()); err != nil {
		return err
	}
	waiting, err := a.held(ctx, 1)
	if err != nil {
		return err
	}
	old, err := a.one(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(a.gateRestarts(ctx, &waiting[0]), a.stays(old)); err != nil {
		return err
	}
	before, err := a.says(ctx, "who holds", func(s *v1.StatefulSingleton) bool { return s.Status.ActivePod == old.Pod && s.Status.Holder != nil })
	if err != nil {
		return err
	}
	next, err := a.handover(ctx, "killed program", func(old testimony.Run) error { return a.folder.Kill(old.ID) })
	if err != nil {
		return err
	}
	after, err := a.singleton(ctx)
	if err == nil && (next.UID != old.UID || after.Status.Holder.Epoch != before.Status.Holder.Epoch) {
		err = fmt.Errorf("%s ran in epoch %d and %s runs in epoch %d", old.Pod, before.Status.Holder.Epoch, next.Pod, after.Status.Holder.Epoch)
	}
	return err
}

// gateRestarts ends the gate of a pod that waits, and waits until it runs again.
func (a *application) gateRestarts(ctx context.Context, pod *corev1.Pod) error {
	_, _ = a.exec(ctx, client.ObjectKeyFromObject(pod), programName, "/bin/sh", "-c", "kill 1") // it may take the command with it
	return until(ctx, "the gate of "+pod.Name+" to run again", func(ctx context.Context) error {
		if err := a.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if s := pod.Status.ContainerStatuses[0]; s.RestartCount == 0 || s.State.Running == nil {
			return fmt.Errorf("it restarted %d times, and is %+v", s.RestartCount, s.State)
		}
		if log, err := a.log(ctx, pod); err != nil || !strings.Contains(log, "StatefulSingleton: waiting for the start signal") {
			return errors.Join(err, fmt.Errorf("its log says %q", log))
		}
		return nil
	})
}

// probes has a liveness probe that fails while the gate waits, and would end the
// container after a second.
func probes(ctx context.Context, c *Cluster) error {
	alive := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/alive"}}}
	a, err := c.application("probed", program(func(p *corev1.Container) {
		p.LivenessProbe = &corev1.Probe{ProbeHandler: alive, PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 10}
		p.ReadinessProbe = &corev1.Probe{ProbeHandler: alive, PeriodSeconds: 1, TimeoutSeconds: 10}
	}))
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 2, surge()); err != nil {
		return err
	}
	waiting, err := a.held(ctx, 1)
	if err != nil {
		return err
	}
	for _, p := range waiting[0].Spec.InitContainers {
		if p.Name == v1.ContainerWait {
			return errors.New("the whole pod waits, so that nothing is seen of its probes")
		}
	}
	err = until(ctx, "several probes to pass", func(context.Context) error {
		if since := time.Since(waiting[0].Status.ContainerStatuses[0].State.Running.StartedAt.Time); since < 8*time.Second {
			return fmt.Errorf("it has waited for %s", since)
		}
		return nil
	})
	if err != nil {
		return err
	}
	next, err := a.handover(ctx, "deletion with probes", func(old testimony.Run) error { return a.delete(ctx, old) })
	if err != nil {
		return err
	}
	if err := a.ready(ctx, next); err != nil {
		return err
	}
	pod, err := a.podOf(ctx, next)
	if err == nil && (pod.UID != waiting[0].UID || pod.Status.ContainerStatuses[0].RestartCount != 0) {
		err = fmt.Errorf("%s restarted %d times", pod.Name, pod.Status.ContainerStatuses[0].RestartCount)
	}
	return err
}

// nothingRuns has what Auto cannot hold back but as a whole: an init container,
// a postStart hook and a startup probe.
func nothingRuns(ctx context.Context, c *Cluster) error {
	a, err := c.application("whole", program(func(p *corev1.Container) {
		p.StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/alive"}}}, PeriodSeconds: 1, FailureThreshold: 5, TimeoutSeconds: 10}
		p.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/note", "postStart"}}}}
	}))
	if err != nil {
		return err
	}
	a.change = append(a.change, func(t *corev1.PodTemplateSpec) {
		t.Spec.InitContainers = append(t.Spec.InitContainers, a.witness("prepare", "/note", "init"))
	})
	if err := a.hold(ctx); err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 2, surge()); err != nil {
		return err
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	old, err := a.one(ctx)
	if err != nil {
		return err
	}
	next, err := a.handover(ctx, "deletion with Init and hooks", func(old testimony.Run) error { return a.delete(ctx, old) })
	if err != nil {
		return err
	}
	if err := a.ready(ctx, next); err != nil {
		return err
	}
	return a.notedAfter(old, next, "init", "postStart")
}

// notedAfter checks that what the next pod noted came after the old program's
// end.
func (a *application) notedAfter(old, next testimony.Run, notes ...string) error {
	runs, err := a.folder.Runs()
	if err != nil {
		return err
	}
	old = runs[slices.IndexFunc(runs, func(r testimony.Run) bool { return r.ID == old.ID })]
	lines, err := a.folder.Lines()
	if err != nil {
		return err
	}
	for _, note := range notes {
		i := slices.IndexFunc(lines, func(l testimony.Line) bool { return l.What == testimony.Note && l.Text == note && l.UID == next.UID })
		if i < 0 {
			return fmt.Errorf("%s of %s never ran", note, next.Pod)
		}
		if early := time.Duration(old.End - lines[i].At); early > 0 {
			return fmt.Errorf("%s of %s ran %s before the program of %s had ended", note, next.Pod, early, old.Pod)
		}
	}
	return nil
}

// sideContainers has a container that is not the program and testifies in a
// folder of its own: it runs in every pod, at the same time.
func sideContainers(ctx context.Context, c *Cluster) error {
	a, err := c.application("sided")
	if err != nil {
		return err
	}
	a.change = append(a.change, func(t *corev1.PodTemplateSpec) {
		side := a.witness("side")
		side.Env = append(side.Env, corev1.EnvVar{Name: "WITNESS_DIR", Value: "/witness.d/side"})
		t.Spec.Containers = append(t.Spec.Containers, side)
	})
	side, err := observer.Open(filepath.Join(a.folder.Dir(), "side"))
	if err != nil {
		return err
	}
	defer side.Close()
	if err := a.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.Containers = []string{programName} }); err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 2, surge()); err != nil {
		return err
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	if _, err := a.one(ctx); err != nil {
		return err
	}
	err = until(ctx, "both side containers to run", func(context.Context) error {
		runs, err := side.Runs()
		if err == nil && len(testimony.Overlaps(runs, testimony.Now())) == 0 {
			err = fmt.Errorf("%d have", len(runs))
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = a.handover(ctx, "deletion with side containers", func(old testimony.Run) error { return a.delete(ctx, old) })
	return err
}
