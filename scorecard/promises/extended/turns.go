package extended

import (
	"context"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Upgrades that are interrupted by other changes.

// handovers are the two kinds of handover, and how many of 2 pods are always Ready.
var handovers = map[string]struct {
	shape  specChange
	budget int
}{"beside": {coexist, 2}, "ordinals": {onClaims, 1}}

// inUpgrade creates a set for each handover. It waits until version 2 of the set has a pod that is
// not Ready, and then calls next.
func inUpgrade(ctx context.Context, c *kit.Cluster, next func(x *fixture, good *v1alpha1.ExtendedStatefulSetSpec)) {
	pods := c.LookOut(ctx)
	apart := pods.Hold(claimsApart)
	for name, way := range handovers {
		x := newFixture(c, name, 2, way.shape, patiently)
		x.create(ctx)
		good := x.set.Spec.DeepCopy()
		capacity := pods.Hold(least(name, way.budget))
		x.edit(ctx, inVersion("2"), probed(notReady))
		x.triesNext(ctx)
		c.During("handover "+name, func() {
			next(x, good)
			c.Check(capacity.Kept())
		})
	}
	c.Check(apart.Kept())
}

// triesNext waits until a pod of version 2 runs.
func (x *fixture) triesNext(ctx context.Context) {
	x.Until(ctx, "a pod of version 2 to run", func(ctx context.Context) {
		pods := x.pods(ctx)
		for _, p := range pods {
			if p.Labels[v1alpha1.LabelVersion] == "2" && p.Status.Phase == corev1.PodRunning {
				return
			}
		}
		x.Read(ctx, x.set)
		x.Fail("none does: %s", describe(x.set))
	})
}

func supersedes(ctx context.Context, c *kit.Cluster) {
	inUpgrade(ctx, c, func(x *fixture, good *v1alpha1.ExtendedStatefulSetSpec) {
		next := func(s *v1alpha1.ExtendedStatefulSetSpec) { *s = *good.DeepCopy() }
		x.edit(ctx, next, inVersion("3"))
		x.serves(ctx, 3)
		x.Event(ctx, x.set, v1alpha1.EventSuperseded, "")
	})
}

// goesBack returns to version 1 while version 2 is rolled out. The number 2 is not used again.
func goesBack(ctx context.Context, c *kit.Cluster) {
	inUpgrade(ctx, c, func(x *fixture, good *v1alpha1.ExtendedStatefulSetSpec) {
		pods := x.pods(ctx)
		back := func(s *v1alpha1.ExtendedStatefulSetSpec) { *s = *good.DeepCopy() }
		x.edit(ctx, back)
		x.serves(ctx, 1)
		x.Expect(x.set.Status.VersionHighWater).To(BeNumerically("==", 2), "an ordinal was assigned: %s", describe(x.set))
		now := x.pods(ctx)
		name := x.child(1) + "-0"
		x.Expect(pods[name].UID != "" && now[name].UID != pods[name].UID).To(BeFalse(), "%s served all the time, and was replaced", name)
		x.edit(ctx, inVersion("3"))
		x.serves(ctx, 3)
	})
}
