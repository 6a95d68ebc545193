package extended

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Failures of pods and nodes, and versions that never ran.

// oneEnd returns a check for updates by ordinal. The moved ordinals are at one end without a gap,
// and at most one of them is not Ready: no other was moved out of order.
func oneEnd(set, version string, replicas int) func(map[types.UID]*corev1.Pod) error {
	return func(pods map[types.UID]*corev1.Pod) error {
		moved, unready := make([]bool, replicas), 0
		for _, p := range pods {
			if !ofSet(p, set) || p.Labels[v1alpha1.LabelVersion] != version {
				continue
			}
			var ordinal int
			if _, err := fmt.Sscan(p.Labels[v1alpha1.LabelPodOrdinal], &ordinal); err != nil {
				return fmt.Errorf("%s has no ordinal: %w", p.Name, err)
			}
			if moved[ordinal] = true; !kit.PodCondition(p, corev1.PodReady) {
				unready++
			}
		}
		edges := 0
		for i := 1; i < replicas; i++ {
			if moved[i] != moved[i-1] {
				edges++
			}
		}
		if edges > 1 || unready > 1 {
			return fmt.Errorf("ordinals %v are moved to version %s, %d of them not Ready: %s", moved, version, unready, roll(pods, set))
		}
		return nil
	}
}

// podDiesInUpgrade deletes a pod of each version while ordinals move.
func podDiesInUpgrade(ctx context.Context, c *kit.Cluster) {
	pods := c.LookOut(ctx)
	x := newFixture(c, "dies", 3, onClaims, patiently, minReady(4))
	x.create(ctx)
	apart, inOrder := pods.Hold(claimsApart), pods.Hold(oneEnd("dies", "2", 3))
	x.edit(ctx, inVersion("2"))
	x.triesNext(ctx)
	live := x.pods(ctx)
	// The pod at the other end is of the old version, and moves last.
	victim := live[x.child(1)+"-0"]
	if _, there := live[x.child(1)+"-0"]; !there {
		victim = live[x.child(1)+"-2"]
	}
	c.During("delete the pod that moves last", func() { c.Remove(ctx, &victim) })
	c.Until(ctx, victim.Name+" to be back in its version", func(ctx context.Context) {
		now := x.pods(ctx)
		p, there := now[victim.Name]
		c.Expect(there).To(BeTrue(), "it is not")
		c.Expect(p.UID).NotTo(Equal(victim.UID), "it is not")
	})
	for name, p := range live {
		if p.Labels[v1alpha1.LabelVersion] != "2" {
			continue
		}
		c.During(fmt.Sprintf("delete %s, which moved first", name), func() { c.Remove(ctx, &p) })
	}
	x.serves(ctx, 2)
	x.keptData(ctx)
	c.Check(apart.Kept())
	c.Check(inOrder.Kept())
}

// brokenStart corrects a version that never ran, and one that was rolled back, and scales at the
// same time.
func brokenStart(ctx context.Context, c *kit.Cluster) {
	// The bad revisions are updates that are corrected with two replicas.
	starts, updates := []int32{1, 2, 3}, []int32{1, 3}
	c.AtOnce(len(starts)+len(updates), func(own *kit.Cluster, i int) {
		if i < len(starts) {
			correctsStart(ctx, own, starts[i])
		} else {
			correctsUpdate(ctx, own, updates[i-len(starts)])
		}
	})
}

func correctsStart(ctx context.Context, c *kit.Cluster, size int32) {
	x := newFixture(c, fmt.Sprint("start-", size), 2, onClaims, patiently, running("exit 1"), func(s *v1alpha1.ExtendedStatefulSetSpec) { s.UpdateStrategy.UpdateNotReady = true })
	x.Put(ctx, x.set)
	x.tried(ctx)
	c.During(fmt.Sprintf("a failed start, corrected with %d replicas", size), func() {
		x.edit(ctx, inVersion("2"), running(keeper), scaled(size))
		x.serves(ctx, 2)
	})
}

func correctsUpdate(ctx context.Context, c *kit.Cluster, size int32) {
	x := newFixture(c, fmt.Sprint("update-", size), 2, onClaims, patiently)
	x.create(ctx)
	x.edit(ctx, inVersion("2"), running("exit 1"), watchFor(5*time.Second, 20*time.Second))
	x.takenBack(ctx, v1alpha1.PhaseStale, 1)
	c.During(fmt.Sprintf("a failed update, corrected with %d replicas", size), func() {
		x.edit(ctx, inVersion("3"), running(keeper), scaled(size), patiently)
		x.serves(ctx, 3)
		x.keptData(ctx)
	})
}

// tried waits until a container of the first version has failed.
func (x *fixture) tried(ctx context.Context) {
	x.Until(ctx, x.set.Name+" to fail", func(ctx context.Context) {
		pods := x.pods(ctx)
		for _, p := range pods {
			for _, s := range p.Status.ContainerStatuses {
				if s.RestartCount > 0 {
					return
				}
			}
		}
		x.Fail("it has not")
	})
}

// nodeDiesInUpgrade powers off the node of the first moved ordinal. The old pod must not be
// recreated before the new one is known to have ended.
func nodeDiesInUpgrade(ctx context.Context, c *kit.Cluster) {
	pods := c.LookOut(ctx)
	x := newFixture(c, "node", 2, onClaims, watchFor(15*time.Second, 5*time.Minute), apartOnNodes)
	x.create(ctx)
	apart := pods.Hold(claimsApart)
	x.edit(ctx, inVersion("2"), probed(notReady))
	x.triesNext(ctx)
	live := x.pods(ctx)
	var lost, other corev1.Pod
	for _, p := range live {
		if p.Labels[v1alpha1.LabelVersion] == "2" {
			lost = p
		} else if p.DeletionTimestamp == nil {
			other = p
		}
	}
	c.Expect(lost.Name).NotTo(BeEmpty(), "one ordinal should have moved, without another one on its node: %s and %s", lost.Name, other.Name)
	c.Expect(other.Name).NotTo(BeEmpty(), "one ordinal should have moved, without another one on its node: %s and %s", lost.Name, other.Name)
	c.Expect(lost.Spec.NodeName).NotTo(Equal(other.Spec.NodeName), "one ordinal should have moved, without another one on its node: %s and %s", lost.Name, other.Name)
	c.Log("power off %s, where %s runs", lost.Spec.NodeName, lost.Name)
	c.Check(c.Nodes.StopNode(lost.Spec.NodeName))
	func() {
		defer c.NodesReady(context.WithoutCancel(ctx))
		defer func() { c.Check(c.Nodes.StartNode(lost.Spec.NodeName)) }()
		x.says(ctx, "that it rolls the version back", func(s v1alpha1.ExtendedStatefulSetStatus) bool {
			return s.Phase == v1alpha1.PhaseStale || (s.Update != nil && s.Update.Returning)
		})
	}()
	x.takenBack(ctx, v1alpha1.PhaseStale, 1)
	c.Check(apart.Kept())
	x.keptData(ctx)
	now := x.pods(ctx)
	c.Expect(now[other.Name].UID).To(Equal(other.UID), "%s was replaced on another node", other.Name)
}

// apartOnNodes keeps the pods of a set on different nodes.
func apartOnNodes(s *v1alpha1.ExtendedStatefulSetSpec) {
	s.Template.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
		WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: s.Template.Spec.Selector.MatchLabels}}}
}
