package replicatedstatefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

var _ = Describe("command leave", func() {
	var p *fakeControlPlane
	BeforeEach(func(ctx SpecContext) {
		p = startFakeControlPlane(newNamespace(ctx))
		DeferCleanup(func(ctx SpecContext) { sweep(ctx, p.namespace) })
	})

	scale := func(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, replicas int32) {
		GinkgoHelper()
		from := set.DeepCopy()
		set.Spec.Replicas = ptr.To(replicas)
		Expect(user.Patch(ctx, set, client.MergeFrom(from))).To(Succeed())
	}

	It("RS-149 RS-150 runs before a member is removed, and a failed one is retried and reported", func(ctx SpecContext) {
		startOperator(p)
		set := replicated(p.namespace)
		set.Spec.Pod.Commands[v1alpha1.CommandLeave] = v1alpha1.Command{Command: []string{"/leave"}}
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 1, 2)
		Expect(set.Status.Memberships).To(HaveEach(HaveField("State", v1alpha1.MembershipJoined)))
		Expect(set.Status.Memberships).To(HaveLen(3))

		By("cancelling the scale-down while leave fails")
		p.fail("leave", "leave", "leave", "leave", "leave")
		scale(ctx, set, 2)
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			degraded := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionDegraded)
			g.Expect(degraded).To(HaveField("Message", And(ContainSubstring("is not removed, because leave failed with exit code 1"), ContainSubstring("remove spec.pod.commands[leave]"))))
		}).Should(Succeed())
		Expect(podsOf(ctx, p.namespace)).To(HaveLen(3))
		scale(ctx, set, 3)
		settled(ctx, set, 1, 2)
		Expect(p.commands()[3:]).To(Equal([]string{"rss-" + set.Name + "-2 stop", "rss-" + set.Name + "-2 secondary"}))
		Expect(set.Status.Memberships).To(HaveEach(HaveField("State", v1alpha1.MembershipJoined)))

		By("removing the member")
		p.fail()
		scale(ctx, set, 2)
		settled(ctx, set, 1, 1)
		Expect(p.commands()[5:]).To(Equal([]string{"rss-" + set.Name + "-2 leave"}), "the program of this application ends by leave")
		Eventually(func(g Gomega) {
			g.Expect(podsOf(ctx, p.namespace)).To(HaveLen(2))
			g.Expect(events(ctx, p.namespace)).To(ContainElement(v1alpha1.EventMemberLeft))
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			g.Expect(set.Status.Memberships).To(HaveLen(2))
		}).Should(Succeed())
	})
})
