package checkcommands

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/plugin"
)

// realPods are members in a cluster.
type realPods struct {
	Checker
	trial      plugin.Trial
	set        *v1alpha1.ReplicatedStatefulSet
	containers []string // IDs of the first containers
	epoch      int64    // number of times that a first primary was started
}

func (p *realPods) count() int { return len(p.containers) }

func (p *realPods) name(member int) string {
	return fmt.Sprintf("%s-%d", p.trial.StatefulSet.Name, member)
}

// container returns a member's pod and the status of the container for commands.
func (p *realPods) container(ctx context.Context, member int) (*corev1.Pod, *corev1.ContainerStatus, error) {
	var pod corev1.Pod
	if err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.set.Namespace, Name: p.name(member)}, &pod); err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == p.trial.Container })
	if i < 0 {
		return &pod, nil, nil
	}
	return &pod, &pod.Status.ContainerStatuses[i], nil
}

// missing returns the first pod that does not run yet and the reason, or "" if all run.
func (p *realPods) missing(ctx context.Context) string {
	for i := range p.containers {
		pod, status, err := p.container(ctx, i)
		switch {
		case apierrors.IsNotFound(err):
			return p.name(i)
		case err != nil:
			return err.Error()
		case status != nil && status.State.Running != nil:
			p.containers[i] = status.ContainerID
		case status != nil && status.State.Waiting != nil:
			return fmt.Sprintf("%s: %s %s", p.name(i), status.State.Waiting.Reason, status.State.Waiting.Message)
		case status != nil && status.State.Terminated != nil:
			return fmt.Sprintf("%s: its container exited with %d; process 1 has to keep running", p.name(i), status.State.Terminated.ExitCode)
		default:
			return p.name(i) + unscheduled(pod)
		}
	}
	return ""
}

func unscheduled(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return ": " + c.Message
		}
	}
	return ""
}

// run runs a command as the operator does: with the names of the primaries as arguments, and with
// labels for the member's role, which the Services select.
func (p *realPods) run(ctx context.Context, member int, command string, primaries []int) plugin.CommandResult {
	role, first := roleAfter(command)
	if role == v1alpha1.RolePrimary && len(primaries) == 0 {
		p.epoch++
	}
	argv := plugin.WithEpoch(p.set.Spec.Pod.Commands[command].Command, metav1.Unix(0, 0), p.epoch)
	for _, primary := range primaries {
		argv = append(argv, p.name(primary)+"."+p.trial.Services[0].Name)
	}
	if role != "" && first {
		if err := p.show(ctx, member, role); err != nil {
			return plugin.CommandResult{Outcome: plugin.Unknown, Why: err.Error()}
		}
	}
	r := p.exec(ctx, member, command, argv, p.trial.Timeouts[command])
	if role != "" && !first && r.Outcome == plugin.Succeeded {
		if err := p.show(ctx, member, role); err != nil {
			r.Outcome, r.Why = plugin.Unknown, err.Error()
		}
	}
	return r
}

// roleAfter returns the role in a member's labels after a command that changes it. before is true for
// commands that end a role: the labels change before the command.
func roleAfter(command string) (role string, before bool) {
	switch command {
	case v1alpha1.CommandSeed, v1alpha1.CommandPrimary, v1alpha1.CommandPromote:
		return v1alpha1.RolePrimary, false
	case v1alpha1.CommandSecondary:
		return v1alpha1.RoleSecondary, false
	case v1alpha1.CommandDemote:
		return v1alpha1.RoleSecondary, true
	case v1alpha1.CommandStop:
		return v1alpha1.RoleNone, true
	}
	return "", false
}

func (p *realPods) show(ctx context.Context, member int, role string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.set.Namespace, Name: p.name(member)}}
	labels := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%t",%q:%q}}}`, v1alpha1.LabelActive, role != v1alpha1.RoleNone, v1alpha1.LabelRole, role)
	if err := p.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, labels)); err != nil {
		return fmt.Errorf("label pod %s: %w", pod.Name, err)
	}
	return nil
}

func (p *realPods) exec(ctx context.Context, member int, name string, argv []string, timeout time.Duration) plugin.CommandResult {
	pod, status, err := p.container(ctx, member)
	if err != nil || status == nil {
		return plugin.CommandResult{Outcome: plugin.Unknown, Why: fmt.Sprintf("cannot read its pod: %v", err)}
	}
	return p.Run(ctx, plugin.Command{Name: name, Pod: client.ObjectKeyFromObject(pod), UID: pod.UID,
		Container: p.trial.Container, ContainerID: status.ContainerID, Argv: argv, Timeout: timeout, Keep: plugin.MaxOutput})
}

// listing prints the command lines of all processes except its own.
const listing = `for p in /proc/[0-9]*; do [ "$p" = /proc/$$ ] || tr '\0' ' ' < "$p/cmdline" 2>/dev/null && echo; done`

// processes lists the processes in a member's container. It returns false if the image lacks the tools.
func (p *realPods) processes(ctx context.Context, member int) ([]string, bool) {
	r := p.exec(ctx, member, "processes", []string{"sh", "-c", listing}, time.Minute)
	if r.Outcome == plugin.Unknown || !strings.Contains(r.Stdout, "\n") {
		return nil, false
	}
	var lines []string
	for line := range strings.Lines(r.Stdout) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, len(lines) > 0
}

func (p *realPods) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(p.Interval):
	}
}

// restarted returns the names of the members whose first container has ended.
func (p *realPods) restarted(ctx context.Context) (names []string) {
	for i, id := range p.containers {
		if _, status, err := p.container(ctx, i); err == nil && (status == nil || status.ContainerID != id || status.State.Running == nil) {
			names = append(names, p.name(i))
		}
	}
	return names
}
