package statefulcluster_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
	"github.com/stateful-operator/stateful-operator/test/rbac"
)

var _ = Describe("a requester who may create a StatefulCluster but no pods", func() {
	const untold = "spec.template was not validated with a dry-run create: only a user who can create pods in this namespace sees whether they would be accepted"
	var ns string
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		Expect(rbac.Allow(ctx, user, ns, "peer", "create", v1alpha1.GroupVersion.Group, "statefulclusters")).To(Succeed())
	})
	hears := func(ctx context.Context, change func(*v1alpha1.StatefulCluster)) []string {
		GinkgoHelper()
		heard := &apiserver.Warned{Who: "peer"}
		Expect(heard.Client(server).Create(ctx, newSet(ns, 0, change), client.DryRunAll)).To(Succeed())
		return heard.Texts
	}
	named := func(class string) func(*v1alpha1.StatefulCluster) {
		return func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.PriorityClassName = class }
	}

	It("gets no information about existing objects", func(ctx SpecContext) {
		Expect(user.Create(ctx, newSet(ns, 0, func(s *v1alpha1.StatefulCluster) { s.Name = "other" }))).To(Succeed())
		for _, class := range []string{"system-node-critical", "no-such-class", "-"} {
			Expect(hears(ctx, named(class))).To(ConsistOf(untold))
		}
	})

	It("gets warnings when granted create pods, only about fields of the request", func(ctx SpecContext) {
		Expect(rbac.Allow(ctx, user, ns, "peer", "create", "", "pods")).To(Succeed())
		Eventually(func() []string { return hears(ctx, named("no-such-class")) }).Should(ConsistOf(HavePrefix(
			"dry-run create of spec.template failed; members cannot be created until this is resolved: a policy forbids it, or a referenced object such as a service account, a priority class")))
		Expect(hears(ctx, named("system-node-critical"))).To(BeEmpty())
		text := clean((&apiserver.Warned{Who: "peer"}).Client(server).Create(ctx, newSet(ns, 0, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullPolicy("Sometimes")
		}), client.DryRunAll))
		Expect(text).To(ContainSubstring(`spec.template.spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes"`))
	})
})
