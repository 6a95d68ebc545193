package promises

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

func deletion(ctx context.Context, c *Cluster) {
	keeps, takes := c.newSet(1), c.newSet(1, func(s *v1alpha1.StatefulCluster) {
		s.Name = "takes"
		s.Spec.Selector.MatchLabels["app"], s.Spec.Template.Labels["app"] = "takes", "takes"
		s.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1alpha1.DeleteClaims
	})
	for _, set := range []*v1alpha1.StatefulCluster{keeps, takes} {
		c.create(ctx, set)
		c.remove(ctx, set)
	}
	c.until(ctx, "pods and one claim to be deleted", func(ctx context.Context) {
		all := c.claims(ctx)
		var pods corev1.PodList
		c.list(ctx, &pods, client.InNamespace(c.Namespace))
		c.Expect(pods.Items).To(BeEmpty(), "%d pods and %d claims are left", len(pods.Items), len(all))
		c.Expect(all).To(HaveLen(1), "%d pods and %d claims are left", len(pods.Items), len(all))
		for name, claim := range all {
			c.Expect(claim.Labels[v1alpha1.LabelRetained]).To(Equal(v1alpha1.RetainedDeleted), "claim %s does not state why it exists", name)
		}
	})
}

func forceDeleted(ctx context.Context, c *Cluster) {
	set := c.newSet(2)
	before := c.create(ctx, set)
	victim := one(before)
	c.remove(ctx, victim, client.GracePeriodSeconds(0))
	c.replaced(ctx, set, victim.Name)
	c.retained(ctx, victim, v1alpha1.RetainedLost)
	c.whole(ctx, set)
}

// replaced waits until a member is deleted and the set has settled without it.
func (c *Cluster) replaced(ctx context.Context, set *v1alpha1.StatefulCluster, name string) {
	c.until(ctx, name+" to be replaced", func(ctx context.Context) {
		live := c.members(ctx, set)
		_, still := live[name]
		c.Expect(still).To(BeFalse(), "%s is still a member", name)
	})
	live := c.settle(ctx, set)
	_, back := live[name]
	c.Expect(back).To(BeFalse(), "%s returned", name)
}

// retained waits until the label of a pod's claim has the reason for which it was set aside.
func (c *Cluster) retained(ctx context.Context, pod *corev1.Pod, why string) {
	name := "diary-data-" + pod.Labels[v1alpha1.LabelMember]
	c.until(ctx, "claim "+name+" to be set aside", func(ctx context.Context) {
		all := c.claims(ctx)
		c.Expect(all[name].Labels[v1alpha1.LabelRetained]).To(Equal(why), "its label is %q", all[name].Labels[v1alpha1.LabelRetained])
	})
}

// operatorDies repeatedly kills the operator that holds the lease while members are recreated.
func operatorDies(ctx context.Context, c *Cluster) {
	set := c.newSet(4, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(1)) })
	before := c.create(ctx, set)
	c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
		env := &s.Spec.Template.Spec.Containers[0].Env
		*env = append(*env, corev1.EnvVar{Name: "EDITED", Value: "yes"})
	})
	for round := range 3 {
		c.until(ctx, "the next member to be recreated", func(ctx context.Context) {
			c.read(ctx, set)
			ended := set.Status.ObservedGeneration == set.Generation && set.Status.UpdatedReplicas == 4
			c.Expect(len(set.Status.Updating) == 0 && !ended).To(BeFalse(), "%s", brief(set.Status))
		})
		c.Log("kill the operator, round %d, while %d members return", round+1, len(set.Status.Updating))
		c.killOperators(ctx)
	}
	after := c.settle(ctx, set)
	for name, old := range before {
		now, ok := after[name]
		c.Expect(ok).To(BeTrue(), "%s was not recreated under its name", name)
		c.Expect(now.UID).NotTo(Equal(old.UID), "%s was not recreated under its name", name)
	}
	all := c.claims(ctx)
	c.Expect(len(all)).To(Equal(4), "%d claims for 4 members", len(all))
}

// killOperators deletes all operator pods without grace period.
func (c *Cluster) killOperators(ctx context.Context) {
	c.check(c.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(c.Operator.Namespace),
		c.operatorPods(), client.GracePeriodSeconds(0)))
}

func outOfService(ctx context.Context, c *Cluster) {
	// The taint evicts the operator too. An operator that starts after the members are gone does
	// not know the reason, and recreates them on their claims.
	away := slices.DeleteFunc(c.schedulable(ctx), func(name string) bool { return name == c.leader(ctx).Spec.NodeName })
	set := c.newSet(2, func(s *v1alpha1.StatefulCluster) { onNodes(away...)(&s.Spec.Template) })
	before := c.create(ctx, set)
	victim := one(before)
	taint := func(ctx context.Context, taints ...corev1.Taint) {
		change(ctx, c, node(victim.Spec.NodeName), func(n *corev1.Node) { n.Spec.Taints = taints })
	}
	c.Cleanup(func() { taint(context.WithoutCancel(ctx)) })
	// Use the API server's clock for the time of the taint.
	tainted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "tainted", Namespace: c.Namespace}}
	c.put(ctx, tainted)
	taint(ctx, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	c.replaced(ctx, set, victim.Name)
	c.succeededSoon(ctx, set, before, tainted.CreationTimestamp.Time)
	taint(ctx)
	c.whole(ctx, set)
}

