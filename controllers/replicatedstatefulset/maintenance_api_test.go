package replicatedstatefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

var _ = Describe("maintenance", func() {
	var p *fakeControlPlane
	BeforeEach(func(ctx SpecContext) {
		p = startFakeControlPlane(newNamespace(ctx))
		DeferCleanup(func(ctx SpecContext) { sweep(ctx, p.namespace) })
	})

	park := func(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, names ...string) {
		GinkgoHelper()
		from := set.DeepCopy()
		set.Spec.Maintenance = names
		Expect(user.Patch(ctx, set, client.MergeFrom(from))).To(Succeed())
	}
	says := func(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, reason string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionMaintenance)
			g.Expect(c).To(HaveField("Reason", reason))
			g.Expect(c).To(HaveField("ObservedGeneration", set.Generation))
		}).Should(Succeed())
	}

	It("RS-89 RS-90 RS-92 parks a primary, and sends it no commands until it leaves the list", func(ctx SpecContext) {
		set := started(ctx, p)
		first := set.Status.Members.Primary[0]
		park(ctx, set, first)
		says(ctx, set, v1alpha1.ReasonParked)
		Expect(set.Status.Members.Primary).To(And(HaveLen(1), Not(ContainElement(first))))
		Expect(set.Status.Maintenance).To(ConsistOf(And(HaveField("Pod", first), HaveField("State", v1alpha1.MaintenanceParked))))
		Eventually(func() map[string]string { return podsOf(ctx, p.namespace)[first].Labels }).Should(And(
			HaveKeyWithValue(v1alpha1.LabelRole, v1alpha1.RoleNone), HaveKeyWithValue(v1alpha1.LabelActive, v1alpha1.False)))

		before := len(p.commands())
		pod := podsOf(ctx, p.namespace)[first]
		p.crash(&pod)
		idle := func() {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
				g.Expect(set.Status.Members.Secondary).To(And(HaveLen(1), Not(ContainElement(first))))
				g.Expect(meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
			}).Should(Succeed())
		}
		idle()
		other := podsOf(ctx, p.namespace)[set.Status.Members.Secondary[0]]
		p.crash(&other) // and the operator reacts to that one
		Eventually(func() []string { return p.commands()[before:] }).Should(ContainElement(other.Name + " secondary"))
		idle()
		Expect(p.commands()[before:]).NotTo(ContainElement(HavePrefix(first + " ")))
		Expect(podsOf(ctx, p.namespace)[first]).To(HaveField("UID", pod.UID))

		park(ctx, set)
		settled(ctx, set, 1, 2)
		says(ctx, set, v1alpha1.ReasonNoMaintenance)
		Expect(set.Status.Members.Secondary).To(ContainElement(first))
		Expect(p.maxPrimaries()).To(Equal(1))
		Eventually(func() []string { return events(ctx, p.namespace) }).Should(ContainElements(v1alpha1.EventMemberParked, v1alpha1.EventMemberUnparked))
	})

	It("RS-90 RS-92 keeps a primary that has no successor because all members are listed", func(ctx SpecContext) {
		set := started(ctx, p)
		park(ctx, set, "rss-example-0", "rss-example-1", "rss-example-2", "rss-example-5")
		says(ctx, set, v1alpha1.ReasonNoSuccessor)
		Expect(set.Status.Members.Primary).To(HaveLen(1))
		Expect(set.Status.Maintenance).To(HaveLen(4))
	})
})
