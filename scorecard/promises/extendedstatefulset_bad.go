package promises

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// badRevision is one of the contract's kinds.
type badRevision struct {
	name string
	make extendedChange
	// ends is the phase that it is to end in, Stale if none is said.
	ends v1alpha1.Phase
	// slow is true where it takes a good canary for it to fail.
	slow bool
}

// scarce is what the namespace has a quota of none of.
const scarce = corev1.ResourceName("example.com/scarce")

// No version is good that is not Ready for so many seconds. Times of conditions
// have whole seconds, and a kubelet on a busy machine tells late of an end.
const probation = 5

var badRevisions = []badRevision{
	{name: "image", make: inKeeper(func(k *corev1.Container) { k.Image = "localhost/there-is-no-such-image:1" })},
	{name: "crash", make: running("echo crashing; exit 1")},
	{name: "never", make: probed("false")},
	{name: "nowhere", make: func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.Template.Spec.Template.Spec.NodeSelector = map[string]string{"example.com/there-is-no-such-node": "true"}
	}},
	{name: "quota", make: inKeeper(func(k *corev1.Container) {
		some := corev1.ResourceList{scarce: resource.MustParse("1")}
		k.Resources = corev1.ResourceRequirements{Requests: some, Limits: some}
	})},
	{name: "prejob", ends: v1alpha1.PhaseAborted, slow: true, make: func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.UpdateStrategy.PreUpdateJob = updateJob(s, "pre", "exit 1")
	}},
	{name: "postjob", slow: true, make: func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.UpdateStrategy.PostUpdateJob = updateJob(s, "post", "exit 1")
	}},
	{name: "denied", make: func(s *v1alpha1.ExtendedStatefulSetSpec) { s.Template.Spec.Template.Spec.HostNetwork = true }},
	{name: "flaps", make: probed(`[ $(($(date +%s) % 4)) -lt 2 ]`)},
	{name: "config", make: inKeeper(func(k *corev1.Container) {
		k.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "there-is-no-such-configmap"}}}}
	})},
	{name: "command", make: inKeeper(func(k *corev1.Container) { k.Command = []string{"/there-is-no-such-program"} })},
	{name: "dies", make: running(fmt.Sprintf("sleep %d; exit 1", probation-3))},
}

func inKeeper(edit func(*corev1.Container)) extendedChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) { edit(keeperOf(s)) }
}

// labelJob says which job of an upgrade a pod is of.
const labelJob = "example.com/job"

// updateJob runs a script before or after an upgrade, once.
func updateJob(s *v1alpha1.ExtendedStatefulSetSpec, name, script string) *v1alpha1.UpdateJob {
	labels := map[string]string{labelJob: name}
	return &v1alpha1.UpdateJob{JobTemplateSpec: batchv1.JobTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(1)), AutomountServiceAccountToken: new(false),
					Containers: []corev1.Container{{Name: "job", Image: keeperOf(s).Image, Command: []string{"/bin/sh", "-c", script}}},
				},
			},
		},
	}}
}

func badRevisionsCoexist(ctx context.Context, c *Cluster) error {
	return c.takesBackAll(ctx, 2, 2, coexist)
}

func badRevisionsPerOrdinal(ctx context.Context, c *Cluster) error {
	return c.takesBackAll(ctx, 2, 1, onClaims)
}

// takesBackAll puts as many sets as there are bad revisions through one each, all
// at the same time; of each so many pods must always be Ready.
func (c *Cluster) takesBackAll(ctx context.Context, replicas int32, budget int, shape extendedChange) error {
	if err := c.narrow(ctx); err != nil {
		return err
	}
	pods, err := c.lookOut(ctx)
	if err != nil {
		return err
	}
	defer pods.stop()
	apart := pods.hold(claimsApart)
	results := make([]error, len(badRevisions))
	var all errgroup.Group
	for i, bad := range badRevisions {
		all.Go(func() error {
			x := c.extended(bad.name, replicas, shape, patiently, minReady(probation))
			if results[i] = x.takesBack(ctx, pods, bad, budget); results[i] != nil {
				results[i] = fmt.Errorf("revision %q: %w", bad.name, results[i])
			}
			return nil
		})
	}
	_ = all.Wait() // the results tell
	return errors.Join(append(results, apart.kept())...)
}

