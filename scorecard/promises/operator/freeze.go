// Package operator contains the promises of the operator for all kinds.
package operator

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

	"github.com/stateful-operator/stateful-operator/scorecard/promises/extended"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/replicated"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/singleton"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/statefulcluster"
	"github.com/stateful-operator/stateful-operator/test/faults/freeze"
)

// Freeze lists promises of the operator for all kinds. A leader that is frozen for longer than its
// lease and then resumes must not change anything that its successor has done. See trial.go for
// how a leader is frozen. The scenarios are those of each kind.
var Freeze = []kit.Promise{
	kit.Core(kit.Promise{Name: "V3 SC-33 a leader that was frozen leaves the lease to its successor", Site: kit.OperatorSite, Faults: true, Run: parked(leavesTheLease)}),
	{Name: "V2 SC-33 SC-36 a leader that was frozen at any write creates nothing twice", Site: kit.OperatorSite, Faults: true, Run: parked(makesNothingTwice)},
}

// scenarios are those of all kinds.
var scenarios = slices.Concat(statefulcluster.Scenarios, replicated.Scenarios, extended.Scenarios, singleton.Scenarios)

// nothing is the scenario without any action.
var nothing = kit.Scenario{Name: "nothing", Kind: "StatefulCluster", Begin: func(context.Context, *kit.Cluster) (run, judge kit.Step) {
	noop := func(context.Context) {}
	return noop, noop
}}

// singletons is a kind for which the operator guards all pods that it watches.
const singletons = "StatefulSingleton"

// parked wraps a promise. The operator of the cluster only serves webhooks meanwhile, so that the
// operators that the promise starts can act.
func parked(run func(context.Context, *kit.Cluster)) func(context.Context, *kit.Cluster) {
	return func(ctx context.Context, c *kit.Cluster) {
		before := operatorRestarts(ctx, c)
		holder, giveBack, err := freeze.Park(ctx, c.Kube, c.Operator.Namespace, kit.OperatorLease)
		c.Check(err)
		defer func() {
			ctx := context.WithoutCancel(ctx)
			c.Check(giveBack(ctx))
			c.Leader(ctx)
		}()
		// An operator that has lost its lease exits, and its container is restarted.
		c.Until(ctx, "the operator to serve webhooks only", func(ctx context.Context) {
			now := operatorRestarts(ctx, c)
			leader, _, _ := strings.Cut(holder, "_")
			was, there := before[leader]
			c.Expect(there && now[leader] == was).To(BeFalse(), "%s may still write", leader)
		})
		run(ctx, c)
	}
}

// operatorRestarts returns the restart counts of the operator's containers, by pod name. All pods
// must be Ready.
func operatorRestarts(ctx context.Context, c *kit.Cluster) map[string]int32 {
	var pods corev1.PodList
	c.List(ctx, &pods, client.InNamespace(c.Operator.Namespace))
	restarts := map[string]int32{}
	for i := range pods.Items {
		p := &pods.Items[i]
		c.Expect(kit.PodCondition(p, corev1.PodReady)).To(BeTrue(), "%s is not Ready", p.Name)
		restarts[p.Name] = p.Status.ContainerStatuses[0].RestartCount
	}
	return restarts
}

// leavesTheLease freezes leaders while they renew their lease, in each mode, and one leader while
// it is idle.
func leavesTheLease(ctx context.Context, c *kit.Cluster) {
	c.InTurns(len(freeze.Modes), len(freeze.Modes)+1, func(own *kit.Cluster, i int) {
		f, what := freezing{scenario: nothing, asleep: true}, "frozen between two renewals"
		if i < len(freeze.Modes) {
			f = freezing{scenario: nothing, renewal: true, trap: &freeze.Trap{At: 3, Mode: freeze.Modes[i]}}
			what = fmt.Sprintf("frozen at a renewal %s", freeze.Modes[i])
		}
		_, err := runTrial(ctx, own, f)
		own.During(what, func() { own.Check(err) })
	})
}

// makesNothingTwice runs the scenarios of each kind, first without and then with freezes. Different
// kinds run concurrently.
func makesNothingTwice(ctx context.Context, c *kit.Cluster) {
	chosen := slices.DeleteFunc(slices.Clone(scenarios), func(s kit.Scenario) bool { return !strings.Contains(s.Name, c.Fault) })
	c.Expect(chosen).NotTo(BeEmpty(), "no scenario has %q in its name", c.Fault)
	byKind := map[string][]kit.Scenario{}
	for _, s := range chosen {
		byKind[s.Kind] = append(byKind[s.Kind], s)
	}
	c.Log("seed %d", c.Seed)
	kinds := slices.Sorted(maps.Keys(byKind))
	c.AtOnce(len(kinds), func(own *kit.Cluster, i int) {
		if own.Freezes > 0 {
			freezeSome(ctx, own, byKind[kinds[i]], rand.New(rand.NewPCG(own.Seed, uint64(i))))
		} else {
			freezeAll(ctx, own, byKind[kinds[i]])
		}
	})
}

