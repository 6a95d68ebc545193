package statefulcluster_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

var _ = Describe("The status for tools", func() {
	It("SC-61 is InProgress until the operator has observed the generation", func(ctx SpecContext) {
		set := newSet(newNamespace(ctx), 0)
		Expect(user.Create(ctx, set)).To(Succeed())
		Expect(server.Kstatus(ctx, set)).To(Equal("InProgress, generation -1"))
		startOperator(operatorOptions{namespaces: []string{set.Namespace}})
		Eventually(func() string { return server.Kstatus(ctx, set) }).Should(Equal("Current, generation 1"))
		edit(ctx, set, func(set *v1alpha1.StatefulCluster) { set.Spec.Replicas = new(int32(2)) }) // no kubelet makes them Ready
		Expect(server.Kstatus(ctx, set)).To(HavePrefix("InProgress, "))
		Eventually(func() string { return server.Kstatus(ctx, set) }).Should(Equal("InProgress, generation 2"))
	})
})
