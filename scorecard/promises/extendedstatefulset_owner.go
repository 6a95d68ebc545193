package promises

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// The end of an object whose name is on what the user owns.

// userObjects makes what a set references; the first of them has a further
// owner.
func (c *Cluster) userObjects(ctx context.Context) (map[string]client.Object, error) {
	if err := c.objects(ctx); err != nil {
		return nil, err
	}
	boss := c.object("boss", "")
	if err := c.Client.Create(ctx, boss); err != nil {
		return nil, err
	}
	made := map[string]client.Object{}
	for _, name := range []string{byEnv, byEnvFrom, byVolume, projected} {
		object := c.object(name, "")
		err := change(ctx, c, object, func(o client.Object) {
			if name == byEnv {
				o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: boss.GetName(), UID: boss.GetUID()}})
			}
		})
		if err != nil {
			return nil, err
		}
		made[name] = object
	}
	return made, nil
}

// ownedByBoss checks that the other owner is still named.
func (c *Cluster) ownedByBoss(ctx context.Context) error {
	object := c.object(byEnv, "")
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if err == nil && !slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Name == "boss" }) {
		err = fmt.Errorf("another owner was to be left alone: %+v", object.GetOwnerReferences())
	}
	return err
}

// deletionSpares deletes sets in the three ways that there are. The objects are
// the same for all, as users share them.
func deletionSpares(ctx context.Context, c *Cluster) error {
	objects, err := c.userObjects(ctx)
	if err != nil {
		return err
	}
	for round, way := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		x := c.extended(fmt.Sprint("owner-", round), 1, patiently, configured(v1alpha1.TrackByOwnerReference))
		if err := x.create(ctx); err != nil {
			return err
		}
		for name := range objects {
			if err := x.tracked(ctx, name, true); err != nil {
				return err
			}
		}
		if err := x.get(ctx); err != nil || !slices.Contains(x.set.Finalizers, v1alpha1.Finalizer) {
			return errors.Join(err, fmt.Errorf("the set has finalizers %v", x.set.Finalizers))
		}
		if err := errors.Join(c.Client.Delete(ctx, x.set, client.PropagationPolicy(way)), c.gone(ctx, x.set)); err != nil {
			return fmt.Errorf("deletion %s: %w", way, err)
		}
		if way != metav1.DeletePropagationOrphan {
			err = x.empty(ctx)
		}
		if err = errors.Join(err, x.spared(ctx, objects), c.ownedByBoss(ctx)); err != nil {
			return fmt.Errorf("deletion %s: %w", way, err)
		}
	}
	return c.untracks(ctx, objects)
}

// untracks drops a reference, then the tracking, and then following changes at all.
func (c *Cluster) untracks(ctx context.Context, objects map[string]client.Object) error {
	x := c.extended("untracks", 1, patiently, configured(v1alpha1.TrackByOwnerReference))
	if err := errors.Join(x.create(ctx), x.tracked(ctx, byEnvFrom, true)); err != nil {
		return err
	}
	drop := func(s *v1alpha1.ExtendedStatefulSetSpec) { keeperOf(s).EnvFrom = nil }
	if err := errors.Join(x.edit(ctx, drop), x.serves(ctx, 2), x.tracked(ctx, byEnvFrom, false), x.tracked(ctx, byVolume, true)); err != nil {
		return err
	}
	if err := x.edit(ctx, func(s *v1alpha1.ExtendedStatefulSetSpec) { s.UpdateOnEnvChange = false }); err != nil {
		return err
	}
	if err := errors.Join(x.spared(ctx, objects), x.serves(ctx, 2)); err != nil {
		return err
	}
	return until(ctx, "the finalizer to go", func(ctx context.Context) error {
		err := x.get(ctx)
		if err == nil && len(x.set.Finalizers) > 0 {
			err = fmt.Errorf("there are %v", x.set.Finalizers)
		}
		return err
	})
}

func trackedNamespaceDeleted(ctx context.Context, c *Cluster) error {
	other, remove, err := c.New(ctx)
	if err != nil {
		return err
	}
	defer remove()
	if err := other.objects(ctx); err != nil {
		return err
	}
	x := other.extended("leaving", 1, patiently, configured(v1alpha1.TrackByOwnerReference), onClaims)
	if err := errors.Join(x.create(ctx), x.tracked(ctx, byEnv, true)); err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.Namespace}}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(ns), ns); err != nil {
		return err
	}
	return errors.Join(c.Client.Delete(ctx, ns), c.gone(ctx, ns))
}
