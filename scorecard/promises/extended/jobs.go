package extended

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Jobs before and after upgrades, and operators that die during them.

func withJobs(s *v1alpha1.ExtendedStatefulSetSpec) {
	s.UpdateStrategy.PreUpdateJob, s.UpdateStrategy.PostUpdateJob = updateJob(s, "pre", "sleep 3"), updateJob(s, "post", "sleep 3")
}

// isJob returns a predicate for the pods of one of the jobs.
func isJob(name string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Labels[labelJob] == name && p.Labels[batchv1.JobNameLabel] != "" }
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// jobsInTurn returns a check that the pre-update job ends before the next version has a pod, and
// that both versions have all their pods during the post-update job.
func jobsInTurn(set, old, next string, replicas int) func(map[types.UID]*corev1.Pod) error {
	began := false
	return func(pods map[types.UID]*corev1.Pod) error {
		of := func(version string) func(*corev1.Pod) bool {
			return func(p *corev1.Pod) bool { return serving(p, set) && p.Labels[v1alpha1.LabelVersion] == version }
		}
		here := count(pods, func(p *corev1.Pod) bool { return ofSet(p, set) && p.Labels[v1alpha1.LabelVersion] == next })
		done := count(pods, func(p *corev1.Pod) bool { return isJob("pre")(p) && p.Status.Phase == corev1.PodSucceeded })
		if began = began || done > 0; here > 0 && !began {
			return fmt.Errorf("version %s has %d pods, and its job has not ended", next, here)
		}
		runs := count(pods, func(p *corev1.Pod) bool { return isJob("post")(p) && !ended(p) })
		if o, n := count(pods, of(old)), count(pods, of(next)); runs > 0 && (o != replicas || n != replicas) {
			return fmt.Errorf("in the job after the upgrade version %s has %d and version %s %d Ready pods", old, o, next, n)
		}
		return nil
	}
}

func jobsRun(ctx context.Context, c *kit.Cluster) {
	pods := c.LookOut(ctx)
	pre, post := pods.Made(isJob("pre")), pods.Made(isJob("post"))
	x := newFixture(c, "jobs", 2, coexist, patiently, withJobs)
	x.create(ctx)
	c.Expect(append(pre(), post()...)).To(BeEmpty(), "the first version is not an upgrade: jobs %v and %v ran", pre(), post())
	for version := 2; version <= 3; version++ {
		turn := pods.Hold(jobsInTurn("jobs", strconv.Itoa(version-1), strconv.Itoa(version), 2))
		capacity := pods.Hold(least("jobs", 2))
		x.edit(ctx, inVersion(strconv.Itoa(version)))
		x.serves(ctx, int64(version))
		c.Check(turn.Kept())
		c.Check(capacity.Kept())
		c.Expect(pre()).To(HaveLen(version-1), "after %d upgrades there were pods %v and %v of jobs", version-1, pre(), post())
		c.Expect(post()).To(HaveLen(version-1), "after %d upgrades there were pods %v and %v of jobs", version-1, pre(), post())
		// The next rule counts the pods of the next jobs.
		x.jobsOwned(ctx)
		removeJobPods(ctx, c)
	}
}

func removeJobPods(ctx context.Context, c *kit.Cluster) {
	c.Check(c.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(c.Namespace), client.HasLabels{labelJob}))
	c.Until(ctx, "the pods of jobs to be gone", func(ctx context.Context) {
		var pods corev1.PodList
		c.List(ctx, &pods, client.InNamespace(c.Namespace), client.HasLabels{labelJob})
		c.Expect(pods.Items).To(BeEmpty(), "%d exist", len(pods.Items))
	})
}

// jobsOwned checks that the jobs are deleted with the object.
func (x *fixture) jobsOwned(ctx context.Context) {
	var jobs batchv1.JobList
	x.List(ctx, &jobs, client.InNamespace(x.Namespace))
	for i := range jobs.Items {
		if !metav1.IsControlledBy(&jobs.Items[i], x.set) {
			x.Fail("job %s is owned by %v", jobs.Items[i].Name, jobs.Items[i].OwnerReferences)
		}
	}
}

