package extendedstatefulset_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("kstatus", func() {
	It("E51 is InProgress before the first pass of the operator", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		startFakeControlPlane(namespace)
		set := object(namespace)
		Expect(user.Create(ctx, set)).To(Succeed())
		Expect(server.Kstatus(ctx, set)).To(Equal("InProgress, generation -1"))
		startOperator(namespace)
		Eventually(func() string { return server.Kstatus(ctx, set) }).Should(Equal("Current, generation 1"))
	})
})
