package statefulcluster_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

var _ = Describe("W4 a policy that rewrites images", func() {
	It("W4 blocks neither an update nor its rollback", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		startOperator(operatorOptions{namespaces: []string{ns}})
		set := newSet(ns, 2)
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 2)
		setImage := func(image string) {
			edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = image })
		}
		hasImage := func(image string) {
			GinkgoHelper()
			for name, p := range settled(ctx, set, 2) {
				Expect(p.UID).To(Equal(before[name].UID))
				Expect(p.Annotations).NotTo(HaveKey(v1alpha1.AnnotationInPlace))
				Expect(p.Spec.Containers[0].Image).To(Equal(image))
			}
		}
		server.Mutate(ctx, ns, apiserver.Mutation{Version: "v1", Resource: "pods", Operations: []admissionv1.OperationType{admissionv1.Update},
			Patch: `[JSONPatch{op: "replace", path: "/spec/containers/0/image", value: "one"}]`})

		setImage("two")
		hasImage("one")
		Expect(set.Status.UpdatedReplicas).To(BeEquivalentTo(2))
		setImage("one")
		hasImage("one")

		policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: named("mutates-" + ns)}
		edit(ctx, policy, func(p *admissionv1.MutatingAdmissionPolicy) {
			p.Spec.MatchConstraints.ResourceRules[1].Operations = []admissionv1.OperationType{admissionv1.Connect}
		})
		Eventually(func(g Gomega) {
			p := anyOf(before).DeepCopy()
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
			p.Spec.Containers[0].Image = "tried"
			g.Expect(user.Update(ctx, p, client.DryRunAll)).To(Succeed())
			g.Expect(p.Spec.Containers[0].Image).To(Equal("tried"))
		}).Should(Succeed())
		setImage("three")
		hasImage("three")
	})
})
