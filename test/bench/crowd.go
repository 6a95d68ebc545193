package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

const (
	crowdNamespace = "crowd" // of all sets: what is listed live is listed among all pods
	crowdMembers   = 3
	// goalCrowd is how much slower a failover may be among all sets than alone.
	goalCrowd = 1.2
	// metricPass is the histogram of one look at a set, in seconds.
	metricPass = "rss_operator_cluster_reconcile_duration"
)

// crowd is one operator with some ReplicatedStatefulSets, and then with many.
type crowd struct {
	*site
	kubelets *kubelets
	operator *operator
	sets     int
}

// measureCrowd leaves its sets behind, since the operator would stop each in
// order: it is the last benchmark of its control plane.
func measureCrowd(ctx context.Context, s *site, size sizes) ([]figure, error) {
	if err := s.makeNamespace(ctx, crowdNamespace); err != nil {
		return nil, err
	}
	k, err := s.startKubelets(ctx, crowdNamespace)
	if err != nil {
		return nil, err
	}
	defer k.close()
	o, err := s.startOperator(ctx, "ReplicatedStatefulSet")
	if err != nil {
		return nil, err
	}
	defer o.stop()
	c := &crowd{site: s, kubelets: k, operator: o}
	var figures []figure
	var p99 []float64
	for _, sets := range size.crowd {
		if err := c.grow(ctx, sets); err != nil {
			return figures, err
		}
		seconds, passes, err := c.failOvers(ctx, size.failovers)
		if err != nil {
			return figures, err
		}
		title := fmt.Sprintf("primary lost, one of %d sets", sets)
		figures = append(figures, spread3(title+", from the readiness flip to the next primary's command", seconds, goalFailover, fmt.Sprintf("%d times", len(seconds)))...)
		figures = append(figures, passes.figures(title)...)
		p99 = append(p99, quantile(seconds, 0.99)) // spread3 has sorted them
	}
	figures = append(figures, figure{title: fmt.Sprintf("primary lost, one of %d sets", c.sets), what: "p99 against one of " + fmt.Sprint(size.crowd[0]),
		value: p99[1] / p99[0], goal: atMost(goalCrowd)})
	resting, err := c.rest(ctx, size.crowdRest)
	return append(figures, resting...), err
}

func (o observed) figures(title string) []figure {
	return []figure{
		{title: title, what: "one pass, mean", value: 1000 * o.mean, unit: " ms", detail: fmt.Sprintf("%.0f passes", o.count)},
		{title: title, what: "one pass, p99 at most", value: 1000 * o.p99, unit: " ms", digits: -1},
	}
}

// crowdSet has one primary. Its commands are names that the kubelets know.
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

// isWhole tells whether every member runs in its role, and nothing is on the way.
func isWhole(set *v1alpha1.ReplicatedStatefulSet, members int) bool {
	s := &set.Status
	return int(s.ReadyReplicas) == members && len(s.Members.Primary) == 1 && len(s.Members.Secondary) == members-1 &&
		len(set.Annotations) == 0 && meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionProgressing)
}

// wave is how many sets come up at one time. More would not be faster, but keep
// the API server from answering in time.
const wave = 50

// grow makes sets until there are so many, and waits until all are at rest.
func (c *crowd) grow(ctx context.Context, sets int) error {
	step("making sets, so that there are %d with %d members", sets, crowdMembers)
	for c.sets < sets {
		first, next := c.sets, min(c.sets+wave, sets)
		if err := spread(ctx, next-first, func(i int) error { return c.objects.Create(ctx, crowdSet(first+i)) }); err != nil {
			return err
		}
		c.sets = next
		if err := waitFor(ctx, 5*time.Minute, "members to run", func() (bool, string, error) {
			running := c.kubelets.running()
			return running == c.sets*crowdMembers, fmt.Sprintf("(%d of %d do)", running, sets*crowdMembers), nil
		}); err != nil {
			return err
		}
	}
	return c.quiet(ctx)
}

