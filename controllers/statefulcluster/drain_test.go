package statefulcluster_test

import (
	"context"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

var _ = Describe("drain", func() {
	var ns, node string
	replacesFirst := func(s *v1alpha1.StatefulCluster) {
		s.Spec.Replacement.OnEviction = v1alpha1.EvictionReplacesFirst
		s.Spec.Template.Annotations[playNode] = node
	}
	cordon := func(ctx context.Context, on bool) {
		edit(ctx, &corev1.Node{ObjectMeta: named(node)}, func(n *corev1.Node) { n.Spec.Unschedulable = on })
	}
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		node = "drained-" + ns
		addNode(ctx, node)
		startOperator(operatorOptions{namespaces: []string{ns}})
	})

	It("SC-43 SC-46 replaces the members of a cordoned node, and allows no evictions", func(ctx SpecContext) {
		set := newSet(ns, 2, replacesFirst)
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 2)
		cordon(ctx, true)
		Eventually(func() []string { return names(pods(ctx, set)) }).ShouldNot(ContainElement(BeElementOf(names(before))))
		for _, p := range settled(ctx, set, 2) {
			Expect(p.Spec.NodeName).NotTo(Equal(node))
		}
		whole(ctx, set)
		for _, old := range before {
			Expect(claims(ctx, set)["db-data-"+old.Labels[v1alpha1.LabelMember]].Labels).To(HaveKeyWithValue(v1alpha1.LabelRetained, "Scaled"))
		}
		Expect(set.Status.Lost).To(BeEmpty())
		retired := strings.Join(notes(ctx, set, v1alpha1.EventMemberRetired), "; ")
		Expect(retired).To(ContainSubstring("its node is cordoned, claims db-data-"))
		Eventually(func() int {
			var budget policyv1.PodDisruptionBudget
			Expect(user.Get(ctx, client.ObjectKeyFromObject(set), &budget)).To(Succeed())
			return budget.Spec.MinAvailable.IntValue()
		}).Should(Equal(2))
	})

	It("SC-44 SC-45 keeps the members while new members are unschedulable, and after an uncordon", func(ctx SpecContext) {
		set := newSet(ns, 2, replacesFirst, func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.PendingSeconds = new(int32(1)) })
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 2)
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
			s.Spec.UpdateStrategy = v1alpha1.UpdateStrategy{Type: v1alpha1.OnDeleteStrategy}
			s.Spec.Template.Annotations[playPending] = "yes" // new members are unschedulable
		})
		cordon(ctx, true)
		Eventually(func() int { return len(pods(ctx, set)) }).Should(Equal(3))
		added := slices.DeleteFunc(names(pods(ctx, set)), func(name string) bool { _, old := before[name]; return old })[0]
		Eventually(func() string {
			Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			return meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionProgressing).Message
		}).Should(And(HavePrefix("2 members on cordoned nodes will be retired when new members are available: "),
			ContainSubstring(added+" (Unschedulable)"), HaveSuffix("to keep them: `kubectl uncordon "+node+"`")))
		cordon(ctx, false)
		Eventually(func() []string { return names(pods(ctx, set)) }).Should(ConsistOf(slices.Collect(maps.Keys(before))))
		Consistently(func() []string { return names(pods(ctx, set)) }, "2s").Should(ConsistOf(slices.Collect(maps.Keys(before))))
	})

	DescribeTable("SC-47 refuses templates whose pods could start on a cordoned node", func(ctx SpecContext, change func(*corev1.PodSpec), message string) {
		set := newSet(ns, 0, replacesFirst, func(s *v1alpha1.StatefulCluster) { change(&s.Spec.Template.Spec) })
		Expect(clean(user.Create(ctx, set))).To(ContainSubstring(message))
	},
		Entry("by nodeName", func(p *corev1.PodSpec) { p.NodeName = "node-1" }, "spec.template.spec.nodeName: Forbidden: with replacement.onEviction ReplaceFirst,"),
		Entry("by a toleration", func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} },
			"one of these tolerations tolerates taint node.kubernetes.io/unschedulable; remove it, or list the taints to tolerate"),
	)

	It("SC-47 refuses an unknown value of onEviction", func(ctx SpecContext) {
		set := newSet(ns, 0, func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.OnEviction = "Evict" })
		Expect(clean(user.Create(ctx, set))).To(ContainSubstring(`spec.replacement.onEviction: Unsupported value: "Evict": supported values: "Replace", "Keep", "ReplaceFirst"`))
	})
})
