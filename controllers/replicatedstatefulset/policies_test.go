package replicatedstatefulset_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// Effects of cluster policies on the children of a set.
var _ = DescribeTable("W3 a policy that changes a child on creation and update: no writes at rest, and updates succeed", apiserver.First,
	func(ctx SpecContext, group, resource, patch, told string) {
		p := startFakeControlPlane(newNamespace(ctx))
		server.Mutate(ctx, p.namespace, apiserver.Mutation{Group: group, Version: "v1", Resource: resource, Patch: patch})
		set := started(ctx, p)
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionDegraded)
			if told == "" {
				g.Expect(c.Reason).NotTo(Equal(v1alpha1.ReasonWriteRefused), c.Message)
				return
			}
			g.Expect(c.Reason).To(Equal(v1alpha1.ReasonWriteRefused))
			g.Expect(c.Message).To(ContainSubstring(told))
		}).Should(Succeed())
		server.Rests(ctx, p.namespace, 4*time.Second)
		before := podsOf(ctx, p.namespace)
		Expect(user.Patch(ctx, set, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"pod":{"annotations":{"restart":"now"}}}}`)))).To(Succeed())
		Eventually(func(g Gomega) {
			for name, pod := range podsOf(ctx, p.namespace) {
				g.Expect(pod.UID).NotTo(Equal(before[name].UID))
			}
		}).Should(Succeed())
		settled(ctx, set, 1, 2)
		server.Rests(ctx, p.namespace, 4*time.Second)
	},
	Entry("adds a field to the budget", "policy", "poddisruptionbudgets", apiserver.Add("/spec/unhealthyPodEvictionPolicy", "AlwaysAllow"), ""),
	Entry("changes a field of the budget", "policy", "poddisruptionbudgets", `has(object.spec.minAvailable) ? [JSONPatch{op: "replace", path: "/spec/minAvailable", value: 0}] : []`, "poddisruptionbudget rss-example: spec.minAvailable (wanted 1, present 0)"),
	Entry("removes a field of the budget", "policy", "poddisruptionbudgets", `has(object.spec.minAvailable) ? [JSONPatch{op: "remove", path: "/spec/minAvailable"}] : []`, "poddisruptionbudget rss-example: spec.minAvailable (wanted 1, present none)"),
	Entry("removes a label from the budget", "policy", "poddisruptionbudgets", apiserver.RemoveLabel(v1alpha1.LabelManaged), "metadata.labels"),
	Entry("adds a field to the StatefulSet", "apps", "statefulsets", apiserver.Add("/spec/template/spec/priorityClassName", ""), ""),
	Entry("adds a label to the template of the StatefulSet", "apps", "statefulsets", apiserver.Add("/spec/template/metadata/labels/team", "x"), ""),
	Entry("changes an image to that of a mirror", "apps", "statefulsets", apiserver.Add("/spec/template/spec/containers/0/image", "mirror/one"), ""),
	Entry("changes a field of the StatefulSet", "apps", "statefulsets", `[JSONPatch{op: "replace", path: "/spec/template/spec/terminationGracePeriodSeconds", value: 7}]`, "spec.template.spec.terminationGracePeriodSeconds (wanted 600, present 7)"),
	Entry("removes a label from the StatefulSet", "apps", "statefulsets", apiserver.RemoveLabel(v1alpha1.LabelManaged), "statefulset rss-example: metadata.labels"),
	Entry("adds a label to Services", "", "services", apiserver.Add("/metadata/labels/team", "x"), ""),
	Entry("removes a label from Services", "", "services", apiserver.RemoveLabel(v1alpha1.LabelManaged), "metadata.labels"),
	Entry("changes a field of Services", "", "services", apiserver.Add("/spec/sessionAffinity", "ClientIP"), ""),
	Entry("adds a label to pods", "", "pods", apiserver.Add("/metadata/labels/team", "x"), ""),
	Entry("adds an annotation to claims", "", "persistentvolumeclaims", `[JSONPatch{op: "add", path: "/metadata/annotations", value: {"team": "x"}}]`, ""),
)
