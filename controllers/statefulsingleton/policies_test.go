package statefulsingleton_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// Mutations of the children of an object and of its pods by policies of a cluster.
var _ = DescribeTable("W3 a policy that changes a child on creation and update: no write at rest, and a pod gets its turn",
	func(ctx SpecContext, group, resource, patch, told string) {
		ns := newNamespace(ctx)
		here := "of-" + ns
		addNode(ctx, here)
		server.Mutate(ctx, ns, apiserver.Mutation{Group: group, Version: "v1", Resource: resource, Patch: patch})
		startOperator(operatorOptions{namespaces: []string{ns}})
		s := declare(ctx, newSingleton(ns, func(s *v1.StatefulSingleton) { s.Spec.OnEviction = v1.EvictionReplacesFirst }))
		d := newDeployment(ns, 1)
		Expect(user.Create(ctx, d)).To(Succeed())
		a := add(ctx, newPod(ns, "a", madeBy(revision(ctx, d, "1")), playing(playNode, here)))
		activates(ctx, s, a)
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
			c := meta.FindStatusCondition(s.Status.Conditions, v1.ConditionDegraded)
			if told == "" {
				g.Expect(c.Reason).NotTo(Equal(v1.ReasonWriteRefused), c.Message)
				return
			}
			g.Expect(c.Reason).To(Equal(v1.ReasonWriteRefused))
			g.Expect(c.Message).To(ContainSubstring(told))
		}).Should(Succeed())
		server.Rests(ctx, ns, 4*time.Second)
	},
	Entry("adds a label to the budget", "policy", "poddisruptionbudgets", apiserver.Add("/metadata/labels/team", "x"), ""),
	Entry("changes a field of the budget", "policy", "poddisruptionbudgets", `[JSONPatch{op: "replace", path: "/spec/minAvailable", value: 0}]`, "poddisruptionbudget db.singleton: spec.minAvailable (wanted 1, present 0)"),
	Entry("removes a field of the budget", "policy", "poddisruptionbudgets", `[JSONPatch{op: "remove", path: "/spec/unhealthyPodEvictionPolicy"}]`, "poddisruptionbudget db.singleton: spec.unhealthyPodEvictionPolicy"),
	Entry("removes a label from the budget", "policy", "poddisruptionbudgets", apiserver.RemoveLabel(v1.LabelManagedBy), "metadata.labels"),
	Entry("removes the label of its object from the budget", "policy", "poddisruptionbudgets", apiserver.RemoveLabel(v1.LabelSingleton), "metadata.labels"),
	Entry("removes a label from the wrapper", "", "configmaps", apiserver.RemoveLabel(v1.LabelManagedBy), "configmap statefulsingleton-wrapper: metadata.labels"),
	Entry("removes the label of its object from pods", "", "pods", apiserver.RemoveLabel(v1.LabelSingleton), ""),
	Entry("adds an annotation to pods", "", "pods", `has(object.metadata.annotations) ? [JSONPatch{op: "add", path: "/metadata/annotations/team", value: "x"}] : []`, ""),
)
