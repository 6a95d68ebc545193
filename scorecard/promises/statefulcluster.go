package promises

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// StatefulCluster lists the promises of this kind.
var StatefulCluster = []Promise{
	beside("SC-8 a retired name is never reused, and its claim is kept", namesAreUsedOnce),
	beside("SC-22 SC-40 an image changes in place on a real kubelet", inPlace),
	beside("SC-22 any other change recreates the pod on the same data", recreates),
	beside("a resize keeps the pod", resizes),
	beside("claims grow without a restart", claimsGrow),
	{Name: "SC-14 a member that cannot be scheduled is replaced", Site: NodeSite, Run: pendingIsReplaced},
	beside("SC-19 deletion leaves the claims by default, and deletes them on request", deletion),
	beside("SC-39 a force-deleted pod gets a successor with a new name", forceDeleted),
	beside("SC-41 a bad image costs no data, and the corrected one repairs all members", badImage),
	beside("SC-48 a template whose pods are refused stops no member, and a full quota blocks no update", refusedPod),
	core(beside("V9 a template whose pods become Ready and crash costs no data", crashingTemplate)),
	{Name: "SC-30 SC-42 an operator that crashes in an update is succeeded, and the update completes", Site: OperatorSite, Run: operatorDies},
	{Name: "SC-32 the operator manages only its watched namespaces", Site: OperatorSite, Run: namespacesAreKept},
	{Name: "SC-43 SC-46 a drain removes no member before a new one is available", Site: NodeSite, Run: replacesFirst},
	{Name: "SC-37 an out-of-service node's members are replaced", Site: NodeSite, Run: outOfService},
	core(Promise{Name: "SC-12 SC-36 a node that is permanently unreachable does not block its members", Site: NodeSite, Faults: true, Run: nodeCut}),
	core(Promise{Name: "W1 SC-53 a drain of the operator's leader and of a member keeps the member", Site: OperatorSite, Run: drainsLeader}),
	{Name: "W2 SC-52 SC-55 lights out: all nodes of a set off and on", Site: NodeSite, Faults: true, Run: allMembersDark},
	{Name: "W2 SC-54 a Node object that is deleted and recreated costs no member", Site: NodeSite, Faults: true, Run: nodeObjectReturns},
	beside("W7 obstacles of a member of a StatefulCluster are reported with the command that helps", clusterReports),
	beside("W2 SC-53 a member that its kubelet evicts returns with Keep", evictedByKubelet),
	{Name: "SC-38 half of the nodes lost at once does not empty the set", Site: NodeSite, Faults: true, Run: halfLost},
}

func namesAreUsedOnce(ctx context.Context, c *Cluster) {
	set := c.newSet(2)
	first := c.create(ctx, set)
	seen := map[string]bool{}
	for name := range first {
		seen[name] = true
	}
	for _, n := range []int32{0, 3, 1, 3} {
		c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Replicas = &n })
		before := c.members(ctx, set)
		live := c.settle(ctx, set)
		for name := range live {
			_, stayed := before[name]
			c.Expect(!stayed && seen[name]).To(BeFalse(), "the name %s was reused", name)
			seen[name] = true
		}
	}
	all := c.claims(ctx)
	c.Expect(len(all)).To(Equal(len(seen)), "%d names were used and %d claims exist", len(seen), len(all))
	c.whole(ctx, set)
}

func inPlace(ctx context.Context, c *Cluster) {
	set := c.newSet(3)
	before := c.create(ctx, set)
	c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = c.OtherImage })
	after := c.settle(ctx, set)
	for name, old := range before {
		now, ok := after[name]
		c.Expect(ok).To(BeTrue(), "%s is not the same pod", name)
		c.Expect(now.UID).To(Equal(old.UID), "%s is not the same pod", name)
		c.Expect(now.Status.PodIP).To(Equal(old.Status.PodIP), "%s is not the same pod", name)
		c.Expect(now.Spec.NodeName).To(Equal(old.Spec.NodeName), "%s is not the same pod", name)
		is, was := now.Status.ContainerStatuses[0], old.Status.ContainerStatuses[0]
		c.Expect(is.RestartCount).To(Equal(was.RestartCount+1), "restarts of %s", name)
		c.Expect(is.ImageID).NotTo(Equal(was.ImageID), "%s runs the old image", name)
		c.Expect(now.Annotations[v1alpha1.AnnotationInPlace]).To(BeEmpty(), "%s still has %s", name, v1alpha1.AnnotationInPlace)
	}
	c.whole(ctx, set)
}

