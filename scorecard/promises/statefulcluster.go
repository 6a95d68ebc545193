package promises

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// StatefulCluster are the promises of this kind.
var StatefulCluster = []Promise{
	beside("SC-8 a retired name never returns, and its claim is kept", namesAreUsedOnce),
	beside("SC-22 SC-40 an image changes in place on a real kubelet", inPlace),
	beside("SC-22 any other change recreates the pod on the same data", recreates),
	beside("a resize keeps the pod", resizes),
	beside("claims grow without a restart", claimsGrow),
	{Name: "SC-14 a member that finds no node is replaced", Keep: pendingIsReplaced},
	beside("SC-19 deletion leaves the claims by default, and takes them when told", deletion),
	beside("SC-39 a force-deleted pod gets a successor with a new name", forceDeleted),
	beside("SC-41 a bad image costs no data, and the corrected one heals all", badImage),
	beside("V1 a corrected template brings back a member whose pod was refused", refusedPod),
	beside("V9 a template whose pods become Ready and crash costs no data", crashingTemplate),
	{Name: "SC-30 SC-42 an operator that dies in an update is succeeded, and finishes it", Keep: operatorDies},
	{Name: "SC-32 the operator acts in the namespaces that it was told", Keep: namespacesAreKept},
	{Name: "SC-37 an out-of-service node's members are replaced", Keep: outOfService},
	{Name: "SC-12 SC-36 a node cut off for good does not hold up its members", Faults: true, Keep: nodeCut},
	{Name: "SC-38 half of the nodes lost at once does not empty the set", Faults: true, Keep: halfLost},
}

func namesAreUsedOnce(ctx context.Context, c *Cluster) error {
	set := c.newSet(2)
	first, err := c.create(ctx, set)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for name := range first {
		seen[name] = true
	}
	for _, n := range []int32{0, 3, 1, 3} {
		if err := c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Replicas = &n }); err != nil {
			return err
		}
		before, err := c.members(ctx, set)
		if err != nil {
			return err
		}
		live, err := c.settle(ctx, set)
		if err != nil {
			return err
		}
		for name := range live {
			if _, stayed := before[name]; !stayed && seen[name] {
				return fmt.Errorf("the name %s came back", name)
			}
			seen[name] = true
		}
	}
	all, err := c.claims(ctx)
	if err == nil && len(all) != len(seen) {
		err = fmt.Errorf("%d names were used and %d claims are there", len(seen), len(all))
	}
	return errors.Join(err, c.whole(ctx, set))
}

func inPlace(ctx context.Context, c *Cluster) error {
	set := c.newSet(3)
	before, err := c.create(ctx, set)
	if err != nil {
		return err
	}
	err = c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = c.OtherImage })
	if err != nil {
		return err
	}
	after, err := c.settle(ctx, set)
	if err != nil {
		return err
	}
	for name, old := range before {
		now, ok := after[name]
		switch {
		case !ok || now.UID != old.UID || now.Status.PodIP != old.Status.PodIP || now.Spec.NodeName != old.Spec.NodeName:
			return fmt.Errorf("%s is not the same pod", name)
		case now.Status.ContainerStatuses[0].RestartCount != old.Status.ContainerStatuses[0].RestartCount+1:
			return fmt.Errorf("%s has %d restarts", name, now.Status.ContainerStatuses[0].RestartCount)
		case now.Status.ContainerStatuses[0].ImageID == old.Status.ContainerStatuses[0].ImageID:
			return fmt.Errorf("%s runs the old image", name)
		case now.Annotations[v1alpha1.AnnotationInPlace] != "":
			return fmt.Errorf("%s still carries %s", name, v1alpha1.AnnotationInPlace)
		}
	}
	return c.whole(ctx, set)
}

func recreates(ctx context.Context, c *Cluster) error {
	set := c.newSet(2)
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
	after, err := c.settle(ctx, set)
	if err != nil {
		return err
	}
	// The program refuses to run on another member's volume, so Ready members
	// under their old names are on their own data.
	for name, old := range before {
		if now, ok := after[name]; !ok || now.UID == old.UID {
			return fmt.Errorf("%s was not recreated under its name", name)
		}
	}
	all, err := c.claims(ctx)
	if err == nil && len(all) != 2 {
		err = fmt.Errorf("%d claims for 2 members", len(all))
	}
	return errors.Join(err, c.whole(ctx, set))
}

func resizes(ctx context.Context, c *Cluster) error {
	asks := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	// The API server makes a request of a limit that has none.
	limited := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	return errors.Join(c.resize(ctx, asks("10m"), asks("20m")), c.resize(ctx, limited("100m"), limited("120m")))
}

