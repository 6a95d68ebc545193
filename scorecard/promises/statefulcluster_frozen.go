package promises

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// clusterScenarios are actions of users on a StatefulCluster during which a leader is frozen.
var clusterScenarios = []scenario{
	clusterAction("create", clusterScenario(0, func(context.Context, *Cluster, *v1alpha1.StatefulCluster) {})),
	clusterAction("scale", clusterScenario(3, func(ctx context.Context, c *Cluster, set *v1alpha1.StatefulCluster) {
		c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Replicas = new(int32(6)) })
	})),
	clusterAction("replace", clusterScenario(3, loseMember)),
	clusterAction("update", clusterScenario(3, func(ctx context.Context, c *Cluster, set *v1alpha1.StatefulCluster) {
		c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
			env := &s.Spec.Template.Spec.Containers[0].Env
			*env = append(*env, corev1.EnvVar{Name: "EDITED", Value: "yes"})
		})
	})),
}

// clusterAction returns a scenario of this kind.
func clusterAction(name string, begin beginning) scenario {
	return scenario{Name: "StatefulCluster " + name, Kind: "StatefulCluster", Begin: begin}
}

// clusterScenario tests a StatefulCluster with that many members. With 0 replicas, the action is to
// create it with 3.
func clusterScenario(replicas int32, act func(context.Context, *Cluster, *v1alpha1.StatefulCluster)) beginning {
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
func loseMember(ctx context.Context, c *Cluster, set *v1alpha1.StatefulCluster) {
	victim := one(c.members(ctx, set))
	c.remove(ctx, victim, client.GracePeriodSeconds(0))
	c.replaced(ctx, set, victim.Name)
	c.retained(ctx, victim, v1alpha1.RetainedLost)
}
