package promises

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

func badImage(ctx context.Context, c *Cluster) {
	set := c.newSet(3, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.UnreadySeconds = new(int32(3))
		s.Spec.Replacement.StartupSeconds = new(int32(3))
	})
	before := c.create(ctx, set)
	roll := func(image string) {
		c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = image })
	}
	roll("localhost/there-is-no-such-image:1")
	c.degraded(ctx, set, v1alpha1.ReasonRevisionFailing)
	live := c.members(ctx, set)
	for name, old := range before {
		c.Expect(live[name].UID).To(Equal(old.UID), "%s was replaced because of a bad image", name)
	}
	roll(c.OtherImage)
	after := c.settle(ctx, set)
	for name := range before {
		_, there := after[name]
		c.Expect(there).To(BeTrue(), "%s was deleted", name)
	}
	c.whole(ctx, set)
}

// refusedPod rolls out a template whose pods the API server refuses, and reverts it. It then rolls
// out another one in a namespace whose quota allows no more pods.
func refusedPod(ctx context.Context, c *Cluster) {
	set := c.newSet(2)
	before := c.create(ctx, set)
	class := func(name string) {
		c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.PriorityClassName = name })
	}
	class("there-is-none")
	c.degraded(ctx, set, v1alpha1.ReasonWriteRefused)
	c.check(samePods(before, c.members(ctx, set)))
	class("")
	after := c.settle(ctx, set)
	c.check(samePods(before, after))

	full := corev1.ResourceList{"count/pods": resource.MustParse(fmt.Sprint(len(after)))}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "full", Namespace: set.Namespace}, Spec: corev1.ResourceQuotaSpec{Hard: full}}
	c.put(ctx, quota)
	c.until(ctx, "the quota to be counted", func(ctx context.Context) {
		c.read(ctx, quota)
		used := quota.Status.Used["count/pods"]
		c.Expect(int(used.Value())).To(Equal(len(after)))
	})
	c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(1))
	})
	after = c.settle(ctx, set)
	c.check(sameNames(before, after))
	c.whole(ctx, set)
}

// clusterReports has the member of each set kept from running.
func clusterReports(ctx context.Context, c *Cluster) {
	c.reportsAll(ctx, c.situations(), func(own *Cluster, s situation) kept {
		set := own.newSet(1, func(set *v1alpha1.StatefulCluster) {
			set.Name = "w7-" + s.name
			set.Spec.Selector.MatchLabels["app"] = set.Name // also changes the template's labels, which share the map
		})
		good := set.Spec.Template.Spec
		set.Spec.Template.Spec = edited(good, s.edit)
		own.put(ctx, set)
		return kept{object: set, correct: func(ctx context.Context) {
			own.edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec = good })
			own.settle(ctx, set)
		}}
	})
}

// samePods returns an error if a pod is missing, recreated or terminating.
func samePods(before, now map[string]corev1.Pod) error {
	for name, old := range before {
		if is, there := now[name]; !there || is.UID != old.UID || is.DeletionTimestamp != nil {
			return fmt.Errorf("%s is not the former pod", name)
		}
	}
	return nil
}

// crashingTemplate rolls out a program that runs for some seconds, so that its pods are Ready, and
// then exits.
func crashingTemplate(ctx context.Context, c *Cluster) {
	set := c.newSet(2, func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.UnreadySeconds = new(int32(10)) })
	before := c.create(ctx, set)
	run := func(program string) {
		c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Spec.Containers[0].Command = []string{"/bin/sh", "-c", program}
		})
	}
	run("sleep 8; exit 1")
	// The kubelet waits 10 seconds before the third start, 20 before the fourth.
	c.until(ctx, "a program to exit repeatedly", func(ctx context.Context) {
		all := c.allPods(ctx, set)
		most := int32(0)
		for _, p := range all {
			for _, s := range p.Status.ContainerStatuses {
				most = max(most, s.RestartCount)
			}
		}
		if most < 4 {
			c.check(errors.Join(sameNames(before, all), fmt.Errorf("%d restarts", most)))
		}
	})
	c.degraded(ctx, set, v1alpha1.ReasonRevisionFailing)
	live := c.members(ctx, set)
	c.during("while it crashes", func() { c.check(sameNames(before, live)) })
	run(diary)
	after := c.settle(ctx, set)
	c.check(sameNames(before, after))
	c.whole(ctx, set)
}

func sameNames(before, now map[string]corev1.Pod) error {
	for name := range now {
		if _, there := before[name]; !there {
			return fmt.Errorf("%s is a new member", name)
		}
	}
	if len(now) < len(before) {
		return fmt.Errorf("%d of %d members exist", len(now), len(before))
	}
	return nil
}
