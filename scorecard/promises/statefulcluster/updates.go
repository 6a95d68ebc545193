package statefulcluster

import (
	"context"
	"fmt"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

func namesAreUsedOnce(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 2)
	first := create(ctx, c, set)
	seen := map[string]bool{}
	for name := range first {
		seen[name] = true
	}
	for _, n := range []int32{0, 3, 1, 3} {
		edit(ctx, c, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Replicas = &n })
		before := members(ctx, c, set)
		live := settle(ctx, c, set)
		for name := range live {
			_, stayed := before[name]
			c.Expect(!stayed && seen[name]).To(BeFalse(), "the name %s was reused", name)
			seen[name] = true
		}
	}
	all := c.Claims(ctx)
	c.Expect(len(all)).To(Equal(len(seen)), "%d names were used and %d claims exist", len(seen), len(all))
	whole(ctx, c, set)
}

func inPlace(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 3)
	before := create(ctx, c, set)
	edit(ctx, c, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = c.OtherImage })
	after := settle(ctx, c, set)
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
	whole(ctx, c, set)
}

func recreates(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 2)
	before := create(ctx, c, set)
	edit(ctx, c, set, func(s *v1alpha1.StatefulCluster) {
		env := &s.Spec.Template.Spec.Containers[0].Env
		*env = append(*env, corev1.EnvVar{Name: "EDITED", Value: "yes"})
	})
	after := settle(ctx, c, set)
	// The program refuses to run on another member's volume. Ready members with their old names are
	// therefore on their own data.
	for name, old := range before {
		now, ok := after[name]
		c.Expect(ok).To(BeTrue(), "%s was not recreated under its name", name)
		c.Expect(now.UID).NotTo(Equal(old.UID), "%s was not recreated under its name", name)
	}
	all := c.Claims(ctx)
	c.Expect(len(all)).To(Equal(2), "%d claims for 2 members", len(all))
	whole(ctx, c, set)
}

func resizes(ctx context.Context, c *kit.Cluster) {
	asks := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	// The API server sets a missing request to the limit.
	limited := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	resize(ctx, c, asks("10m"), asks("20m"))
	resize(ctx, c, limited("100m"), limited("120m"))
}

func resize(ctx context.Context, c *kit.Cluster, from, to corev1.ResourceRequirements) {
	set := newSet(c, 1)
	set.Name = fmt.Sprintf("%s-%d", set.Name, len(from.Limits))
	set.Spec.Selector.MatchLabels["app"] = set.Name // also changes the template's labels, which share the map
	set.Spec.Template.Spec.Containers[0].Resources = from
	before := create(ctx, c, set)
	edit(ctx, c, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Resources = to })
	after := settle(ctx, c, set)
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

func claimsGrow(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 2)
	before := create(ctx, c, set)
	size := resource.MustParse("32Mi")
	edit(ctx, c, set, func(s *v1alpha1.StatefulCluster) {
		s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = size
	})
	c.Until(ctx, "the volumes to grow", func(ctx context.Context) {
		all := c.Claims(ctx)
		for name, claim := range all {
			have := claim.Status.Capacity[corev1.ResourceStorage]
			c.Expect(have.Cmp(size)).To(BeNumerically(">=", 0), "claim %s has %s", name, have.String())
		}
	})
	after := settle(ctx, c, set)
	for name, old := range before {
		now := after[name]
		c.Expect(now.UID).To(Equal(old.UID), "%s was restarted", name)
		c.Expect(now.Status.ContainerStatuses[0].RestartCount).To(BeZero(), "%s was restarted", name)
	}
}
