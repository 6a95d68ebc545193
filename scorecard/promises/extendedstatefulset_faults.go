package promises

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// Pods and nodes that die, and versions that never ran.

// oneEnd holds that the ordinals of a version are those at one end, without a gap,
// and that at most one of them is not Ready: no other was moved out of order.
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
			if moved[ordinal] = true; !podCondition(p, corev1.PodReady) {
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
func podDiesInUpgrade(ctx context.Context, c *Cluster) error {
	pods, err := c.lookOut(ctx)
	if err != nil {
		return err
	}
	defer pods.stop()
	x := c.extended("dies", 3, onClaims, patiently, minReady(4))
	if err := x.create(ctx); err != nil {
		return err
	}
	apart, inOrder := pods.hold(claimsApart), pods.hold(oneEnd("dies", "2", 3))
	if err := errors.Join(x.edit(ctx, inVersion("2")), x.triesNext(ctx)); err != nil {
		return err
	}
	live, err := x.pods(ctx)
	if err != nil {
		return err
	}
	// The one at the other end is of the old version, and moves last.
	victim := live[x.child(1)+"-0"]
	if _, there := live[x.child(1)+"-0"]; !there {
		victim = live[x.child(1)+"-2"]
	}
	if err := c.Client.Delete(ctx, &victim); err != nil {
		return fmt.Errorf("deleting the pod that moves last: %w", err)
	}
	if err := until(ctx, victim.Name+" to be back in its version", func(ctx context.Context) error {
		now, err := x.pods(ctx)
		if p, there := now[victim.Name]; err == nil && (!there || p.UID == victim.UID) {
			err = errors.New("it is not")
		}
		return err
	}); err != nil {
		return err
	}
	for name, p := range live {
		if p.Labels[v1alpha1.LabelVersion] != "2" {
			continue
		}
		if err := c.Client.Delete(ctx, &p); err != nil {
			return fmt.Errorf("deleting %s, which moved first: %w", name, err)
		}
	}
	return errors.Join(x.serves(ctx, 2), x.keptData(ctx), apart.kept(), inOrder.kept())
}

// brokenStart corrects a version that never ran, and one that was taken back, and
// scales at the same time.
func brokenStart(ctx context.Context, c *Cluster) error {
	var all errgroup.Group
	for _, size := range []int32{1, 2, 3} {
		all.Go(func() error {
			x := c.extended(fmt.Sprint("start-", size), 2, onClaims, patiently, running("exit 1"), func(s *v1alpha1.ExtendedStatefulSetSpec) { s.UpdateStrategy.UpdateNotReady = true })
			if err := errors.Join(c.Client.Create(ctx, x.set), x.tried(ctx)); err != nil {
				return err
			}
			if err := errors.Join(x.edit(ctx, inVersion("2"), running(keeper), scaled(size)), x.serves(ctx, 2)); err != nil {
				return fmt.Errorf("a broken start, corrected with %d replicas: %w", size, err)
			}
			return nil
		})
		if size == 2 {
			continue // the bad revisions are corrected so
		}
		all.Go(func() error {
			x := c.extended(fmt.Sprint("update-", size), 2, onClaims, patiently)
			if err := x.create(ctx); err != nil {
				return err
			}
			if err := errors.Join(x.edit(ctx, inVersion("2"), running("exit 1"), watchFor(5*time.Second, 20*time.Second)), x.takenBack(ctx, v1alpha1.PhaseStale, 1)); err != nil {
				return err
			}
			if err := errors.Join(x.edit(ctx, inVersion("3"), running(keeper), scaled(size), patiently), x.serves(ctx, 3), x.keptData(ctx)); err != nil {
				return fmt.Errorf("a broken update, corrected with %d replicas: %w", size, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// tried waits until a container of the first version has failed.
func (x *extended) tried(ctx context.Context) error {
	return until(ctx, x.set.Name+" to fail", func(ctx context.Context) error {
		pods, err := x.pods(ctx)
		if err != nil {
			return err
		}
		for _, p := range pods {
			for _, s := range p.Status.ContainerStatuses {
				if s.RestartCount > 0 {
					return nil
				}
			}
		}
		return errors.New("it has not")
	})
}

// nodeDiesInUpgrade powers the node of the first moved ordinal off. Its old pod can
// only come back when it is known that the new one has ended.
func nodeDiesInUpgrade(ctx context.Context, c *Cluster) (err error) {
	pods, err := c.lookOut(ctx)
	if err != nil {
		return err
	}
	defer pods.stop()
	x := c.extended("node", 2, onClaims, watchFor(15*time.Second, 5*time.Minute), apartOnNodes)
	if err := x.create(ctx); err != nil {
		return err
	}
	apart := pods.hold(claimsApart)
	if err := errors.Join(x.edit(ctx, inVersion("2"), probed("false")), x.triesNext(ctx)); err != nil {
		return err
	}
	live, err := x.pods(ctx)
	if err != nil {
		return err
	}
	var lost, other corev1.Pod
	for _, p := range live {
		if p.Labels[v1alpha1.LabelVersion] == "2" {
			lost = p
		} else if p.DeletionTimestamp == nil {
			other = p
		}
	}
	if lost.Name == "" || other.Name == "" || lost.Spec.NodeName == other.Spec.NodeName {
		return fmt.Errorf("one ordinal should have moved, and its node have no other: %s and %s", lost.Name, other.Name)
	}
	c.Log("powering off %s, where %s runs", lost.Spec.NodeName, lost.Name)
	if err := c.Nodes.StopNode(lost.Spec.NodeName); err != nil {
		return err
	}
	on := func() error { return c.Nodes.StartNode(lost.Spec.NodeName) }
	err = x.says(ctx, "that it takes the version back", func(s v1alpha1.ExtendedStatefulSetStatus) bool {
		return s.Phase == v1alpha1.PhaseStale || s.Update != nil && s.Update.Returning
	})
	if err = errors.Join(err, on(), c.nodesReady(ctx)); err != nil {
		return err
	}
	if err := errors.Join(x.takenBack(ctx, v1alpha1.PhaseStale, 1), apart.kept(), x.keptData(ctx)); err != nil {
		return err
	}
	now, err := x.pods(ctx)
	if err == nil && now[other.Name].UID != other.UID {
		err = fmt.Errorf("%s is on another node, and was replaced", other.Name)
	}
	return err
}

// apartOnNodes keeps the pods of a set on different nodes.
func apartOnNodes(s *v1alpha1.ExtendedStatefulSetSpec) {
	s.Template.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
		WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: s.Template.Spec.Selector.MatchLabels}}}
}
