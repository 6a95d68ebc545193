package statefulcluster

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

func badImage(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 3, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.UnreadySeconds = new(int32(3))
		s.Spec.Replacement.StartupSeconds = new(int32(3))
	})
	before := create(ctx, c, set)
	roll := func(image string) {
		edit(ctx, c, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = image })
	}
	roll("localhost/there-is-no-such-image:1")
	degraded(ctx, c, set, v1alpha1.ReasonRevisionFailing)
	live := members(ctx, c, set)
	for name, old := range before {
		c.Expect(live[name].UID).To(Equal(old.UID), "%s was replaced because of a bad image", name)
	}
	roll(c.OtherImage)
	after := settle(ctx, c, set)
	for name := range before {
		_, there := after[name]
		c.Expect(there).To(BeTrue(), "%s was deleted", name)
	}
	whole(ctx, c, set)
}

// refusedPod rolls out a template whose pods the API server refuses, and reverts it. It then rolls
// out another one in a namespace whose quota allows no more pods.
func refusedPod(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 2)
	before := create(ctx, c, set)
	class := func(name string) {
		edit(ctx, c, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.PriorityClassName = name })
	}
	class("there-is-none")
	degraded(ctx, c, set, v1alpha1.ReasonWriteRefused)
	c.Check(samePods(before, members(ctx, c, set)))
	class("")
	after := settle(ctx, c, set)
	c.Check(samePods(before, after))

	full := corev1.ResourceList{"count/pods": resource.MustParse(fmt.Sprint(len(after)))}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "full", Namespace: set.Namespace}, Spec: corev1.ResourceQuotaSpec{Hard: full}}
	c.Put(ctx, quota)
	c.Until(ctx, "the quota to be counted", func(ctx context.Context) {
		c.Read(ctx, quota)
		used := quota.Status.Used["count/pods"]
		c.Expect(int(used.Value())).To(Equal(len(after)))
	})
	edit(ctx, c, set, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(1))
	})
	after = settle(ctx, c, set)
	c.Check(sameNames(before, after))
	whole(ctx, c, set)
}

// reportsObstacles has the member of each set kept from running.
func reportsObstacles(ctx context.Context, c *kit.Cluster) {
	c.ReportsAll(ctx, c.Situations(), func(own *kit.Cluster, s kit.Situation) kit.Obstructed {
		set := newSet(own, 1, func(set *v1alpha1.StatefulCluster) {
			set.Name = "w7-" + s.Name
			set.Spec.Selector.MatchLabels["app"] = set.Name // also changes the template's labels, which share the map
		})
		good := set.Spec.Template.Spec
		set.Spec.Template.Spec = kit.Edited(good, s.Edit)
		own.Put(ctx, set)
		return kit.Obstructed{Object: set, Correct: func(ctx context.Context) {
			edit(ctx, own, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec = good })
			settle(ctx, own, set)
		}}
	})
}

// crashingTemplate rolls out a program that runs for some seconds, so that its pods are Ready, and
// then exits.
func crashingTemplate(ctx context.Context, c *kit.Cluster) {
	set := newSet(c, 2, func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.UnreadySeconds = new(int32(10)) })
	before := create(ctx, c, set)
	run := func(program string) {
		edit(ctx, c, set, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Spec.Containers[0].Command = []string{"/bin/sh", "-c", program}
		})
	}
	run("sleep 8; exit 1")
	// The kubelet waits 10 seconds before the third start, 20 before the fourth.
	c.Until(ctx, "a program to exit repeatedly", func(ctx context.Context) {
		all := allPods(ctx, c, set)
		most := int32(0)
		for _, p := range all {
			for _, s := range p.Status.ContainerStatuses {
				most = max(most, s.RestartCount)
			}
		}
		if most < 4 {
			c.Check(errors.Join(sameNames(before, all), fmt.Errorf("%d restarts", most)))
		}
	})
	degraded(ctx, c, set, v1alpha1.ReasonRevisionFailing)
	live := members(ctx, c, set)
	c.During("while it crashes", func() { c.Check(sameNames(before, live)) })
	run(diary)
	after := settle(ctx, c, set)
	c.Check(sameNames(before, after))
	whole(ctx, c, set)
}
