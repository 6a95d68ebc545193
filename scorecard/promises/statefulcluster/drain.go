package statefulcluster

import (
	"context"
	"fmt"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// replacesFirst drains the nodes of a set one after another, like kubectl drain: it cordons a node,
// and evicts the set's pods until none of them is left on it.
func replacesFirst(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 3, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.OnEviction = v1alpha1.EvictionReplacesFirst
		s.Spec.MinReadySeconds = 2
		s.Spec.Template.Spec.TopologySpreadConstraints = spread(s)
	})
	before := create(ctx, c, set)
	pods := c.LookOut(ctx)
	served := pods.Hold(atLeastReady(3))
	for name, p := range before {
		c.Log("drain %s, where %s runs", p.Spec.NodeName, name)
		uncordon := func() { c.Cordon(context.WithoutCancel(ctx), p.Spec.NodeName, false) }
		c.Cleanup(uncordon)
		c.Cordon(ctx, p.Spec.NodeName, true)
		drain(ctx, c, set, p.Spec.NodeName)
		settle(ctx, c, set)
		uncordon()
		retained(ctx, c, &p, v1alpha1.RetainedScaled)
	}
	c.Check(served.Kept())
	after := settle(ctx, c, set)
	for name := range before {
		_, stayed := after[name]
		c.Expect(stayed).To(BeFalse(), "%s still exists", name)
	}
	c.Expect(set.Status.Lost).To(BeEmpty(), "members were lost")
	whole(ctx, c, set)
}

// drain evicts members until none is left on a node. At least one eviction must be refused.
func drain(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster, node string) {
	refused := 0
	c.Until(ctx, "the drain of "+node, func(ctx context.Context) {
		left := 0
		for _, p := range allPods(ctx, c, set) {
			if p.Spec.NodeName != node {
				continue
			}
			left++
			if p.DeletionTimestamp != nil {
				continue
			}
			err := c.Evict(ctx, &p)
			if apierrors.IsTooManyRequests(err) {
				refused++
			} else if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				c.Check(err)
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
			if p.DeletionTimestamp == nil && kit.PodCondition(p, corev1.PodReady) {
				ready++
			}
		}
		if ready < members {
			return fmt.Errorf("%d members are Ready, want at least %d", ready, members)
		}
		return nil
	}
}
