package replicatedstatefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

var _ = Describe("resources in place", func() {
	var p *fakeControlPlane
	BeforeEach(func(ctx SpecContext) {
		p = startFakeControlPlane(newNamespace(ctx))
		DeferCleanup(func(ctx SpecContext) { sweep(ctx, p.namespace) })
	})

	asks := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	// served returns a running set whose members may be changed in place.
	served := func(ctx context.Context) *v1alpha1.ReplicatedStatefulSet {
		GinkgoHelper()
		startOperator(p)
		set := replicated(p.namespace)
		set.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{InPlace: v1alpha1.InPlaceResources}
		set.Spec.Pod.Containers[0].Resources = asks("100m")
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 1, 2)
		return set
	}
	change := func(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, to corev1.ResourceRequirements) {
		GinkgoHelper()
		from := set.DeepCopy()
		set.Spec.Pod.Containers[0].Resources = to
		Expect(user.Patch(ctx, set, client.MergeFrom(from))).To(Succeed())
	}
	uids := func(ctx context.Context) map[string]types.UID {
		GinkgoHelper()
		all := map[string]types.UID{}
		for name, pod := range podsOf(ctx, p.namespace) {
			all[name] = pod.UID
		}
		return all
	}
	// updated waits until all members have the current revision.
	updated := func(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, cpu string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			var sts appsv1.StatefulSet
			g.Expect(user.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: "rss-" + set.Name}, &sts)).To(Succeed())
			g.Expect(sts.Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().String()).To(Equal(cpu))
			pods := podsOf(ctx, p.namespace)
			g.Expect(pods).To(HaveLen(3))
			for _, pod := range pods {
				g.Expect(pod.Spec.Containers[0].Resources.Requests.Cpu().String()).To(Equal(cpu), pod.Name)
				g.Expect(pod.Labels).To(HaveKeyWithValue(appsv1.ControllerRevisionHashLabelKey, sts.Status.UpdateRevision), pod.Name)
				g.Expect(pod.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationTemplate, sts.Spec.Template.Annotations[v1alpha1.AnnotationTemplate]), pod.Name)
				g.Expect(pod.Annotations).NotTo(HaveKey(v1alpha1.AnnotationInPlace), pod.Name)
			}
		}).Should(Succeed())
		settled(ctx, set, 1, 2)
	}

	It("RS-99 RS-110 changes resources of all members without a restart, a handover or a command", func(ctx SpecContext) {
		set := served(ctx)
		before, told, primary := uids(ctx), p.commands(), set.Status.Members.Primary
		change(ctx, set, asks("200m"))
		updated(ctx, set, "200m")
		if !server.AtLeast("1.33") { // it has no such subresource
			Expect(uids(ctx)).NotTo(Equal(before))
			Eventually(func() []string { return events(ctx, p.namespace) }).Should(ContainElement(v1alpha1.EventNotInPlace))
			return
		}
		Expect(uids(ctx)).To(Equal(before))
		Expect(p.commands()).To(Equal(told))
		Expect(set.Status.Members.Primary).To(Equal(primary))
		Eventually(func() []string { return events(ctx, p.namespace) }).Should(ContainElement(v1alpha1.EventMemberUpdated))
	})

	It("RS-110 recreates members when the API server refuses a resize, and reports the reason", func(ctx SpecContext) {
		set := served(ctx)
		before := uids(ctx)
		guaranteed := asks("200m") // another QoS class than that of the pods
		guaranteed.Requests[corev1.ResourceMemory] = resource.MustParse("64Mi")
		guaranteed.Limits = guaranteed.Requests.DeepCopy()
		change(ctx, set, guaranteed)
		updated(ctx, set, "200m")
		for name, uid := range uids(ctx) {
			Expect(before[name]).NotTo(Equal(uid), name)
		}
		Eventually(func() []string { return events(ctx, p.namespace) }).Should(ContainElement(v1alpha1.EventNotInPlace))
		Expect(p.maxPrimaries()).To(Equal(1))
	})

	It("RS-99 refuses an unknown value of updateStrategy.inPlace", func(ctx SpecContext) {
		set := replicated(p.namespace)
		set.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{InPlace: "Images"}
		Expect(user.Create(ctx, set)).To(MatchError(ContainSubstring("spec.updateStrategy.inPlace: Unsupported value")))
		set.Spec.UpdateStrategy.InPlace = ""
		Expect(user.Create(ctx, set)).To(Succeed())
		Expect(set.Spec.UpdateStrategy.InPlace).To(Equal(v1alpha1.InPlaceNever))
	})
})
