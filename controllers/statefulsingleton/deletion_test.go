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

// isGone reports whether there is no such object.
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

	It("leaves the running pod alone, and one of its name adopts that pod", func(ctx SpecContext) {
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
		Expect(s.Status.Holder.Epoch).To(BeEquivalentTo(2), "the epoch goes on")
	})

	It("stays while pods wait, and starts them one after another", func(ctx SpecContext) {
		b, c := add(ctx, newPod(ns, "b")), add(ctx, newPod(ns, "c"))
		activates(ctx, s, a, "b", "c")
		Expect(user.Delete(ctx, s.DeepCopy())).To(Succeed())
		Expect(says(ctx, s, v1.ConditionProgressing, v1.ReasonReleasing)).To(Equal("the StatefulSingleton is being deleted, and pods still wait for their turn: b, c; pod a may be running its program and was not told to stop. To start them all at once, together: kubectl -n " + ns + " annotate statefulsingleton db apps.statefulsingleton.com/release-now=true"))
		look(ctx, s)
		Expect(granted(live(ctx, b)) || granted(live(ctx, c))).To(BeFalse())
		remove(ctx, a)
		activates(ctx, s, b, "c")
		remove(ctx, b)
		Eventually(func() bool { return granted(live(ctx, c)) }).Should(BeTrue())
		vanishes(ctx)
		Eventually(func() []string { return live(ctx, c).Finalizers }).Should(BeEmpty())
		Expect(readiness(live(ctx, c))).To(Equal(corev1.ConditionTrue), "it would never be Ready")
	})

	It("does not hold back pods that are made after it, nor wait for them", func(ctx SpecContext) {
		b := add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
		Expect(user.Delete(ctx, s.DeepCopy())).To(Succeed())
		var late *corev1.Pod
		deleted := &v1.StatefulSingleton{}
		Expect(user.Get(ctx, client.ObjectKeyFromObject(s), deleted)).To(Succeed())
		Eventually(func() bool { // the webhook hears of the deletion, and its second is over
			late = newPod(ns, "late")
			return user.Create(ctx, late, client.DryRunAll) == nil && !gated(late) && deleted.DeletionTimestamp.Before(&late.CreationTimestamp)
		}).Should(BeTrue())
		look(ctx, s) // so does the operator: what it reads now is not older
		late = add(ctx, newPod(ns, "late"))
		theInvariant.excuse(ns) // late is a stranger now
		look(ctx, s)
		Expect(live(ctx, late).Finalizers).To(BeEmpty())
		remove(ctx, a)
		Eventually(func() bool { return granted(live(ctx, b)) }).Should(BeTrue())
		vanishes(ctx)
	})

	It("starts all that wait at once where a person says release-now", func(ctx SpecContext) {
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

	It("does so too with its namespace, which it does not hold up", func(ctx SpecContext) {
		b := add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
		theInvariant.excuse(ns)
		Expect(user.Delete(ctx, &corev1.Namespace{ObjectMeta: named(ns)})).To(Succeed())
		// There is no namespace controller here; it deletes all there is, in any order.
		for _, p := range []*corev1.Pod{a, b} {
			remove(ctx, p)
		}
		Expect(user.DeleteAllOf(ctx, &v1.StatefulSingleton{}, client.InNamespace(ns))).To(Succeed())
		Expect(user.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(ns))).To(Succeed())
		vanishes(ctx)
		gone(ctx, a)
		gone(ctx, b)
	})

	It("that a user tore away leaves no pod waiting for ever", func(ctx SpecContext) {
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
		Expect(granted(live(ctx, c))).To(BeFalse(), "one after another")
		remove(ctx, b)
		Eventually(func() bool { return granted(live(ctx, c)) }).Should(BeTrue())
		Eventually(func() corev1.ConditionStatus { return readiness(live(ctx, c)) }).Should(Equal(corev1.ConditionTrue))
	})

	It("that went while no operator ran leaves no pod waiting for ever", func(ctx SpecContext) {
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
