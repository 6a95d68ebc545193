package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers"
	replicatedchildren "github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	replicatedspec "github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/test/run/place"
)

// maxMembers is the max number of pods. It is enough for every rule.
const maxMembers = 3

// site is the namespace of the test.
type site struct {
	keep     bool
	members  int32
	patience time.Duration

	client    client.Client
	config    *rest.Config
	namespace string
}

// open creates the namespace and the objects that the pods may need.
func (s *site) open(ctx context.Context, where place.Place, objects []*unstructured.Unstructured) error {
	var err error
	s.config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(where.Kubeconfig)}, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("read %s: %w", where.Kubeconfig, err)
	}
	s.config.QPS = -1 // client-side rate limits would be part of the measured times
	if s.client, err = client.New(s.config, client.Options{Scheme: where.Client.Scheme()}); err != nil {
		return err
	}
	s.namespace = "check-commands-" + rand.String(5)
	if err := s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		return fmt.Errorf("create namespace %s: %w", s.namespace, err)
	}
	fmt.Println("in namespace", s.namespace)
	for _, object := range objects {
		if scoped, err := s.client.IsObjectNamespaced(object); err != nil || !scoped {
			fmt.Printf("%s %s is not namespaced, or its kind is unknown, and is skipped\n", object.GetKind(), object.GetName())
			continue
		}
		object.SetNamespace(s.namespace)
		if err := s.client.Create(ctx, object); err != nil {
			return errors.Join(fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err), s.close(ctx))
		}
	}
	return nil
}

// close deletes the namespace without waiting for programs that do not end.
func (s *site) close(ctx context.Context) error {
	if s.keep {
		fmt.Println("\nkept namespace", s.namespace)
		return nil
	}
	in := client.InNamespace(s.namespace)
	err := s.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	return errors.Join(err, client.IgnoreNotFound(s.client.DeleteAllOf(ctx, &corev1.Pod{}, in, client.GracePeriodSeconds(1))))
}

// makePods creates the pods of a set and waits until they run, idle.
func (s *site) makePods(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet) (*realPods, error) {
	set.Namespace = s.namespace
	if ptr.Deref(set.Spec.ChaosLevel, 0) > 0 {
		fmt.Println("chaosLevel is ignored, so that commands do not fail because of it")
		set.Spec.ChaosLevel = nil
	}
	members := s.members
	if members <= 0 {
		members = min(max(ptr.Deref(set.Spec.Replicas, maxMembers), 1), maxMembers)
	}
	trial, err := replicatedchildren.NewTrial(set, members)
	if err != nil {
		return nil, fmt.Errorf("the operator would refuse %s: %w", set.Name, err)
	}
	executor, err := controllers.NewExecutor(s.config, s.client)
	if err != nil {
		return nil, err
	}
	children := []client.Object{trial.StatefulSet}
	for _, service := range trial.Services {
		children = append(children, service)
	}
	for _, object := range children {
		if err := s.client.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("create %s: %w", object.GetName(), err)
		}
	}
	p := &realPods{client: s.client, executor: executor, trial: trial, set: set, containers: make([]string, members)}
	last := ""
	err = wait.PollUntilContextTimeout(ctx, time.Second, s.patience, true, func(ctx context.Context) (bool, error) {
		missing := p.missing(ctx)
		if missing != last && missing != "" {
			fmt.Println("waiting for", missing)
		}
		last = missing
		return missing == "", nil
	})
	if err != nil {
		return nil, fmt.Errorf("the pods did not start: %s", last)
	}
	return p, nil
}

// realPods are members in a cluster.
type realPods struct {
	client   client.Client
	executor interface {
		Run(context.Context, controllers.Command) controllers.Result
	}
	trial      replicatedchildren.Trial
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
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: p.set.Namespace, Name: p.name(member)}, &pod); err != nil {
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
func (p *realPods) run(ctx context.Context, member int, command string, primaries []int) controllers.Result {
	role, first := roleAfter(command)
	if role == v1alpha1.RolePrimary && len(primaries) == 0 {
		p.epoch++
	}
	argv := replicatedspec.WithEpoch(p.set.Spec.Pod.Commands[command].Command, metav1.Unix(0, 0), p.epoch)
	for _, primary := range primaries {
		argv = append(argv, p.name(primary)+"."+p.trial.Services[0].Name)
	}
	if role != "" && first {
		if err := p.show(ctx, member, role); err != nil {
			return controllers.Result{Outcome: controllers.Unknown, Why: err.Error()}
		}
	}
	r := p.exec(ctx, member, command, argv, p.trial.Timeouts[command])
	if role != "" && !first && r.Outcome == controllers.Succeeded {
		if err := p.show(ctx, member, role); err != nil {
			r.Outcome, r.Why = controllers.Unknown, err.Error()
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
	if err := p.client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, labels)); err != nil {
		return fmt.Errorf("label pod %s: %w", pod.Name, err)
	}
	return nil
}

func (p *realPods) exec(ctx context.Context, member int, name string, argv []string, timeout time.Duration) controllers.Result {
	pod, status, err := p.container(ctx, member)
	if err != nil || status == nil {
		return controllers.Result{Outcome: controllers.Unknown, Why: fmt.Sprintf("cannot read its pod: %v", err)}
	}
	return p.executor.Run(ctx, controllers.Command{Name: name, Pod: client.ObjectKeyFromObject(pod), UID: pod.UID,
		Container: p.trial.Container, ContainerID: status.ContainerID, Argv: argv, Timeout: timeout, Keep: controllers.MaxOutput})
}

// listing prints the command lines of all processes except its own.
const listing = `for p in /proc/[0-9]*; do [ "$p" = /proc/$$ ] || tr '\0' ' ' < "$p/cmdline" 2>/dev/null && echo; done`

// processes lists the processes in a member's container. It returns false if the image lacks the tools.
func (p *realPods) processes(ctx context.Context, member int) ([]string, bool) {
	r := p.exec(ctx, member, "processes", []string{"sh", "-c", listing}, time.Minute)
	if r.Outcome == controllers.Unknown || !strings.Contains(r.Stdout, "\n") {
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
	case <-time.After(time.Second):
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
