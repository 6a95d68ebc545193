package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/cluster/simulated"
)

const (
	crowdNamespace = "crowd" // contains all sets, so live lists include all their pods
	crowdMembers   = 3
	// goalCrowd is the max ratio of a failover's time among all sets to its time among few.
	goalCrowd = 1.2
	// metricPass is the histogram of reconcile durations of a set, in seconds.
	metricPass = "rss_operator_cluster_reconcile_duration"
)

// crowd is one operator with a few ReplicatedStatefulSets at first, and many later.
type crowd struct {
	*site
	kubelets *simulated.Kubelets
	operator *operator
	sets     int
}

// measureCrowd leaves its sets behind, because the operator would stop each in order. So only the benchmark of Leases,
// which has its own comparison, can follow on its control plane.
func measureCrowd(ctx context.Context, s *site) {
	s.makeNamespace(ctx, crowdNamespace)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	k := must(simulated.Serve(ctx, s.admin, s.cluster.Dir(), simulatedNodes))
	defer k.Close()
	k.Watch(ctx, crowdNamespace, k.Identify) // kwok simulates the pods
	o := s.startOperator(ctx, "ReplicatedStatefulSet")
	defer o.stop()
	c := &crowd{site: s, kubelets: k, operator: o}
	var p99 []time.Duration
	var title string
	for _, sets := range s.size.crowd {
		c.grow(ctx, sets)
		took, passes := c.failOvers(ctx, s.size.failovers)
		title = fmt.Sprintf("primary lost, one of %d sets", sets)
		s.spread3(title+", from the readiness flip to the next primary's command", took, goalFailover, fmt.Sprintf("%d times", len(took)))
		s.reportPasses(title, passes)
		p99 = append(p99, quantile(took, 0.99))
	}
	s.report(figure{title: title, what: "p99 against one of " + fmt.Sprint(s.size.crowd[0]), value: float64(p99[1]) / float64(p99[0]), goal: atMost(goalCrowd)})
	c.atRest(ctx, s.size.crowdRest)
}

func (r *results) reportPasses(title string, passes *testutil.Histogram) {
	r.report(figure{title: title, what: "one pass, mean", value: 1000 * passes.Average(), unit: " ms", detail: fmt.Sprintf("%d passes", passes.GetSampleCount())})
	r.report(figure{title: title, what: "one pass, p99 at most", value: 1000 * boundOf(passes, 0.99), unit: " ms", digits: -1})
}

// crowdSet returns a set with one primary. Its commands are names that the simulated kubelets support.
func crowdSet(i int) *v1alpha1.ReplicatedStatefulSet {
	commands := map[string]v1alpha1.Command{}
	for _, name := range []string{v1alpha1.CommandSequence, v1alpha1.CommandStatus, v1alpha1.CommandStop, v1alpha1.CommandSeed,
		v1alpha1.CommandPrimary, v1alpha1.CommandSecondary, v1alpha1.CommandPromote, v1alpha1.CommandDemote} {
		commands[name] = v1alpha1.Command{Command: []string{name}, Timeout: "20s"}
	}
	return &v1alpha1.ReplicatedStatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: crowdNamespace, Name: setName(i)},
		Spec: v1alpha1.ReplicatedStatefulSetSpec{
			Replicas: ptr.To[int32](crowdMembers), Primaries: ptr.To[int32](1),
			Pod: v1alpha1.PodPolicy{
				Commands: commands, AutomountServiceAccountToken: ptr.To(false),
				Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}},
			},
		},
	}
}

// isWhole reports whether every member runs in its role and no operation is in progress.
func isWhole(set *v1alpha1.ReplicatedStatefulSet, members int) bool {
	s := &set.Status
	return int(s.ReadyReplicas) == members && len(s.Members.Primary) == 1 && len(s.Members.Secondary) == members-1 &&
		len(set.Annotations) == 0 && meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionProgressing)
}

// wave is the number of sets that are started at a time. More would not be faster, and the API server
// would time out.
const wave = 50

