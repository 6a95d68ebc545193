package statefulsingleton_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Status for tools that wait", func() {
	It("S41 is not complete before the first reconciliation", func(ctx SpecContext) {
		s := newSingleton(newNamespace(ctx))
		Expect(user.Create(ctx, s)).To(Succeed())
		Expect(server.Kstatus(ctx, s)).To(Equal("InProgress, generation -1"))
		startOperator(operatorOptions{namespaces: []string{s.Namespace}})
		Eventually(func() string { return server.Kstatus(ctx, s) }).Should(Equal("Current, generation 1"), "an object without pods is Current, as a Deployment with 0 replicas")
	})
})
