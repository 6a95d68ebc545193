package escalation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// fields tests the fields of an object that influence pods or roles. A user who may only edit the object
// cannot change, add or remove such a field.
func (s site) fields(t *testing.T) {
	g := NewWithT(t)
	set := replicated("", "  maintenance: [rss-fields-1]\n  evictionTimeout: 5m\n")
	set.Name = "fields"
	for _, object := range []client.Object{cluster(""), set, extended("", "  podDisruptionBudget: {maxUnavailable: 1}\n")} {
		object.SetName("fields")
		g.Expect(s.admin.Create(t.Context(), object)).To(Succeed())
		t.Cleanup(func() { _ = s.admin.Delete(context.WithoutCancel(t.Context()), object) })
	}
	const pods, exec, budgets = "may not create pods in", "may not create pods/exec", "may not create poddisruptionbudgets.policy"
	for _, row := range []struct{ kind, change, blocked string }{
		{"ReplicatedStatefulSet", `{"primaries": 2}`, exec},
		{"ReplicatedStatefulSet", `{"paused": true}`, exec},
		{"ReplicatedStatefulSet", `{"seeding": "Quorum"}`, exec},
		{"ReplicatedStatefulSet", `{"evictionPolicy": "Allow"}`, exec},
		{"ReplicatedStatefulSet", `{"evictionTimeout": "1s"}`, exec},
		{"ReplicatedStatefulSet", `{"evictionTimeout": null}`, exec},
		{"ReplicatedStatefulSet", `{"failureThreshold": 9}`, exec},
		{"ReplicatedStatefulSet", `{"maintenance": null}`, exec},
		{"ReplicatedStatefulSet", `{"chaosLevel": 15}`, pods},
		{"ReplicatedStatefulSet", `{"replicas": 4}`, ""},
		{"StatefulCluster", `{"replacement": {"unreadySeconds": 1}}`, pods},
		{"StatefulCluster", `{"updateStrategy": {"type": "OnDelete"}}`, pods},
		{"StatefulCluster", `{"minReadySeconds": 9}`, pods},
		{"StatefulCluster", `{"replicas": 4}`, ""},
		{"ExtendedStatefulSet", `{"injectReplicasEnv": false}`, pods},
		{"ExtendedStatefulSet", `{"updateStrategy": {"handover": "Coexist"}}`, pods},
		{"ExtendedStatefulSet", `{"template": {"metadata": {"labels": {"a": "b"}}}}`, pods},
		{"ExtendedStatefulSet", `{"template": {"spec": {"minReadySeconds": 9}}}`, pods},
		{"ExtendedStatefulSet", `{"template": {"spec": {"podManagementPolicy": "Parallel"}}}`, pods},
		{"ExtendedStatefulSet", `{"podDisruptionBudget": null}`, budgets},
		{"ExtendedStatefulSet", `{"template": {"spec": {"replicas": 4}}}`, ""},
	} {
		t.Run("N6 "+row.kind+" "+row.change, func(t *testing.T) {
			g := NewWithT(t)
			object := &unstructured.Unstructured{}
			for group, kind := range map[string]string{"enge.me": "StatefulCluster", "clusterlabs.org": "ReplicatedStatefulSet", "fissile.cloudfoundry.org": "ExtendedStatefulSet"} {
				if kind == row.kind {
					object.SetAPIVersion(group + "/v1alpha1")
				}
			}
			object.SetKind(row.kind)
			object.SetNamespace(tenant)
			object.SetName("fields")
			err := s.as(t, "nobody").Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"spec": `+row.change+`}`)), client.DryRunAll)
			if row.blocked == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(row.blocked)))
		})
	}
}

// bounds tests the limits on the number and size of labels and annotations. The operator keeps each label
// in memory. With too many annotations, the API server could not evaluate any change of the object.
func (s site) bounds(t *testing.T) {
	g := NewWithT(t)
	words := func(n int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprint("w", i)] = "a"
		}
		return all
	}
	for _, object := range []client.Object{cluster(""), replicated("", ""), extended("", ""), singleton()} {
		object.SetName("many")
		object.SetLabels(words(65))
		g.Expect(s.admin.Create(t.Context(), object, client.DryRunAll)).To(MatchError(ContainSubstring("metadata.labels: there may be at most 64")))
		object.SetLabels(words(64))
		object.SetAnnotations(words(257))
		g.Expect(s.admin.Create(t.Context(), object, client.DryRunAll)).To(MatchError(ContainSubstring("metadata.annotations: there may be at most 256")))
		long := func(bytes int) map[string]string {
			return map[string]string{"w": strings.Repeat("é", bytes/2), corev1.LastAppliedConfigAnnotation: strings.Repeat("x", 100<<10)}
		}
		object.SetAnnotations(long(64<<10 + 2))
		g.Expect(s.admin.Create(t.Context(), object, client.DryRunAll)).To(MatchError(ContainSubstring("metadata.annotations: keys and values may have at most 65536 bytes")))
		object.SetAnnotations(long(64<<10 - 2))
		g.Expect(s.admin.Create(t.Context(), object, client.DryRunAll)).To(Succeed())
		object.SetAnnotations(words(256))
		g.Expect(s.admin.Create(t.Context(), object)).To(Succeed())
		change, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{"a": "b"}, "annotations": words(30000)}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.admin.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, change))).To(MatchError(Or(ContainSubstring("there may be at most"), ContainSubstring("too many elements"))))
		g.Expect(s.admin.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"w1": "b"}}}`)))).To(Succeed())
		g.Expect(s.admin.Delete(t.Context(), object)).To(Succeed())
	}
}

