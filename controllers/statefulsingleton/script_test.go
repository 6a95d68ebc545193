package statefulsingleton_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

var _ = Describe("S2 the ConfigMap with a copy of the script", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		startOperator(operatorOptions{namespaces: []string{ns}})
	})

	wrapper := func(ctx SpecContext) *corev1.ConfigMap {
		GinkgoHelper()
		m := &corev1.ConfigMap{}
		Eventually(func() error {
			return user.Get(ctx, client.ObjectKey{Namespace: ns, Name: "statefulsingleton-wrapper"}, m)
		}).Should(Succeed())
		return m
	}

	It("is created, and recreated after a deletion", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		m := wrapper(ctx)
		Expect(m.Data).To(HaveKeyWithValue("entrypoint-wrapper.sh", HavePrefix("#!/bin/sh\n")))
		Expect(m.Labels).To(Equal(map[string]string{
			"app.kubernetes.io/part-of": "statefulsingleton-operator", "app.kubernetes.io/managed-by": "statefulsingleton-controller"}))
		Expect(m.OwnerReferences).To(Equal([]metav1.OwnerReference{{APIVersion: "apps.openshift.statefulsingleton.com/v1", Kind: "StatefulSingleton", Name: "db", UID: s.UID}}))
		Expect(user.Delete(ctx, m.DeepCopy())).To(Succeed())
		Eventually(func() types.UID { return wrapper(ctx).UID }).ShouldNot(Equal(m.UID))
		Expect(wrapper(ctx).Data).To(Equal(m.Data))
	})

	It("is repaired after a change, and keeps the data of other clients", func(ctx SpecContext) {
		declare(ctx, newSingleton(ns))
		m := wrapper(ctx)
		for _, drift := range []func(*corev1.ConfigMap){
			func(m *corev1.ConfigMap) { m.Data["entrypoint-wrapper.sh"] = "exec $*" },
			func(m *corev1.ConfigMap) { m.Data = nil },
			func(m *corev1.ConfigMap) { delete(m.Data, "entrypoint-wrapper.sh"); m.Data["other"] = "mine" },
			func(m *corev1.ConfigMap) { m.Labels = nil },
			func(m *corev1.ConfigMap) { m.OwnerReferences = nil },
		} {
			drifted := m.DeepCopy()
			edit(ctx, drifted, drift)
			Eventually(func(g Gomega) {
				now := wrapper(ctx)
				g.Expect(now.Data).To(HaveKeyWithValue("entrypoint-wrapper.sh", m.Data["entrypoint-wrapper.sh"]))
				g.Expect(now.Labels).To(Equal(m.Labels))
				g.Expect(now.OwnerReferences).To(Equal(m.OwnerReferences))
			}).Should(Succeed())
		}
		Expect(wrapper(ctx).Data).To(HaveKeyWithValue("other", "mine"))
	})

	It("is shared by all objects of a namespace, which all own it", func(ctx SpecContext) {
		one := declare(ctx, newSingleton(ns))
		two := declare(ctx, newSingleton(ns, func(s *v1.StatefulSingleton) { s.Name, s.Spec.Selector.MatchLabels["app"] = "web", "web" }))
		owners := func() []string {
			var uids []string
			for _, o := range wrapper(ctx).OwnerReferences {
				uids = append(uids, string(o.UID))
			}
			return uids
		}
		Eventually(owners).Should(ConsistOf(string(one.UID), string(two.UID)))
	})

	It("is not changed if it belongs to a user", func(ctx SpecContext) {
		mine := map[string]string{"entrypoint-wrapper.sh": "mine"}
		Expect(user.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "statefulsingleton-wrapper", Namespace: ns}, Data: mine})).To(Succeed())
		s := declare(ctx, newSingleton(ns))
		says(ctx, s, v1.ConditionDegraded, v1.ReasonHealthy) // no pod depends on it
		Expect(wrapper(ctx).Data).To(Equal(mine))
		Expect(wrapper(ctx).OwnerReferences).To(BeEmpty())
	})
})
