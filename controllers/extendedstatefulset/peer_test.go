package extendedstatefulset_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
	"github.com/stateful-operator/stateful-operator/test/rbac"
)

var _ = Describe("a user who may create ExtendedStatefulSets but no pods", func() {
	It("cannot detect existing objects", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		labels := map[string]string{"app": "theirs"}
		theirs := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web-v1", Namespace: ns}, Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}}}
		Expect(user.Create(ctx, theirs)).To(Succeed())
		peer := &apiserver.Warned{Who: "peer"}
		tries := func() error {
			peer.Texts = nil
			return peer.Client(server).Create(ctx, object(ns), client.DryRunAll)
		}
		Expect(rbac.Allow(ctx, user, ns, peer.Who, "create", v1alpha1.GroupVersion.Group, "extendedstatefulsets")).To(Succeed())
		Eventually(tries).Should(Succeed(), "a name conflict is not reported to an unauthorized user")
		Expect(peer.Texts).To(ConsistOf("dry run of spec.template skipped: only a user who can create pods in this namespace sees whether they would be accepted"))
		Expect(rbac.Allow(ctx, user, ns, peer.Who, "create", "", "pods")).To(Succeed())
		Eventually(tries).Should(MatchError(ContainSubstring("StatefulSet web-v1 exists and belongs to another owner")))
	})
})
