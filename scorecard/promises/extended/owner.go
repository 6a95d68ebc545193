package extended

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Deletion of an object that is an owner of the user's objects.

// userObjects creates the objects that a set references. The first of them has another owner too.
func userObjects(ctx context.Context, c *kit.Cluster) map[string]client.Object {
	createObjects(ctx, c)
	boss := newObject(c, "boss", "")
	c.Put(ctx, boss)
	made := map[string]client.Object{}
	for _, name := range []string{byEnv, byEnvFrom, byVolume, projected} {
		object := newObject(c, name, "")
		kit.Change(ctx, c, object, func(o client.Object) {
			if name == byEnv {
				o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: boss.GetName(), UID: boss.GetUID()}})
			}
		})
		made[name] = object
	}
	return made
}

// ownedByBoss checks that the other owner reference still exists.
func ownedByBoss(ctx context.Context, c *kit.Cluster) {
	object := newObject(c, byEnv, "")
	c.Read(ctx, object)
	c.Expect(slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Name == "boss" })).To(BeTrue(), "an owner reference of another client should be kept: %+v", object.GetOwnerReferences())
}

// deletionSpares deletes sets with each of the three propagation policies. All sets use the same
// objects, as users share them.
func deletionSpares(ctx context.Context, c *kit.Cluster) {
	objects := userObjects(ctx, c)
	for round, way := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		x := newFixture(c, fmt.Sprint("owner-", round), 1, patiently, configured(v1alpha1.TrackByOwnerReference))
		x.create(ctx)
		for name := range objects {
			x.tracked(ctx, name, true)
		}
		x.Read(ctx, x.set)
		c.Expect(x.set.Finalizers).To(ContainElement(v1alpha1.Finalizer), "the set has finalizers %v", x.set.Finalizers)
		c.During(fmt.Sprintf("deletion %s", way), func() {
			c.Remove(ctx, x.set, client.PropagationPolicy(way))
			c.Gone(ctx, x.set)
			if way != metav1.DeletePropagationOrphan {
				x.empty(ctx)
			}
			x.spared(ctx, objects)
			ownedByBoss(ctx, c)
		})
	}
	untracks(ctx, c, objects)
}

// untracks drops a reference, then the tracking, and then updateOnEnvChange.
func untracks(ctx context.Context, c *kit.Cluster, objects map[string]client.Object) {
	x := newFixture(c, "untracks", 1, patiently, configured(v1alpha1.TrackByOwnerReference))
	x.create(ctx)
	x.tracked(ctx, byEnvFrom, true)
	drop := func(s *v1alpha1.ExtendedStatefulSetSpec) { keeperOf(s).EnvFrom = nil }
	x.edit(ctx, drop)
	x.serves(ctx, 2)
	x.tracked(ctx, byEnvFrom, false)
	x.tracked(ctx, byVolume, true)
	x.edit(ctx, func(s *v1alpha1.ExtendedStatefulSetSpec) { s.UpdateOnEnvChange = false })
	x.spared(ctx, objects)
	x.serves(ctx, 2)
	c.Until(ctx, "the finalizer to be removed", func(ctx context.Context) {
		x.Read(ctx, x.set)
		c.Expect(x.set.Finalizers).To(BeEmpty(), "there are %v", x.set.Finalizers)
	})
}

func trackedNamespaceDeleted(ctx context.Context, c *kit.Cluster) {
	other := c.Another(ctx)
	createObjects(ctx, other)
	x := newFixture(other, "leaving", 1, patiently, configured(v1alpha1.TrackByOwnerReference), onClaims)
	x.create(ctx)
	x.tracked(ctx, byEnv, true)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.Namespace}}
	c.Read(ctx, ns)
	c.Remove(ctx, ns)
	c.Gone(ctx, ns)
}
