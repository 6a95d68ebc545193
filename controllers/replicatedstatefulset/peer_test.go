package replicatedstatefulset_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
	"github.com/stateful-operator/stateful-operator/test/rbac"
)

var _ = Describe("a user without the right to create pods", func() {
	It("does not learn which objects exist", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		Expect(rbac.Allow(ctx, user, ns, "peer", "create", v1alpha1.GroupVersion.Group, "replicatedstatefulsets")).To(Succeed())
		taken := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "example-primary", Namespace: ns}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
		tries := func() (string, []string) {
			heard := &apiserver.Warned{Who: "peer"}
			err := heard.Client(server).Create(ctx, newSet(ns), client.DryRunAll)
			return clean(err), heard.Texts
		}
		for range 2 {
			refused, heard := tries()
			Expect(refused).To(BeEmpty())
			Expect(heard).To(ConsistOf("spec.pod was not tested by a dry run: only a user who can create pods in this namespace sees whether they would be accepted"))
			if taken.UID == "" {
				Expect(user.Create(ctx, taken)).To(Succeed())
			}
		}
		Expect(rbac.Allow(ctx, user, ns, "peer", "create", "", "pods")).To(Succeed())
		Eventually(func() string { refused, _ := tries(); return refused }).Should(ContainSubstring("Service example-primary already exists and belongs to another object"))
	})
})
