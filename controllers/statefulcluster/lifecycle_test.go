package statefulcluster_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

var _ = Describe("lifecycle", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		startOperator(operatorOptions{namespaces: []string{ns}})
	})

	It("SC-4 creates one member without replicas, and retires all members with replicas 0", func(ctx SpecContext) {
		set := newSet(ns, 0, func(s *v1alpha1.StatefulCluster) { s.Spec.Replicas = nil })
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 1)
		scaleTo(ctx, set, 0)
		settled(ctx, set, 0)
	})

	It("SC-5 SC-6 creates one member at a time with OrderedReady", func(ctx SpecContext) {
		set := newSet(ns, 3, func(s *v1alpha1.StatefulCluster) {
			s.Spec.PodManagementPolicy = v1alpha1.OrderedReadyPodManagement
			s.Spec.Template.Annotations[playPending] = "yes"
		})
		Expect(user.Create(ctx, set)).To(Succeed())
		Eventually(func() int { return len(pods(ctx, set)) }).Should(Equal(1))
		Consistently(func() int { return len(pods(ctx, set)) }, time.Second).Should(Equal(1))
		Eventually(func() int { return len(claims(ctx, set)) }).Should(Equal(1))
		edit(ctx, anyOf(pods(ctx, set)), func(p *corev1.Pod) { delete(p.Annotations, playPending) })
		Eventually(func() int { return len(pods(ctx, set)) }).Should(Equal(2))
		Consistently(func() int { return len(pods(ctx, set)) }, 500*time.Millisecond).Should(Equal(2))
	})

	It("SC-25 creates all missing members in one pass with Parallel", func(ctx SpecContext) {
		set := newSet(ns, 5, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Annotations[playPending] = "yes" })
		Expect(user.Create(ctx, set)).To(Succeed())
		Eventually(func() int { return len(pods(ctx, set)) }).Should(Equal(5))
		Eventually(func() []string { return notes(ctx, set, v1alpha1.EventMemberCreated) }).Should(HaveLen(1), "one event for one pass")
	})

	It("SC-15 SC-26 copies the whole template to the pod and sets its hostname", func(ctx SpecContext) {
		set := newSet(ns, 1, func(s *v1alpha1.StatefulCluster) {
			s.Spec.ServiceName = "peers"
			s.Spec.Template.Labels["tier"] = "gold"
			s.Spec.Template.Annotations["note"] = "kept"
			s.Spec.Template.Spec.Volumes = []corev1.Volume{
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}},
			}
			s.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "prepare", Image: "one"}}
			s.Spec.VolumeClaimTemplates[0].Labels = map[string]string{"backup": "daily"}
		})
		Expect(user.Create(ctx, set)).To(Succeed())
		pod := anyOf(settled(ctx, set, 1))
		Expect(pod.Labels).To(HaveKeyWithValue("tier", "gold"))
		Expect(pod.Annotations).To(HaveKeyWithValue("note", "kept"))
		Expect(pod.Spec.Volumes).To(HaveLen(3))
		Expect(pod.Spec.InitContainers).To(HaveLen(1))
		Expect(pod.Spec.Hostname).To(Equal(pod.Name))
		Expect(pod.Spec.Subdomain).To(Equal("peers"))
		for _, c := range claims(ctx, set) {
			Expect(c.Labels).To(HaveKeyWithValue("backup", "daily"))
		}
	})

	It("SC-16 SC-17 ignores pods that only have the labels, and reports them", func(ctx SpecContext) {
		foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stray", Namespace: ns, Labels: map[string]string{"app": "db"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "one"}}}}
		Expect(user.Create(ctx, foreign)).To(Succeed())
		set := newSet(ns, 2)
		Expect(user.Create(ctx, set)).To(Succeed())
		// A pod that has all labels of a member, and another owner.
		theirs := &corev1.Pod{ObjectMeta: *anyOf(settled(ctx, set, 2)).ObjectMeta.DeepCopy(), Spec: foreign.Spec}
		theirs.Name, theirs.UID, theirs.ResourceVersion = "theirs", "", ""
		theirs.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "db", UID: "another", Controller: new(true)}}
		Expect(user.Create(ctx, theirs)).To(Succeed())
		Expect(degraded(ctx, set, v1alpha1.ReasonForeignPods)).To(Equal(
			"pods that are not members match the selector and are ignored: stray; Services that select them send them traffic; `kubectl -n " +
				set.Namespace + " get pod stray --show-labels` shows which labels to change"))
		scaleTo(ctx, set, 0)
		settled(ctx, set, 0)
		for _, p := range []*corev1.Pod{foreign, theirs} {
			Expect(user.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
			Expect(p.DeletionTimestamp).To(BeNil())
		}
	})

	It("keeps a member whose labels were removed, and restores them", func(ctx SpecContext) {
		set := newSet(ns, 2)
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 2)
		edit(ctx, anyOf(before), func(p *corev1.Pod) {
			delete(p.Labels, v1alpha1.LabelCluster)
			delete(p.Labels, v1alpha1.LabelClusterUID)
		})
		Eventually(func(g Gomega) {
			for _, p := range pods(ctx, set) {
				g.Expect(p.Labels).To(HaveKey(v1alpha1.LabelClusterUID))
			}
		}).Should(Succeed())
		Expect(names(settled(ctx, set, 2))).To(ConsistOf(names(before)))
	})

	It("SC-18 retries a refused create with the same name, and creates no claim", func(ctx SpecContext) {
		set := newSet(ns, 2)
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: ns},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
		Expect(user.Create(ctx, quota)).To(Succeed())
		quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}
		Expect(user.Status().Update(ctx, quota)).To(Succeed())
		Expect(user.Create(ctx, set)).To(Succeed())
		Expect(degraded(ctx, set, v1alpha1.ReasonWriteRefused)).To(MatchRegexp(`^create pod db-[a-z2-7]{10}: pods "db-[a-z2-7]{10}" is forbidden: exceeded quota: none`))
		message := degraded(ctx, set, v1alpha1.ReasonWriteRefused)
		Consistently(func() int { return len(claims(ctx, set)) }, 2*time.Second).Should(BeZero())
		Expect(degraded(ctx, set, v1alpha1.ReasonWriteRefused)).To(Equal(message), "the create is retried with the same name")
		Expect(user.Delete(ctx, quota)).To(Succeed())
		settled(ctx, set, 2)
		whole(ctx, set)
		degraded(ctx, set, v1alpha1.ReasonHealthy)
	})

	It("SC-21 scales with the scale subresource", func(ctx SpecContext) {
		set := newSet(ns, 1)
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 1)
		scale := &autoscalingv1.Scale{}
		Expect(user.SubResource("scale").Get(ctx, set, scale)).To(Succeed())
		Expect(scale.Status.Replicas).To(BeEquivalentTo(1))
		Expect(scale.Status.Selector).To(Equal("app=db"))
		scale.Spec.Replicas = 3
		Expect(user.SubResource("scale").Update(ctx, set, client.WithSubResourceBody(scale))).To(Succeed())
		settled(ctx, set, 3)
	})

	It("SC-23 keeps pods with OnDelete until they are deleted, and replaces them under a new name", func(ctx SpecContext) {
		set := newSet(ns, 2, func(s *v1alpha1.StatefulCluster) { s.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategy })
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 2)
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = "two" })
		Consistently(func() map[string]corev1.Pod { return pods(ctx, set) }, time.Second).Should(
			HaveEach(HaveField("Spec.Containers", HaveEach(HaveField("Image", "one")))))
		victim := anyOf(before)
		Expect(user.Delete(ctx, victim)).To(Succeed())
		Eventually(func() []string { return names(pods(ctx, set)) }).Should(And(HaveLen(2), Not(ContainElement(victim.Name))))
		for name, p := range pods(ctx, set) {
			if _, old := before[name]; !old {
				Expect(p.Spec.Containers[0].Image).To(Equal("two"))
			}
		}
	})

	It("SC-24 keeps old revisions up to the limit, and reuses one for its template", func(ctx SpecContext) {
		set := newSet(ns, 1, func(s *v1alpha1.StatefulCluster) { s.Spec.RevisionHistoryLimit = new(int32(1)) })
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 1)
		first := set.Status.UpdateRevision
		for _, image := range []string{"two", "three", "four"} {
			edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = image })
			settled(ctx, set, 1)
		}
		Eventually(func() int { return len(revisions(ctx, set)) }).Should(Equal(2))
		third := revisions(ctx, set)
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = "three" })
		settled(ctx, set, 1)
		Expect(third).To(ContainElement(set.Status.UpdateRevision))
		Expect(third).NotTo(ContainElement(first))
	})

	It("SC-27 deletes claims according to whenScaled and whenDeleted", func(ctx SpecContext) {
		set := newSet(ns, 3, func(s *v1alpha1.StatefulCluster) {
			s.Spec.PersistentVolumeClaimRetentionPolicy = v1alpha1.ClaimRetentionPolicy{WhenScaled: "Delete", WhenDeleted: "Delete"}
		})
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 3)
		Expect(claims(ctx, set)).To(HaveEach(HaveField("OwnerReferences", ContainElement(HaveField("UID", set.UID)))))
		scaleTo(ctx, set, 1)
		settled(ctx, set, 1)
		Eventually(func() int { return len(claims(ctx, set)) }).Should(Equal(1))
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = "Retain" })
		Eventually(func() map[string]corev1.PersistentVolumeClaim { return claims(ctx, set) }).Should(HaveEach(HaveField("OwnerReferences", BeEmpty())))
		Expect(user.Delete(ctx, set)).To(Succeed())
		Eventually(func() map[string]corev1.PersistentVolumeClaim { return claims(ctx, set) }).Should(
			HaveEach(HaveField("Labels", HaveKeyWithValue(v1alpha1.LabelRetained, "Deleted"))))
	})

	It("creates a disruption budget with maxConcurrent", func(ctx SpecContext) {
		set := newSet(ns, 8)
		Expect(user.Create(ctx, set)).To(Succeed())
		var budget policyv1.PodDisruptionBudget
		Eventually(func() error { return user.Get(ctx, client.ObjectKeyFromObject(set), &budget) }).Should(Succeed())
		Expect(budget.Spec.MaxUnavailable.IntValue()).To(Equal(2))
	})

	It("expands claims with the template, without restarts", func(ctx SpecContext) {
		set := newSet(ns, 2)
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 2)
		bindClaims(ctx, set)
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
			s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("3Gi")
		})
		for name, p := range settled(ctx, set, 2) {
			Expect(p.UID).To(Equal(before[name].UID))
		}
		Expect(claims(ctx, set)).To(HaveEach(HaveField("Spec.Resources.Requests", HaveKeyWithValue(corev1.ResourceStorage, resource.MustParse("3Gi")))))
	})
})
