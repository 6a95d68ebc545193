package statefulsingleton_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

var _ = Describe("a drain with onEviction ReplaceFirst", func() {
	var (
		ns, here string
		s        *v1.StatefulSingleton
		set      *appsv1.ReplicaSet
		d        *appsv1.Deployment
	)
	replacing := func(s *v1.StatefulSingleton) { s.Spec.OnEviction = v1.EvictionReplacesFirst }
	begin := func(ctx context.Context) *corev1.Pod {
		ns = newNamespace(ctx)
		here = "of-" + ns
		addNode(ctx, here)
		startOperator(operatorOptions{namespaces: []string{ns}})
		s = declare(ctx, newSingleton(ns, replacing))
		d = newDeployment(ns, 1)
		Expect(user.Create(ctx, d)).To(Succeed())
		set = revision(ctx, d, "1")
		a := add(ctx, newPod(ns, "a", madeBy(set), playing(playNode, here)))
		activates(ctx, s, a)
		return a
	}
	cordon := func(ctx context.Context, on bool) {
		n := &corev1.Node{ObjectMeta: named(here)}
		edit(ctx, n, func(n *corev1.Node) { n.Spec.Unschedulable = on })
	}
	controller := func(ctx context.Context, p *corev1.Pod) string {
		if owner := metav1.GetControllerOf(live(ctx, p)); owner != nil {
			return owner.Kind + " " + owner.Name
		}
		return ""
	}
	refusesEviction := func(ctx context.Context, p *corev1.Pod) bool {
		return apierrors.IsTooManyRequests(user.SubResource("eviction").Create(ctx, p, &policyv1.Eviction{}))
	}

	It("S42 refuses the eviction, detaches the holder from its ReplicaSet, and deletes it when the next pod waits on another Node", func(ctx SpecContext) {
		a := begin(ctx)
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db.singleton"}}
		Eventually(func() error { return user.Get(ctx, client.ObjectKeyFromObject(budget), budget) }).Should(Succeed())
		budget.Status.ObservedGeneration = budget.Generation // as the disruption controller sets it
		Expect(user.Status().Update(ctx, budget)).To(Succeed())
		Expect(refusesEviction(ctx, a)).To(BeTrue())
		Expect(user.Delete(ctx, budget)).To(Succeed())
		Eventually(func() error { return user.Get(ctx, client.ObjectKeyFromObject(budget), budget) }).Should(Succeed(), "the operator should recreate the PodDisruptionBudget")

		cordon(ctx, true)
		Eventually(func() string { return controller(ctx, a) }).Should(Equal("Deployment db"))
		Expect(live(ctx, a).Annotations).To(HaveKeyWithValue(v1.AnnotationDetached, string(a.UID)+" db-1"))
		Expect(live(ctx, a).Labels).To(HaveKeyWithValue("pod-template-hash", "1"))
		Eventually(func() []string { return notes(ctx, s, v1.EventPodDetached) }).Should(Equal([]string{"Normal: pod a: its Node " + here + " is cordoned, and ReplicaSet db-1 creates another pod"}))
		b := add(ctx, newPod(ns, "b", madeBy(set), playing(playPending, "yes")))
		Eventually(func() []string { return look(ctx, s).Waiting }).Should(Equal([]string{"b"}))
		Expect(live(ctx, a).DeletionTimestamp).To(BeNil(), "the replacement does not wait at its gate yet")
		tell(ctx, b, playPending, "")
		gone(ctx, a)
		activates(ctx, s, b)
	})

	It("S43 that is canceled returns the pod to its ReplicaSet", func(ctx SpecContext) {
		a := begin(ctx)
		cordon(ctx, true)
		Eventually(func() string { return controller(ctx, a) }).Should(Equal("Deployment db"))
		cordon(ctx, false)
		Eventually(func() string { return controller(ctx, a) }).Should(BeEmpty(), "its ReplicaSet should adopt the pod")
		Expect(live(ctx, a).Annotations).NotTo(HaveKey(v1.AnnotationDetached))
		look(ctx, s)
		Expect(live(ctx, a).DeletionTimestamp).To(BeNil())
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db.singleton"}}
		Expect(user.Get(ctx, client.ObjectKeyFromObject(budget), budget)).To(Succeed(), "the PodDisruptionBudget should remain")
	})

	It("S44 of a Deployment that is scaled to 0 deletes the detached pod", func(ctx SpecContext) {
		a := begin(ctx)
		cordon(ctx, true)
		Eventually(func() string { return controller(ctx, a) }).Should(Equal("Deployment db"))
		edit(ctx, d, func(d *appsv1.Deployment) { *d.Spec.Replicas = 0 })
		look(ctx, s)
		gone(ctx, a)
	})

	It("S45 of a Deployment with strategy Recreate works as with Replace", func(ctx SpecContext) {
		a := begin(ctx)
		edit(ctx, d, func(d *appsv1.Deployment) {
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		})
		look(ctx, s)
		Expect(says(ctx, s, v1.ConditionDegraded, v1.ReasonNotReplacedFirst)).To(ContainSubstring("a drain evicts pod a as with Replace: Deployment db has strategy Recreate"))
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db.singleton"}}
		Eventually(func() bool { return apierrors.IsNotFound(user.Get(ctx, client.ObjectKeyFromObject(budget), budget)) }).Should(BeTrue())
		cordon(ctx, true)
		look(ctx, s)
		Expect(controller(ctx, a)).To(Equal("ReplicaSet db-1"))
	})
})
