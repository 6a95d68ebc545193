package promises

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

func badImage(ctx context.Context, c *Cluster) error {
	set := c.newSet(3, func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.UnreadySeconds = new(int32(3))
		s.Spec.Replacement.StartupSeconds = new(int32(3))
	})
	before, err := c.create(ctx, set)
	if err != nil {
		return err
	}
	roll := func(image string) error {
		return c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = image })
	}
	if err := roll("localhost/there-is-no-such-image:1"); err != nil {
		return err
	}
	if err := c.degraded(ctx, set, v1alpha1.ReasonRevisionFailing); err != nil {
		return err
	}
	live, err := c.members(ctx, set)
	if err != nil {
		return err
	}
	for name, old := range before {
		if live[name].UID != old.UID {
			return fmt.Errorf("%s was replaced for a bad image", name)
		}
	}
	if err := roll(c.OtherImage); err != nil {
		return err
	}
	after, err := c.settle(ctx, set)
	for name := range before {
		if _, there := after[name]; err == nil && !there {
			err = fmt.Errorf("%s is gone", name)
		}
	}
	return errors.Join(err, c.whole(ctx, set))
}

// refusedPod gives the members a template whose pods the API server refuses, and
// takes it back.
func refusedPod(ctx context.Context, c *Cluster) error {
	set := c.newSet(2)
	before, err := c.create(ctx, set)
	if err != nil {
		return err
	}
	class := func(name *string) error {
		return c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.RuntimeClassName = name })
	}
	if err := class(new("there-is-none")); err != nil {
		return err
	}
	if err := c.degraded(ctx, set, v1alpha1.ReasonCreateFailing); err != nil {
		return err
	}
	if err := class(nil); err != nil {
		return err
	}
	after, err := c.settle(ctx, set)
	return errors.Join(err, sameNames(before, after), c.whole(ctx, set))
}

// crashingTemplate gives the members a program that runs for some seconds, so
// that its pods are Ready, and then ends.
func crashingTemplate(ctx context.Context, c *Cluster) error {
	set := c.newSet(2, func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.UnreadySeconds = new(int32(10)) })
	before, err := c.create(ctx, set)
	if err != nil {
		return err
	}
	run := func(program string) error {
		return c.edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Spec.Containers[0].Command = []string{"/bin/sh", "-c", program}
		})
	}
	if err := run("sleep 8; exit 1"); err != nil {
		return err
	}
	// The kubelet waits 10 seconds before the third start, 20 before the fourth.
	err = until(ctx, "a program to end again and again", func(ctx context.Context) error {
		all, err := c.allPods(ctx, set)
		if err != nil {
			return err
		}
		most := int32(0)
		for _, p := range all {
			for _, s := range p.Status.ContainerStatuses {
				most = max(most, s.RestartCount)
			}
		}
		if most < 4 {
			return errors.Join(sameNames(before, all), fmt.Errorf("%d restarts", most))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.degraded(ctx, set, v1alpha1.ReasonRevisionFailing); err != nil {
		return err
	}
	live, err := c.members(ctx, set)
	if err := errors.Join(err, sameNames(before, live)); err != nil {
		return fmt.Errorf("while it crashes: %w", err)
	}
	if err := run(diary); err != nil {
		return err
	}
	after, err := c.settle(ctx, set)
	return errors.Join(err, sameNames(before, after), c.whole(ctx, set))
}

func sameNames(before, now map[string]corev1.Pod) error {
	for name := range now {
		if _, there := before[name]; !there {
			return fmt.Errorf("%s is a new member", name)
		}
	}
	if len(now) < len(before) {
		return fmt.Errorf("%d of %d members are there", len(now), len(before))
	}
	return nil
}