// grow creates sets up to the given number and waits until all are at rest.
func (c *crowd) grow(ctx context.Context, sets int) {
	step("creating sets until there are %d with %d members", sets, crowdMembers)
	for c.sets < sets {
		first, next := c.sets, min(c.sets+wave, sets)
		check(spread(ctx, next-first, func(i int) error { return c.client.Create(ctx, crowdSet(first+i)) }))
		c.sets = next
		waitFor(ctx, 5*time.Minute, "members to run", func() (bool, string) {
			running := c.kubelets.Running()
			return running == c.sets*crowdMembers, fmt.Sprintf("(%d of %d do)", running, sets*crowdMembers)
		})
	}
	c.quiet(ctx)
}

// failOvers fails the primaries of sets one after another.
func (c *crowd) failOvers(ctx context.Context, times int) (took []time.Duration, passes *testutil.Histogram) {
	step("taking the primary from one of %d sets, %d times", c.sets, times)
	before := c.operator.scrape(ctx)
	for i := range times {
		took = append(took, c.failOver(ctx, i*c.sets/times))
	}
	return took, between(before, c.operator.scrape(ctx), metricPass, nil)
}

// failOver returns the time from the request that makes the primary unready until the promotion of
// another member.
func (c *crowd) failOver(ctx context.Context, i int) time.Duration {
	set := crowdSet(i)
	old := c.whole(ctx, set)
	c.kubelets.Kill(old)
	flipped := time.Now()
	check(c.kubelets.SetReady(ctx, old, corev1.ConditionFalse))
	var next simulated.Order
	waitFor(ctx, time.Minute, "another primary", func() (bool, string) {
		for _, o := range c.kubelets.Since(flipped) {
			if o.Name == v1alpha1.CommandPromote && strings.HasPrefix(o.Pod.Name, "rss-"+set.Name+"-") {
				next = o
			}
		}
		return next.Pod.Name != "", ""
	})
	waitFor(ctx, time.Minute, "the old primary to be secondary", func() (bool, string) {
		return c.kubelets.Role(old) == simulated.Secondary, ""
	})
	check(c.kubelets.SetReady(ctx, old, corev1.ConditionTrue))
	c.whole(ctx, set)
	return next.At.Sub(flipped)
}

// whole waits until the status of a set shows its members' roles, and returns the primary.
func (c *crowd) whole(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet) (primary types.NamespacedName) {
	waitFor(ctx, time.Minute, set.Name+" to be whole", func() (bool, string) {
		check(c.client.Get(ctx, client.ObjectKeyFromObject(set), set))
		if isWhole(set, crowdMembers) {
			primary = types.NamespacedName{Namespace: crowdNamespace, Name: set.Status.Members.Primary[0]}
		}
		return isWhole(set, crowdMembers) && c.kubelets.Role(primary) == simulated.Primary, fmt.Sprintf("(%s)", set.Status.Reason)
	})
	return primary
}

// atRest reports the cost of an operator whose sets are all at rest.
func (c *crowd) atRest(ctx context.Context, during time.Duration) {
	c.quiet(ctx)
	mark, before, began := c.markAudit(), c.operator.scrape(ctx), time.Now()
	c.rest(ctx, during)
	commands, after := len(c.kubelets.Since(began)), c.operator.scrape(ctx)
	title := fmt.Sprintf("%d sets at rest", c.sets)
	perHour := float64(commands) * float64(time.Hour) / float64(during) / float64(c.sets)
	c.report(figure{title: title, what: "commands an hour, of a set with 3 members", value: perHour, digits: -1, detail: "reconcileInterval 1m: one status a minute and member"})
	c.reportRest(title, during, mark, "")
	c.report(figure{title: title, what: "the operator's processor time", value: 100 * (after.value(metricCPU) - before.value(metricCPU)) / during.Seconds(), unit: " % of a core"})
	c.report(figure{title: title, what: "the operator's resident memory", value: mib(after.value(metricRSS)), unit: " MiB", digits: -1,
		detail: fmt.Sprintf("live heap %.1f MiB", mib(after.value(metricLive)))})
	c.reportPasses(title, between(before, after, metricPass, nil))
}
