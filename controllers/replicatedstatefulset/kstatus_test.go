package replicatedstatefulset_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

var _ = Describe("kstatus of a set", func() {
	It("RS-101 is InProgress until the operator has observed the set", func(ctx SpecContext) {
		p := startFakeControlPlane(newNamespace(ctx))
		set := newSet(p.namespace, func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Replicas, s.Spec.Primaries = new(int32(0)), new(int32(0))
		})
		Expect(user.Create(ctx, set)).To(Succeed())
		Expect(server.Kstatus(ctx, set)).To(Equal("InProgress, generation -1"))
		startOperator(p)
		Eventually(func() string { return server.Kstatus(ctx, set) }).Should(Equal("Current, generation 1"), "a set that is stopped by its spec")
	})
})