func (c *Cluster) resize(ctx context.Context, from, to corev1.ResourceRequirements) error {
	set := c.newSet(1)
	set.Name = fmt.Sprintf("%s-%d", set.Name, len(from.Limits))
	set.Spec.Selector.MatchLabels["app"] = set.Name // the template's labels too
	set.Spec.Template.Spec.Containers[0].Resources = from
	before, err := c.create(ctx, set)
	if err != nil {
		return err
	}
	err = c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Resources = to })
	if err != nil {
		return err
	}
	after, err := c.settle(ctx, set)
	if err != nil {
		return err
	}
	old, now := one(before), one(after)
	if now.UID != old.UID || now.Status.ContainerStatuses[0].RestartCount != 0 {
		return fmt.Errorf("the pod %s was restarted or recreated", old.Name)
	}
	have := now.Spec.Containers[0].Resources
	for k, want := range to.Limits {
		if limit, request := have.Limits[k], have.Requests[k]; limit.Cmp(want) != 0 || request.Cmp(want) != 0 {
			return fmt.Errorf("the pod asks for %s of %s and is limited to %s, not to %s", request.String(), k, limit.String(), want.String())
		}
	}
	for k, want := range to.Requests {
		if request := have.Requests[k]; request.Cmp(want) != 0 {
			return fmt.Errorf("the pod asks for %s of %s, not for %s", request.String(), k, want.String())
		}
	}
	return nil
}

func claimsGrow(ctx context.Context, c *Cluster) error {
	set := c.newSet(2)
	before, err := c.create(ctx, set)
	if err != nil {
		return err
	}
	size := resource.MustParse("32Mi")
	err = c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
		s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = size
	})
	if err != nil {
		return err
	}
	err = until(ctx, "the volumes to grow", func(ctx context.Context) error {
		all, err := c.claims(ctx)
		if err != nil {
			return err
		}
		for name, claim := range all {
			if have := claim.Status.Capacity[corev1.ResourceStorage]; have.Cmp(size) < 0 {
				return fmt.Errorf("claim %s has %s", name, have.String())
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	after, err := c.settle(ctx, set)
	for name, old := range before {
		if now := after[name]; err == nil && (now.UID != old.UID || now.Status.ContainerStatuses[0].RestartCount != 0) {
			err = fmt.Errorf("%s was restarted", name)
		}
	}
	return err
}

func pendingIsReplaced(ctx context.Context, c *Cluster) error {
	set := c.newSet(1, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.PendingSeconds = new(int32(2))
		s.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategy
	})
	if _, err := c.create(ctx, set); err != nil {
		return err
	}
	// A second member of the proven revision that fits nowhere.
	var nodes corev1.NodeList
	if err := c.Client.List(ctx, &nodes); err != nil {
		return err
	}
	if err := c.cordon(ctx, nodes.Items, true); err != nil {
		return err
	}
	uncordon := func() error { return c.cordon(context.WithoutCancel(ctx), nodes.Items, false) }
	if err := c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) { *s.Spec.Replicas = 2 }); err != nil {
		return errors.Join(err, uncordon())
	}
	var stuck string
	err := until(ctx, "a member that waits for a node to be replaced", func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		for _, l := range set.Status.Lost {
			if l.Reason == v1alpha1.LossPending {
				stuck = l.Name
				return nil
			}
		}
		return fmt.Errorf("status.lost is %v", set.Status.Lost)
	})
	if err = errors.Join(err, uncordon()); err != nil {
		return err
	}
	live, err := c.settle(ctx, set)
	if _, back := live[stuck]; back {
		err = fmt.Errorf("%s came back", stuck)
	}
	return err
}

func (c *Cluster) cordon(ctx context.Context, nodes []corev1.Node, on bool) error {
	for _, n := range nodes {
		cordoned := n.DeepCopy()
		cordoned.Spec.Unschedulable = on
		from := n.DeepCopy()
		from.Spec.Unschedulable = !on
		if err := c.Client.Patch(ctx, cordoned, client.MergeFrom(from)); err != nil {
			return err
		}
	}
	return nil
}

// degraded waits until the set's Degraded condition has that reason.
func (c *Cluster) degraded(ctx context.Context, set *v1alpha1.StatefulCluster, reason string) error {
	return until(ctx, "condition Degraded with reason "+reason, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if found := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionDegraded); found == nil || found.Reason != reason {
			return errors.New(brief(set.Status))
		}
		return nil
	})
}
