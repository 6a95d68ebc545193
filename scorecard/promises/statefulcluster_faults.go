package promises

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

func deletion(ctx context.Context, c *Cluster) error {
	keeps, takes := c.newSet(1), c.newSet(1, func(s *v1alpha1.StatefulCluster) {
		s.Name = "takes"
		s.Spec.Selector.MatchLabels["app"], s.Spec.Template.Labels["app"] = "takes", "takes"
		s.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1alpha1.DeleteClaims
	})
	for _, set := range []*v1alpha1.StatefulCluster{keeps, takes} {
		if _, err := c.create(ctx, set); err != nil {
			return err
		}
		if err := c.Client.Delete(ctx, set); err != nil {
			return err
		}
	}
	return until(ctx, "pods and one claim to go", func(ctx context.Context) error {
		all, err := c.claims(ctx)
		if err != nil {
			return err
		}
		var pods corev1.PodList
		if err := c.Client.List(ctx, &pods, client.InNamespace(c.Namespace)); err != nil {
			return err
		}
		if len(pods.Items) > 0 || len(all) != 1 {
			return fmt.Errorf("%d pods and %d claims are left", len(pods.Items), len(all))
		}
		for name, claim := range all {
			if claim.Labels[v1alpha1.LabelRetained] != v1alpha1.RetainedDeleted {
				return fmt.Errorf("claim %s does not say why it is there", name)
			}
		}
		return nil
	})
}

func forceDeleted(ctx context.Context, c *Cluster) error {
	set := c.newSet(2)
	before, err := c.create(ctx, set)
	if err != nil {
		return err
	}
	victim := one(before)
	if err := c.Client.Delete(ctx, victim, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	if err := c.replaced(ctx, set, victim.Name); err != nil {
		return err
	}
	return errors.Join(c.retained(ctx, victim, v1alpha1.RetainedLost), c.whole(ctx, set))
}

// replaced waits until a member is gone and the set has settled without it.
func (c *Cluster) replaced(ctx context.Context, set *v1alpha1.StatefulCluster, name string) error {
	err := until(ctx, name+" to be replaced", func(ctx context.Context) error {
		live, err := c.members(ctx, set)
		if _, still := live[name]; still {
			return fmt.Errorf("%s is still a member", name)
		}
		return err
	})
	if err != nil {
		return err
	}
	live, err := c.settle(ctx, set)
	if _, back := live[name]; back {
		return fmt.Errorf("%s came back", name)
	}
	return err
}

// retained waits until a pod's claim says why it was set aside.
func (c *Cluster) retained(ctx context.Context, pod *corev1.Pod, why string) error {
	name := "diary-data-" + pod.Labels[v1alpha1.LabelMember]
	return until(ctx, "claim "+name+" to be set aside", func(ctx context.Context) error {
		all, err := c.claims(ctx)
		if err == nil && all[name].Labels[v1alpha1.LabelRetained] != why {
			err = fmt.Errorf("its label is %q", all[name].Labels[v1alpha1.LabelRetained])
		}
		return err
	})
}

// operatorDies kills the operator that holds the lease again and again while
// members are recreated.
func operatorDies(ctx context.Context, c *Cluster) error {
	set := c.newSet(4, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(1)) })
	before, err := c.create(ctx, set)
	if err != nil {
		return err
	}
	err = c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
		env := &s.Spec.Template.Spec.Containers[0].Env
		*env = append(*env, corev1.EnvVar{Name: "EDITED", Value: "yes"})
	})
	if err != nil {
		return err
	}
	for round := range 3 {
		err := until(ctx, "the next member to be recreated", func(ctx context.Context) error {
			err := c.Client.Get(ctx, client.ObjectKeyFromObject(set), set)
			ended := set.Status.ObservedGeneration == set.Generation && set.Status.UpdatedReplicas == 4
			if err == nil && len(set.Status.Updating) == 0 && !ended {
				err = errors.New(brief(set.Status))
			}
			return err
		})
		if err != nil {
			return err
		}
		c.Log("killing the operator, round %d, while %d members come back", round+1, len(set.Status.Updating))
		if err := c.killOperators(ctx); err != nil {
			return err
		}
	}
	after, err := c.settle(ctx, set)
	if err != nil {
		return err
	}
	for name, old := range before {
		if now, ok := after[name]; !ok || now.UID == old.UID {
			return fmt.Errorf("%s was not recreated under its name", name)
		}
	}
	all, err := c.claims(ctx)
	if err == nil && len(all) != 4 {
		err = fmt.Errorf("%d claims for 4 members", len(all))
	}
	return err
}