// soon is the max time between the moment when a replacement is due and its creation. It normally
// takes a second. The limit allows for a busy machine.
const soon = 30 * time.Second

// succeededSoon checks that the first new member was created soon after a time. If two members were
// lost at once, the second replacement waits for the first.
func (c *Cluster) succeededSoon(ctx context.Context, set *v1alpha1.StatefulCluster, before map[string]corev1.Pod, due time.Time) {
	all := c.allPods(ctx, set)
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

func nodeCut(ctx context.Context, c *Cluster) {
	set := c.newSet(3, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.NodeLostSeconds = new(int32(5))
		s.Spec.Template.Spec.TopologySpreadConstraints = spread(s)
	})
	before := c.create(ctx, set)
	victim := one(before)
	pods := c.lookOut(ctx)
	most := pods.hold(atMostOneMore(3))
	c.Log("cut off %s, where %s runs; Kubernetes notices it after a while", victim.Spec.NodeName, victim.Name)
	heal := c.cut(victim.Spec.NodeName)
	c.replaced(ctx, set, victim.Name)
	all := c.allPods(ctx, set)
	_, hangs := all[victim.Name]
	c.Expect(hangs).To(BeTrue(), "only the lost pod should hang: %d pods", len(all))
	c.Expect(len(all)).To(BeNumerically("<=", 4), "only the lost pod should hang: %d pods", len(all))
	turned := c.turnedNotReady(ctx, victim.Spec.NodeName)
	c.succeededSoon(ctx, set, before, turned.Add(5*time.Second))
	c.Log("reconnect %s; the lost pod must be deleted", victim.Spec.NodeName)
	heal()
	c.until(ctx, "the lost pod to be deleted", func(ctx context.Context) {
		all := c.allPods(ctx, set)
		_, hangs := all[victim.Name]
		c.Expect(hangs).To(BeFalse(), "%s still exists", victim.Name)
		c.Expect(len(all)).To(BeNumerically("<=", 3), "%d pods", len(all))
	})
	c.check(most.kept())
	c.nodesReady(ctx)
	c.retained(ctx, victim, v1alpha1.RetainedLost)
	c.whole(ctx, set)
}

// cut disconnects nodes from the network until heal is called, at the latest at the end.
func (c *Cluster) cut(nodes ...string) (heal func()) {
	var off []string
	heal = func() {
		var err error
		for _, name := range off {
			err = errors.Join(err, c.Nodes.Heal(name))
		}
		off = nil
		c.check(err)
	}
	c.Cleanup(heal)
	for _, name := range nodes {
		off = append(off, name)
		c.check(c.Nodes.Cut(name))
	}
	return heal
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
func (c *Cluster) turnedNotReady(ctx context.Context, name string) time.Time {
	var n corev1.Node
	c.check(c.Client.Get(ctx, client.ObjectKey{Name: name}, &n))
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	c.fail("node %s is Ready", name)
	return time.Time{}
}

// spread returns constraints that prefer different nodes for the members.
func spread(s *v1alpha1.StatefulCluster) []corev1.TopologySpreadConstraint {
	return []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
		WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: s.Spec.Selector}}
}

func halfLost(ctx context.Context, c *Cluster) {
	set := c.newSet(4, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.NodeLostSeconds = new(int32(5))
		s.Spec.Template.Spec.TopologySpreadConstraints = spread(s)
		s.Spec.Template.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.DoNotSchedule
	})
	before := c.create(ctx, set)
	// A member that cannot start keeps its slot: the new members request too much memory.
	c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
		s.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategy
		s.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("900Gi")
	})
	var cut []string
	for _, p := range before {
		if len(cut) < 2 {
			cut = append(cut, p.Spec.NodeName)
		}
	}
	heal := c.cut(cut...)
	c.Log("cut off %v, half of the nodes that members run on", cut)
	c.degraded(ctx, set, v1alpha1.ReasonReplacementHeld)
	sleep(ctx, 15*time.Second) // it must stay so for a while
	live := c.members(ctx, set)
	for name := range before {
		if _, still := live[name]; !still {
			delete(before, name)
		}
	}
	c.Expect(len(before)).To(Equal(3), "this number of 4 members was kept; one at a time may be replaced")
	heal()
	c.nodesReady(ctx)
}

// nodesReady waits until every Node is Ready.
func (c *Cluster) nodesReady(ctx context.Context) {
	c.until(ctx, "all nodes to be Ready", func(ctx context.Context) {
		var nodes corev1.NodeList
		c.list(ctx, &nodes)
		for _, n := range nodes.Items {
			for _, condition := range n.Status.Conditions {
				c.Expect(condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue).To(BeFalse(), "%s is not Ready", n.Name)
			}
		}
	})
}