// quantity tests that no annotation makes the API server skip a webhook that rejects the object.
func (s site) quantity(t *testing.T) {
	g := NewWithT(t)
	refused := cluster("")
	refused.Name = "skipped"
	refused.Spec.Template.Labels = map[string]string{"app": "other"}
	want := s.admin.Create(t.Context(), refused.DeepCopy(), client.DryRunAll)
	g.Expect(want).To(MatchError(ContainSubstring("admission webhook")))
	for _, key := range []string{"divisor", "quantity", "sizeLimit", "perPod", "perContainer"} {
		refused.Annotations = map[string]string{key: "1e9999"}
		g.Expect(s.admin.Create(t.Context(), refused.DeepCopy(), client.DryRunAll)).To(MatchError(want.Error()), key)
	}
}

// undecodable stores an object that cannot be decoded into its Go type. Such an object may have been
// created before the schema had a bound. It gets a Degraded condition, and other objects are still served.
func (s site) undecodable(t *testing.T) {
	g := NewWithT(t)
	const far = 99999999999
	probe := func() *unstructured.Unstructured {
		poison := &unstructured.Unstructured{}
		text := fmt.Sprintf(`{"apiVersion": "enge.me/v1alpha1", "kind": "StatefulCluster", "metadata": {"name": "poison", "namespace": %q}, "spec": {"replicas": 0,
			"selector": {"matchLabels": {"app": "p"}}, "template": {"metadata": {"labels": {"app": "p"}},
			"spec": {"containers": [{"name": "a", "image": "a", "livenessProbe": {"httpGet": {"port": %d}}}]}}}}`, tenant, int64(far))
		g.Expect(json.Unmarshal([]byte(text), poison)).To(Succeed())
		return poison
	}
	g.Expect(s.admin.Create(t.Context(), probe())).To(MatchError(ContainSubstring("livenessProbe.httpGet.port")), "refused by the schema")

	const definition = "statefulclusters.enge.me"
	bounded := s.object(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", definition)
	loose := bounded.DeepCopy()
	unbound(loose.Object)
	g.Expect(s.admin.Update(t.Context(), loose)).To(Succeed())
	poison := probe()
	g.Eventually(func() error { return s.admin.Create(t.Context(), poison.DeepCopy(), client.DryRunAll) }, time.Minute).
		Should(MatchError(ContainSubstring("spec: Invalid value: cannot be decoded")), "refused by the webhook")
	hooks := s.object(t, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validating-webhook-configuration")
	g.Expect(s.admin.Delete(t.Context(), hooks.DeepCopy())).To(Succeed())
	g.Eventually(func() error { return s.admin.Create(t.Context(), poison) }, time.Minute).Should(Succeed())
	hooks.SetResourceVersion("")
	g.Expect(s.admin.Create(t.Context(), hooks)).To(Succeed())
	bounded.SetResourceVersion(loose.GetResourceVersion())
	g.Expect(s.admin.Update(t.Context(), bounded)).To(Succeed())

	beside := cluster("")
	beside.Name = "beside"
	g.Expect(s.admin.Create(t.Context(), beside)).To(Succeed())
	g.Eventually(func(g Gomega) {
		var served engev1alpha1.StatefulCluster
		g.Expect(s.admin.Get(t.Context(), client.ObjectKeyFromObject(beside), &served)).To(Succeed())
		g.Expect(served.Status.ObservedGeneration).To(Equal(served.Generation), "the other set is reconciled")
		var broken engev1alpha1.StatefulCluster
		g.Expect(s.admin.Get(t.Context(), client.ObjectKeyFromObject(poison), &broken)).To(Succeed())
		g.Expect(broken.Status.Conditions).To(ContainElement(And(HaveField("Type", "Degraded"), HaveField("Status", metav1.ConditionTrue),
			HaveField("Reason", "InvalidSpec"), HaveField("Message", ContainSubstring("cannot unmarshal number 99999999999")))))
	}, time.Minute).Should(Succeed())
	// A valid value of the field clears the condition.
	g.Expect(s.admin.Patch(t.Context(), poison, client.RawPatch(types.JSONPatchType, []byte(
		`[{"op": "replace", "path": "/spec/template/spec/containers/0/livenessProbe/httpGet/port", "value": 80}]`)))).To(Succeed())
	g.Eventually(func(g Gomega) {
		var mended engev1alpha1.StatefulCluster
		g.Expect(s.admin.Get(t.Context(), client.ObjectKeyFromObject(poison), &mended)).To(Succeed())
		g.Expect(mended.Status.Conditions).To(ContainElement(And(HaveField("Type", "Degraded"), HaveField("Status", metav1.ConditionFalse))))
	}, time.Minute).Should(Succeed())
	for _, object := range []client.Object{poison, beside} {
		g.Expect(s.admin.Delete(t.Context(), object)).To(Succeed())
	}
}

// object reads a cluster-scoped object.
func (s site) object(t *testing.T, version, kind, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	NewWithT(t).Expect(s.admin.Get(t.Context(), client.ObjectKey{Name: name}, object)).To(Succeed())
	return object
}

// unbound removes the bounds of int-or-string fields from a schema, because older schemas had none.
func unbound(node any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			unbound(item)
		}
	case map[string]any:
		if node["x-kubernetes-int-or-string"] == true {
			delete(node, "minimum")
			delete(node, "maximum")
		}
		for _, child := range node {
			unbound(child)
		}
	}
}
