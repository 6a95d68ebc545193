package promises

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/faults/freeze"
)

// Freeze lists promises of the operator for all kinds. A leader that is frozen for longer than its
// lease and then resumes must not change anything that its successor has done. See freeze_trial.go
// for how a leader is frozen. The scenarios are those of each kind.
var Freeze = []Promise{
	core(Promise{Name: "V3 SC-33 a leader that was frozen leaves the lease to its successor", Site: OperatorSite, Faults: true, Run: parked(leavesTheLease)}),
	{Name: "V2 SC-33 SC-36 a leader that was frozen at any write creates nothing twice", Site: OperatorSite, Faults: true, Run: parked(makesNothingTwice)},
}

// scenarios are those of all kinds.
var scenarios = slices.Concat(clusterScenarios, ledgerScenarios, extendedScenarios, singletonScenarios)

// nothing is the scenario without any action.
var nothing = scenario{Name: "nothing", Kind: "StatefulCluster", Begin: func(context.Context, *Cluster) (run, judge step) {
	noop := func(context.Context) {}
	return noop, noop
}}

// singletons is a kind for which the operator guards all pods that it watches.
const singletons = "StatefulSingleton"

// parked wraps a promise. The operator of the cluster only serves webhooks meanwhile, so that the
// operators that the promise starts can act.
func parked(run func(context.Context, *Cluster)) func(context.Context, *Cluster) {
	return func(ctx context.Context, c *Cluster) {
		before := c.operatorRestarts(ctx)
		holder, giveBack, err := freeze.Park(ctx, c.Kube, c.Operator.Namespace, operatorLease)
		c.check(err)
		defer func() {
			ctx := context.WithoutCancel(ctx)
			c.check(giveBack(ctx))
			c.leader(ctx)
		}()
		// An operator that has lost its lease exits, and its container is restarted.
		c.until(ctx, "the operator to serve webhooks only", func(ctx context.Context) {
			now := c.operatorRestarts(ctx)
			leader, _, _ := strings.Cut(holder, "_")
			was, there := before[leader]
			c.Expect(there && now[leader] == was).To(BeFalse(), "%s may still write", leader)
		})
		run(ctx, c)
	}
}

// operatorRestarts returns the restart counts of the operator's containers, by pod name. All pods
// must be Ready.
func (c *Cluster) operatorRestarts(ctx context.Context) map[string]int32 {
	var pods corev1.PodList
	c.list(ctx, &pods, client.InNamespace(c.Operator.Namespace))
	restarts := map[string]int32{}
	for i := range pods.Items {
		p := &pods.Items[i]
		c.Expect(podCondition(p, corev1.PodReady)).To(BeTrue(), "%s is not Ready", p.Name)
		restarts[p.Name] = p.Status.ContainerStatuses[0].RestartCount
	}
	return restarts
}

// operatorLease is the name of the operator's lease, in its own namespace.
const operatorLease = "stateful-operator"

// leavesTheLease freezes leaders while they renew their lease, in each mode, and one leader while
// it is idle.
func leavesTheLease(ctx context.Context, c *Cluster) {
	c.inTurns(len(freeze.Modes), len(freeze.Modes)+1, func(own *Cluster, i int) {
		f, what := freezing{scenario: nothing, asleep: true}, "frozen between two renewals"
		if i < len(freeze.Modes) {
			f = freezing{scenario: nothing, renewal: true, trap: &freeze.Trap{At: 3, Mode: freeze.Modes[i]}}
			what = fmt.Sprintf("frozen at a renewal %s", freeze.Modes[i])
		}
		_, err := own.freeze(ctx, f)
		own.during(what, func() { own.check(err) })
	})
}

// makesNothingTwice runs the scenarios of each kind, first without and then with freezes. Different
// kinds run concurrently.
func makesNothingTwice(ctx context.Context, c *Cluster) {
	chosen := slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool { return !strings.Contains(s.Name, c.Fault) })
	c.Expect(chosen).NotTo(BeEmpty(), "no scenario has %q in its name", c.Fault)
	byKind := map[string][]scenario{}
	for _, s := range chosen {
		byKind[s.Kind] = append(byKind[s.Kind], s)
	}
	c.Log("seed %d", c.Seed)
	kinds := slices.Sorted(maps.Keys(byKind))
	c.atOnce(len(kinds), func(own *Cluster, i int) {
		if own.Freezes > 0 {
			own.freezeSome(ctx, byKind[kinds[i]], rand.New(rand.NewPCG(own.Seed, uint64(i))))
		} else {
			own.freezeAll(ctx, byKind[kinds[i]])
		}
	})
}

