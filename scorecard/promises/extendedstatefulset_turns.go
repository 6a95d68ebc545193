package promises

import (
	"context"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// Upgrades that are interrupted by other changes.

// handovers are the two kinds of handover, and how many of 2 pods are always Ready.
var handovers = map[string]struct {
	shape  extendedChange
	budget int
}{"beside": {coexist, 2}, "ordinals": {onClaims, 1}}

// inUpgrade creates a set for each handover. It waits until version 2 of the set has a pod that is
// not Ready, and then calls next.
func (c *Cluster) inUpgrade(ctx context.Context, next func(x *extended, good *v1alpha1.ExtendedStatefulSetSpec)) {
	pods := c.lookOut(ctx)
	apart := pods.hold(claimsApart)
	for name, way := range handovers {
		x := c.extended(name, 2, way.shape, patiently)
		x.create(ctx)
		good := x.set.Spec.DeepCopy()
		capacity := pods.hold(least(name, way.budget))
		x.edit(ctx, inVersion("2"), probed(notReady))
		x.triesNext(ctx)
		c.during("handover "+name, func() {
			next(x, good)
			c.check(capacity.kept())
		})
	}
	c.check(apart.kept())
}

// triesNext waits until a pod of version 2 runs.
func (x *extended) triesNext(ctx context.Context) {
	x.until(ctx, "a pod of version 2 to run", func(ctx context.Context) {
		pods := x.pods(ctx)
		for _, p := range pods {
			if p.Labels[v1alpha1.LabelVersion] == "2" && p.Status.Phase == corev1.PodRunning {
				return
			}
		}
		x.read(ctx, x.set)
		x.fail("none does: %s", tellExtended(x.set))
	})
}

func supersedes(ctx context.Context, c *Cluster) {
	c.inUpgrade(ctx, func(x *extended, good *v1alpha1.ExtendedStatefulSetSpec) {
		next := func(s *v1alpha1.ExtendedStatefulSetSpec) { *s = *good.DeepCopy() }
		x.edit(ctx, next, inVersion("3"))
		x.serves(ctx, 3)
		x.event(ctx, x.set, v1alpha1.EventSuperseded, "")
	})
}

// goesBack returns to version 1 while version 2 is rolled out. The number 2 is not used again.
func goesBack(ctx context.Context, c *Cluster) {
	c.inUpgrade(ctx, func(x *extended, good *v1alpha1.ExtendedStatefulSetSpec) {
		pods := x.pods(ctx)
		back := func(s *v1alpha1.ExtendedStatefulSetSpec) { *s = *good.DeepCopy() }
		x.edit(ctx, back)
		x.serves(ctx, 1)
		x.Expect(x.set.Status.VersionHighWater).To(BeNumerically("==", 2), "an ordinal was assigned: %s", tellExtended(x.set))
		now := x.pods(ctx)
		name := x.child(1) + "-0"
		x.Expect(pods[name].UID != "" && now[name].UID != pods[name].UID).To(BeFalse(), "%s served all the time, and was replaced", name)
		x.edit(ctx, inVersion("3"))
		x.serves(ctx, 3)
	})
}
