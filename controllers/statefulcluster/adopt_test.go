package statefulcluster_test

import (
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

var _ = Describe("W5 a member whose owner reference was removed", func() {
	It("W5 is adopted, even if its labels were removed too", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		startOperator(operatorOptions{namespaces: []string{ns}})
		set := newSet(ns, 3)
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 3)
		inOrder := slices.Sorted(maps.Keys(before))
		for i, change := range []func(*corev1.Pod){
			func(p *corev1.Pod) { p.OwnerReferences = nil },
			func(p *corev1.Pod) { p.OwnerReferences = nil; delete(p.Labels, v1alpha1.LabelClusterUID) },
			func(p *corev1.Pod) {
				p.OwnerReferences = nil
				delete(p.Labels, v1alpha1.LabelCluster)
				delete(p.Labels, v1alpha1.LabelClusterUID)
			},
		} {
			p := before[inOrder[i]]
			edit(ctx, &p, change)
			Eventually(func(g Gomega) {
				g.Expect(user.Get(ctx, client.ObjectKeyFromObject(&p), &p)).To(Succeed())
				g.Expect(metav1.IsControlledBy(&p, set)).To(BeTrue())
				g.Expect(p.Labels).To(HaveKeyWithValue(v1alpha1.LabelClusterUID, string(set.UID)))
			}).Should(Succeed())
		}
		Expect(uids(settled(ctx, set, 3))).To(ConsistOf(uids(before)))
		whole(ctx, set)
		Expect(set.Status.Lost).To(BeEmpty())
		Expect(claims(ctx, set)).To(HaveLen(3))
	})

	It("W5 requires manual intervention if the operator was down, and a forged pod is not adopted", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		first := startOperator(operatorOptions{namespaces: []string{ns}})
		set := newSet(ns, 2)
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 2)
		first.stop()
		p := anyOf(before)
		edit(ctx, p, func(p *corev1.Pod) { p.OwnerReferences = nil })
		startOperator(operatorOptions{namespaces: []string{ns}})
		Expect(degraded(ctx, set, v1alpha1.ReasonOrphanedPods)).To(ContainSubstring("patch pod " + p.Name))
		Expect(pods(ctx, set)).To(HaveLen(1))
		edit(ctx, p, func(p *corev1.Pod) { // as the command in the message does
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion.WithKind("StatefulCluster"))}
		})
		Expect(uids(settled(ctx, set, 2))).To(ConsistOf(uids(before)))
		whole(ctx, set)

		forged := p.DeepCopy()
		forged.ObjectMeta = metav1.ObjectMeta{Name: "db-zzzzzzzzzz", Namespace: ns, Labels: p.Labels}
		Expect(user.Create(ctx, forged)).To(Succeed())
		Expect(degraded(ctx, set, v1alpha1.ReasonForeignPods)).To(ContainSubstring("db-zzzzzzzzzz"))
		Expect(uids(settled(ctx, set, 2))).To(ConsistOf(uids(before)))
	})
})
