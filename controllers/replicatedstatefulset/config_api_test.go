package replicatedstatefulset_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

var _ = Describe("the configuration of the pods", func() {
	It("RS-96 RS-97 restarts the members when a Secret changes, and reports an unreadable or missing Secret", func(ctx SpecContext) {
		p := startFakeControlPlane(newNamespace(ctx))
		startOperator(p)
		creds := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "creds"}, Data: map[string][]byte{"a": []byte("1")}}
		Expect(user.Create(ctx, creds)).To(Succeed())
		set := replicated(p.namespace)
		set.Spec.UpdateOnEnvChange, set.Spec.Secrets = true, []string{"creds"}
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 1, 2)
		says := func() string {
			Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			bad := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionDegraded)
			return bad.Reason + ": " + bad.Message
		}

		By("without the right to read Secrets")
		Eventually(says).Should(And(HavePrefix(v1alpha1.ReasonConfigUnreadable),
			ContainSubstring(fmt.Sprintf("kubectl -n %s create role stateful-operator-reads-creds --verb=get --resource=secrets --resource-name=creds", p.namespace)),
			ContainSubstring("--serviceaccount=operator-system:manager")))
		before := podsOf(ctx, p.namespace)

		By("granting the right with the command of the condition")
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "stateful-operator-reads-creds"},
			Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"creds"}}}}
		Expect(user.Create(ctx, role)).To(Succeed())
		Expect(user.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "operator-system", Name: "manager"}}})).To(Succeed())
		Eventually(says).Should(HavePrefix(v1alpha1.ReasonHealthy))
		followed := func(g Gomega) {
			stateful := &appsv1.StatefulSet{}
			g.Expect(user.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: "rss-" + set.Name}, stateful)).To(Succeed())
			g.Expect(stateful.Annotations).To(HaveKey(v1alpha1.AnnotationConfigRecord))
			g.Expect(stateful.Spec.Template.Annotations).NotTo(HaveKey(v1alpha1.AnnotationConfigHash))
		}
		Eventually(followed).Should(Succeed())

		By("deleting the Secret")
		Expect(user.Delete(ctx, creds)).To(Succeed())
		Eventually(says).Should(HavePrefix(v1alpha1.ReasonConfigMissing + ": Secret creds does not exist"))
		for name, pod := range podsOf(ctx, p.namespace) {
			Expect(pod.UID).To(Equal(before[name].UID), "%s was recreated", name)
		}

		By("granting the right to watch Secrets, and creating a changed Secret")
		server.GiveRightsIn(ctx, p.namespace, "secrets-role")
		creds = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "creds"}, Data: map[string][]byte{"a": []byte("2")}}
		Expect(user.Create(ctx, creds)).To(Succeed())
		Eventually(func(g Gomega) {
			for name, pod := range podsOf(ctx, p.namespace) {
				g.Expect(pod.UID).NotTo(Equal(before[name].UID))
				g.Expect(pod.Annotations).To(HaveKey(v1alpha1.AnnotationConfigHash))
			}
		}).Should(Succeed())
		settled(ctx, set, 1, 2)
		Expect(p.maxPrimaries()).To(Equal(1))
		Expect(events(ctx, p.namespace)).To(ContainElement(v1alpha1.EventConfigRestart))
	})
})
