package replicatedstatefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

var _ = Describe("orders in the spec", func() {
	var p *fakeControlPlane
	BeforeEach(func(ctx SpecContext) {
		p = startFakeControlPlane(newNamespace(ctx))
		DeferCleanup(func(ctx SpecContext) { sweep(ctx, p.namespace) })
	})

	// sync applies a manifest with an order, as the tool that owns the manifest does.
	sync := func(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, member, id string) {
		GinkgoHelper()
		manifest := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"switchoverTo": map[string]any{"member": member, "id": id}}}}
		manifest.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ReplicatedStatefulSet"))
		manifest.SetNamespace(set.Namespace)
		manifest.SetName(set.Name)
		Expect(user.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner("gitops"))).To(Succeed())
	}
	comesTo := func(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, id string, result v1alpha1.OrderResult) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			g.Expect(set.Status.Orders).To(ContainElement(And(HaveField("ID", id), HaveField("Result", result))))
		}).Should(Succeed())
	}

	It("RS-102 are carried out once, although they are applied repeatedly", func(ctx SpecContext) {
		set := started(ctx, p)
		first, second := set.Status.Members.Primary[0], set.Status.Members.Secondary[0]
		for range 3 {
			sync(ctx, set, second, "a")
		}
		comesTo(ctx, set, "a", v1alpha1.OrderDone)
		settled(ctx, set, 1, 2) // a member that does not run as secondary would be refused
		Expect(set.Status.Members.Primary).To(Equal([]string{second}))
		epoch := set.Status.Epoch

		// The role moves back under another id. The old manifest does not move it again.
		sync(ctx, set, first, "b")
		comesTo(ctx, set, "b", v1alpha1.OrderDone)
		for range 3 {
			sync(ctx, set, second, "a")
		}
		// An order that is refused at once shows that the operator has processed the manifest.
		from := set.DeepCopy()
		set.Spec.SeedFrom = &v1alpha1.MemberOrder{Member: second, ID: "look"}
		Expect(user.Patch(ctx, set, client.MergeFrom(from))).To(Succeed())
		comesTo(ctx, set, "look", v1alpha1.OrderRefused)
		settled(ctx, set, 1, 2) // the members are listed by a later write than the result of the order
		Expect(set.Status.Epoch).To(Equal(epoch + 1))
		Expect(set.Status.Members.Primary).To(Equal([]string{first}))
		Expect(set.Status.Orders).To(HaveLen(3))
	})

	It("RS-103 are ignored in a new object", func(ctx SpecContext) {
		startOperator(p)
		set := replicated(p.namespace)
		set.Spec.SwitchoverTo = &v1alpha1.MemberOrder{Member: "rss-" + set.Name + "-9", ID: "old"}
		set.Spec.SeedFrom = &v1alpha1.MemberOrder{Member: "rss-" + set.Name + "-1", ID: "old"}
		Expect(user.Create(ctx, set)).To(Succeed(), "an order of a missing member must not block the creation")
		comesTo(ctx, set, "old", v1alpha1.OrderIgnored)
		Expect(set.Status.Orders).To(HaveEach(HaveField("Result", v1alpha1.OrderIgnored)))
		Expect(set.Status.Orders).To(HaveLen(2))
	})

	It("RS-102 need another id for another member", func(ctx SpecContext) {
		set := newSet(p.namespace)
		Expect(user.Create(ctx, set)).To(Succeed())
		sync(ctx, set, "rss-"+set.Name+"-1", "a")
		from := set.DeepCopy()
		Expect(user.Get(ctx, client.ObjectKeyFromObject(set), from)).To(Succeed())
		changed := from.DeepCopy()
		changed.Spec.SwitchoverTo.Member = "rss-" + set.Name + "-0"
		Expect(user.Patch(ctx, changed, client.MergeFrom(from))).To(MatchError(ContainSubstring("set another id too")))
		changed.Spec.SwitchoverTo.ID = "b"
		Expect(user.Patch(ctx, changed, client.MergeFrom(from))).To(Succeed())
		wrong := changed.DeepCopy()
		wrong.Spec.SwitchoverTo.ID = "No ID"
		Expect(user.Patch(ctx, wrong, client.MergeFrom(changed))).To(MatchError(ContainSubstring("an id has lower-case letters")))
	})
})
