package kubecontrollers

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// blocks reports whether a budget forbids the eviction of a pod. Karpenter and the Cluster Autoscaler
// check budgets in this way before they taint a node.
func (s *site) blocks(ctx context.Context, g Gomega, pod *corev1.Pod) bool {
	var budgets policyv1.PodDisruptionBudgetList
	g.Expect(s.admin.List(ctx, &budgets, client.InNamespace(pod.Namespace))).To(Succeed())
	for i := range budgets.Items {
		b := &budgets.Items[i]
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(b.Status.ObservedGeneration).To(Equal(b.Generation))
		if selector.Matches(labels.Set(pod.Labels)) && b.Status.DisruptionsAllowed == 0 {
			return true
		}
	}
	return false
}

// play replaces the scheduler and the kubelets: it starts the pods on the first node without a taint,
// and ends deleted pods.
func (s *site) play(ctx context.Context, g Gomega) (running []corev1.Pod) {
	var nodes corev1.NodeList
	var pods corev1.PodList
	g.Expect(s.admin.List(ctx, &nodes)).To(Succeed())
	g.Expect(s.admin.List(ctx, &pods, client.InNamespace(data))).To(Succeed())
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch {
		case pod.DeletionTimestamp != nil:
			g.Expect(client.IgnoreNotFound(s.admin.Delete(ctx, pod, client.GracePeriodSeconds(0)))).To(Succeed())
		case pod.Spec.NodeName == "":
			for _, node := range nodes.Items {
				if len(node.Spec.Taints) == 0 {
					g.Expect(s.admin.SubResource("binding").Create(ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}})).To(Succeed())
					break
				}
			}
		case pod.Status.Phase != corev1.PodRunning:
			now := metav1.Now()
			pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, ObservedGeneration: pod.Generation,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "program", Ready: true, Started: new(true), Image: "image", ImageID: "image", ContainerID: "c://" + string(pod.UID),
					State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}}}
			g.Expect(s.admin.Status().Update(ctx, pod)).To(Succeed())
		default:
			running = append(running, *pod)
		}
	}
	return running
}

// node creates a Ready node.
func (s *site) node(ctx context.Context, name string) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Expect(s.admin.Create(ctx, node)).To(Succeed())
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
	s.Expect(s.admin.Status().Update(ctx, node)).To(Succeed())
	node.Spec.Taints = nil // no controller removes the API server's taint
	s.Expect(s.admin.Update(ctx, node)).To(Succeed())
}

// autoscalers verifies docs/node-loss.md on budgets that allow no disruption. A client that checks
// budgets first never starts. A client that taints the node first gets it empty, and no member is
// missing.
func (s *site) autoscalers(t *testing.T) {
	ctx := t.Context()
	s.install(ctx)
	s.node(ctx, "first")
	set := &engev1alpha1.StatefulCluster{ObjectMeta: metav1.ObjectMeta{Namespace: data, Name: "kept"}}
	set.Spec.Replicas = new(int32(2))
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kept"}}
	set.Spec.Replacement.OnEviction = engev1alpha1.EvictionReplacesFirst
	set.Spec.Template.Labels = map[string]string{"app": "kept"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "program", Image: "image"}}
	s.Eventually(func() error { return s.admin.Create(ctx, set.DeepCopy()) }).Should(Succeed())
	s.Eventually(func(g Gomega) {
		running := s.play(ctx, g)
		g.Expect(running).To(HaveLen(2))
		g.Expect(s.blocks(ctx, g, &running[0])).To(BeTrue(), "at rest the budget allows no disruption, so no eviction starts")
		var now engev1alpha1.StatefulCluster
		g.Expect(s.admin.Get(ctx, client.ObjectKeyFromObject(set), &now)).To(Succeed())
		g.Expect(now.Status.AvailableReplicas).To(BeEquivalentTo(2))
	}).Should(Succeed())

	s.node(ctx, "second")
	var first corev1.Node
	s.Expect(s.admin.Get(ctx, client.ObjectKey{Name: "first"}, &first)).To(Succeed())
	first.Spec.Taints = append(first.Spec.Taints, corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule})
	s.Expect(s.admin.Update(ctx, &first)).To(Succeed())
	s.Eventually(func(g Gomega) {
		running := s.play(ctx, g)
		var left []string
		for _, pod := range running {
			if pod.Spec.NodeName == "first" {
				left = append(left, pod.Name)
				err := s.admin.SubResource("eviction").Create(ctx, &pod, &policyv1.Eviction{})
				g.Expect(err == nil || apierrors.IsTooManyRequests(err) || apierrors.IsNotFound(err)).To(BeTrue(), fmt.Sprint(err))
			}
		}
		s.Expect(len(running)).To(BeNumerically(">=", 2), "members that run")
		g.Expect(left).To(BeEmpty())
		g.Expect(running).To(HaveLen(2))
	}).Should(Succeed())
	// There is no kubelet that ends pods with a node.
	s.Expect(s.admin.Delete(ctx, set)).To(Succeed())
	s.Eventually(func(g Gomega) {
		s.play(ctx, g)
		var pods corev1.PodList
		g.Expect(s.admin.List(ctx, &pods, client.InNamespace(data))).To(Succeed())
		g.Expect(pods.Items).To(BeEmpty())
	}).Should(Succeed())
}
