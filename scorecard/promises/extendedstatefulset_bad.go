package promises

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/gomega"
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
// have whole seconds, and a kubelet on a busy machine tells late of an end: those that are
// Ready for a moment have three times as long.
const probation = 5

var badRevisions = []badRevision{
	{name: "image", make: inKeeper(func(k *corev1.Container) { k.Image = "localhost/there-is-no-such-image:1" })},
	{name: "crash", make: func(s *v1alpha1.ExtendedStatefulSetSpec) {
		running("echo crashing; exit 1")(s)
		minReady(3 * probation)(s)
	}},
	{name: "never", make: probed(notReady)},
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
	{name: "flaps", make: func(s *v1alpha1.ExtendedStatefulSetSpec) {
		probed(flapping)(s)
		minReady(3 * probation)(s)
	}},
	{name: "config", make: inKeeper(func(k *corev1.Container) {
		k.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "there-is-no-such-configmap"}}}}
	})},
	{name: "command", make: inKeeper(func(k *corev1.Container) { k.Command = []string{"/there-is-no-such-program"} })},
	{name: "dies", make: func(s *v1alpha1.ExtendedStatefulSetSpec) {
		running("sleep 2; exit 1")(s)
		minReady(3 * probation)(s)
	}},
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

// badRevisionsCoexist has a second pod in two of the sets: it is left alone in any of them.
func badRevisionsCoexist(ctx context.Context, c *Cluster) {
	c.takesBackAll(ctx, coexist, func(_ int, bad badRevision) (replicas int32, budget int, corrected bool) {
		if bad.name == "never" || bad.name == "postjob" {
			return 2, 2, true
		}
		return 1, 1, true
	})
}

// badRevisionsPerOrdinal corrects half of them: how that is done does not depend on what
// was bad.
func badRevisionsPerOrdinal(ctx context.Context, c *Cluster) {
	c.takesBackAll(ctx, onClaims, func(i int, _ badRevision) (replicas int32, budget int, corrected bool) { return 2, 1, i%2 == 0 })
}

// takesBackAll puts as many sets as there are bad revisions through one each, all at the
// same time. With says how many pods each has, of which so many must always be Ready,
// and whether it gets a good revision in the end.
func (c *Cluster) takesBackAll(ctx context.Context, shape extendedChange, with func(i int, bad badRevision) (replicas int32, budget int, corrected bool)) {
	c.narrow(ctx)
	pods := c.lookOut(ctx)
	apart := pods.hold(claimsApart)
	c.atOnce(len(badRevisions), func(own *Cluster, i int) {
		bad := badRevisions[i]
		replicas, budget, corrected := with(i, bad)
		x := own.extended(bad.name, replicas, shape, patiently, minReady(probation))
		own.during(fmt.Sprintf("revision %q", bad.name), func() { x.takesBack(ctx, pods, bad, budget, corrected) })
	})
	c.check(apart.kept())
}

// narrow gives the namespace rules that some revisions break: no host's network,
// and none of what is scarce.
func (c *Cluster) narrow(ctx context.Context) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
	change(ctx, c, ns, func(ns *corev1.Namespace) { ns.Labels["pod-security.kubernetes.io/enforce"] = "baseline" })
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "scarce", Namespace: c.Namespace},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.DefaultResourceRequestsPrefix + scarce: resource.MustParse("0")}}}
	c.put(ctx, quota)
	c.until(ctx, "the quota to be in force", func(ctx context.Context) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "asks", Namespace: c.Namespace}, Spec: c.extended("asks", 1).set.Spec.Template.Spec.Template.Spec}
		some := corev1.ResourceList{scarce: resource.MustParse("1")}
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: some, Limits: some}
		err := c.Client.Create(ctx, pod, client.DryRunAll)
		c.Expect(err).To(MatchError(ContainSubstring("exceeded quota")), "a pod that asks for what is scarce should be refused")
	})
}

// takesBack rolls a bad revision out, waits until nothing of it is left, and then
// rolls a good one out if it is to be corrected.
func (x *extended) takesBack(ctx context.Context, pods *lookout, bad badRevision, budget int, corrected bool) {
	x.create(ctx)
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
	x.edit(ctx, inVersion("bad"), bad.make, deadlines)
	x.takenBack(ctx, ends, 1)
	back := time.Since(began)
	x.marked(ctx, ends)
	x.Log("%s: taken back within %s", bad.name, back.Round(time.Second))
	if corrected {
		x.edit(ctx, func(s *v1alpha1.ExtendedStatefulSetSpec) { *s = *good.DeepCopy() }, inVersion("corrected"))
		x.upgraded(ctx, 1)
		x.Log("%s: corrected within %s", bad.name, (time.Since(began) - back).Round(time.Second))
	}
	x.check(capacity.kept())
}

// neverMade looks whether a StatefulSet was given up before it was there: an attempt
// has its time from the books on, and a busy machine can need all of that.
func (x *extended) neverMade(ctx context.Context, name string) {
	x.Expect(x.events(ctx, x.set, v1alpha1.EventVersionCreated, name)).To(BeEmpty(), "%s was made, and is not there to carry the mark", name)
	x.Log("%s was given up before it was made", name)
}

// marked looks at what tells of a version that was given up.
func (x *extended) marked(ctx context.Context, ends v1alpha1.Phase) {
	children := x.children(ctx)
	reason := map[v1alpha1.Phase]string{v1alpha1.PhaseStale: v1alpha1.EventStale, v1alpha1.PhaseAborted: v1alpha1.EventAborted}[ends]
	x.event(ctx, x.set, reason, "")
	failed, ok := children[x.child(2)]
	if ends == v1alpha1.PhaseAborted {
		x.Expect(ok).To(BeFalse(), "the job failed before it, and %s is there", failed.Name)
		return
	}
	if !ok {
		x.neverMade(ctx, x.child(2))
		return // or else it would carry the mark
	}
	for _, a := range []string{v1alpha1.AnnotationStale, v1alpha1.AnnotationStaleReason, v1alpha1.AnnotationStaleSince} {
		x.Expect(failed.Annotations[a] == "").To(BeFalse(), "%s lacks the annotation %s: %v", failed.Name, a, failed.Annotations)
	}
	x.Expect(*failed.Spec.Replicas != 0).To(BeFalse(), "%s was given up, and has %d replicas", failed.Name, *failed.Spec.Replicas)
}

// upgraded waits until a version above that one serves alone.
func (x *extended) upgraded(ctx context.Context, above int64) {
	x.says(ctx, fmt.Sprintf("that a version above %d serves", above), func(s v1alpha1.ExtendedStatefulSetStatus) bool {
		return s.CurrentVersion > above && s.Phase == v1alpha1.PhaseStable
	})
	x.serves(ctx, x.set.Status.CurrentVersion)
}