// undisturbed returns the outcome of a scenario without a freeze.
func (c *Cluster) undisturbed(ctx context.Context, s scenario) outcome {
	calm, err := c.freeze(ctx, freezing{scenario: s})
	c.during(s.Name+", undisturbed", func() { c.check(err) })
	c.Log("%s: undisturbed it took %s", s.Name, calm)
	return calm
}

// freezeSome runs one random scenario of a kind, with c.Freezes freezes.
func (c *Cluster) freezeSome(ctx context.Context, of []scenario, chance *rand.Rand) {
	s := of[chance.IntN(len(of))]
	calm := c.undisturbed(ctx, s)
	c.Expect(calm.writes).NotTo(BeZero(), "%s: the operator wrote nothing", s.Name)
	for range c.Freezes {
		mode := freeze.Modes[chance.IntN(len(freeze.Modes))]
		// The number of writes differs between runs.
		for at := 1 + chance.IntN(calm.writes); at > 0; {
			got := c.freezeAt(ctx, s, calm, at, mode)
			if got.frozen != "" {
				break
			}
			at = min(at-1, got.writes)
		}
	}
	c.freezeAsleep(ctx, s, calm)
}

// besideEachOther is the max of concurrent freezes of a kind if all writes are tested.
const besideEachOther = 4

// freezeAll runs all scenarios of a kind, with a freeze at each write in each mode. It continues
// after failures.
func (c *Cluster) freezeAll(ctx context.Context, of []scenario) {
	var found error
	for _, s := range of {
		found = errors.Join(found, c.Kept(func(c *Cluster) {
			calm := c.undisturbed(ctx, s)
			limit := besideEachOther
			if s.Kind == singletons {
				limit = 1 // the operator of one trial would act in the namespaces of others
			}
			modes := len(freeze.Modes)
			c.inTurns(limit, calm.writes*modes+1, func(own *Cluster, i int) {
				if i < calm.writes*modes {
					own.freezeAt(ctx, s, calm, 1+i/modes, freeze.Modes[i%modes])
				} else {
					own.freezeAsleep(ctx, s, calm)
				}
			})
		}))
	}
	c.check(found)
}

// freezeAt freezes the leader at one write of a scenario.
func (c *Cluster) freezeAt(ctx context.Context, s scenario, calm outcome, at int, mode freeze.Mode) outcome {
	trap := &freeze.Trap{At: at, Mode: mode}
	got, err := c.freeze(ctx, freezing{scenario: s, trap: trap})
	c.compare(fmt.Sprintf("%s, frozen at write %d of %d, %s", s.Name, at, calm.writes, mode), calm, got, err)
	return got
}

// freezeAsleep freezes the leader before a scenario begins, and resumes it at the beginning.
func (c *Cluster) freezeAsleep(ctx context.Context, s scenario, calm outcome) {
	got, err := c.freeze(ctx, freezing{scenario: s, asleep: true})
	c.compare(s.Name+", frozen before it and resumed when it begins", calm, got, err)
}

// compare reports differences between the outcomes with and without a freeze.
func (c *Cluster) compare(what string, calm, got outcome, err error) {
	if !maps.Equal(calm.made, got.made) {
		err = errors.Join(err, fmt.Errorf("the operators created %v, want %v as without a freeze", got.made, calm.made))
	}
	if len(got.left) > 0 && !maps.Equal(calm.left, got.left) {
		err = errors.Join(err, fmt.Errorf("at the end there are %v, want %v as without a freeze", got.left, calm.left))
	}
	c.Log("%s (%s): %s", what, got.frozen, got)
	c.during(fmt.Sprintf("%s (%s)", what, got.frozen), func() { c.check(err) })
}

// outcome is the result of a scenario.
type outcome struct {
	// writes is the number of the first leader's writes since the beginning of the scenario that
	// can be frozen.
	writes int
	// made counts the objects that the operators created, by resource. left counts the objects that
	// exist in the end.
	made, left map[string]int
	// frozen is the write at which the leader was frozen, and its response.
	frozen string
}

func (o outcome) String() string {
	return fmt.Sprintf("%d writes; created %v; existing %v", o.writes, o.made, o.left)
}

// inventory counts the objects of a namespace, by resource.
func (c *Cluster) inventory(ctx context.Context) map[string]int {
	found := map[string]int{}
	for name, list := range map[string]client.ObjectList{
		"pods": &corev1.PodList{}, "claims": &corev1.PersistentVolumeClaimList{}, "services": &corev1.ServiceList{},
		"statefulsets": &appsv1.StatefulSetList{}, "jobs": &batchv1.JobList{}, "revisions": &appsv1.ControllerRevisionList{},
	} {
		c.list(ctx, list, client.InNamespace(c.Namespace))
		found[name] = meta.LenList(list)
	}
	return found
}
