package statefulcluster

import (
	"context"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// targetNamespaces is the annotation in which OLM specifies the namespaces of an operator.
// config/manager derives WATCH_NAMESPACE from it.
const targetNamespaces = "olm.targetNamespaces"

// namespacesAreKept makes the operator watch one namespace, then a list of two, then all again.
func namespacesAreKept(ctx context.Context, c *kit.Cluster) {
	other := c.Another(ctx)
	var d appsv1.Deployment
	c.Check(c.Client.Get(ctx, c.Operator, &d))
	c.Cleanup(func() { watch(context.WithoutCancel(ctx), c, d.Spec.Template.Annotations[targetNamespaces]) })
	watch(ctx, c, other.Namespace)
	ours, theirs := newSet(c, 1), newSet(other, 1)
	c.Put(ctx, ours)
	create(ctx, other, theirs)
	c.Log("the set in the watched namespace is Ready; the other set must not have changed")
	untouched(ctx, c, ours)
	watch(ctx, c, other.Namespace+","+c.Namespace)
	settle(ctx, c, ours)
	edit(ctx, other, theirs, func(s *v1alpha1.StatefulCluster) { s.Spec.Replicas = new(int32(2)) })
	settle(ctx, other, theirs)
}

// untouched checks that the operator did nothing for a set.
func untouched(ctx context.Context, c *kit.Cluster, set *v1alpha1.StatefulCluster) {
	c.Read(ctx, set)
	var pods corev1.PodList
	c.List(ctx, &pods, client.InNamespace(c.Namespace))
	c.Expect(set.Status.ObservedGeneration).To(BeNumerically("<", 1), "the operator manages %s, which it does not watch: %d pods, status %s", c.Namespace, len(pods.Items), describe(set.Status))
	c.Expect(pods.Items).To(BeEmpty(), "the operator manages %s, which it does not watch: %d pods, status %s", c.Namespace, len(pods.Items), describe(set.Status))
}

// watch makes the operator watch these namespaces, "" for all, and waits until no operator with the
// previous namespaces is left.
func watch(ctx context.Context, c *kit.Cluster, namespaces string) {
	c.Log("the operator is to watch %q", namespaces)
	parts := append(c.OperatorParts(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.Operator.Namespace, Name: strings.TrimSuffix(c.Operator.Name, "controller-manager") + "installer"}})
	for _, d := range parts {
		watchBy(ctx, c, d, namespaces)
	}
	for _, d := range parts {
		rolledOut(ctx, c, d)
	}
}

func watchBy(ctx context.Context, c *kit.Cluster, d *appsv1.Deployment, namespaces string) {
	kit.Change(ctx, c, d, func(d *appsv1.Deployment) {
		metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, targetNamespaces, namespaces)
		if namespaces == "" {
			delete(d.Spec.Template.Annotations, targetNamespaces)
		}
	})
}

func rolledOut(ctx context.Context, c *kit.Cluster, d *appsv1.Deployment) {
	c.Until(ctx, d.Name+" to roll out", func(ctx context.Context) {
		c.Read(ctx, d)
		var pods corev1.PodList
		c.List(ctx, &pods, client.InNamespace(c.Operator.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels))
		s, want := d.Status, *d.Spec.Replicas
		c.Expect(s.ObservedGeneration).To(Equal(d.Generation), "%d pods, %d updated, %d available", len(pods.Items), s.UpdatedReplicas, s.AvailableReplicas)
		c.Expect(s.UpdatedReplicas).To(Equal(want), "%d pods, %d updated, %d available", len(pods.Items), s.UpdatedReplicas, s.AvailableReplicas)
		c.Expect(s.AvailableReplicas).To(Equal(want), "%d pods, %d updated, %d available", len(pods.Items), s.UpdatedReplicas, s.AvailableReplicas)
		c.Expect(pods.Items).To(HaveLen(int(want)), "%d pods, %d updated, %d available", len(pods.Items), s.UpdatedReplicas, s.AvailableReplicas)
	})
}