// jobsFail has a pre-update job that fails and is then corrected. It then has a post-update job
// that fails and is allowed to.
func jobsFail(ctx context.Context, c *kit.Cluster) {
	pods := c.LookOut(ctx)
	x := newFixture(c, "fails", 1, coexist, patiently)
	x.create(ctx)
	capacity := pods.Hold(least("fails", 1))
	pre := pods.Made(isJob("pre"))
	second := pods.Made(func(p *corev1.Pod) bool { return ofSet(p, "fails") && p.Labels[v1alpha1.LabelVersion] != "1" })
	failing := func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.UpdateStrategy.PreUpdateJob = updateJob(s, "pre", "exit 1")
	}
	x.edit(ctx, inVersion("2"), failing)
	x.takenBack(ctx, v1alpha1.PhaseAborted, 1)
	c.Expect(pre()).To(HaveLen(1), "the job had pods %v, and the version %v", pre(), second())
	c.Expect(second()).To(BeEmpty(), "the job had pods %v, and the version %v", pre(), second())
	children := x.children(ctx)
	c.Expect(len(children)).To(Equal(1), "%d StatefulSets exist: the new version should not have been created", len(children))
	continues := func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.UpdateStrategy.PreUpdateJob.OnFailure = v1alpha1.OnFailureContinue
		s.UpdateStrategy.PostUpdateJob = updateJob(s, "post", "exit 1")
		s.UpdateStrategy.PostUpdateJob.OnFailure = v1alpha1.OnFailureContinue
	}
	x.edit(ctx, inVersion("3"), continues)
	x.upgraded(ctx, 1)
	c.Check(capacity.Kept())
}

// operatorDiesInUpgrades kills the operator repeatedly while four sets roll out good and bad
// versions.
func operatorDiesInUpgrades(ctx context.Context, c *kit.Cluster) {
	pods := c.LookOut(ctx)
	apart := pods.Hold(claimsApart)
	ways := map[string]specChange{"beside-good": coexist, "ordinals-good": onClaims, "beside-bad": coexist, "ordinals-bad": onClaims}
	var sets []*fixture
	for name, shape := range ways {
		x := newFixture(c, name, 2, shape, patiently, withJobs, minReady(probation))
		if strings.HasPrefix(name, "beside-") {
			scaled(1)(&x.set.Spec) // a pod is deleted only when the next one is Ready
		}
		for _, job := range []*v1alpha1.UpdateJob{x.set.Spec.UpdateStrategy.PreUpdateJob, x.set.Spec.UpdateStrategy.PostUpdateJob} {
			job.Spec.Template.Labels[labelJob] += "-" + name
		}
		x.create(ctx)
		sets = append(sets, x)
	}
	chance := rand.New(rand.NewPCG(c.Seed, 35))
	deaths := 0
	var ended atomic.Int32
	c.AtOnce(len(sets)+1, func(own *kit.Cluster, i int) {
		if i < len(sets) {
			defer ended.Add(1)
			x := sets[i]
			x.Cluster = own
			own.During(x.set.Name, func() { x.throughDeaths(ctx, pods, strings.HasSuffix(x.set.Name, "-bad")) })
			return
		}
		for ; int(ended.Load()) < len(sets) && deaths < 5; deaths++ {
			own.Leader(ctx) // an operator that never acted leaves nothing half done
			kit.Sleep(ctx, time.Duration(chance.IntN(4000))*time.Millisecond)
			own.KillOperators(ctx)
		}
	})
	c.Log("seed %d: the operator crashed %d times", c.Seed, deaths)
	c.Check(apart.Kept())
}

// throughDeaths upgrades a set while others kill the operator.
func (x *fixture) throughDeaths(ctx context.Context, pods *kit.Lookout, bad bool) {
	capacity := pods.Hold(least(x.set.Name, 1))
	pre, post := pods.Made(isJob("pre-"+x.set.Name)), pods.Made(isJob("post-"+x.set.Name))
	once := func(wantPost int) {
		x.Expect(pre()).To(HaveLen(1), "the jobs before and after had pods %v and %v", pre(), post())
		x.Expect(post()).To(HaveLen(wantPost), "the jobs before and after had pods %v and %v", pre(), post())
	}
	if bad {
		// The deadline must leave time for restarts of the operator: the webhook is unavailable
		// during them.
		x.edit(ctx, inVersion("2"), running("sleep 1; exit 1"), watchFor(20*time.Second, time.Minute))
		x.takenBack(ctx, v1alpha1.PhaseStale, 1)
		once(0)
	} else {
		x.edit(ctx, inVersion("2"))
		x.serves(ctx, 2)
		once(1)
	}
	x.Check(capacity.Kept())
	if len(x.set.Spec.Template.Spec.VolumeClaimTemplates) > 0 {
		x.keptData(ctx)
	}
}

// keptData checks that the pods use the volumes that version 1 wrote to.
func (x *fixture) keptData(ctx context.Context) {
	pods := x.pods(ctx)
	for name := range pods {
		x.During(fmt.Sprintf("%s is not on the volume of version 1", name), func() { x.shell(ctx, name, "grep '^begin 1$' /data/diary") })
	}
}
