package singleton

import (
	"context"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Editable returns a random application that is not created yet. Its Deployment is edited.
func Editable(ctx context.Context, c *kit.Cluster, random *rand.Rand) kit.Editable {
	replicas, strategy := 1+random.Int32N(3), surge()
	var deployment *appsv1.Deployment
	if random.IntN(2) == 0 {
		strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	a := newApplication(c, "mail")
	edit := func(name string, do func(*rand.Rand, *appsv1.Deployment)) kit.Edit {
		return kit.Edit{Name: name, Do: func(random *rand.Rand, o client.Object) { do(random, o.(*appsv1.Deployment)) }}
	}
	scale := func(random *rand.Rand, d *appsv1.Deployment) {
		n := 1 + random.Int32N(3)
		d.Spec.Replicas = &n
	}
	return kit.Editable{
		Kind: "StatefulSingleton", Key: client.ObjectKeyFromObject(a.set().Singleton()),
		Create: func() {
			a.hold(ctx)
			deployment = a.deploy(ctx, replicas, strategy)
			if replicas > 1 {
				a.held(ctx, int(replicas)-1)
			}
			a.one(ctx)
			c.ReportsNothing(ctx, a.set().Singleton())
		},
		Settle: func() {
			a.rolledOut(ctx, deployment)
			c.ReportsNothing(ctx, a.set().Singleton())
		},
		New: func() client.Object { return &appsv1.Deployment{} },
		Edits: []kit.Edit{
			edit("a revision", func(_ *rand.Rand, d *appsv1.Deployment) { revise(&d.Spec.Template) }),
			edit("replicas", scale),
		},
	}
}