// undisturbed returns the outcome of a scenario without a freeze.
func undisturbed(ctx context.Context, c *kit.Cluster, s kit.Scenario) outcome {
	calm, err := runTrial(ctx, c, freezing{scenario: s})
	c.During(s.Name+", undisturbed", func() { c.Check(err) })
	c.Log("%s: undisturbed it took %s", s.Name, calm)
	return calm
}

// freezeSome runs one random scenario of a kind, with c.Freezes freezes.
func freezeSome(ctx context.Context, c *kit.Cluster, of []kit.Scenario, chance *rand.Rand) {
	s := of[chance.IntN(len(of))]
	calm := undisturbed(ctx, c, s)
	c.Expect(calm.writes).NotTo(BeZero(), "%s: the operator wrote nothing", s.Name)
	for range c.Freezes {
		mode := freeze.Modes[chance.IntN(len(freeze.Modes))]
		// The number of writes differs between runs.
		for at := 1 + chance.IntN(calm.writes); at > 0; {
			got := freezeAt(ctx, c, s, calm, at, mode)
			if got.frozen != "" {
				break
			}
			at = min(at-1, got.writes)
		}
	}
	freezeAsleep(ctx, c, s, calm)
}

// besideEachOther is the max of concurrent freezes of a kind if all writes are tested.
const besideEachOther = 4

// freezeAll runs all scenarios of a kind, with a freeze at each write in each mode. It continues
// after failures.
func freezeAll(ctx context.Context, c *kit.Cluster, of []kit.Scenario) {
	var found error
	for _, s := range of {
		found = errors.Join(found, c.Kept(func(c *kit.Cluster) {
			calm := undisturbed(ctx, c, s)
			limit := besideEachOther
			if s.Kind == singletons {
				limit = 1 // the operator of one trial would act in the namespaces of others
			}
			modes := len(freeze.Modes)
			c.InTurns(limit, calm.writes*modes+1, func(own *kit.Cluster, i int) {
				if i < calm.writes*modes {
					freezeAt(ctx, own, s, calm, 1+i/modes, freeze.Modes[i%modes])
				} else {
					freezeAsleep(ctx, own, s, calm)
				}
			})
		}))
	}
	c.Check(found)
}

// freezeAt freezes the leader at one write of a scenario.
func freezeAt(ctx context.Context, c *kit.Cluster, s kit.Scenario, calm outcome, at int, mode freeze.Mode) outcome {
	trap := &freeze.Trap{At: at, Mode: mode}
	got, err := runTrial(ctx, c, freezing{scenario: s, trap: trap})
	compare(c, fmt.Sprintf("%s, frozen at write %d of %d, %s", s.Name, at, calm.writes, mode), calm, got, err)
	return got
}

// freezeAsleep freezes the leader before a scenario begins, and resumes it at the beginning.
func freezeAsleep(ctx context.Context, c *kit.Cluster, s kit.Scenario, calm outcome) {
	got, err := runTrial(ctx, c, freezing{scenario: s, asleep: true})
	compare(c, s.Name+", frozen before it and resumed when it begins", calm, got, err)
}

// compare reports differences between the outcomes with and without a freeze.
func compare(c *kit.Cluster, what string, calm, got outcome, err error) {
	if !maps.Equal(calm.made, got.made) {
		err = errors.Join(err, fmt.Errorf("the operators created %v, want %v as without a freeze", got.made, calm.made))
	}
	if len(got.left) > 0 && !maps.Equal(calm.left, got.left) {
		err = errors.Join(err, fmt.Errorf("at the end there are %v, want %v as without a freeze", got.left, calm.left))
	}
	c.Log("%s (%s): %s", what, got.frozen, got)
	c.During(fmt.Sprintf("%s (%s)", what, got.frozen), func() { c.Check(err) })
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
func inventory(ctx context.Context, c *kit.Cluster) map[string]int {
	found := map[string]int{}
	for name, list := range map[string]client.ObjectList{
		"pods": &corev1.PodList{}, "claims": &corev1.PersistentVolumeClaimList{}, "services": &corev1.ServiceList{},
		"statefulsets": &appsv1.StatefulSetList{}, "jobs": &batchv1.JobList{}, "revisions": &appsv1.ControllerRevisionList{},
	} {
		c.List(ctx, list, client.InNamespace(c.Namespace))
		found[name] = meta.LenList(list)
	}
	return found
}
