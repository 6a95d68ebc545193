package promises

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// scenario is a user's action during which a leader is frozen.
type scenario struct {
	name, kind string
	// begin creates the initial objects. It returns run, which performs the action and waits for
	// its result, and judge, which checks the final state after the frozen leader has resumed.
	begin beginning
}

// step is an action, including the wait for its result.
type step = func(context.Context)

// beginning prepares a scenario and returns its steps.
type beginning = func(context.Context, *Cluster) (run, judge step)

// nothing is the scenario without any action.
var nothing = scenario{name: "nothing", kind: "StatefulCluster", begin: func(context.Context, *Cluster) (run, judge step) {
	noop := func(context.Context) {}
	return noop, noop
}}

// singletons is a kind for which the operator guards all pods that it watches.
const singletons = "StatefulSingleton"

var scenarios = []scenario{
	{"StatefulCluster create", "StatefulCluster", clusterScenario(0, func(context.Context, *Cluster, *engev1alpha1.StatefulCluster) {})},
	{"StatefulCluster scale", "StatefulCluster", clusterScenario(3, func(ctx context.Context, c *Cluster, set *engev1alpha1.StatefulCluster) {
		c.edit(ctx, set, func(s *engev1alpha1.StatefulCluster) { s.Spec.Replicas = new(int32(6)) })
	})},
	{"StatefulCluster replace", "StatefulCluster", clusterScenario(3, loseMember)},
	{"StatefulCluster update", "StatefulCluster", clusterScenario(3, func(ctx context.Context, c *Cluster, set *engev1alpha1.StatefulCluster) {
		c.edit(ctx, set, func(s *engev1alpha1.StatefulCluster) {
			env := &s.Spec.Template.Spec.Containers[0].Env
			*env = append(*env, corev1.EnvVar{Name: "EDITED", Value: "yes"})
		})
	})},

	{"ReplicatedStatefulSet create", "ReplicatedStatefulSet", createLedger},
	{"ReplicatedStatefulSet failover", "ReplicatedStatefulSet", ledgerScenario(3, func(ctx context.Context, r *replica) {
		old := r.primary(ctx)
		at := testimony.Now()
		r.killServer(ctx, old)
		r.newPrimary(ctx, at)
	})},
	{"ReplicatedStatefulSet switchover", "ReplicatedStatefulSet", ledgerScenario(3, func(ctx context.Context, r *replica) {
		r.switchTo(ctx, "rss-frozen-2")
	})},
	{"ReplicatedStatefulSet scale", "ReplicatedStatefulSet", ledgerScenario(4, func(ctx context.Context, r *replica) {
		r.resize(ctx, 3)
	})},

	{"ExtendedStatefulSet create", "ExtendedStatefulSet", extendedScenario(0, onClaims)},
	{"ExtendedStatefulSet upgrade with a separate canary", "ExtendedStatefulSet", extendedScenario(2, coexist, canaries(1), minReady(1))},
	{"ExtendedStatefulSet upgrade with a canary by ordinal", "ExtendedStatefulSet", extendedScenario(2, onClaims, canaries(1), minReady(1))},
	{"ExtendedStatefulSet upgrade with jobs", "ExtendedStatefulSet", extendedScenario(2, coexist, withJobs)},
	{"ExtendedStatefulSet upgrade of active and passive pods", "ExtendedStatefulSet", extendedScenario(2, coexist, probedActive(true, 3, "test ! -e /tmp/passive"))},
	{"ExtendedStatefulSet upgrade in zones", "ExtendedStatefulSet", zonesScenario},

	{"StatefulSingleton first pod", singletons, singletonScenario(false, startFirst)},
	{"StatefulSingleton handover", singletons, singletonScenario(true, func(ctx context.Context, a *application) {
		a.handover(ctx, "deletion", func(old testimony.Run) { a.delete(ctx, old) })
	})},
}

// clusterScenario tests a StatefulCluster with that many members. With 0 replicas, the action is to
// create it with 3.
func clusterScenario(replicas int32, act func(context.Context, *Cluster, *engev1alpha1.StatefulCluster)) beginning {
	return func(ctx context.Context, c *Cluster) (run, judge step) {
		set := c.newSet(max(replicas, 3))
		judge = func(ctx context.Context) {
			c.settle(ctx, set)
			c.whole(ctx, set)
		}
		if replicas == 0 {
			return func(ctx context.Context) { c.create(ctx, set) }, judge
		}
		c.create(ctx, set)
		return func(ctx context.Context) {
			act(ctx, c, set)
			c.settle(ctx, set)
		}, judge
	}
}

// loseMember force-deletes a pod, so that it is unknown whether the pod has ended.
func loseMember(ctx context.Context, c *Cluster, set *engev1alpha1.StatefulCluster) {
	victim := one(c.members(ctx, set))
	c.remove(ctx, victim, client.GracePeriodSeconds(0))
	c.replaced(ctx, set, victim.Name)
	c.retained(ctx, victim, engev1alpha1.RetainedLost)
}

// createLedger tests the creation of a ReplicatedStatefulSet.
func createLedger(_ context.Context, c *Cluster) (run, judge step) {
	var r *replica
	return func(ctx context.Context) { r = c.ledger(ctx, "frozen", 3) }, func(ctx context.Context) { r.judge(ctx) }
}

// ledgerScenario tests an existing ReplicatedStatefulSet that is written to.
func ledgerScenario(replicas int32, act func(context.Context, *replica)) beginning {
	return func(ctx context.Context, c *Cluster) (run, judge step) {
		r := c.ledger(ctx, "frozen", replicas)
		return func(ctx context.Context) {
			act(ctx, r)
			r.goesOnWriting(ctx)
			r.whole(ctx)
		}, func(ctx context.Context) { r.judge(ctx) }
	}
}

// extendedScenario tests the upgrade of an ExtendedStatefulSet. With 0 replicas, the action is to
// create it with 2.
func extendedScenario(replicas int32, shape ...extendedChange) beginning {
	return func(ctx context.Context, c *Cluster) (run, judge step) {
		x := c.extended("frozen", max(replicas, 2), append(shape, patiently)...)
		if replicas == 0 {
			return x.create, func(ctx context.Context) { x.serves(ctx, 1) }
		}
		x.create(ctx)
		return func(ctx context.Context) {
			x.edit(ctx, inVersion("2"))
			x.serves(ctx, 2)
		}, func(ctx context.Context) { x.serves(ctx, 2) }
	}
}

// zonesScenario tests a set in two zones, which are upgraded one after another.
func zonesScenario(ctx context.Context, c *Cluster) (run, judge step) {
	_, label := c.zoned(ctx, 2)
	return extendedScenario(1, coexist, inZones(label, zoneName(0), zoneName(1)))(ctx, c)
}

// singletonScenario tests a StatefulSingleton. If started is true, a Deployment with a running pod
// exists before.
func singletonScenario(started bool, act func(context.Context, *application)) beginning {
	return func(ctx context.Context, c *Cluster) (run, judge step) {
		a := c.application("frozen")
		a.hold(ctx)
		if started {
			startFirst(ctx, a)
		}
		return func(ctx context.Context) { act(ctx, a) }, func(ctx context.Context) {
			run := a.one(ctx)
			a.active(ctx, run)
			a.ready(ctx, run)
		}
	}
}

// startFirst creates the pods of an application, and waits until one runs.
func startFirst(ctx context.Context, a *application) {
	a.deploy(ctx, 1, surge())
	run := a.one(ctx)
	a.active(ctx, run)
	a.ready(ctx, run)
}
