// Package checkcommands tests the commands of a ReplicatedStatefulSet. It creates the pods that the operator
// would create in a new namespace, runs the commands as the operator does, and reports which rules of
// docs/commands.md they keep.
package checkcommands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/plugin"
)

const (
	// maxMembers is the default max number of pods. It is enough for every rule.
	maxMembers = 3
	// patience is the max duration of the writes that Ctrl-C does not interrupt.
	patience = time.Minute
)

// Checker checks commands in a cluster.
type Checker struct {
	Client client.Client
	// Run runs a command in a pod.
	Run func(context.Context, plugin.Command) plugin.CommandResult
	// Out gets the progress and the report.
	Out io.Writer
	// Keep keeps the namespace.
	Keep bool
	// Members is the number of pods of a set, or 0 for spec.replicas, at most maxMembers.
	Members int32
	// Timeout is the max duration of the start of the pods.
	Timeout time.Duration
	// Interval is the interval between two looks at the pods.
	Interval time.Duration
}

// Check checks the commands of each set of a manifest, and returns the number of violated rules. It deletes
// the namespace that it creates, also if ctx ends.
func (c Checker) Check(ctx context.Context, m Manifest) (broken int, err error) {
	namespace := "check-commands-" + rand.String(5)
	pods := make([]*realPods, 0, len(m.sets))
	for _, set := range m.sets {
		prepared, err := c.prepare(set, namespace)
		if err != nil {
			return 0, err
		}
		pods = append(pods, prepared)
	}
	if err := c.open(ctx, namespace); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close(ctx, namespace)) }()
	if err := c.createOthers(ctx, namespace, m.others); err != nil {
		return 0, interruptedOr(ctx, err)
	}
	for _, p := range pods {
		if err := p.start(ctx); err != nil {
			return broken, interruptedOr(ctx, err)
		}
		fmt.Fprintf(c.Out, "\nchecking the commands of %s in %d pods\n", p.set.Name, p.count())
		j := newJudge(p, p.set, c.Out)
		j.try(ctx)
		if err := errors.Join(ctx.Err(), j.rejected); err != nil {
			return broken, interruptedOr(ctx, err)
		}
		broken += j.report()
	}
	return broken, nil
}

var errInterrupted = errors.New("interrupted")

// interruptedOr returns the error, or that the user has interrupted the command.
func interruptedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// prepare builds the children of a set in the namespace, which does not have to exist yet.
func (c Checker) prepare(set *v1alpha1.ReplicatedStatefulSet, namespace string) (*realPods, error) {
	set = set.DeepCopy()
	set.Namespace = namespace
	if set.Spec.Application != nil {
		return nil, fmt.Errorf("the commands of %s are part of the operator, because it has spec.application", set.Name)
	}
	if ptr.Deref(set.Spec.ChaosLevel, 0) > 0 {
		fmt.Fprintln(c.Out, "chaosLevel is ignored, so that commands do not fail because of it")
		set.Spec.ChaosLevel = nil
	}
	members := c.Members
	if members <= 0 {
		members = min(max(ptr.Deref(set.Spec.Replicas, maxMembers), 1), maxMembers)
	}
	trial, err := plugin.NewTrial(set, members)
	if err != nil {
		return nil, fmt.Errorf("the operator would reject %s: %w", set.Name, err)
	}
	return &realPods{Checker: c, trial: trial, set: set, containers: make([]string, members)}, nil
}

// uninterrupted returns a context that does not end with ctx. The namespace is created with it, because it
// is unknown whether an interrupted request has created it.
func uninterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// open creates the namespace.
func (c Checker) open(ctx context.Context, namespace string) error {
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	if err := c.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return fmt.Errorf("create namespace %s: %w", namespace, err)
	}
	fmt.Fprintln(c.Out, "in namespace", namespace)
	return nil
}

// close deletes the namespace without waiting for programs that do not end.
func (c Checker) close(ctx context.Context, namespace string) error {
	if c.Keep {
		fmt.Fprintln(c.Out, "\nkept namespace", namespace)
		return nil
	}
	ctx, cancel := uninterrupted(ctx)
	defer cancel()
	namespaceErr := c.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	podsErr := c.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(1))
	if err := errors.Join(client.IgnoreNotFound(namespaceErr), client.IgnoreNotFound(podsErr)); err != nil {
		return fmt.Errorf("delete namespace %s: %w", namespace, err)
	}
	return nil
}

// createOthers creates the objects that the pods may need.
func (c Checker) createOthers(ctx context.Context, namespace string, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if scoped, err := c.Client.IsObjectNamespaced(object); err != nil || !scoped {
			fmt.Fprintf(c.Out, "%s %s is not namespaced, or its kind is unknown, and is skipped\n", object.GetKind(), object.GetName())
			continue
		}
		object.SetNamespace(namespace)
		object.SetResourceVersion("") // an exported object has one
		if err := c.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// start creates the pods and waits until they run, idle.
func (p *realPods) start(ctx context.Context) error {
	children := []client.Object{p.trial.StatefulSet}
	for _, service := range p.trial.Services {
		children = append(children, service)
	}
	for _, object := range children {
		if err := p.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s: %w", object.GetName(), err)
		}
	}
	last := ""
	err := wait.PollUntilContextTimeout(ctx, p.Interval, p.Timeout, true, func(ctx context.Context) (bool, error) {
		missing := p.missing(ctx)
		if missing != last && missing != "" && ctx.Err() == nil {
			fmt.Fprintln(p.Out, "waiting for", missing)
		}
		last = missing
		return missing == "", nil
	})
	if err != nil {
		return fmt.Errorf("the pods did not start within %s: %s", p.Timeout, last)
	}
	return nil
}
