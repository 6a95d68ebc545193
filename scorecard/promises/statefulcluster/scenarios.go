package statefulcluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Scenarios are actions of users on a StatefulCluster during which a leader is frozen.
var Scenarios = []kit.Scenario{
	action("create", withSet(0, func(context.Context, *kit.Cluster, *v1alpha1.StatefulCluster) {})),
	action("scale", withSet(3, func(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster) {
		edit(ctx, c, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Replicas = new(int32(6)) })
	})),
	action("replace", withSet(3, loseMember)),
	action("update", withSet(3, func(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster) {
		edit(ctx, c, set, func(s *v1alpha1.StatefulCluster) {
			env := &s.Spec.Template.Spec.Containers[0].Env
			*env = append(*env, corev1.EnvVar{Name: "EDITED", Value: "yes"})
		})
	})),
}

// action returns a scenario of this kind.
func action(name string, begin kit.Beginning) kit.Scenario {
	return kit.Scenario{Name: "StatefulCluster " + name, Kind: "StatefulCluster", Begin: begin}
}

// withSet tests a StatefulCluster with that many members. With 0 replicas, the action is to
// create it with 3.
func withSet(replicas int32, act func(context.Context, *kit.Cluster, *v1alpha1.StatefulCluster)) kit.Beginning {
	return func(ctx context.Context, c *kit.Cluster) (run, judge kit.Step) {
		set := newSet(c, max(replicas, 3))
		judge = func(ctx context.Context) {
			settle(ctx, c, set)
			whole(ctx, c, set)
		}
		if replicas == 0 {
			return func(ctx context.Context) { create(ctx, c, set) }, judge
		}
		create(ctx, c, set)
		return func(ctx context.Context) {
			act(ctx, c, set)
			settle(ctx, c, set)
		}, judge
	}
}

// loseMember force-deletes a pod, so that it is unknown whether the pod has ended.
func loseMember(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster) {
	victim := one(members(ctx, c, set))
	c.Remove(ctx, victim, client.GracePeriodSeconds(0))
	replaced(ctx, c, set, victim.Name)
	retained(ctx, c, victim, v1alpha1.RetainedLost)
}
