package singleton

import (
	"context"
	"math/rand/v2"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
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
	var fencing []func(*v1.StatefulSingletonSpec)
	if random.IntN(3) == 0 {
		fencing = append(fencing, byLease)
	}
	if random.IntN(4) == 0 {
		return editableStatefulSet(ctx, c, a, fencing)
	}
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
			a.hold(ctx, fencing...)
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

// editableStatefulSet returns an application whose pod belongs to a StatefulSet.
func editableStatefulSet(ctx context.Context, c *kit.Cluster, a *application, fencing []func(*v1.StatefulSingletonSpec)) kit.Editable {
	var workload *appsv1.StatefulSet
	edit := func(name string, do func(*appsv1.StatefulSet)) kit.Edit {
		return kit.Edit{Name: name, Do: func(_ *rand.Rand, o client.Object) { do(o.(*appsv1.StatefulSet)) }}
	}
	settle := func() {
		a.Until(ctx, "the rollout of "+workload.Name+" to complete", func(ctx context.Context) {
			a.Read(ctx, workload)
			s, want := workload.Status, *workload.Spec.Replicas
			a.Expect(s.ObservedGeneration).To(Equal(workload.Generation), "%+v", s)
			a.Expect(s.Replicas).To(Equal(want), "%+v", s)
			a.Expect(s.ReadyReplicas).To(Equal(want), "%+v", s)
			a.Expect(s.CurrentRevision).To(Equal(s.UpdateRevision), "%+v", s)
		})
		c.ReportsNothing(ctx, a.set().Singleton())
	}
	return kit.Editable{
		Kind: "StatefulSingleton", Key: client.ObjectKeyFromObject(a.set().Singleton()),
		Create: func() {
			a.hold(ctx, fencing...)
			workload = a.statefulSet(ctx)
			a.one(ctx)
			settle()
		},
		Settle: settle,
		New:    func() client.Object { return &appsv1.StatefulSet{} },
		Edits: []kit.Edit{
			edit("a revision", func(s *appsv1.StatefulSet) { revise(&s.Spec.Template) }),
			edit("no replicas", func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(0)) }),
		},
	}
}