// killOperators ends all operator pods without grace.
func (c *Cluster) killOperators(ctx context.Context) error {
	return c.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(c.Operator.Namespace),
		client.MatchingLabels{"control-plane": "controller-manager"}, client.GracePeriodSeconds(0))
}

func outOfService(ctx context.Context, c *Cluster) error {
	set := c.newSet(2)
	before, err := c.create(ctx, set)
	if err != nil {
		return err
	}
	victim := one(before)
	taint := func(taints []corev1.Taint) error {
		return until(ctx, "the taint", func(ctx context.Context) error {
			var n corev1.Node
			if err := c.Client.Get(ctx, client.ObjectKey{Name: victim.Spec.NodeName}, &n); err != nil {
				return err
			}
			n.Spec.Taints = taints
			return c.Client.Update(ctx, &n)
		})
	}
	// The API server's clock says when.
	tainted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "tainted", Namespace: c.Namespace}}
	if err := c.Client.Create(ctx, tainted); err != nil {
		return err
	}
	err = taint([]corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}})
	if err == nil {
		err = c.replaced(ctx, set, victim.Name)
	}
	if err == nil {
		err = c.succeededSoon(ctx, set, before, tainted.CreationTimestamp.Time)
	}
	return errors.Join(err, taint(nil), c.whole(ctx, set))
}

// soon is how long a replacement may take from when it is due until it is created.
// It takes a second at most; a busy machine is slow, and what takes minutes is wrong.
const soon = 30 * time.Second

// succeededSoon checks that the first new member was created soon after a time.
// Where two were lost at once, the second waits for its turn.
func (c *Cluster) succeededSoon(ctx context.Context, set *v1alpha1.StatefulCluster, before map[string]corev1.Pod, due time.Time) error {
	all, err := c.allPods(ctx, set)
	if err != nil {
		return err
	}
	for name := range before {
		delete(all, name)
	}
	if len(all) == 0 {
		return errors.New("there is no new member")
	}
	var first time.Time
	for _, p := range all {
		if first.IsZero() || p.CreationTimestamp.Time.Before(first) {
			first = p.CreationTimestamp.Time
		}
	}
	if late := first.Sub(due); late > soon {
		return fmt.Errorf("the first new member was created %s after it was due", late)
	}
	return nil
}

func nodeCut(ctx context.Context, c *Cluster) error {
	set := c.newSet(3, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.NodeLostSeconds = new(int32(5))
		s.Spec.Template.Spec.TopologySpreadConstraints = spread(s)
	})
	before, err := c.create(ctx, set)
	if err != nil {
		return err
	}
	victim := one(before)
	pods, err := c.lookOut(ctx)
	if err != nil {
		return err
	}
	defer pods.stop()
	most := pods.hold(atMostOneMore(3))
	c.Log("cutting off %s, where %s runs; Kubernetes takes a while to notice", victim.Spec.NodeName, victim.Name)
	if err := c.Nodes.Cut(victim.Spec.NodeName); err != nil {
		return err
	}
	healed := false
	heal := func() error {
		if healed {
			return nil
		}
		healed = true
		return c.Nodes.Heal(victim.Spec.NodeName)
	}
	defer func() { _ = heal() }()
	if err := c.replaced(ctx, set, victim.Name); err != nil {
		return err
	}
	all, err := c.allPods(ctx, set)
	if err != nil {
		return err
	}
	if _, hangs := all[victim.Name]; !hangs || len(all) > 4 {
		return fmt.Errorf("the lost pod should hang and nothing else: %d pods", len(all))
	}
	turned, err := c.turnedNotReady(ctx, victim.Spec.NodeName)
	if err != nil {
		return err
	}
	if err := c.succeededSoon(ctx, set, before, turned.Add(5*time.Second)); err != nil {
		return err
	}
	c.Log("healing %s; the lost pod must go", victim.Spec.NodeName)
	if err := heal(); err != nil {
		return err
	}
	err = until(ctx, "the lost pod to go", func(ctx context.Context) error {
		all, err := c.allPods(ctx, set)
		if _, hangs := all[victim.Name]; hangs {
			return fmt.Errorf("%s is still there", victim.Name)
		}
		if len(all) > 3 {
			return fmt.Errorf("%d pods", len(all))
		}
		return err
	})
	return errors.Join(err, most.kept(), c.nodesReady(ctx), c.retained(ctx, victim, v1alpha1.RetainedLost), c.whole(ctx, set))
}