func recreates(ctx context.Context, c *Cluster) {
	set := c.newSet(2)
	before := c.create(ctx, set)
	c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
		env := &s.Spec.Template.Spec.Containers[0].Env
		*env = append(*env, corev1.EnvVar{Name: "EDITED", Value: "yes"})
	})
	after := c.settle(ctx, set)
	// The program refuses to run on another member's volume. Ready members with their old names are
	// therefore on their own data.
	for name, old := range before {
		now, ok := after[name]
		c.Expect(ok).To(BeTrue(), "%s was not recreated under its name", name)
		c.Expect(now.UID).NotTo(Equal(old.UID), "%s was not recreated under its name", name)
	}
	all := c.claims(ctx)
	c.Expect(len(all)).To(Equal(2), "%d claims for 2 members", len(all))
	c.whole(ctx, set)
}

func resizes(ctx context.Context, c *Cluster) {
	asks := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	// The API server sets a missing request to the limit.
	limited := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	c.resize(ctx, asks("10m"), asks("20m"))
	c.resize(ctx, limited("100m"), limited("120m"))
}

func (c *Cluster) resize(ctx context.Context, from, to corev1.ResourceRequirements) {
	set := c.newSet(1)
	set.Name = fmt.Sprintf("%s-%d", set.Name, len(from.Limits))
	set.Spec.Selector.MatchLabels["app"] = set.Name // also changes the template's labels, which share the map
	set.Spec.Template.Spec.Containers[0].Resources = from
	before := c.create(ctx, set)
	c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Resources = to })
	after := c.settle(ctx, set)
	old, now := one(before), one(after)
	c.Expect(now.UID).To(Equal(old.UID), "the pod %s was restarted or recreated", old.Name)
	c.Expect(now.Status.ContainerStatuses[0].RestartCount).To(BeZero(), "the pod %s was restarted or recreated", old.Name)
	have := now.Spec.Containers[0].Resources
	for k, want := range to.Limits {
		limit, request := have.Limits[k], have.Requests[k]
		c.Expect(limit.Cmp(want)).To(BeZero(), "the pod requests %s of %s and its limit is %s, not %s", request.String(), k, limit.String(), want.String())
		c.Expect(request.Cmp(want)).To(BeZero(), "the pod requests %s of %s and its limit is %s, not %s", request.String(), k, limit.String(), want.String())
	}
	for k, want := range to.Requests {
		request := have.Requests[k]
		c.Expect(request.Cmp(want)).To(BeZero(), "the pod requests %s of %s, not %s", request.String(), k, want.String())
	}
}

func claimsGrow(ctx context.Context, c *Cluster) {
	set := c.newSet(2)
	before := c.create(ctx, set)
	size := resource.MustParse("32Mi")
	c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
		s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = size
	})
	c.until(ctx, "the volumes to grow", func(ctx context.Context) {
		all := c.claims(ctx)
		for name, claim := range all {
			have := claim.Status.Capacity[corev1.ResourceStorage]
			c.Expect(have.Cmp(size)).To(BeNumerically(">=", 0), "claim %s has %s", name, have.String())
		}
	})
	after := c.settle(ctx, set)
	for name, old := range before {
		now := after[name]
		c.Expect(now.UID).To(Equal(old.UID), "%s was restarted", name)
		c.Expect(now.Status.ContainerStatuses[0].RestartCount).To(BeZero(), "%s was restarted", name)
	}
}

func pendingIsReplaced(ctx context.Context, c *Cluster) {
	set := c.newSet(1, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.PendingSeconds = new(int32(2))
		s.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategy
	})
	c.create(ctx, set)
	// A second member of the proven revision cannot be scheduled.
	var nodes corev1.NodeList
	c.list(ctx, &nodes)
	uncordon := sync.OnceFunc(func() { c.cordon(context.WithoutCancel(ctx), nodes.Items, false) })
	c.Cleanup(uncordon)
	c.cordon(ctx, nodes.Items, true)
	c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) { *s.Spec.Replicas = 2 })
	var stuck string
	c.until(ctx, "a member that waits for a node to be replaced", func(ctx context.Context) {
		c.read(ctx, set)
		for _, l := range set.Status.Lost {
			if l.Reason == v1alpha1.LossPending {
				stuck = l.Name
				return
			}
		}
		c.fail("status.lost is %v", set.Status.Lost)
	})
	uncordon()
	live := c.settle(ctx, set)
	_, back := live[stuck]
	c.Expect(back).To(BeFalse(), "%s returned", stuck)
}

// cordon cordons or uncordons several nodes.
func (c *Cluster) cordon(ctx context.Context, nodes []corev1.Node, on bool) {
	for _, n := range nodes {
		c.closed(ctx, n.Name, on)
	}
}

// degraded waits until the set's Degraded condition has that reason.
func (c *Cluster) degraded(ctx context.Context, set *v1alpha1.StatefulCluster, reason string) {
	c.until(ctx, "condition Degraded with reason "+reason, func(ctx context.Context) {
		c.read(ctx, set)
		found := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionDegraded)
		c.Expect(found).NotTo(BeNil(), "%s", brief(set.Status))
		c.Expect(found.Reason).To(Equal(reason), "%s", brief(set.Status))
	})
}
