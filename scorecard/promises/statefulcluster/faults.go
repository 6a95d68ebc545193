package statefulcluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

func deletion(ctx context.Context, c *kit.Cluster) {
	keeps, takes := newSet(c, 1), newSet(c, 1, func(s *v1alpha1.StatefulCluster) {
		s.Name = "takes"
		s.Spec.Selector.MatchLabels["app"], s.Spec.Template.Labels["app"] = "takes", "takes"
		s.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1alpha1.DeleteClaims
	})
	for _, set := range []*v1alpha1.StatefulCluster{keeps, takes} {
		create(ctx, c, set)
		c.Remove(ctx, set)
	}
	c.Until(ctx, "pods and one claim to be deleted", func(ctx context.Context) {
		all := c.Claims(ctx)
		var pods corev1.PodList
		c.List(ctx, &pods, client.InNamespace(c.Namespace))
		c.Expect(pods.Items).To(BeEmpty(), "%d pods and %d claims are left", len(pods.Items), len(all))
		c.Expect(all).To(HaveLen(1), "%d pods and %d claims are left", len(pods.Items), len(all))
		for name, claim := range all {
			c.Expect(claim.Labels[v1alpha1.LabelRetained]).To(Equal(v1alpha1.RetainedDeleted), "claim %s does not state why it exists", name)
		}
	})
}

func forceDeleted(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 2)
	before := create(ctx, c, set)
	victim := one(before)
	c.Remove(ctx, victim, client.GracePeriodSeconds(0))
	replaced(ctx, c, set, victim.Name)
	retained(ctx, c, victim, v1alpha1.RetainedLost)
	whole(ctx, c, set)
}

// operatorDies repeatedly kills the operator that holds the lease while members are recreated.
func operatorDies(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 4, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(1)) })
	before := create(ctx, c, set)
	edit(ctx, c, set, func(s *v1alpha1.StatefulCluster) {
		env := &s.Spec.Template.Spec.Containers[0].Env
		*env = append(*env, corev1.EnvVar{Name: "EDITED", Value: "yes"})
	})
	for round := range 3 {
		c.Until(ctx, "the next member to be recreated", func(ctx context.Context) {
			c.Read(ctx, set)
			ended := set.Status.ObservedGeneration == set.Generation && set.Status.UpdatedReplicas == 4
			c.Expect(len(set.Status.Updating) == 0 && !ended).To(BeFalse(), "%s", describe(set.Status))
		})
		c.Log("kill the operator, round %d, while %d members return", round+1, len(set.Status.Updating))
		c.KillOperators(ctx)
	}
	after := settle(ctx, c, set)
	for name, old := range before {
		now, ok := after[name]
		c.Expect(ok).To(BeTrue(), "%s was not recreated under its name", name)
		c.Expect(now.UID).NotTo(Equal(old.UID), "%s was not recreated under its name", name)
	}
	all := c.Claims(ctx)
	c.Expect(len(all)).To(Equal(4), "%d claims for 4 members", len(all))
}

func outOfService(ctx context.Context, c *kit.Cluster) {
	// The taint evicts the operator too. An operator that starts after the members are gone does
	// not know the reason, and recreates them on their claims.
	away := slices.DeleteFunc(c.Schedulable(ctx), func(name string) bool { return name == c.Leader(ctx).Spec.NodeName })
	set := newSet(c, 2, func(s *v1alpha1.StatefulCluster) { kit.OnNodes(away...)(&s.Spec.Template) })
	before := create(ctx, c, set)
	victim := one(before)
	taint := func(ctx context.Context, taints ...corev1.Taint) {
		kit.Change(ctx, c, kit.Node(victim.Spec.NodeName), func(n *corev1.Node) { n.Spec.Taints = taints })
	}
	c.Cleanup(func() { taint(context.WithoutCancel(ctx)) })
	// Use the API server's clock for the time of the taint.
	tainted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "tainted", Namespace: c.Namespace}}
	c.Put(ctx, tainted)
	taint(ctx, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	replaced(ctx, c, set, victim.Name)
	succeededSoon(ctx, c, set, before, tainted.CreationTimestamp.Time)
	taint(ctx)
	whole(ctx, c, set)
}

// soon is the max time between the moment when a replacement is due and its creation. It normally
// takes a second. The limit allows for a busy machine.
const soon = 30 * time.Second

// succeededSoon checks that the first new member was created soon after a time. If two members were
// lost at once, the second replacement waits for the first.
func succeededSoon(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster, before map[string]corev1.Pod, due time.Time) {
	all := allPods(ctx, c, set)
	for name := range before {
		delete(all, name)
	}
	c.Expect(all).NotTo(BeEmpty(), "no new member exists")
	var first time.Time
	for _, p := range all {
		if first.IsZero() || p.CreationTimestamp.Time.Before(first) {
			first = p.CreationTimestamp.Time
		}
	}
	late := first.Sub(due)
	c.Expect(late).To(BeNumerically("<=", soon), "the first new member was created %s after it was due", late)
}

