package singleton

import (
	"context"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

func replaceFirst(s *v1.StatefulSingletonSpec) { s.OnEviction = v1.EvictionReplacesFirst }

// keptFirst starts a program that cannot be evicted until another pod waits.
func (a *application) keptFirst(ctx context.Context) (*appsv1.Deployment, testimony.Run) {
	a.hold(ctx, replaceFirst)
	d := a.deploy(ctx, 1, surge())
	run := a.one(ctx)
	a.active(ctx, run)
	a.ready(ctx, run)
	a.refuses(ctx, run)
	return d, run
}

// drainedFirst drains the node of a program, like kubectl drain: it cordons the node, and retries
// the eviction until that is granted or the pod is deleted.
func drainedFirst(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "first")
	d, old := a.keptFirst(ctx)
	c.Cleanup(func() { a.Cordon(context.WithoutCancel(ctx), old.Node, false) })
	next := a.handover(ctx, "drain with ReplaceFirst", func(old testimony.Run) {
		a.Cordon(ctx, old.Node, true)
		a.drainOf(ctx, old)
	})
	c.Expect(next.Node).NotTo(Equal(old.Node), "%s is on the drained node", next.Pod)
	a.active(ctx, next)
	a.ready(ctx, next)
	a.Cordon(ctx, old.Node, false)
	a.rolledOut(ctx, d)
	a.oldStopped(old)
	controller := metav1.GetControllerOf(a.podOf(ctx, next))
	c.Expect(controller).NotTo(BeNil(), "%s is controlled by %v", next.Pod, controller)
	c.Expect(controller.Kind).To(BeEquivalentTo("ReplicaSet"), "%s is controlled by %v", next.Pod, controller)
	a.event(ctx, v1.EventPodDetached)
}

// refuses waits until the API server refuses the eviction of a program because of its budget.
func (a *application) refuses(ctx context.Context, run testimony.Run) {
	a.Until(ctx, "evictions of "+run.Pod+" to be refused", func(ctx context.Context) {
		var budget policyv1.PodDisruptionBudget
		a.Check(a.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Name + ".singleton"}, &budget))
		a.Expect(budget.Status.DisruptionsAllowed).To(BeZero(), "its budget allows it")
		a.Expect(budget.Status.ObservedGeneration).To(Equal(budget.Generation), "its budget was not reconciled yet")
	})
	err := a.set().Evict(ctx, a.Client, run)
	a.Expect(apierrors.IsTooManyRequests(err)).To(BeTrue(), "the eviction of %s returned %v", run.Pod, err)
}

// drainOf evicts a pod with retries until it is terminating or deleted. kubectl drain refuses a pod
// without a controller.
func (a *application) drainOf(ctx context.Context, run testimony.Run) {
	refused := 0
	a.Until(ctx, "the drain to have "+run.Pod, func(ctx context.Context) {
		var pod corev1.Pod
		err := a.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: run.Pod}, &pod)
		if apierrors.IsNotFound(err) || string(pod.UID) != run.UID || pod.DeletionTimestamp != nil {
			return
		}
		a.Check(err)
		if metav1.GetControllerOf(&pod) == nil {
			a.Fail("kubectl drain would give up: pod %s has no controller", pod.Name)
		}
		err = a.set().Evict(ctx, a.Client, run)
		if apierrors.IsTooManyRequests(err) {
			refused++
		}
		a.Expect(err).NotTo(HaveOccurred(), "the eviction was refused %d times", refused)
	})
	a.Log("%d evictions of %s were refused until it was deleted", refused, run.Pod)
}

// givenBack cordons the only node on which a program can run, and uncordons it. The program never
// stops, and its pod still belongs to its ReplicaSet.
func givenBack(ctx context.Context, c *kit.Cluster) {
	var nodes corev1.NodeList
	c.List(ctx, &nodes)
	node := nodes.Items[0].Name
	a := newApplication(c, "back", func(t *corev1.PodTemplateSpec) {
		t.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	})
	d, run := a.keptFirst(ctx)
	c.Cleanup(func() { a.Cordon(context.WithoutCancel(ctx), node, false) })
	a.Cordon(ctx, node, true)
	a.says(ctx, "that a pod waits for a node", func(s *v1.StatefulSingleton) bool { return s.Status.WaitingCount == 1 })
	owner := metav1.GetControllerOf(a.podOf(ctx, run))
	c.Expect(owner).NotTo(BeNil(), "%s is controlled by %v", run.Pod, owner)
	c.Expect(owner.Kind).To(BeEquivalentTo("Deployment"), "%s is controlled by %v", run.Pod, owner)
	a.refuses(ctx, run)
	a.Cordon(ctx, node, false)
	a.says(ctx, "that no pod waits", func(s *v1.StatefulSingleton) bool {
		return s.Status.WaitingCount == 0 && s.Status.ActivePod == run.Pod && s.Status.Phase == v1.PhaseRunning
	})
	a.Until(ctx, run.Pod+" to belong to its ReplicaSet again", func(ctx context.Context) {
		owner := metav1.GetControllerOf(a.podOf(ctx, run))
		c.Expect(owner).NotTo(BeNil(), "it is controlled by %v", owner)
		c.Expect(owner.Kind).To(BeEquivalentTo("ReplicaSet"), "it is controlled by %v", owner)
	})
	a.rolledOut(ctx, d)
	c.Expect(a.runs()).To(HaveLen(1), "the program was started again")
	a.event(ctx, v1.EventPodReturned)
}