// failOvers takes the primary from one set after the other.
func (c *crowd) failOvers(ctx context.Context, times int) (seconds []float64, passes observed, err error) {
	step("taking the primary from one of %d sets, %d times", c.sets, times)
	before, err := c.operator.scrape(ctx)
	if err != nil {
		return nil, passes, err
	}
	for i := range times {
		took, err := c.failOver(ctx, i*c.sets/times)
		if err != nil {
			return nil, passes, err
		}
		seconds = append(seconds, took.Seconds())
	}
	after, err := c.operator.scrape(ctx)
	return seconds, observedBetween(before, after, metricPass), err
}

// failOver is how long after the primary's readiness flipped, which is when that
// was asked of the API server, another member was told to be primary.
func (c *crowd) failOver(ctx context.Context, i int) (time.Duration, error) {
	set := crowdSet(i)
	old, err := c.whole(ctx, set)
	if err != nil {
		return 0, err
	}
	c.kubelets.kill(old)
	flipped := time.Now()
	if err := c.kubelets.setReady(ctx, old, corev1.ConditionFalse); err != nil {
		return 0, err
	}
	var next order
	if err := waitFor(ctx, time.Minute, "another primary", func() (bool, string, error) {
		for _, o := range c.kubelets.since(flipped) {
			if o.name == v1alpha1.CommandPromote && strings.HasPrefix(o.pod, "rss-"+set.Name+"-") {
				next = o
			}
		}
		return next.pod != "", "", nil
	}); err != nil {
		return 0, err
	}
	if err := waitFor(ctx, time.Minute, "the old primary to be secondary", func() (bool, string, error) {
		return c.kubelets.role(old) == roleSecondary, "", nil
	}); err != nil {
		return 0, err
	}
	if err := c.kubelets.setReady(ctx, old, corev1.ConditionTrue); err != nil {
		return 0, err
	}
	_, err = c.whole(ctx, set)
	return next.at.Sub(flipped), err
}

// whole waits until a set shows its members in the roles that they have, and gives
// the primary.
func (c *crowd) whole(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet) (primary string, err error) {
	return primary, waitFor(ctx, time.Minute, set.Name+" to be whole", func() (bool, string, error) {
		if err := c.objects.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil || !isWhole(set, crowdMembers) {
			return false, fmt.Sprintf("(%s)", set.Status.Reason), err
		}
		primary = set.Status.Members.Primary[0]
		return c.kubelets.role(primary) == rolePrimary, "", nil
	})
}

// rest looks at an operator whose sets are all at rest.
func (c *crowd) rest(ctx context.Context, during time.Duration) ([]figure, error) {
	if err := c.quiet(ctx); err != nil {
		return nil, err
	}
	step("%d sets at rest for %s", c.sets, during)
	mark, err := c.markAudit()
	if err != nil {
		return nil, err
	}
	before, err := c.operator.scrape(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := pause(ctx, during); err != nil {
		return nil, err
	}
	commands := len(c.kubelets.since(began))
	after, err := c.operator.scrape(ctx)
	if err != nil {
		return nil, err
	}
	changes, err := c.operatorsSince(mark)
	if err != nil {
		return nil, err
	}
	title := fmt.Sprintf("%d sets at rest", c.sets)
	perHour := float64(commands) * float64(time.Hour) / float64(during) / float64(c.sets)
	return append([]figure{
		{title: title, what: "commands an hour, of a set with 3 members", value: perHour, digits: -1, detail: "reconcileInterval 1m: one status a minute and member"},
		{title: title, what: fmt.Sprintf("writes in %s, events counted too", during), value: float64(len(changes)), digits: -1, goal: atMost(0), detail: tallied(changes)},
		{title: title, what: "the operator's processor time", value: 100 * (after[metricCPU] - before[metricCPU]) / during.Seconds(), unit: " % of a core"},
		{title: title, what: "the operator's resident memory", value: mib(after[metricRSS]), unit: " MiB", digits: -1, detail: fmt.Sprintf("live heap %.1f MiB", mib(after[metricLive]))},
	}, observedBetween(before, after, metricPass).figures(title)...), nil
}