func nodeCut(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 3, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.NodeLostSeconds = new(int32(5))
		s.Spec.Template.Spec.TopologySpreadConstraints = spread(s)
	})
	before := create(ctx, c, set)
	victim := one(before)
	pods := c.LookOut(ctx)
	most := pods.Hold(atMostOneMore(3))
	c.Log("cut off %s, where %s runs; Kubernetes notices it after a while", victim.Spec.NodeName, victim.Name)
	heal := c.Cut(victim.Spec.NodeName)
	replaced(ctx, c, set, victim.Name)
	all := allPods(ctx, c, set)
	_, hangs := all[victim.Name]
	c.Expect(hangs).To(BeTrue(), "only the lost pod should hang: %d pods", len(all))
	c.Expect(len(all)).To(BeNumerically("<=", 4), "only the lost pod should hang: %d pods", len(all))
	turned := turnedNotReady(ctx, c, victim.Spec.NodeName)
	succeededSoon(ctx, c, set, before, turned.Add(5*time.Second))
	c.Log("reconnect %s; the lost pod must be deleted", victim.Spec.NodeName)
	heal()
	c.Until(ctx, "the lost pod to be deleted", func(ctx context.Context) {
		all := allPods(ctx, c, set)
		_, hangs := all[victim.Name]
		c.Expect(hangs).To(BeFalse(), "%s still exists", victim.Name)
		c.Expect(len(all)).To(BeNumerically("<=", 3), "%d pods", len(all))
	})
	c.Check(most.Kept())
	c.NodesReady(ctx)
	retained(ctx, c, victim, v1alpha1.RetainedLost)
	whole(ctx, c, set)
}

// atMostOneMore returns a check that a set has at most that many pods, and at most one lost pod in
// addition that is terminating.
func atMostOneMore(members int) func(map[types.UID]*corev1.Pod) error {
	return func(all map[types.UID]*corev1.Pod) error {
		alive := 0
		for _, p := range all {
			if p.DeletionTimestamp == nil {
				alive++
			}
		}
		if alive > members || len(all) > members+1 {
			return fmt.Errorf("%d pods, %d of them without a deletionTimestamp", len(all), alive)
		}
		return nil
	}
}

// turnedNotReady returns when the Node's Ready condition changed to not True.
func turnedNotReady(ctx context.Context, c *kit.Cluster, name string) time.Time {
	var n corev1.Node
	c.Check(c.Client.Get(ctx, client.ObjectKey{Name: name}, &n))
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	c.Fail("node %s is Ready", name)
	return time.Time{}
}

func halfLost(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 4, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.NodeLostSeconds = new(int32(5))
		s.Spec.Template.Spec.TopologySpreadConstraints = spread(s)
		s.Spec.Template.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.DoNotSchedule
	})
	before := create(ctx, c, set)
	// A member that cannot start keeps its slot: the new members request too much memory.
	edit(ctx, c, set, func(s *v1alpha1.StatefulCluster) {
		s.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategy
		s.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("900Gi")
	})
	var cut []string
	for _, p := range before {
		if len(cut) < 2 {
			cut = append(cut, p.Spec.NodeName)
		}
	}
	heal := c.Cut(cut...)
	c.Log("cut off %v, half of the nodes that members run on", cut)
	degraded(ctx, c, set, v1alpha1.ReasonReplacementHeld)
	kit.Sleep(ctx, 15*time.Second) // it must stay so for a while
	live := members(ctx, c, set)
	for name := range before {
		if _, still := live[name]; !still {
			delete(before, name)
		}
	}
	c.Expect(len(before)).To(Equal(3), "this number of 4 members was kept; one at a time may be replaced")
	heal()
	c.NodesReady(ctx)
}

func pendingIsReplaced(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 1, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.PendingSeconds = new(int32(2))
		s.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategy
	})
	create(ctx, c, set)
	// A second member of the proven revision cannot be scheduled.
	var nodes corev1.NodeList
	c.List(ctx, &nodes)
	uncordon := sync.OnceFunc(func() { c.CordonAll(context.WithoutCancel(ctx), nodes.Items, false) })
	c.Cleanup(uncordon)
	c.CordonAll(ctx, nodes.Items, true)
	edit(ctx, c, set, func(s *v1alpha1.StatefulCluster) { *s.Spec.Replicas = 2 })
	var stuck string
	c.Until(ctx, "a member that waits for a node to be replaced", func(ctx context.Context) {
		c.Read(ctx, set)
		for _, l := range set.Status.Lost {
			if l.Reason == v1alpha1.LossPending {
				stuck = l.Name
				return
			}
		}
		c.Fail("status.lost is %v", set.Status.Lost)
	})
	uncordon()
	live := settle(ctx, c, set)
	_, back := live[stuck]
	c.Expect(back).To(BeFalse(), "%s returned", stuck)
}
