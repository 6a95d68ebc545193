package promises

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// scenario is something that users do, in which a leader is frozen.
type scenario struct {
	name, kind string
	// begin makes what there is before it. run does it, and waits until what the
	// user wants is there; judge looks at the end, when the frozen one has woken.
	begin beginning
}

// step is what is done, and waited for.
type step = func(context.Context)

// beginning is how a scenario begins.
type beginning = func(context.Context, *Cluster) (run, judge step)

// nothing is the scenario in which nothing is to be done.
var nothing = scenario{name: "nothing", kind: "StatefulCluster", begin: func(context.Context, *Cluster) (run, judge step) {
	noop := func(context.Context) {}
	return noop, noop
}}

// singletons is the kind of which the operator guards all pods that it watches.
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
	{"ExtendedStatefulSet upgrade with a canary beside", "ExtendedStatefulSet", extendedScenario(2, coexist, canaries(1), minReady(1))},
	{"ExtendedStatefulSet upgrade with a canary by ordinal", "ExtendedStatefulSet", extendedScenario(2, onClaims, canaries(1), minReady(1))},
	{"ExtendedStatefulSet upgrade with jobs", "ExtendedStatefulSet", extendedScenario(2, coexist, withJobs)},
	{"ExtendedStatefulSet upgrade of active and passive pods", "ExtendedStatefulSet", extendedScenario(2, coexist, probedActive(true, 3, "test ! -e /tmp/passive"))},
	{"ExtendedStatefulSet upgrade in zones", "ExtendedStatefulSet", zonesScenario},

	{"StatefulSingleton first pod", singletons, singletonScenario(false, startFirst)},
	{"StatefulSingleton handover", singletons, singletonScenario(true, func(ctx context.Context, a *application) {
		a.handover(ctx, "deletion", func(old testimony.Run) { a.delete(ctx, old) })
	})},
}

// clusterScenario is about a StatefulCluster that has so many members; without any it
// is created with 3.
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

// loseMember deletes a pod by force, so that nobody knows whether it has ended.
func loseMember(ctx context.Context, c *Cluster, set *engev1alpha1.StatefulCluster) {
	victim := one(c.members(ctx, set))
	c.remove(ctx, victim, client.GracePeriodSeconds(0))
	c.replaced(ctx, set, victim.Name)
	c.retained(ctx, victim, engev1alpha1.RetainedLost)
}

// createLedger is about a ReplicatedStatefulSet that is created.
func createLedger(_ context.Context, c *Cluster) (run, judge step) {
	var r *replica
	return func(ctx context.Context) { r = c.ledger(ctx, "frozen", 3) }, func(ctx context.Context) { r.judge(ctx) }
}

// ledgerScenario is about one that is there, and written to.
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

// extendedScenario is about an ExtendedStatefulSet that is upgraded; without replicas
// it is created with 2.
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

// zonesScenario is about one in two zones, which are upgraded one after another.
func zonesScenario(ctx context.Context, c *Cluster) (run, judge step) {
	_, label := c.zoned(ctx, 2)
	return extendedScenario(1, coexist, inZones(label, zoneName(0), zoneName(1)))(ctx, c)
}

// singletonScenario is about a StatefulSingleton, and a Deployment if its first pod is
// there before.
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

// startFirst makes the pods of an application, and waits until one runs.
func startFirst(ctx context.Context, a *application) {
	a.deploy(ctx, 1, surge())
	run := a.one(ctx)
	a.active(ctx, run)
	a.ready(ctx, run)
}
