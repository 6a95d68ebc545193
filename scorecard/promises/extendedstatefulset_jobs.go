package promises

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// Jobs before and after upgrades, and operators that die in them.

func withJobs(s *v1alpha1.ExtendedStatefulSetSpec) {
	s.UpdateStrategy.PreUpdateJob, s.UpdateStrategy.PostUpdateJob = updateJob(s, "pre", "sleep 3"), updateJob(s, "post", "sleep 3")
}

// isJob asks for the pods of one of the jobs.
func isJob(name string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Labels[labelJob] == name && p.Labels[batchv1.JobNameLabel] != "" }
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// jobsInTurn holds that the job before an upgrade ends before the next version has
// a pod, and that during the one after it both versions have all theirs.
func jobsInTurn(set, old, next string, replicas int) func(map[types.UID]*corev1.Pod) error {
	began := false
	return func(pods map[types.UID]*corev1.Pod) error {
		of := func(version string) func(*corev1.Pod) bool {
			return func(p *corev1.Pod) bool { return serving(p, set) && p.Labels[v1alpha1.LabelVersion] == version }
		}
		here := count(pods, func(p *corev1.Pod) bool { return ofSet(p, set) && p.Labels[v1alpha1.LabelVersion] == next })
		done := count(pods, func(p *corev1.Pod) bool { return isJob("pre")(p) && p.Status.Phase == corev1.PodSucceeded })
		if began = began || done > 0; here > 0 && !began {
			return fmt.Errorf("version %s has %d pods, and the job before it has not ended", next, here)
		}
		runs := count(pods, func(p *corev1.Pod) bool { return isJob("post")(p) && !ended(p) })
		if o, n := count(pods, of(old)), count(pods, of(next)); runs > 0 && (o != replicas || n != replicas) {
			return fmt.Errorf("in the job after the upgrade version %s has %d and version %s %d Ready pods", old, o, next, n)
		}
		return nil
	}
}

func jobsRun(ctx context.Context, c *Cluster) error {
	pods, err := c.lookOut(ctx)
	if err != nil {
		return err
	}
	defer pods.stop()
	pre, post := pods.made(isJob("pre")), pods.made(isJob("post"))
	x := c.extended("jobs", 2, coexist, patiently, withJobs)
	if err := x.create(ctx); err != nil {
		return err
	}
	if len(pre())+len(post()) > 0 {
		return fmt.Errorf("the first version is no upgrade: jobs %v and %v ran", pre(), post())
	}
	for version := 2; version <= 3; version++ {
		turn := pods.hold(jobsInTurn("jobs", strconv.Itoa(version-1), strconv.Itoa(version), 2))
		capacity := pods.hold(least("jobs", 2))
		if err := errors.Join(x.edit(ctx, inVersion(strconv.Itoa(version))), x.serves(ctx, int64(version)), turn.kept(), capacity.kept()); err != nil {
			return err
		}
		if len(pre()) != version-1 || len(post()) != version-1 {
			return fmt.Errorf("after %d upgrades there were pods %v and %v of jobs", version-1, pre(), post())
		}
		// The next rule asks for pods of the next jobs.
		if err := x.jobsOwned(ctx); err != nil {
			return err
		}
		if err := c.removeJobPods(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) removeJobPods(ctx context.Context) error {
	if err := c.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(c.Namespace), client.HasLabels{labelJob}); err != nil {
		return err
	}
	return until(ctx, "the pods of jobs to be gone", func(ctx context.Context) error {
		var pods corev1.PodList
		err := c.Client.List(ctx, &pods, client.InNamespace(c.Namespace), client.HasLabels{labelJob})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d are there", len(pods.Items))
		}
		return err
	})
}

// jobsOwned checks that the jobs go with the object.
func (x *extended) jobsOwned(ctx context.Context) error {
	var jobs batchv1.JobList
	err := x.Client.List(ctx, &jobs, client.InNamespace(x.Namespace))
	for i := range jobs.Items {
		if !metav1.IsControlledBy(&jobs.Items[i], x.set) {
			err = errors.Join(err, fmt.Errorf("job %s is owned by %v", jobs.Items[i].Name, jobs.Items[i].OwnerReferences))
		}
	}
	return err
}

// jobsFail has a job before the upgrade that fails, and is then corrected; then
// one after it that fails and may.
func jobsFail(ctx context.Context, c *Cluster) error {
	pods, err := c.lookOut(ctx)
	if err != nil {
		return err
	}
	defer pods.stop()
	x := c.extended("fails", 1, coexist, patiently)
	if err := x.create(ctx); err != nil {
		return err
	}
	capacity := pods.hold(least("fails", 1))
	pre := pods.made(isJob("pre"))
	second := pods.made(func(p *corev1.Pod) bool { return ofSet(p, "fails") && p.Labels[v1alpha1.LabelVersion] != "1" })
	failing := func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.UpdateStrategy.PreUpdateJob = updateJob(s, "pre", "exit 1")
	}
	if err := errors.Join(x.edit(ctx, inVersion("2"), failing), x.takenBack(ctx, v1alpha1.PhaseAborted, 1)); err != nil {
		return err
	}
	if len(pre()) != 1 || len(second()) > 0 {
		return fmt.Errorf("the job had pods %v, and the version %v", pre(), second())
	}
	if children, err := x.children(ctx); err != nil || len(children) != 1 {
		return errors.Join(err, fmt.Errorf("%d StatefulSets are there: the new version should never have been made", len(children)))
	}
	continues := func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.UpdateStrategy.PreUpdateJob.OnFailure = v1alpha1.OnFailureContinue
		s.UpdateStrategy.PostUpdateJob = updateJob(s, "post", "exit 1")
		s.UpdateStrategy.PostUpdateJob.OnFailure = v1alpha1.OnFailureContinue
	}
	return errors.Join(x.edit(ctx, inVersion("3"), continues), x.upgraded(ctx, 1), capacity.kept())
}

