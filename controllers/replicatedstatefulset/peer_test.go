package replicatedstatefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// allow lets a person do that with those resources of a namespace.
func allow(ctx context.Context, namespace, who string, rule rbacv1.PolicyRule) {
	GinkgoHelper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: "may-", Namespace: namespace}, Rules: []rbacv1.PolicyRule{rule}}
	Expect(user.Create(ctx, role)).To(Succeed())
	Expect(user.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: namespace},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}}})).To(Succeed())
}

var _ = Describe("who may create a ReplicatedStatefulSet and no pods", func() {
	It("does not learn what there is", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		allow(ctx, ns, "peer", rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"replicatedstatefulsets"}})
		taken := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "example-primary", Namespace: ns}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
		tries := func() (string, []string) {
			heard := &warned{who: "peer"}
			err := heard.client().Create(ctx, newSet(ns), client.DryRunAll)
			return clean(err), heard.texts
		}
		for range 2 {
			refused, heard := tries()
			Expect(refused).To(BeEmpty())
			Expect(heard).To(ConsistOf("spec.pod was not tried out: only who may create pods in this namespace is told whether they would be taken"))
			if taken.UID == "" {
				Expect(user.Create(ctx, taken)).To(Succeed())
			}
		}
		allow(ctx, ns, "peer", rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"pods"}})
		Eventually(func() string { refused, _ := tries(); return refused }).Should(ContainSubstring("Service example-primary is there already and belongs to somebody else"))
	})
})
