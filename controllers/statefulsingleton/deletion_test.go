package statefulsingleton_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// isGone reports whether the object is gone.
func isGone(ctx context.Context, s *v1.StatefulSingleton) bool {
	var have v1.StatefulSingleton
	return apierrors.IsNotFound(user.Get(ctx, client.ObjectKeyFromObject(s), &have))
}

var _ = Describe("S25 a deleted object", func() {
	var ns string
	var op *operator
	var s *v1.StatefulSingleton
	var a *corev1.Pod
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		op = startOperator(operatorOptions{namespaces: []string{ns}})
		s = declare(ctx, newSingleton(ns))
		a = add(ctx, newPod(ns, "a"))
		activates(ctx, s, a)
	})
	vanishes := func(ctx SpecContext) {
		GinkgoHelper()
		Eventually(func() bool { return isGone(ctx, s) }).Should(BeTrue())
	}

	It("does not stop the running pod, which a recreated object adopts", func(ctx SpecContext) {
		Expect(user.Delete(ctx, s.DeepCopy())).To(Succeed())
		vanishes(ctx)
		left := live(ctx, a)
		Expect(left.Finalizers).To(BeEmpty())
		Expect(left.DeletionTimestamp).To(BeNil())
		s = declare(ctx, newSingleton(ns))
		activates(ctx, s, a)
		Expect(live(ctx, a).UID).To(Equal(a.UID))
		b := add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
		remove(ctx, a)
		activates(ctx, s, b)
		Expect(s.Status.Holder.Epoch).To(BeEquivalentTo(2), "the epoch should continue")
	})

	It("remains while pods wait, and starts them one after another", func(ctx SpecContext) {
		b, c := add(ctx, newPod(ns, "b")), add(ctx, newPod(ns, "c"))
		activates(ctx, s, a, "b", "c")
		Expect(user.Delete(ctx, s.DeepCopy())).To(Succeed())
		Expect(says(ctx, s, v1.ConditionProgressing, v1.ReasonReleasing)).To(Equal("the StatefulSingleton is being deleted, and remains until no pod waits for its turn: b, c; pod a may be running its program and was not asked to stop. New pods wait as well: scale their owner to one pod. To start all waiting pods at the same time: kubectl -n " + ns + " annotate statefulsingleton db apps.statefulsingleton.com/release-now=true"))
		look(ctx, s)
		Expect(granted(live(ctx, b)) || granted(live(ctx, c))).To(BeFalse())
		remove(ctx, a)
		activates(ctx, s, b, "c")
		remove(ctx, b)
		Eventually(func() bool { return granted(live(ctx, c)) }).Should(BeTrue())
		vanishes(ctx)
		Eventually(func() []string { return live(ctx, c).Finalizers }).Should(BeEmpty())
		Expect(readiness(live(ctx, c))).To(Equal(corev1.ConditionTrue), "the pod would never become Ready")
	})

	It("W14 continues a rollout, and adds the gate to new pods, which wait", func(ctx SpecContext) {
		tell(ctx, a, playHang, "yes")
		b := add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
		Expect(user.Delete(ctx, live(ctx, a))).To(Succeed())
		Expect(user.Delete(ctx, s.DeepCopy())).To(Succeed())
		says(ctx, s, v1.ConditionProgressing, v1.ReasonReleasing) // the operator has seen the deletion
		late := add(ctx, newPod(ns, "late"))
		Expect(gated(late)).To(BeTrue())
		Eventually(func() []string { return look(ctx, s).Waiting }).Should(ConsistOf("b", "late"))
		tell(ctx, a, playHang, "")
		activates(ctx, s, b, "late")
		remove(ctx, late) // as its ReplicaSet does when b is Ready
		vanishes(ctx)
		Expect(granted(live(ctx, b))).To(BeTrue())
	})

	It("W14 remains while its pod is stopping, and holds back the pod that is created meanwhile", func(ctx SpecContext) {
		tell(ctx, a, playHang, "yes")
		Expect(user.Delete(ctx, live(ctx, a))).To(Succeed())
		Expect(user.Delete(ctx, s.DeepCopy())).To(Succeed())
		Expect(says(ctx, s, v1.ConditionProgressing, v1.ReasonReleasing)).To(ContainSubstring("remains until no pod is stopping: pod a is being deleted"))
		b := add(ctx, newPod(ns, "b"))
		Expect(gated(b)).To(BeTrue())
		Eventually(func() []string { return look(ctx, s).Waiting }).Should(Equal([]string{"b"}))
		tell(ctx, a, playHang, "")
		Eventually(func() bool { return granted(live(ctx, b)) }).Should(BeTrue())
		vanishes(ctx)
	})

	It("W14 allows pods without the gate if only the finalizer of another controller keeps it", func(ctx SpecContext) {
		edit(ctx, s, func(s *v1.StatefulSingleton) { s.Finalizers = append(s.Finalizers, "example.com/mine") })
		Expect(user.Delete(ctx, s.DeepCopy())).To(Succeed())
		Eventually(func() bool { // until the webhook and the guard know it
			late := newPod(ns, "late")
			return user.Create(ctx, late, client.DryRunAll) == nil && !gated(late)
		}).Should(BeTrue())
		edit(ctx, s, func(s *v1.StatefulSingleton) { s.Finalizers = nil })
		vanishes(ctx)
	})

	It("starts all waiting pods at the same time with annotation release-now", func(ctx SpecContext) {
		b, c := add(ctx, newPod(ns, "b")), add(ctx, newPod(ns, "c"))
		activates(ctx, s, a, "b", "c")
		edit(ctx, s, func(s *v1.StatefulSingleton) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1.AnnotationReleaseNow, "true")
		})
		look(ctx, s)
		Expect(granted(live(ctx, b))).To(BeFalse(), "the object is not being deleted")
		theInvariant.excuse(ns)
		Expect(user.Delete(ctx, s.DeepCopy())).To(Succeed())
		vanishes(ctx)
		for _, p := range []*corev1.Pod{a, b, c} {
			have := live(ctx, p)
			Expect(granted(have)).To(BeTrue(), p.Name)
			Expect(have.Finalizers).To(BeEmpty(), p.Name)
			Expect(readiness(have)).To(Equal(corev1.ConditionTrue), p.Name)
		}
	})

	It("starts all waiting pods when its namespace is deleted, and does not block that deletion", func(ctx SpecContext) {
		b := add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
		theInvariant.excuse(ns)
		Expect(user.Delete(ctx, &corev1.Namespace{ObjectMeta: named(ns)})).To(Succeed())
		// There is no namespace controller here. It deletes all objects in any order.
		for _, p := range []*corev1.Pod{a, b} {
			remove(ctx, p)
		}
		Expect(user.DeleteAllOf(ctx, &v1.StatefulSingleton{}, client.InNamespace(ns))).To(Succeed())
		Expect(user.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(ns))).To(Succeed())
		vanishes(ctx)
		gone(ctx, a)
		gone(ctx, b)
	})

	It("leaves no pod waiting forever after a user removed its finalizer", func(ctx SpecContext) {
		b, c := add(ctx, newPod(ns, "b")), add(ctx, newPod(ns, "c"))
		activates(ctx, s, a, "b", "c")
		edit(ctx, s, func(s *v1.StatefulSingleton) { s.Finalizers = []string{"example.com/mine"} })
		Expect(user.Delete(ctx, s.DeepCopy())).To(Succeed())
		edit(ctx, s, func(s *v1.StatefulSingleton) { s.Finalizers = nil })
		vanishes(ctx)
		theInvariant.countAgain(ns)
		Eventually(func() []string { return live(ctx, a).Finalizers }).Should(BeEmpty())
		remove(ctx, a)
		Eventually(func() bool { return granted(live(ctx, b)) }).Should(BeTrue())
		Expect(granted(live(ctx, c))).To(BeFalse(), "only one pod should start")
		remove(ctx, b)
		Eventually(func() bool { return granted(live(ctx, c)) }).Should(BeTrue())
		Eventually(func() corev1.ConditionStatus { return readiness(live(ctx, c)) }).Should(Equal(corev1.ConditionTrue))
	})

	It("leaves no pod waiting forever if it was deleted while no operator ran", func(ctx SpecContext) {
		b := add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
		op.stop()
		edit(ctx, s, func(s *v1.StatefulSingleton) { s.Finalizers = nil })
		Expect(user.Delete(ctx, s.DeepCopy())).To(Succeed())
		vanishes(ctx)
		theInvariant.countAgain(ns)
		Expect(user.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(ns))).To(Succeed()) // as the garbage collector does
		remove(ctx, a)
		startOperator(operatorOptions{namespaces: []string{ns}})
		Eventually(func() bool { return granted(live(ctx, b)) }).Should(BeTrue())
	})
})
