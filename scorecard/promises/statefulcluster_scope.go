package promises

import (
	"context"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// targetNamespaces is the annotation in which OLM specifies the namespaces of an operator.
// config/manager derives WATCH_NAMESPACE from it.
const targetNamespaces = "olm.targetNamespaces"

// namespacesAreKept makes the operator watch one namespace, then a list of two, then all again.
func namespacesAreKept(ctx context.Context, c *Cluster) {
	other := c.another(ctx)
	var d appsv1.Deployment
	c.check(c.Client.Get(ctx, c.Operator, &d))
	c.Cleanup(func() { c.watch(context.WithoutCancel(ctx), d.Spec.Template.Annotations[targetNamespaces]) })
	c.watch(ctx, other.Namespace)
	ours, theirs := c.newSet(1), other.newSet(1)
	c.put(ctx, ours)
	other.create(ctx, theirs)
	c.Log("the set in the watched namespace is Ready; the other set must not have changed")
	c.untouched(ctx, ours)
	c.watch(ctx, other.Namespace+","+c.Namespace)
	c.settle(ctx, ours)
	other.edit(ctx, theirs, func(s *v1alpha1.StatefulCluster) { s.Spec.Replicas = new(int32(2)) })
	other.settle(ctx, theirs)
}

// untouched checks that the operator did nothing for a set.
func (c *Cluster) untouched(ctx context.Context, set *v1alpha1.StatefulCluster) {
	c.read(ctx, set)
	var pods corev1.PodList
	c.list(ctx, &pods, client.InNamespace(c.Namespace))
	c.Expect(set.Status.ObservedGeneration).To(BeZero(), "the operator manages %s, which it does not watch: %d pods, status %s", c.Namespace, len(pods.Items), brief(set.Status))
	c.Expect(pods.Items).To(BeEmpty(), "the operator manages %s, which it does not watch: %d pods, status %s", c.Namespace, len(pods.Items), brief(set.Status))
}

// watch makes the operator watch these namespaces, "" for all, and waits until no operator with the
// previous namespaces is left.
func (c *Cluster) watch(ctx context.Context, namespaces string) {
	c.Log("the operator is to watch %q", namespaces)
	parts := append(c.operatorParts(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.Operator.Namespace, Name: strings.TrimSuffix(c.Operator.Name, "controller-manager") + "installer"}})
	for _, d := range parts {
		c.watchBy(ctx, d, namespaces)
	}
	for _, d := range parts {
		c.rolledOut(ctx, d)
	}
}

func (c *Cluster) watchBy(ctx context.Context, d *appsv1.Deployment, namespaces string) {
	change(ctx, c, d, func(d *appsv1.Deployment) {
		metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, targetNamespaces, namespaces)
		if namespaces == "" {
			delete(d.Spec.Template.Annotations, targetNamespaces)
		}
	})
}

func (c *Cluster) rolledOut(ctx context.Context, d *appsv1.Deployment) {
	c.until(ctx, d.Name+" to roll out", func(ctx context.Context) {
		c.read(ctx, d)
		var pods corev1.PodList
		c.list(ctx, &pods, client.InNamespace(c.Operator.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels))
		s, want := d.Status, *d.Spec.Replicas
		c.Expect(s.ObservedGeneration).To(Equal(d.Generation), "%d pods, %d updated, %d available", len(pods.Items), s.UpdatedReplicas, s.AvailableReplicas)
		c.Expect(s.UpdatedReplicas).To(Equal(want), "%d pods, %d updated, %d available", len(pods.Items), s.UpdatedReplicas, s.AvailableReplicas)
		c.Expect(s.AvailableReplicas).To(Equal(want), "%d pods, %d updated, %d available", len(pods.Items), s.UpdatedReplicas, s.AvailableReplicas)
		c.Expect(pods.Items).To(HaveLen(int(want)), "%d pods, %d updated, %d available", len(pods.Items), s.UpdatedReplicas, s.AvailableReplicas)
	})
}
