package promises

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// targetNamespaces is where OLM says in which namespaces an operator is to act;
// config/manager makes WATCH_NAMESPACE of it.
const targetNamespaces = "olm.targetNamespaces"

// namespacesAreKept tells the operator to act in one namespace, then in a list
// of two, then in all again.
func namespacesAreKept(ctx context.Context, c *Cluster) (err error) {
	other, remove, err := c.New(ctx)
	if err != nil {
		return err
	}
	defer remove()
	was, err := c.watch(ctx, other.Namespace)
	if err != nil {
		return err
	}
	defer func() {
		_, back := c.watch(context.WithoutCancel(ctx), was)
		err = errors.Join(err, back)
	}()
	ours, theirs := c.newSet(1), other.newSet(1)
	if err := c.Client.Create(ctx, ours); err != nil {
		return err
	}
	if _, err := other.create(ctx, theirs); err != nil {
		return err
	}
	c.Log("the set in the watched namespace is Ready; nothing may have happened to the other")
	if err := c.untouched(ctx, ours); err != nil {
		return err
	}
	if _, err := c.watch(ctx, other.Namespace+","+c.Namespace); err != nil {
		return err
	}
	if _, err := c.settle(ctx, ours); err != nil {
		return err
	}
	two := int32(2)
	if err := other.edit(ctx, theirs, func(s *v1alpha1.StatefulCluster) { s.Spec.Replicas = &two }); err != nil {
		return err
	}
	_, err = other.settle(ctx, theirs)
	return err
}

// untouched checks that the operator did nothing for a set.
func (c *Cluster) untouched(ctx context.Context, set *v1alpha1.StatefulCluster) error {
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return err
	}
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.InNamespace(c.Namespace)); err != nil {
		return err
	}
	if set.Status.ObservedGeneration != 0 || len(pods.Items) > 0 {
		return fmt.Errorf("the operator acts in %s, which it does not watch: %d pods, status %s", c.Namespace, len(pods.Items), brief(set.Status))
	}
	return nil
}

// watch has the operator act in these namespaces, "" for all, and waits until
// no operator is left that acts in others. It returns what was said before.
func (c *Cluster) watch(ctx context.Context, namespaces string) (was string, err error) {
	c.Log("the operator is to watch %q", namespaces)
	var d appsv1.Deployment
	err = until(ctx, "the operator to be told its namespaces", func(ctx context.Context) error {
		if err := c.Client.Get(ctx, c.Operator, &d); err != nil {
			return err
		}
		said := &d.Spec.Template.Annotations
		if was = (*said)[targetNamespaces]; *said == nil {
			*said = map[string]string{}
		}
		if (*said)[targetNamespaces] = namespaces; namespaces == "" {
			delete(*said, targetNamespaces)
		}
		return c.Client.Update(ctx, &d)
	})
	if err != nil {
		return was, err
	}
	return was, until(ctx, "the operator to roll out", func(ctx context.Context) error {
		if err := c.Client.Get(ctx, c.Operator, &d); err != nil {
			return err
		}
		var pods corev1.PodList
		if err := c.Client.List(ctx, &pods, client.InNamespace(c.Operator.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
			return err
		}
		s, want := d.Status, *d.Spec.Replicas
		if s.ObservedGeneration != d.Generation || s.UpdatedReplicas != want || s.AvailableReplicas != want || len(pods.Items) != int(want) {
			return fmt.Errorf("%d pods, %d updated, %d available", len(pods.Items), s.UpdatedReplicas, s.AvailableReplicas)
		}
		return nil
	})
}