// atMostOneMore is the rule that a set has that many pods at most, and beside them
// one that is lost and goes.
func atMostOneMore(members int) func(map[types.UID]*corev1.Pod) error {
	return func(all map[types.UID]*corev1.Pod) error {
		alive := 0
		for _, p := range all {
			if p.DeletionTimestamp == nil {
				alive++
			}
		}
		if alive > members || len(all) > members+1 {
			return fmt.Errorf("%d pods, %d of them nobody deleted", len(all), alive)
		}
		return nil
	}
}

// turnedNotReady is when the Node's Ready condition turned.
func (c *Cluster) turnedNotReady(ctx context.Context, name string) (time.Time, error) {
	var n corev1.Node
	if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, &n); err != nil {
		return time.Time{}, err
	}
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return condition.LastTransitionTime.Time, nil
		}
	}
	return time.Time{}, fmt.Errorf("node %s is Ready", name)
}

// spread puts members on different nodes where it can.
func spread(s *v1alpha1.StatefulCluster) []corev1.TopologySpreadConstraint {
	return []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
		WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: s.Spec.Selector}}
}

func halfLost(ctx context.Context, c *Cluster) error {
	set := c.newSet(4, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.NodeLostSeconds = new(int32(5))
		s.Spec.Template.Spec.TopologySpreadConstraints = spread(s)
		s.Spec.Template.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.DoNotSchedule
	})
	before, err := c.create(ctx, set)
	if err != nil {
		return err
	}
	// What cannot start keeps its slot: the new members ask for too much.
	err = c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
		s.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategy
		s.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("900Gi")
	})
	if err != nil {
		return err
	}
	var cut []string
	for _, p := range before {
		if len(cut) < 2 {
			cut = append(cut, p.Spec.NodeName)
		}
	}
	healed := func() error {
		var all error
		for _, n := range cut {
			all = errors.Join(all, c.Nodes.Heal(n))
		}
		return all
	}
	defer func() { _ = healed() }()
	for _, n := range cut {
		if err := c.Nodes.Cut(n); err != nil {
			return err
		}
	}
	c.Log("cut off %v, half of the nodes that members run on", cut)
	if err := c.degraded(ctx, set, v1alpha1.ReasonReplacementHeld); err != nil {
		return err
	}
	if err := sleep(ctx, 15*time.Second); err != nil { // it must stay so for a while
		return err
	}
	live, err := c.members(ctx, set)
	if err != nil {
		return err
	}
	kept := 0
	for name := range before {
		if _, still := live[name]; still {
			kept++
		}
	}
	if kept != 3 {
		return fmt.Errorf("%d of 4 members were kept; one at a time may be replaced", kept)
	}
	if err := healed(); err != nil {
		return err
	}
	return c.nodesReady(ctx)
}

// nodesReady waits until every Node is Ready.
func (c *Cluster) nodesReady(ctx context.Context) error {
	return until(ctx, "all nodes to be Ready", func(ctx context.Context) error {
		var nodes corev1.NodeList
		if err := c.Client.List(ctx, &nodes); err != nil {
			return err
		}
		for _, n := range nodes.Items {
			for _, condition := range n.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
					return fmt.Errorf("%s is not Ready", n.Name)
				}
			}
		}
		return nil
	})
}
