package promises

import (
	"context"
	"fmt"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// replacesFirst drains the nodes of a set one after another, like kubectl drain: it cordons a node,
// and evicts the set's pods until none of them is left on it.
func replacesFirst(ctx context.Context, c *Cluster) {
	set := c.newSet(3, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.OnEviction = v1alpha1.EvictionReplacesFirst
		s.Spec.MinReadySeconds = 2
		s.Spec.Template.Spec.TopologySpreadConstraints = spread(s)
	})
	before := c.create(ctx, set)
	pods := c.lookOut(ctx)
	served := pods.hold(atLeastReady(3))
	for name, p := range before {
		c.Log("drain %s, where %s runs", p.Spec.NodeName, name)
		uncordon := func() { c.closed(context.WithoutCancel(ctx), p.Spec.NodeName, false) }
		c.Cleanup(uncordon)
		c.closed(ctx, p.Spec.NodeName, true)
		c.drain(ctx, set, p.Spec.NodeName)
		c.settle(ctx, set)
		uncordon()
		c.retained(ctx, &p, v1alpha1.RetainedScaled)
	}
	c.check(served.kept())
	after := c.settle(ctx, set)
	for name := range before {
		_, stayed := after[name]
		c.Expect(stayed).To(BeFalse(), "%s still exists", name)
	}
	c.Expect(set.Status.Lost).To(BeEmpty(), "members were lost")
	c.whole(ctx, set)
}

// drain evicts members until none is left on a node. At least one eviction must be refused.
func (c *Cluster) drain(ctx context.Context, set *v1alpha1.StatefulCluster, node string) {
	refused := 0
	c.until(ctx, "the drain of "+node, func(ctx context.Context) {
		left := 0
		for _, p := range c.allPods(ctx, set) {
			if p.Spec.NodeName != node {
				continue
			}
			left++
			if p.DeletionTimestamp != nil {
				continue
			}
			err := c.evict(ctx, &p)
			if apierrors.IsTooManyRequests(err) {
				refused++
			} else if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				c.check(err)
			}
		}
		c.Expect(left).To(BeZero(), "%d pods exist", left)
	})
	c.Log("%d evictions were refused until no member was on %s", refused, node)
	c.Expect(refused).To(BeNumerically(">", 0), "no eviction was refused")
}

// atLeastReady returns a check that at least that many pods are Ready and not terminating.
func atLeastReady(members int) func(map[types.UID]*corev1.Pod) error {
	return func(all map[types.UID]*corev1.Pod) error {
		ready := 0
		for _, p := range all {
			if p.DeletionTimestamp == nil && podCondition(p, corev1.PodReady) {
				ready++
			}
		}
		if ready < members {
			return fmt.Errorf("%d members are Ready, want at least %d", ready, members)
		}
		return nil
	}
}
