package statefulcluster_test

import (
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

var _ = Describe("replacement", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		startOperator(operatorOptions{namespaces: []string{ns}})
	})

	It("SC-9 replaces a member that became unready, and keeps the others", func(ctx SpecContext) {
		set := newSet(ns, 3, func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.UnreadySeconds = new(int32(1)) })
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 3)
		sick := anyOf(before)
		setReady(ctx, sick, corev1.ConditionFalse, 0)
		Eventually(func() []string { return names(pods(ctx, set)) }).ShouldNot(ContainElement(sick.Name))
		after := settled(ctx, set, 3)
		whole(ctx, set)
		for name, p := range before {
			if name != sick.Name {
				Expect(after[name].UID).To(Equal(p.UID))
			}
		}
		Expect(claims(ctx, set)["db-data-"+sick.Labels[v1alpha1.LabelMember]].Labels).To(HaveKeyWithValue(v1alpha1.LabelRetained, "Lost"))
	})

	It("SC-10 replaces all members at once with maxConcurrent 100%", func(ctx SpecContext) {
		all := intstr.FromString("100%")
		set := newSet(ns, 3, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Replacement.UnreadySeconds = new(int32(1))
			s.Spec.Replacement.MaxConcurrent = &all
			s.Spec.Replacement.WhenNoneReady = v1alpha1.NoneReadyReplaces
		})
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 3)
		for _, p := range before {
			setReady(ctx, &p, corev1.ConditionFalse, time.Second)
		}
		old := names(before)
		Eventually(func() []string { return names(pods(ctx, set)) }).ShouldNot(ContainElement(BeElementOf(old)))
		after := settled(ctx, set, 3)
		for name := range before {
			Expect(after).NotTo(HaveKey(name))
		}
	})

	It("SC-13 keeps a member that is not Ready yet before its deadline", func(ctx SpecContext) {
		set := newSet(ns, 1, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Annotations[playUnready] = "yes" })
		Expect(user.Create(ctx, set)).To(Succeed())
		Eventually(func() int { return len(pods(ctx, set)) }).Should(Equal(1))
		first := anyOf(pods(ctx, set))
		Consistently(func() []string { return names(pods(ctx, set)) }, 2*time.Second).Should(ConsistOf(first.Name))
	})

	It("SC-14 replaces an unschedulable member, and reports the reason", func(ctx SpecContext) {
		set := newSet(ns, 2, func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.PendingSeconds = new(int32(1)) })
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 2)
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategy })
		// The next member of the good revision is unschedulable, because the volume of its claim
		// was lost.
		stuck := &corev1.Pod{}
		scaleTo(ctx, set, 3)
		for name, p := range settled(ctx, set, 3) {
			if _, old := before[name]; !old {
				stuck = &p
			}
		}
		unschedule(ctx, stuck)
		Eventually(func() []string { return names(pods(ctx, set)) }).ShouldNot(ContainElement(stuck.Name))
		settled(ctx, set, 3)
		Eventually(func() []string { return notes(ctx, set, v1alpha1.EventMemberLost) }).Should(ContainElement(ContainSubstring("Unschedulable: " + stuck.Name)))
	})

	It("SC-37 replaces the members of a node out of service at once", func(ctx SpecContext) {
		node := "oos-" + ns
		addNode(ctx, node)
		set := newSet(ns, 1, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Annotations[playNode] = node })
		Expect(user.Create(ctx, set)).To(Succeed())
		old := anyOf(settled(ctx, set, 1))
		edit(ctx, &corev1.Node{ObjectMeta: named(node)}, func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
		})
		Eventually(func() []string { return names(pods(ctx, set)) }).Should(And(HaveLen(1), Not(ContainElement(old.Name))))
		edit(ctx, &corev1.Node{ObjectMeta: named(node)}, func(n *corev1.Node) { n.Spec.Taints = nil })
	})

	It("W2 SC-54 replaces the members of a deleted Node after 40 seconds, and not before", func(ctx SpecContext) {
		node := "gone-" + ns
		addNode(ctx, node)
		set := newSet(ns, 1, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Annotations[playNode] = node
			s.Spec.Replacement.WhenNoneReady = v1alpha1.NoneReadyReplaces
		})
		Expect(user.Create(ctx, set)).To(Succeed())
		old := anyOf(settled(ctx, set, 1))
		Expect(user.Delete(ctx, &corev1.Node{ObjectMeta: named(node)})).To(Succeed())
		Consistently(func() []string { return names(pods(ctx, set)) }, 5*time.Second).Should(ConsistOf(old.Name))
		Eventually(func() []string { return names(pods(ctx, set)) }, 90*time.Second).Should(And(HaveLen(1), Not(ContainElement(old.Name))))
		addNode(ctx, node)
		settled(ctx, set, 1)
	})

	It("W2 SC-52 keeps the only member when its Node is lost", func(ctx SpecContext) {
		node := "only-" + ns
		addNode(ctx, node)
		set := newSet(ns, 1, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Annotations[playNode] = node
			s.Spec.Replacement.NodeLostSeconds = new(int32(1))
		})
		Expect(user.Create(ctx, set)).To(Succeed())
		old := anyOf(settled(ctx, set, 1))
		setNodeReady(ctx, node, corev1.ConditionUnknown)
		Expect(degraded(ctx, set, v1alpha1.ReasonNoMemberReady)).To(ContainSubstring(old.Name))
		Expect(names(pods(ctx, set))).To(ConsistOf(old.Name))
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.WhenNoneReady = v1alpha1.NoneReadyReplaces })
		Eventually(func() []string { return names(pods(ctx, set)) }).ShouldNot(ContainElement(old.Name))
		setNodeReady(ctx, node, corev1.ConditionTrue)
	})

	It("W1 SC-53 recreates a member that disappeared while the operator was down, and SC-51 a member whose claim was given back", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		first := startOperator(operatorOptions{namespaces: []string{ns}})
		set := newSet(ns, 2, func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.OnEviction = v1alpha1.EvictionKeeps })
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 2)
		first.stop()
		victim := anyOf(before)
		Expect(user.Delete(ctx, victim, client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(func() error { return user.Get(ctx, client.ObjectKeyFromObject(victim), &corev1.Pod{}) }).ShouldNot(Succeed())
		startOperator(operatorOptions{namespaces: []string{ns}})
		Expect(names(settled(ctx, set, 2))).To(ConsistOf(names(before)))
		Expect(reasonsOf(claims(ctx, set))).To(ConsistOf("", ""))
		Expect(set.Status.Lost).To(BeEmpty())

		By("deleting a pod while the operator runs")
		Expect(user.Delete(ctx, victim, client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(func() []string { return reasonsOf(claims(ctx, set)) }).Should(ConsistOf("", "", "Lost"))
		Expect(settled(ctx, set, 2)).NotTo(HaveKey(victim.Name))
		for _, c := range claims(ctx, set) {
			if c.Labels[v1alpha1.LabelRetained] != "" {
				edit(ctx, &c, func(c *corev1.PersistentVolumeClaim) {
					metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationAdopt, set.Name)
				})
			}
		}
		scaleTo(ctx, set, 3)
		Expect(settled(ctx, set, 3)).To(HaveKey(victim.Name))
		Expect(reasonsOf(claims(ctx, set))).To(ConsistOf("", "", ""))
		whole(ctx, set)
	})

	It("SC-38 limits replacements when half of the nodes are lost at once", func(ctx SpecContext) {
		node := "half-" + ns
		addNode(ctx, node)
		set := newSet(ns, 4, func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.NodeLostSeconds = new(int32(1)) })
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 4)
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
			s.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategy
			s.Spec.Template.Annotations = map[string]string{playNode: node, playHang: "yes"}
		})
		for _, p := range slices.Collect(maps.Values(pods(ctx, set)))[:2] {
			Expect(user.Delete(ctx, &p)).To(Succeed())
			Eventually(func() error { return user.Get(ctx, client.ObjectKeyFromObject(&p), &p) }).ShouldNot(Succeed())
		}
		before := settled(ctx, set, 4)
		// New members must not become Ready, so that the slot stays taken.
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Annotations = map[string]string{playUnready: "yes"}
		})
		setNodeReady(ctx, node, corev1.ConditionUnknown)
		message := degraded(ctx, set, v1alpha1.ReasonReplacementHeld)
		Expect(message).To(MatchRegexp(`^replacement.maxConcurrent allows replacing 1 member at a time; lost members pending replacement: db-[a-z2-7]{10}; raise it`))
		Consistently(func() int {
			kept := 0
			for name := range pods(ctx, set) {
				if _, old := before[name]; old {
					kept++
				}
			}
			return kept
		}, 2*time.Second).Should(Equal(3))
		setNodeReady(ctx, node, corev1.ConditionTrue)
		Eventually(func() int32 {
			Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			return set.Status.LostReplicas
		}).Should(BeEquivalentTo(1), "the held member is no longer lost")
	})

	It("SC-39 replaces a force-deleted member under a new name, and applies whenLost", func(ctx SpecContext) {
		set := newSet(ns, 2, func(s *v1alpha1.StatefulCluster) {
			s.Spec.PersistentVolumeClaimRetentionPolicy.WhenLost = v1alpha1.DeleteClaims
		})
		Expect(user.Create(ctx, set)).To(Succeed())
		victim := anyOf(settled(ctx, set, 2))
		Expect(user.Delete(ctx, victim, client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(func() []string { return names(pods(ctx, set)) }).Should(And(HaveLen(2), Not(ContainElement(victim.Name))))
		Eventually(func() int { return len(claims(ctx, set)) }, time.Minute).Should(Equal(2))
		whole(ctx, set)
	})

	It("SC-41 retains no claims for a bad image, and recovers with a corrected image", func(ctx SpecContext) {
		set := newSet(ns, 4, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Replacement.UnreadySeconds = new(int32(1))
			s.Spec.Replacement.StartupSeconds = new(int32(1))
		})
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 4)
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = "bad" })
		message := degraded(ctx, set, v1alpha1.ReasonRevisionFailing)
		Expect(message).To(ContainSubstring("correct the template"))
		Consistently(func() []string { return names(pods(ctx, set)) }, 2*time.Second).Should(ConsistOf(names(before)))
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = "three" })
		for name, p := range settled(ctx, set, 4) {
			Expect(before).To(HaveKey(name))
			Expect(p.Spec.Containers[0].Image).To(Equal("three"))
		}
		Expect(claims(ctx, set)).To(HaveLen(4))
	})

	DescribeTable("SC-48 keeps all members if the API server refuses pods of the template",
		func(ctx SpecContext, spoil func(ctx SpecContext, spec *corev1.PodSpec), says string) {
			set := newSet(ns, 2)
			Expect(user.Create(ctx, set)).To(Succeed())
			before := settled(ctx, set, 2)
			good := set.Spec.Template.DeepCopy()
			edit(ctx, set, func(s *v1alpha1.StatefulCluster) { spoil(ctx, &s.Spec.Template.Spec) })
			Expect(degraded(ctx, set, v1alpha1.ReasonWriteRefused)).To(And(HavePrefix("no pod is deleted for the update"), ContainSubstring(says)))
			Consistently(func() []types.UID { return uids(pods(ctx, set)) }, 2*time.Second).Should(ConsistOf(uids(before)))
			edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template = *good.DeepCopy() })
			Expect(uids(settled(ctx, set, 2))).To(ConsistOf(uids(before)))
			degraded(ctx, set, v1alpha1.ReasonHealthy)
			whole(ctx, set)
		},
		Entry("because of its RuntimeClass", func(_ SpecContext, spec *corev1.PodSpec) { spec.RuntimeClassName = new("none") },
			`RuntimeClass "none" not found`),
		Entry("because of its PriorityClass", func(_ SpecContext, spec *corev1.PodSpec) { spec.PriorityClassName = "none" },
			"no PriorityClass with name none was found"),
		Entry("because of a LimitRange", func(ctx SpecContext, spec *corev1.PodSpec) {
			most := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			Expect(user.Create(ctx, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: ns}, Spec: corev1.LimitRangeSpec{
				Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: most}}}})).To(Succeed())
			spec.Containers[0].Command = []string{"recreate"}
			spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		}, "maximum cpu usage per Container is 1, but limit is 2"),
	)

	// No quota controller runs here, so the used pods of the quota are what the test wrote.
	It("SC-48 V1 recreates a member after a quota refused it, with a corrected template", func(ctx SpecContext) {
		set := newSet(ns, 2)
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 2)
		pair := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pair", Namespace: ns}, Spec: corev1.ResourceQuotaSpec{Hard: pair}}
		Expect(user.Create(ctx, quota)).To(Succeed())
		quota.Status = corev1.ResourceQuotaStatus{Hard: pair, Used: pair}
		Expect(user.Status().Update(ctx, quota)).To(Succeed())
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Command = []string{"another"} })
		Expect(degraded(ctx, set, v1alpha1.ReasonWriteRefused)).To(MatchRegexp(`^create pod db-[a-z2-7]{10}: .* exceeded quota: pair`))
		Expect(set.Status.Updating).To(HaveLen(1), "the deleted member is recorded")
		Expect(user.Delete(ctx, quota)).To(Succeed())
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Command = nil })
		Expect(names(settled(ctx, set, 2))).To(ConsistOf(names(before)))
		Expect(claims(ctx, set)).To(HaveLen(2))
		degraded(ctx, set, v1alpha1.ReasonHealthy)
		whole(ctx, set)
	})

	It("V9 keeps the claims of a member that crashes with the new template, and reports it", func(ctx SpecContext) {
		set := newSet(ns, 2, func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.UnreadySeconds = new(int32(1)) })
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 2)
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Command = []string{"crash"} })
		after := settled(ctx, set, 2) // all became Ready
		sick := anyOf(after)
		crash(ctx, sick, 2)
		setReady(ctx, sick, corev1.ConditionFalse, time.Minute)
		Expect(degraded(ctx, set, v1alpha1.ReasonRevisionFailing)).To(ContainSubstring(
			"containers keep restarting, and no member with the same template has been Ready for 10 minutes, so these members are not replaced: " + sick.Name))
		Expect(names(pods(ctx, set))).To(ConsistOf(names(before)))
		Expect(reasonsOf(claims(ctx, set))).To(ConsistOf("", ""))
	})

	It("V4 labels the claims of an earlier set that was deleted while the operator was down", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		first := startOperator(operatorOptions{namespaces: []string{ns}})
		set := newSet(ns, 2)
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 2)
		first.stop()
		Expect(user.Delete(ctx, set)).To(Succeed())
		for _, p := range before { // no garbage collector runs here
			Expect(client.IgnoreNotFound(user.Delete(ctx, &p))).To(Succeed())
		}
		again := newSet(ns, 2)
		Expect(user.Create(ctx, again)).To(Succeed())
		startOperator(operatorOptions{namespaces: []string{ns}})
		settled(ctx, again, 2)
		Eventually(func() []string { return reasonsOf(claims(ctx, again)) }).Should(ConsistOf("", "", "Deleted", "Deleted"))
		whole(ctx, again)
	})

	It("SC-35 never reuses a name", func(ctx SpecContext) {
		set := newSet(ns, 3)
		Expect(user.Create(ctx, set)).To(Succeed())
		seen := map[string]bool{}
		for round := range 8 {
			live := settled(ctx, set, 3)
			for name := range live {
				seen[name] = true
			}
			victim := anyOf(live)
			Expect(user.Delete(ctx, victim, client.GracePeriodSeconds(0))).To(Succeed())
			Eventually(func() []string { return names(pods(ctx, set)) }).Should(And(HaveLen(3), Not(ContainElement(victim.Name))))
			Expect(seen).To(HaveLen(3 + round))
		}
	})
})