// operatorDiesInUpgrades kills the operator again and again while four sets go
// through good and bad versions.
func operatorDiesInUpgrades(ctx context.Context, c *Cluster) error {
	pods, err := c.lookOut(ctx)
	if err != nil {
		return err
	}
	defer pods.stop()
	apart := pods.hold(claimsApart)
	var all errgroup.Group
	ways := map[string]extendedChange{"beside-good": coexist, "ordinals-good": onClaims, "beside-bad": coexist, "ordinals-bad": onClaims}
	ready := make(chan struct{})
	results := make(chan error, len(ways))
	for name, shape := range ways {
		x := c.extended(name, 2, shape, patiently, withJobs, minReady(probation))
		for _, job := range []*v1alpha1.UpdateJob{x.set.Spec.UpdateStrategy.PreUpdateJob, x.set.Spec.UpdateStrategy.PostUpdateJob} {
			job.Spec.Template.Labels[labelJob] += "-" + name
		}
		if err := x.create(ctx); err != nil {
			return err
		}
		all.Go(func() error {
			<-ready
			err := x.throughDeaths(ctx, pods, slices.Contains([]string{"beside-bad", "ordinals-bad"}, name))
			results <- err
			return err
		})
	}
	chance := rand.New(rand.NewPCG(c.Seed, 35))
	close(ready)
	deaths := 0
	for len(results) < len(ways) && deaths < 5 {
		// One that never acted leaves nothing half done.
		if err := errors.Join(c.operatorActs(ctx), sleep(ctx, time.Duration(chance.IntN(4000))*time.Millisecond), c.killOperators(ctx)); err != nil {
			return err
		}
		deaths++
	}
	c.Log("seed %d: the operator died %d times", c.Seed, deaths)
	return errors.Join(all.Wait(), apart.kept())
}

// operatorActs waits until an operator that lives holds the lease.
func (c *Cluster) operatorActs(ctx context.Context) error {
	return until(ctx, "an operator to act", func(ctx context.Context) error {
		var lease coordinationv1.Lease
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Operator.Namespace, Name: "stateful-operator"}, &lease); err != nil {
			return err
		}
		var pods corev1.PodList
		if err := c.Client.List(ctx, &pods, client.InNamespace(c.Operator.Namespace)); err != nil {
			return err
		}
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		if !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return strings.HasPrefix(holder, p.Name+"_") }) {
			return fmt.Errorf("%q holds the lease", holder)
		}
		return nil
	})
}

// throughDeaths upgrades a set while others kill the operator.
func (x *extended) throughDeaths(ctx context.Context, pods *lookout, bad bool) error {
	budget := 2
	if len(x.set.Spec.Template.Spec.VolumeClaimTemplates) > 0 {
		budget = 1
	}
	capacity := pods.hold(least(x.set.Name, budget))
	pre, post := pods.made(isJob("pre-"+x.set.Name)), pods.made(isJob("post-"+x.set.Name))
	once := func(wantPost int) error {
		if len(pre()) != 1 || len(post()) != wantPost {
			return fmt.Errorf("the jobs before and after had pods %v and %v", pre(), post())
		}
		return nil
	}
	var err error
	if bad {
		// The deadline must leave room for the deaths: they take the webhook away too.
		err = errors.Join(x.edit(ctx, inVersion("2"), running("sleep 1; exit 1"), watchFor(20*time.Second, time.Minute)), x.takenBack(ctx, v1alpha1.PhaseStale, 1), once(0))
	} else {
		err = errors.Join(x.edit(ctx, inVersion("2")), x.serves(ctx, 2), once(1))
	}
	if err = errors.Join(err, capacity.kept()); err != nil {
		return fmt.Errorf("%s: %w", x.set.Name, err)
	}
	if len(x.set.Spec.Template.Spec.VolumeClaimTemplates) > 0 {
		return x.keptData(ctx)
	}
	return nil
}

// keptData checks that the pods are on the volumes that version 1 wrote.
func (x *extended) keptData(ctx context.Context) error {
	pods, err := x.pods(ctx)
	if err != nil {
		return err
	}
	for name := range pods {
		if _, err := x.shell(ctx, name, "grep '^begin 1$' /data/diary"); err != nil {
			return fmt.Errorf("%s is not on the volume of version 1: %w", name, err)
		}
	}
	return nil
}
