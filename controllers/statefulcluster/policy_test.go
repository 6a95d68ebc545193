package statefulcluster_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// imagePolicy returns a policy that gives the containers of a namespace's pods that image
// whenever a pod is updated.
func imagePolicy(ns, image string) (*admissionv1.MutatingAdmissionPolicy, *admissionv1.MutatingAdmissionPolicyBinding) {
	meta := named("image-of-" + ns)
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicySpec{
		FailurePolicy: new(admissionv1.Fail), ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}},
		},
		Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{
			Expression: `[JSONPatch{op: "replace", path: "/spec/containers/0/image", value: "` + image + `"}]`}}},
	}}
	return policy, &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta,
		Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: meta.Name}}
}

var _ = Describe("W4 a policy that rewrites images", func() {
	It("W4 holds no update up, and neither does the way back", func(ctx SpecContext) {
		if !server.AtLeast("1.36") {
			Skip("the API server has no MutatingAdmissionPolicy in v1")
		}
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
		policy, binding := imagePolicy(ns, "one")
		Expect(user.Create(ctx, policy)).To(Succeed())
		Expect(user.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(user.Delete(ctx, policy)).To(Succeed())
			Expect(user.Delete(ctx, binding)).To(Succeed())
		})
		Eventually(func(g Gomega) { // the API server takes a moment to learn of the policy
			p := anyOf(before).DeepCopy()
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
			p.Spec.Containers[0].Image = "tried"
			g.Expect(user.Update(ctx, p, client.DryRunAll)).To(Succeed())
			g.Expect(p.Spec.Containers[0].Image).To(Equal("one"))
		}).Should(Succeed())

		setImage("two")
		hasImage("one")
		Expect(set.Status.UpdatedReplicas).To(BeEquivalentTo(2))
		setImage("one")
		hasImage("one")

		edit(ctx, policy, func(p *admissionv1.MutatingAdmissionPolicy) {
			p.Spec.MatchConstraints.ResourceRules[0].Operations = []admissionv1.OperationType{admissionv1.Connect}
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
