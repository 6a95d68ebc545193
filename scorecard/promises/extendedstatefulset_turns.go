package promises

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// Upgrades that something comes between.

// handovers are the two ways, and how many of 2 pods are always Ready.
var handovers = map[string]struct {
	shape  extendedChange
	budget int
}{"beside": {coexist, 2}, "ordinals": {onClaims, 1}}

// inUpgrade gives a set of each handover whose version 2 has a pod that is not
// Ready, and waits, to what happens next.
func (c *Cluster) inUpgrade(ctx context.Context, next func(x *extended, good *v1alpha1.ExtendedStatefulSetSpec) error) error {
	pods, err := c.lookOut(ctx)
	if err != nil {
		return err
	}
	defer pods.stop()
	apart := pods.hold(claimsApart)
	for name, way := range handovers {
		x := c.extended(name, 2, way.shape, patiently)
		if err := x.create(ctx); err != nil {
			return err
		}
		good := x.set.Spec.DeepCopy()
		capacity := pods.hold(least(name, way.budget))
		if err := errors.Join(x.edit(ctx, inVersion("2"), probed("false")), x.triesNext(ctx)); err != nil {
			return err
		}
		if err := next(x, good); err != nil {
			return errors.Join(fmt.Errorf("handover %s: %w", name, err), capacity.kept())
		}
		if err := capacity.kept(); err != nil {
			return fmt.Errorf("handover %s: %w", name, err)
		}
	}
	return apart.kept()
}

// triesNext waits until a pod of version 2 runs.
func (x *extended) triesNext(ctx context.Context) error {
	return until(ctx, "a pod of version 2 to run", func(ctx context.Context) error {
		pods, err := x.pods(ctx)
		if err != nil {
			return err
		}
		for _, p := range pods {
			if p.Labels[v1alpha1.LabelVersion] == "2" && p.Status.Phase == corev1.PodRunning {
				return nil
			}
		}
		return errors.Join(errors.New("none does"), x.get(ctx), errors.New(tellExtended(x.set)))
	})
}

func supersedes(ctx context.Context, c *Cluster) error {
	return c.inUpgrade(ctx, func(x *extended, good *v1alpha1.ExtendedStatefulSetSpec) error {
		next := func(s *v1alpha1.ExtendedStatefulSetSpec) { *s = *good.DeepCopy() }
		if err := errors.Join(x.edit(ctx, next, inVersion("3")), x.serves(ctx, 3)); err != nil {
			return err
		}
		return x.eventTold(ctx, v1alpha1.EventSuperseded)
	})
}

// goesBack goes back to version 1 while version 2 is tried. Its number is not
// used again.
func goesBack(ctx context.Context, c *Cluster) error {
	return c.inUpgrade(ctx, func(x *extended, good *v1alpha1.ExtendedStatefulSetSpec) error {
		pods, err := x.pods(ctx)
		if err != nil {
			return err
		}
		back := func(s *v1alpha1.ExtendedStatefulSetSpec) { *s = *good.DeepCopy() }
		if err := errors.Join(x.edit(ctx, back), x.serves(ctx, 1)); err != nil {
			return err
		}
		if x.set.Status.VersionHighWater != 2 {
			return fmt.Errorf("no number was to be given out: %s", tellExtended(x.set))
		}
		now, err := x.pods(ctx)
		if err != nil {
			return err
		}
		if name := x.child(1) + "-0"; pods[name].UID != "" && now[name].UID != pods[name].UID {
			return fmt.Errorf("%s served all the time, and was replaced", name)
		}
		return errors.Join(x.edit(ctx, inVersion("3")), x.serves(ctx, 3))
	})
}
