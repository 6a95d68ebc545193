package statefulcluster_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// The effects of cluster policies on the children of a set.
var _ = DescribeTable("W3 a policy changes a child on creation and on update: no writes at rest, and updates complete", apiserver.First,
	func(ctx SpecContext, group, resource, patch, told string) {
		ns := newNamespace(ctx)
		server.Mutate(ctx, ns, apiserver.Mutation{Group: group, Version: "v1", Resource: resource, Patch: patch})
		startOperator(operatorOptions{namespaces: []string{ns}})
		set := newSet(ns, 2)
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 2)
		if told == "" {
			degraded(ctx, set, v1alpha1.ReasonHealthy)
		} else {
			Expect(degraded(ctx, set, v1alpha1.ReasonWriteRefused)).To(And(ContainSubstring(told), ContainSubstring("kubectl get mutatingwebhookconfigurations")))
		}
		server.Rests(ctx, ns, 4*time.Second)
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = "two" })
		for _, pod := range settled(ctx, set, 2) {
			Expect(pod.Spec.Containers[0].Image).To(Equal("two"))
		}
		server.Rests(ctx, ns, 4*time.Second)
	},
	Entry("adds a field to the budget", "policy", "poddisruptionbudgets", apiserver.Add("/spec/unhealthyPodEvictionPolicy", "AlwaysAllow"), ""),
	Entry("adds a label to the budget", "policy", "poddisruptionbudgets", apiserver.Add("/metadata/labels/team", "x"), ""),
	Entry("changes a field of the budget", "policy", "poddisruptionbudgets", `[JSONPatch{op: "replace", path: "/spec/maxUnavailable", value: 0}]`, "poddisruptionbudget db: spec.maxUnavailable (wanted 1, present 0)"),
	Entry("removes a field of the budget", "policy", "poddisruptionbudgets", `[JSONPatch{op: "remove", path: "/spec/maxUnavailable"}]`, "poddisruptionbudget db: spec.maxUnavailable (wanted 1, present none)"),
	Entry("removes the label of the budget that the cache needs", "policy", "poddisruptionbudgets", apiserver.RemoveLabel(v1alpha1.LabelCluster), "poddisruptionbudget db: metadata.labels"),
	Entry("adds a label to pods", "", "pods", apiserver.Add("/metadata/labels/team", "x"), ""),
	Entry("changes a field of pods", "", "pods", `[JSONPatch{op: "replace", path: "/spec/terminationGracePeriodSeconds", value: 7}]`, ""),
	Entry("removes a label from pods", "", "pods", apiserver.RemoveLabel("app"), ""),
	Entry("removes a label from pods that the operator needs", "", "pods", apiserver.RemoveLabel(v1alpha1.LabelMember), "metadata.labels."+v1alpha1.LabelMember),
	Entry("adds a label to claims", "", "persistentvolumeclaims", apiserver.Add("/metadata/labels/team", "x"), ""),
	Entry("removes a label from claims that the operator needs", "", "persistentvolumeclaims", apiserver.RemoveLabel(v1alpha1.LabelMember), "metadata.labels."+v1alpha1.LabelMember),
	Entry("adds a label to revisions", "apps", "controllerrevisions", apiserver.Add("/metadata/labels/team", "x"), ""),
	Entry("removes a label from revisions", "apps", "controllerrevisions", apiserver.RemoveLabel(v1alpha1.LabelCluster), "metadata.labels"),
)
