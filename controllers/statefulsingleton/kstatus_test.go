package statefulsingleton_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("What tools wait for", func() {
	It("S41 is not there before the operator has looked", func(ctx SpecContext) {
		s := newSingleton(newNamespace(ctx))
		Expect(user.Create(ctx, s)).To(Succeed())
		Expect(server.Kstatus(ctx, s)).To(Equal("InProgress, generation -1"))
		startOperator(operatorOptions{namespaces: []string{s.Namespace}})
		Eventually(func() string { return server.Kstatus(ctx, s) }).Should(Equal("Current, generation 1"), "there are no pods, as with a Deployment of 0")
	})
})
