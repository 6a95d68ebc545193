package replicatedstatefulset_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

var _ = Describe("minReadySeconds", func() {
	It("RS-119 delays an update after its first member, until it is lowered", func(ctx SpecContext) {
		p := startFakeControlPlane(newNamespace(ctx))
		DeferCleanup(func(ctx SpecContext) { sweep(ctx, p.namespace) })
		set := started(ctx, p)
		Expect(set.Status.AvailableReplicas).To(BeEquivalentTo(3))

		from := set.DeepCopy()
		set.Spec.MinReadySeconds = 86400
		set.Spec.Pod.Containers[0].Image += "-two"
		Expect(user.Patch(ctx, set, client.MergeFrom(from))).To(Succeed())
		updated := func() (names []string) {
			for name, pod := range podsOf(ctx, p.namespace) {
				if pod.Spec.Containers[0].Image == set.Spec.Pod.Containers[0].Image {
					names = append(names, name)
				}
			}
			return names
		}
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			progressing := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionProgressing)
			g.Expect(progressing.Reason).To(Equal(v1alpha1.ReasonWaitingForAvailability), progressing.Message)
			g.Expect(set.Status.ReadyReplicas).To(BeEquivalentTo(3))
			g.Expect(set.Status.AvailableReplicas).To(BeZero(), "no member has been Ready for a day")
		}).Should(Succeed())
		Expect(updated()).To(HaveLen(1))

		from = set.DeepCopy()
		set.Spec.MinReadySeconds = 0
		Expect(user.Patch(ctx, set, client.MergeFrom(from))).To(Succeed())
		Eventually(updated).Should(HaveLen(3))
		settled(ctx, set, 1, 2)
		Expect(set.Status.AvailableReplicas).To(BeEquivalentTo(3))
	})
})
