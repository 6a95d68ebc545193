package kit

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OperatorParts returns the Deployments that reconcile objects and serve webhooks. The installer is
// not one of them: its objects stay without it.
func (c *Cluster) OperatorParts() []*appsv1.Deployment {
	webhooks := strings.TrimSuffix(c.Operator.Name, "controller-manager") + "webhook"
	return []*appsv1.Deployment{
		{ObjectMeta: metav1.ObjectMeta{Namespace: c.Operator.Namespace, Name: c.Operator.Name}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: c.Operator.Namespace, Name: webhooks}},
	}
}

// OperatorPods selects the pods that reconcile objects and serve webhooks.
func (c *Cluster) OperatorPods() client.MatchingLabelsSelector {
	selector, err := labels.Parse("control-plane in (controller-manager, webhook)")
	c.Check(err)
	return client.MatchingLabelsSelector{Selector: selector}
}

// OperatorLease is the name of the operator's lease, in its own namespace.
const OperatorLease = "stateful-operator"

// Leader returns the operator's pod that holds the lease.
func (c *Cluster) Leader(ctx context.Context) (leader corev1.Pod) {
	c.Until(ctx, "an operator to become leader", func(ctx context.Context) {
		holder := c.LeaseHolder(ctx)
		var pods corev1.PodList
		c.List(ctx, &pods, client.InNamespace(c.Operator.Namespace))
		at := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil && p.Name == holder })
		c.Expect(at).To(BeNumerically(">=", 0), "%q holds the lease", holder)
		leader = pods.Items[at]
	})
	return leader
}

// LeaseHolder returns the name of the pod that holds the operator's lease.
func (c *Cluster) LeaseHolder(ctx context.Context) string {
	var lease coordinationv1.Lease
	c.Check(c.Client.Get(ctx, client.ObjectKey{Namespace: c.Operator.Namespace, Name: OperatorLease}, &lease))
	name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	return name
}

// AwaitOperators waits until all pods of the operator are Ready.
func (c *Cluster) AwaitOperators(ctx context.Context) {
	for _, d := range c.OperatorParts() {
		c.Read(ctx, d)
		c.awaitScale(ctx, d, *d.Spec.Replicas)
	}
}

// WithOperatorImage upgrades the operator to an image, calls do, and restores the image.
func (c *Cluster) WithOperatorImage(ctx context.Context, image string, do func()) {
	for _, d := range c.OperatorParts() {
		c.Read(ctx, d)
		old := d.Spec.Template.Spec.Containers[0].Image
		c.Expect(old).NotTo(Equal(image))
		defer c.setImage(context.WithoutCancel(ctx), d, old)
		c.setImage(ctx, d, image)
	}
	do()
}

// setImage changes the image of a Deployment, and waits until all its pods use it.
func (c *Cluster) setImage(ctx context.Context, d *appsv1.Deployment, image string) {
	Change(ctx, c, d, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image })
	c.Until(ctx, d.Name+" to be upgraded", func(ctx context.Context) {
		c.Read(ctx, d)
		s, want := d.Status, *d.Spec.Replicas
		c.Expect(s.ObservedGeneration).To(Equal(d.Generation))
		c.Expect([]int32{s.Replicas, s.UpdatedReplicas, s.AvailableReplicas}).To(HaveEach(want))
	})
	c.awaitScale(ctx, d, *d.Spec.Replicas)
}

// KillOperators deletes all operator pods without grace period.
func (c *Cluster) KillOperators(ctx context.Context) {
	c.Check(c.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(c.Operator.Namespace),
		c.OperatorPods(), client.GracePeriodSeconds(0)))
}

// WhileNoOperator calls do while nothing reconciles objects or serves webhooks.
func (c *Cluster) WhileNoOperator(ctx context.Context, do func()) {
	for _, d := range c.OperatorParts() {
		c.Read(ctx, d)
		replicas := *d.Spec.Replicas
		defer func() { c.awaitScale(context.WithoutCancel(ctx), d, replicas) }()
		defer func() { c.scale(context.WithoutCancel(ctx), d, replicas) }()
		c.scale(ctx, d, 0)
		c.awaitScale(ctx, d, 0)
	}
	do()
}

func (c *Cluster) scale(ctx context.Context, d *appsv1.Deployment, replicas int32) {
	Change(ctx, c, d, func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
}

// awaitScale waits until that many pods of a Deployment run.
func (c *Cluster) awaitScale(ctx context.Context, d *appsv1.Deployment, replicas int32) {
	c.Until(ctx, "the operator to be scaled", func(ctx context.Context) {
		var pods corev1.PodList
		c.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels))
		unready := slices.DeleteFunc(slices.Clone(pods.Items), func(p corev1.Pod) bool { return PodCondition(&p, corev1.PodReady) })
		c.Expect(unready).To(BeEmpty(), "%d of %d pods are not Ready, and %d are wanted", len(unready), len(pods.Items), replicas)
		c.Expect(pods.Items).To(HaveLen(int(replicas)), "%d of %d pods are not Ready, and %d are wanted", len(unready), len(pods.Items), replicas)
	})
}

// PermitFencing gives the operator the rights that fencing by a Lease requires, as docs/security.md describes.
func (c *Cluster) PermitFencing(ctx context.Context) {
	err := c.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "stateful-operator-fencing"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "stateful-operator-fencing-role"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.Operator.Namespace, Name: "stateful-operator-controller-manager"}},
	})
	c.Check(client.IgnoreAlreadyExists(err))
}
