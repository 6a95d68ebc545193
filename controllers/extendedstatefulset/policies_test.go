package extendedstatefulset_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// Policies of a cluster that change the children of an object.
var _ = DescribeTable("W3 a policy that changes a child on create and on update causes no repeated writes, and updates succeed", apiserver.First,
	func(ctx SpecContext, group, resource, patch, told string) {
		ns := newNamespace(ctx)
		startFakeControlPlane(ns)
		server.Mutate(ctx, ns, apiserver.Mutation{Group: group, Version: "v1", Resource: resource, Patch: patch})
		startOperator(ns)
		Expect(user.Create(ctx, object(ns, withPreJob("fine"), `{"spec": {"podDisruptionBudget": {"maxUnavailable": 1}, "template": {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 11}}}}}}`))).To(Succeed())
		stable(ctx, ns, 1, 3)
		says := func() string { return condition(ctx, web(ctx, ns), v1alpha1.ConditionDegraded)() }
		if told == "" {
			Expect(says()).NotTo(ContainSubstring(v1alpha1.ReasonWriteRefused))
		} else {
			Eventually(says).Should(And(ContainSubstring(v1alpha1.ReasonWriteRefused), ContainSubstring(told)))
		}
		server.Rests(ctx, ns, 4*time.Second)
		Expect(change(ctx, object(ns), image("two"))).To(Succeed())
		stable(ctx, ns, 2, 3)
		server.Rests(ctx, ns, 4*time.Second)
	},
	Entry("adds a field to budgets", "policy", "poddisruptionbudgets", apiserver.Add("/spec/unhealthyPodEvictionPolicy", "AlwaysAllow"), ""),
	Entry("changes a field of budgets", "policy", "poddisruptionbudgets", `[JSONPatch{op: "replace", path: "/spec/minAvailable", value: 1}]`, "poddisruptionbudget web: spec.minAvailable (wanted 2, present 1)"),
	Entry("removes a field of budgets", "policy", "poddisruptionbudgets", `[JSONPatch{op: "remove", path: "/spec/minAvailable"}]`, "poddisruptionbudget web: spec.minAvailable (wanted 2, present none)"),
	Entry("removes a label from budgets", "policy", "poddisruptionbudgets", apiserver.RemoveLabel(v1alpha1.LabelSet), "metadata.labels"),
	Entry("adds a label to the templates of StatefulSets", "apps", "statefulsets", apiserver.Add("/spec/template/metadata/labels/team", "x"), ""),
	Entry("changes an image to that of a mirror", "apps", "statefulsets", apiserver.Add("/spec/template/spec/containers/0/image", "mirror/one"), ""),
	Entry("changes a field of the templates of StatefulSets", "apps", "statefulsets", `[JSONPatch{op: "replace", path: "/spec/template/spec/terminationGracePeriodSeconds", value: 7}]`, "statefulset web-v1: spec.template.spec.terminationGracePeriodSeconds (wanted 11, present 7)"),
	Entry("removes a label from StatefulSets", "apps", "statefulsets", apiserver.RemoveLabel(v1alpha1.LabelSet), "metadata.labels"),
	Entry("adds a label to Services", "", "services", apiserver.Add("/metadata/labels/team", "x"), ""),
	Entry("removes a label from Services", "", "services", apiserver.RemoveLabel(v1alpha1.LabelSet), ""),
	Entry("adds a label to Jobs", "batch", "jobs", apiserver.Add("/metadata/labels/team", "x"), ""),
	Entry("removes a label from Jobs", "batch", "jobs", apiserver.RemoveLabel(v1alpha1.LabelSet), ""),
	Entry("changes a field of Jobs", "batch", "jobs", `[JSONPatch{op: "replace", path: "/spec/backoffLimit", value: 1}]`, ""),
	Entry("adds a label to pods", "", "pods", apiserver.Add("/metadata/labels/team", "x"), ""),
)
