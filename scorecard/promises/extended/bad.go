package extended

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// badRevision is one of the kinds of bad revisions in the contract.
type badRevision struct {
	name string
	make specChange
	// ends is the expected final phase, default Stale.
	ends v1alpha1.Phase
	// slow is true if the revision fails only after a good canary.
	slow bool
}

// probation is the number of seconds for which a good version must be Ready. Times of conditions
// have whole seconds, and a kubelet on a busy machine reports an end late. Bad revisions that are
// Ready for a moment therefore have three times as long.
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
		some := corev1.ResourceList{kit.Scarce: resource.MustParse("1")}
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

func inKeeper(edit func(*corev1.Container)) specChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) { edit(keeperOf(s)) }
}

// labelJob is the label for the update job that a pod belongs to.
const labelJob = "example.com/job"

// updateJob returns a job that runs a script once, before or after an upgrade.
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

// badRevisionsCoexist has a second pod in two of the sets. That pod must not be changed in any set.
func badRevisionsCoexist(ctx context.Context, c *kit.Cluster) {
	takesBackAll(ctx, c, coexist, func(_ int, bad badRevision) (replicas int32, budget int, corrected bool) {
		if bad.name == "never" || bad.name == "postjob" {
			return 2, 2, true
		}
		return 1, 1, true
	})
}

// badRevisionsPerOrdinal corrects half of the bad revisions: the correction does not depend on the
// defect.
func badRevisionsPerOrdinal(ctx context.Context, c *kit.Cluster) {
	takesBackAll(ctx, c, onClaims, func(i int, _ badRevision) (replicas int32, budget int, corrected bool) { return 2, 1, i%2 == 0 })
}

// takesBackAll rolls out each bad revision in its own set, all at the same time. With returns
// how many pods each set has, how many of them must always be Ready, and whether the set gets a
// good revision in the end.
func takesBackAll(ctx context.Context, c *kit.Cluster, shape specChange, with func(i int, bad badRevision) (replicas int32, budget int, corrected bool)) {
	c.Narrow(ctx)
	pods := c.LookOut(ctx)
	apart := pods.Hold(claimsApart)
	c.AtOnce(len(badRevisions), func(own *kit.Cluster, i int) {
		bad := badRevisions[i]
		replicas, budget, corrected := with(i, bad)
		x := newFixture(own, bad.name, replicas, shape, patiently, minReady(probation))
		own.During(fmt.Sprintf("revision %q", bad.name), func() { x.takesBack(ctx, pods, bad, budget, corrected) })
	})
	c.Check(apart.Kept())
}

// takesBack rolls a bad revision out and waits until it is rolled back completely. It then rolls a
// good one out if corrected is true.
func (x *fixture) takesBack(ctx context.Context, pods *kit.Lookout, bad badRevision, budget int, corrected bool) {
	x.create(ctx)
	good := x.set.Spec.DeepCopy()
	capacity := pods.Hold(least(x.set.Name, budget))
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
	x.Log("%s: rolled back within %s", bad.name, back.Round(time.Second))
	if corrected {
		x.edit(ctx, func(s *v1alpha1.ExtendedStatefulSetSpec) { *s = *good.DeepCopy() }, inVersion("corrected"))
		x.upgraded(ctx, 1)
		x.Log("%s: corrected within %s", bad.name, (time.Since(began) - back).Round(time.Second))
	}
	x.Check(capacity.Kept())
}

// neverMade checks that a StatefulSet that was given up had not been created. The time of an
// attempt begins with the record of the version, and a busy machine can need all of it.
func (x *fixture) neverMade(ctx context.Context, name string) {
	x.Expect(x.Events(ctx, x.set, v1alpha1.EventVersionCreated, name)).To(BeEmpty(), "%s was created, and is missing", name)
	x.Log("%s was rolled back before it was created", name)
}

// marked checks events and marks of a version that was given up.
func (x *fixture) marked(ctx context.Context, ends v1alpha1.Phase) {
	children := x.children(ctx)
	reason := map[v1alpha1.Phase]string{v1alpha1.PhaseStale: v1alpha1.EventStale, v1alpha1.PhaseAborted: v1alpha1.EventAborted}[ends]
	x.Event(ctx, x.set, reason, "")
	failed, ok := children[x.child(2)]
	if ends == v1alpha1.PhaseAborted {
		x.Expect(ok).To(BeFalse(), "the job failed before the upgrade, and %s exists", failed.Name)
		return
	}
	if !ok {
		x.neverMade(ctx, x.child(2))
		return // an existing StatefulSet would carry the mark
	}
	for _, a := range []string{v1alpha1.AnnotationStale, v1alpha1.AnnotationStaleReason, v1alpha1.AnnotationStaleSince} {
		x.Expect(failed.Annotations[a]).NotTo(BeEmpty(), "%s lacks the annotation %s: %v", failed.Name, a, failed.Annotations)
	}
	x.Expect(*failed.Spec.Replicas).To(BeZero(), "%s was rolled back, and has %d replicas", failed.Name, *failed.Spec.Replicas)
}

// upgraded waits until a version above that one serves alone.
func (x *fixture) upgraded(ctx context.Context, above int64) {
	x.says(ctx, fmt.Sprintf("that a version above %d serves", above), func(s v1alpha1.ExtendedStatefulSetStatus) bool {
		return s.CurrentVersion > above && s.Phase == v1alpha1.PhaseStable
	})
	x.serves(ctx, x.set.Status.CurrentVersion)
}
