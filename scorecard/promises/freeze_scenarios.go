package promises

import (
	"context"
	"errors"

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
type step = func(context.Context) error

// beginning is how a scenario begins.
type beginning = func(context.Context, *Cluster) (run, judge step, err error)

// nothing is the scenario in which nothing is to be done.
var nothing = scenario{name: "nothing", kind: "StatefulCluster", begin: func(context.Context, *Cluster) (run, judge step, err error) {
	noop := func(context.Context) error { return nil }
	return noop, noop, nil
}}

// singletons is the kind of which the operator guards all pods that it watches.
const singletons = "StatefulSingleton"

var scenarios = []scenario{
	{"StatefulCluster create", "StatefulCluster", clusterScenario(0, func(context.Context, *Cluster, *engev1alpha1.StatefulCluster) error { return nil })},
	{"StatefulCluster scale", "StatefulCluster", clusterScenario(3, func(ctx context.Context, c *Cluster, set *engev1alpha1.StatefulCluster) error {
		return c.edit(ctx, set, func(s *engev1alpha1.StatefulCluster) { s.Spec.Replicas = new(int32(6)) })
	})},
	{"StatefulCluster replace", "StatefulCluster", clusterScenario(3, loseMember)},
	{"StatefulCluster update", "StatefulCluster", clusterScenario(3, func(ctx context.Context, c *Cluster, set *engev1alpha1.StatefulCluster) error {
		return c.edit(ctx, set, func(s *engev1alpha1.StatefulCluster) {
			env := &s.Spec.Template.Spec.Containers[0].Env
			*env = append(*env, corev1.EnvVar{Name: "EDITED", Value: "yes"})
		})
	})},

	{"ReplicatedStatefulSet create", "ReplicatedStatefulSet", createLedger},
	{"ReplicatedStatefulSet failover", "ReplicatedStatefulSet", ledgerScenario(3, func(ctx context.Context, r *replica) error {
		old, err := r.primary(ctx)
		if err != nil {
			return err
		}
		at := testimony.Now()
		return errors.Join(r.killServer(ctx, old), r.newPrimary(ctx, at))
	})},
	{"ReplicatedStatefulSet switchover", "ReplicatedStatefulSet", ledgerScenario(3, func(ctx context.Context, r *replica) error {
		return r.switchTo(ctx, "rss-frozen-2")
	})},
	{"ReplicatedStatefulSet scale", "ReplicatedStatefulSet", ledgerScenario(4, func(ctx context.Context, r *replica) error {
		return r.resize(ctx, 3)
	})},

	{"ExtendedStatefulSet create", "ExtendedStatefulSet", extendedScenario(0, onClaims)},
	{"ExtendedStatefulSet upgrade with a canary beside", "ExtendedStatefulSet", extendedScenario(2, coexist, canaries(1), minReady(1))},
	{"ExtendedStatefulSet upgrade with a canary by ordinal", "ExtendedStatefulSet", extendedScenario(2, onClaims, canaries(1), minReady(1))},
	{"ExtendedStatefulSet upgrade with jobs", "ExtendedStatefulSet", extendedScenario(2, coexist, withJobs)},
	{"ExtendedStatefulSet upgrade of active and passive pods", "ExtendedStatefulSet", extendedScenario(2, coexist, probedActive(true, "test ! -e /tmp/passive"))},
	{"ExtendedStatefulSet upgrade in zones", "ExtendedStatefulSet", zonesScenario},

	{"StatefulSingleton first pod", singletons, singletonScenario(false, startFirst)},
	{"StatefulSingleton handover", singletons, singletonScenario(true, func(ctx context.Context, a *application) error {
		_, err := a.handover(ctx, "deletion", func(old testimony.Run) error { return a.delete(ctx, old) })
		return err
	})},
}

// clusterScenario is about a StatefulCluster that has so many members; without any it
// is created with 3.
func clusterScenario(replicas int32, act func(context.Context, *Cluster, *engev1alpha1.StatefulCluster) error) beginning {
	return func(ctx context.Context, c *Cluster) (run, judge step, err error) {
		set := c.newSet(max(replicas, 3))
		judge = func(ctx context.Context) error {
			_, err := c.settle(ctx, set)
			return errors.Join(err, c.whole(ctx, set))
		}
		if replicas == 0 {
			return func(ctx context.Context) error {
				_, err := c.create(ctx, set)
				return err
			}, judge, nil
		}
		_, err = c.create(ctx, set)
		return func(ctx context.Context) error {
			if err := act(ctx, c, set); err != nil {
				return err
			}
			_, err := c.settle(ctx, set)
			return err
		}, judge, err
	}
}

// loseMember deletes a pod by force, so that nobody knows whether it has ended.
func loseMember(ctx context.Context, c *Cluster, set *engev1alpha1.StatefulCluster) error {
	live, err := c.members(ctx, set)
	if err != nil {
		return err
	}
	victim := one(live)
	if err := c.Client.Delete(ctx, victim, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	return errors.Join(c.replaced(ctx, set, victim.Name), c.retained(ctx, victim, engev1alpha1.RetainedLost))
}

// createLedger is about a ReplicatedStatefulSet that is created.
func createLedger(_ context.Context, c *Cluster) (run, judge step, err error) {
	var r *replica
	return func(ctx context.Context) (err error) {
			r, err = c.ledger(ctx, "frozen", 3)
			return err
		}, func(ctx context.Context) error {
			_, err := r.judge(ctx)
			return err
		}, nil
}

// ledgerScenario is about one that is there, and written to.
func ledgerScenario(replicas int32, act func(context.Context, *replica) error) beginning {
	return func(ctx context.Context, c *Cluster) (run, judge step, err error) {
		r, err := c.ledger(ctx, "frozen", replicas)
		return func(ctx context.Context) error {
				return errors.Join(act(ctx, r), r.goesOnWriting(ctx), r.whole(ctx))
			}, func(ctx context.Context) error {
				_, err := r.judge(ctx)
				return err
			}, err
	}
}

// extendedScenario is about an ExtendedStatefulSet that is upgraded; without replicas
// it is created with 2.
func extendedScenario(replicas int32, shape ...extendedChange) beginning {
	return func(ctx context.Context, c *Cluster) (run, judge step, err error) {
		x := c.extended("frozen", max(replicas, 2), append(shape, patiently)...)
		if replicas == 0 {
			return x.create, func(ctx context.Context) error { return x.serves(ctx, 1) }, nil
		}
		err = x.create(ctx)
		return func(ctx context.Context) error {
			return errors.Join(x.edit(ctx, inVersion("2")), x.serves(ctx, 2))
		}, func(ctx context.Context) error { return x.serves(ctx, 2) }, err
	}
}

// zonesScenario is about one in two zones, which are upgraded one after another.
func zonesScenario(ctx context.Context, c *Cluster) (run, judge step, err error) {
	_, label, restore, err := c.zoned(ctx, 2)
	if err != nil {
		return nil, nil, errors.Join(err, restore())
	}
	run, serves, err := extendedScenario(1, coexist, inZones(label, zoneName(0), zoneName(1)))(ctx, c)
	return run, func(ctx context.Context) error { return errors.Join(serves(ctx), restore()) }, err
}

// singletonScenario is about a StatefulSingleton, and a Deployment if its first pod is
// there before.
func singletonScenario(started bool, act func(context.Context, *application) error) beginning {
	return func(ctx context.Context, c *Cluster) (run, judge step, err error) {
		a, err := c.application("frozen")
		if err != nil {
			return nil, nil, err
		}
		if err = a.hold(ctx); err == nil && started {
			err = startFirst(ctx, a)
		}
		return func(ctx context.Context) error { return act(ctx, a) }, func(ctx context.Context) error {
			run, err := a.one(ctx)
			return errors.Join(err, a.active(ctx, run), a.ready(ctx, run))
		}, err
	}
}

// startFirst makes the pods of an application, and waits until one runs.
func startFirst(ctx context.Context, a *application) error {
	if _, err := a.deploy(ctx, 1, surge()); err != nil {
		return err
	}
	run, err := a.one(ctx)
	return errors.Join(err, a.active(ctx, run), a.ready(ctx, run))
}