// narrow gives the namespace rules that some revisions break: no host's network,
// and none of what is scarce.
func (c *Cluster) narrow(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
	err := change(ctx, c, ns, func(ns *corev1.Namespace) { ns.Labels["pod-security.kubernetes.io/enforce"] = "baseline" })
	if err != nil {
		return err
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "scarce", Namespace: c.Namespace},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.DefaultResourceRequestsPrefix + scarce: resource.MustParse("0")}}}
	if err := c.Client.Create(ctx, quota); err != nil {
		return err
	}
	return until(ctx, "the quota to be in force", func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "asks", Namespace: c.Namespace}, Spec: c.extended("asks", 1).set.Spec.Template.Spec.Template.Spec}
		some := corev1.ResourceList{scarce: resource.MustParse("1")}
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: some, Limits: some}
		if err := c.Client.Create(ctx, pod, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "exceeded quota") {
			return errors.Join(err, errors.New("a pod that asks for what is scarce should be refused"))
		}
		return nil
	})
}

// takesBack rolls a bad revision out, waits until nothing of it is left, and then
// rolls a good one out.
func (x *extended) takesBack(ctx context.Context, pods *lookout, bad badRevision, budget int) error {
	if err := x.create(ctx); err != nil {
		return err
	}
	good := x.set.Spec.DeepCopy()
	capacity := pods.hold(least(x.set.Name, budget))
	began := time.Now()
	deadlines := watchFor(10*time.Second, 40*time.Second)
	ends := v1alpha1.PhaseStale
	if bad.slow {
		deadlines = patiently
	}
	if bad.ends != "" {
		ends = bad.ends
	}
	if err := x.edit(ctx, inVersion("bad"), bad.make, deadlines); err != nil {
		return err
	}
	if err := x.takenBack(ctx, ends, 1); err != nil {
		return errors.Join(err, capacity.kept())
	}
	back := time.Since(began)
	if err := x.marked(ctx, ends); err != nil {
		return err
	}
	if err := x.edit(ctx, func(s *v1alpha1.ExtendedStatefulSetSpec) { *s = *good.DeepCopy() }, inVersion("corrected")); err != nil {
		return err
	}
	err := x.upgraded(ctx, 1)
	x.Log("%s: taken back within %s, and corrected within %s", bad.name, back.Round(time.Second), (time.Since(began) - back).Round(time.Second))
	return errors.Join(err, capacity.kept())
}

// neverMade looks whether a StatefulSet was given up before it was there: an attempt
// has its time from the books on, and a busy machine can need all of that.
func (x *extended) neverMade(ctx context.Context, name string) error {
	events, err := x.events(ctx, v1alpha1.EventVersionCreated)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(events, func(e corev1.Event) bool { return strings.Contains(e.Message, name) }) {
		return fmt.Errorf("%s was made, and is not there to carry the mark", name)
	}
	x.Log("%s was given up before it was made", name)
	return nil
}

// marked looks at what tells of a version that was given up.
func (x *extended) marked(ctx context.Context, ends v1alpha1.Phase) error {
	children, err := x.children(ctx)
	if err != nil {
		return err
	}
	reason := map[v1alpha1.Phase]string{v1alpha1.PhaseStale: v1alpha1.EventStale, v1alpha1.PhaseAborted: v1alpha1.EventAborted}[ends]
	if err := x.eventTold(ctx, reason); err != nil {
		return err
	}
	failed, ok := children[x.child(2)]
	if ends == v1alpha1.PhaseAborted {
		if ok {
			return fmt.Errorf("the job failed before it, and %s is there", failed.Name)
		}
		return nil
	}
	if !ok {
		return x.neverMade(ctx, x.child(2)) // or else it would carry the mark
	}
	for _, a := range []string{v1alpha1.AnnotationStale, v1alpha1.AnnotationStaleReason, v1alpha1.AnnotationStaleSince} {
		if failed.Annotations[a] == "" {
			return fmt.Errorf("%s lacks the annotation %s: %v", failed.Name, a, failed.Annotations)
		}
	}
	if *failed.Spec.Replicas != 0 {
		return fmt.Errorf("%s was given up, and has %d replicas", failed.Name, *failed.Spec.Replicas)
	}
	return nil
}

// upgraded waits until a version above that one serves alone.
func (x *extended) upgraded(ctx context.Context, above int64) error {
	err := x.says(ctx, fmt.Sprintf("that a version above %d serves", above), func(s v1alpha1.ExtendedStatefulSetStatus) bool {
		return s.CurrentVersion > above && s.Phase == v1alpha1.PhaseStable
	})
	return errors.Join(err, x.serves(ctx, x.set.Status.CurrentVersion))
}
