package promises

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// Programs that cannot start.

// neverStarted has images that cannot be had, in the two modes in which a lone pod
// may get its turn before that is seen. In mode Init it does; in the other one the
// kubelet and the operator run a race.
func neverStarted(ctx context.Context, c *Cluster) error {
	for name, mode := range map[string]v1.GateMode{"stuck": v1.GateBinary, "stuck-init": v1.GateInit} {
		a, err := c.application(name)
		if err != nil {
			return err
		}
		if err := a.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.GateMode = mode }); err != nil {
			return err
		}
		a.change = []podChange{program(func(p *corev1.Container) { p.Image = "localhost/there-is-no-such-image:1" })}
		d, err := a.deploy(ctx, 1, surge())
		if err != nil {
			return err
		}
		_, err = a.says(ctx, "that its pod cannot start", func(s *v1.StatefulSingleton) bool {
			turned := s.Status.ActivePod != "" || mode == v1.GateBinary
			return turned && strings.Contains(s.Status.Message, "cannot start")
		})
		if err != nil {
			return err
		}
		if err := change(ctx, c, d, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = c.Witness }); err != nil {
			return err
		}
		if _, err := a.one(ctx); err != nil {
			return fmt.Errorf("mode %s: %w", mode, err)
		}
	}
	return nil
}

// noShell runs the script in an image that has nothing to run it with.
func noShell(ctx context.Context, c *Cluster) error {
	a, err := c.application("shellless")
	if err != nil {
		return err
	}
	if err := a.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.GateMode = v1.GateScript }); err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 1, surge()); err != nil {
		return err
	}
	if _, err = a.says(ctx, "that its script needs a shell", isTrue(v1.ConditionDegraded, v1.ReasonScriptFailing)); err != nil {
		return err
	}
	return a.none(ctx)
}
