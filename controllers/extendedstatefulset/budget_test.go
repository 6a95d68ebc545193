package extendedstatefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

var _ = Describe("a PodDisruptionBudget", func() {
	const most1 = `{"spec": {"podDisruptionBudget": {"maxUnavailable": 1}}}`
	var ns string
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
	})
	budget := func(ctx context.Context) (*policyv1.PodDisruptionBudget, error) {
		var b policyv1.PodDisruptionBudget
		return &b, user.Get(ctx, types.NamespacedName{Namespace: ns, Name: "web"}, &b)
	}

	It("E40 E41 is created when requested, selects the serving pods, and is deleted when no longer requested", func(ctx SpecContext) {
		startFakeControlPlane(ns)
		startOperator(ns)
		Expect(user.Create(ctx, object(ns))).To(Succeed())
		stable(ctx, ns, 1, 3)
		_, err := budget(ctx)
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the budget exists, or the read failed: %v", err)

		Expect(change(ctx, object(ns), most1)).To(Succeed())
		Eventually(func(g Gomega) {
			b, err := budget(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(*b.Spec.MinAvailable).To(Equal(intstr.FromInt32(2)))
			g.Expect(b.Spec.Selector.MatchLabels).To(Equal(map[string]string{v1alpha1.LabelSet: "web", v1alpha1.LabelVersion: "1", v1alpha1.LabelStatefulSet: "web"}))
		}).Should(Succeed())

		Expect(change(ctx, object(ns), image("two"))).To(Succeed())
		stable(ctx, ns, 2, 3)
		Eventually(func(g Gomega) {
			b, err := budget(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(b.Spec.Selector.MatchLabels).To(HaveKeyWithValue(v1alpha1.LabelVersion, "2"))
		}).Should(Succeed())

		Expect(change(ctx, object(ns), `{"spec": {"podDisruptionBudget": null}}`)).To(Succeed())
		Eventually(func() bool { _, err := budget(ctx); return apierrors.IsNotFound(err) }).Should(BeTrue())
	})

	It("E40 of another owner is not changed, and is reported", func(ctx SpecContext) {
		startFakeControlPlane(ns)
		startOperator(ns)
		theirs := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(7))}}
		theirs.Namespace, theirs.Name = ns, "web"
		Expect(user.Create(ctx, theirs)).To(Succeed())
		Expect(user.Create(ctx, object(ns, most1))).To(Succeed())
		Eventually(func() string {
			for _, c := range web(ctx, ns).Status.Conditions {
				if c.Type == v1alpha1.ConditionProgressing && c.Reason == v1alpha1.ReasonBudgetTaken {
					return c.Message
				}
			}
			return ""
		}).Should(HaveSuffix("kubectl -n " + ns + " delete pdb web"))
		Expect(user.Get(ctx, client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
		Expect(theirs.Spec.MinAvailable.IntValue()).To(Equal(7))
	})

	DescribeTable("E40 is rejected if invalid", func(ctx SpecContext, budget, message string) {
		Expect(said(user.Create(ctx, object(ns, `{"spec": {"podDisruptionBudget": `+budget+`}}`)))).To(ContainSubstring(message))
	},
		Entry("with both fields", `{"minAvailable": 1, "maxUnavailable": 1}`, "spec.podDisruptionBudget: Invalid value: must have either minAvailable or maxUnavailable; set one of them"),
		Entry("without fields", `{}`, "must have either minAvailable or maxUnavailable; set one of them"),
		Entry("with a negative minAvailable", `{"minAvailable": -1}`, "minAvailable must be a number from 0 to 1000, or a percentage from 0% to 100%"),
		Entry("with a maxUnavailable above the max number of replicas", `{"maxUnavailable": 1001}`, "maxUnavailable must be a number from 0 to 1000, or a percentage from 0% to 100%"),
		Entry("with a maxUnavailable that is no number", `{"maxUnavailable": "many"}`, "maxUnavailable must be a number from 0 to 1000, or a percentage from 0% to 100%"),
		Entry("with a percentage above 100%", `{"minAvailable": "101%"}`, "minAvailable must be a number from 0 to 1000, or a percentage from 0% to 100%"),
	)
})
