package replicatedstatefulset_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

var _ = Describe("a drain", func() {
	var p *fakeControlPlane
	var nodes []*corev1.Node
	BeforeEach(func(ctx SpecContext) {
		p = startFakeControlPlane(newNamespace(ctx))
		p.nodes, nodes = p.namespace, nil
		for i := range 3 {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", p.namespace, i)}}
			Expect(user.Create(ctx, n)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(user.Delete(ctx, n)).To(Succeed()) })
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			Expect(user.Status().Update(ctx, n)).To(Succeed())
			nodes = append(nodes, n)
		}
		DeferCleanup(func(ctx SpecContext) { sweep(ctx, p.namespace) })
	})

	cordon := func(ctx SpecContext, n *corev1.Node, is bool) {
		GinkgoHelper()
		from := n.DeepCopy()
		n.Spec.Unschedulable = is
		Expect(user.Patch(ctx, n, client.MergeFrom(from))).To(Succeed())
	}
	says := func(ctx SpecContext, set *v1alpha1.ReplicatedStatefulSet, reason string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			g.Expect(meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionDraining)).To(HaveField("Reason", reason))
		}).Should(Succeed())
	}
	budget := func(ctx SpecContext, name string) (*policyv1.PodDisruptionBudget, error) {
		var b policyv1.PodDisruptionBudget
		return &b, user.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, &b)
	}

	It("RS-64 RS-65 begins with a cordon, and stays where no member can take the role", func(ctx SpecContext) {
		set := started(ctx, p)
		Expect(set.Status.Members.Primary).To(ConsistOf("rss-example-0"))
		cordon(ctx, nodes[2], true)
		cordon(ctx, nodes[0], true)
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			g.Expect(set.Status.Members.Primary).To(ConsistOf("rss-example-1"))
		}).Should(Succeed())
		settled(ctx, set, 1, 2)
		says(ctx, set, v1alpha1.ReasonNotDraining)
		cordon(ctx, nodes[1], true)
		says(ctx, set, v1alpha1.ReasonNoSuccessor)
		Expect(set.Status.Members.Primary).To(ConsistOf("rss-example-1"))
		cordon(ctx, nodes[2], false)
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			g.Expect(set.Status.Members.Primary).To(ConsistOf("rss-example-2"))
		}).Should(Succeed())
		Expect(p.mostPrimaries()).To(Equal(1))
	})

	It("RS-67 RS-66 RS-69 has a budget of the primaries, of which no other budget has one", func(ctx SpecContext) {
		set := started(ctx, p)
		selected := func(name string) []string {
			GinkgoHelper()
			b, err := budget(ctx, name)
			Expect(err).NotTo(HaveOccurred())
			selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			Expect(err).NotTo(HaveOccurred())
			var pods corev1.PodList
			Expect(user.List(ctx, &pods, client.InNamespace(p.namespace), client.MatchingLabelsSelector{Selector: selector})).To(Succeed())
			var names []string
			for i := range pods.Items {
				names = append(names, pods.Items[i].Name)
			}
			return names
		}
		Expect(selected("rss-example.primary")).To(ConsistOf("rss-example-0"))
		Expect(selected("rss-example")).To(ConsistOf("rss-example-1", "rss-example-2"))

		set.Spec.EvictionPolicy = v1alpha1.EvictionAllow
		Expect(user.Update(ctx, set)).To(Succeed())
		Eventually(func(g Gomega) {
			_, err := budget(ctx, "rss-example.primary")
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
			b, err := budget(ctx, "rss-example")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(b.Spec.Selector.MatchExpressions).To(BeEmpty())
			g.Expect(b.Spec.MinAvailable).To(BeNil())
			g.Expect(b.Spec.MaxUnavailable.IntValue()).To(Equal(1))
		}).Should(Succeed())

		settled(ctx, set, 1, 2)
		set.Spec.EvictionPolicy = v1alpha1.EvictionHandover
		Expect(user.Update(ctx, set)).To(Succeed())
		Eventually(func(g Gomega) {
			_, err := budget(ctx, "rss-example.primary")
			g.Expect(err).NotTo(HaveOccurred())
			b, err := budget(ctx, "rss-example")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(b.Spec.MaxUnavailable).To(BeNil())
			g.Expect(b.Spec.MinAvailable.IntValue()).To(Equal(1))
		}).Should(Succeed())

		settled(ctx, set, 1, 2)
		set.Spec.PodDisruptionBudget = &v1alpha1.BudgetPolicy{Disabled: true}
		Expect(user.Update(ctx, set)).To(Succeed())
		Eventually(func(g Gomega) {
			var all policyv1.PodDisruptionBudgetList
			g.Expect(user.List(ctx, &all, client.InNamespace(p.namespace))).To(Succeed())
			g.Expect(all.Items).To(BeEmpty())
		}).Should(Succeed())
	})
})
