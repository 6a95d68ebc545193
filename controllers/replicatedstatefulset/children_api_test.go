package replicatedstatefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("an edited child", func() {
	var p *fakeControlPlane
	BeforeEach(func(ctx SpecContext) {
		p = startFakeControlPlane(newNamespace(ctx))
		DeferCleanup(func(ctx SpecContext) { sweep(ctx, p.namespace) })
	})
	merge := func(ctx context.Context, child client.Object, patch string) {
		GinkgoHelper()
		Expect(user.Patch(ctx, child, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
	}

	It("RS-47 gets its fields back, and is not replaced", func(ctx SpecContext) {
		set := started(ctx, p)

		By("editing the StatefulSet")
		stateful := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "rss-example"}}
		merge(ctx, stateful, `{"spec":{"ordinals":{"start":5},"minReadySeconds":60}}`)
		Expect(stateful.Spec.Ordinals).To(HaveField("Start", BeEquivalentTo(5)))
		uid := stateful.UID
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(stateful), stateful)).To(Succeed())
			g.Expect(stateful.Spec.Ordinals).To(BeNil())
			g.Expect(stateful.Spec.MinReadySeconds).To(BeZero())
		}).Should(Succeed())
		Expect(stateful.UID).To(Equal(uid))

		for _, name := range []string{"example-svc", "example-primary"} {
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}}
			Expect(user.Get(ctx, client.ObjectKeyFromObject(service), service)).To(Succeed())
			uid, isHeadless := service.UID, service.Spec.ClusterIP == corev1.ClusterIPNone
			restored := func() {
				GinkgoHelper()
				Eventually(func(g Gomega) {
					g.Expect(user.Get(ctx, client.ObjectKeyFromObject(service), service)).To(Succeed())
					g.Expect(service.Spec.Type).To(Equal(corev1.ServiceTypeClusterIP))
					g.Expect(service.Spec.ExternalName).To(BeEmpty())
					g.Expect(service.Spec.ClusterIP == corev1.ClusterIPNone).To(Equal(isHeadless))
					g.Expect(service.Spec.ClusterIP).NotTo(BeEmpty())
				}).Should(Succeed())
				Expect(service.UID).To(Equal(uid))
			}

			By("changing the type of Service " + name)
			merge(ctx, service, `{"spec":{"type":"ExternalName","externalName":"elsewhere.example.com"}}`)
			restored()

			By("changing whether Service " + name + " is headless")
			merge(ctx, set, `{"spec":{"paused":true}}`) // children are restored also while paused
			ip := "None"
			if isHeadless {
				ip = ""
			}
			Eventually(func() error { // the operator may restore it between the two patches
				if err := user.Patch(ctx, service, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"type":"ExternalName","externalName":"x.example.com"}}`))); err != nil {
					return err
				}
				return user.Patch(ctx, service, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"type":"ClusterIP","externalName":null,"clusterIP":"`+ip+`"}}`)))
			}).Should(Succeed())
			Expect(service.Spec.ClusterIP == corev1.ClusterIPNone).NotTo(Equal(isHeadless))
			restored()
			merge(ctx, set, `{"spec":{"paused":false}}`)
		}
		settled(ctx, set, 1, 2)
		Expect(p.maxPrimaries()).To(Equal(1))
		Expect(events(ctx, p.namespace)).NotTo(ContainElement("WriteUndone"))
	})
})
