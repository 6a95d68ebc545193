package escalation

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is the max time until a pass removes labels or reports a taken name, and until caches of the API server
// follow a write.
const patience = time.Minute

// judge asserts that the operator does not treat the forged object as a child, unless this is documented.
func (s site) judge(t *testing.T, row *forged) {
	g := NewWithT(t)
	ctx := t.Context()
	if row.refusal != nil && !row.isAboutLabels() {
		g.Expect(row.refusal).To(MatchError(ContainSubstring(row.asked)))
	} else if row.asked != "" && row.isRefused() {
		t.Errorf("the tenant could create it, and should not: %s", row.asked)
	}
	g.Expect(row.isSeen(s.parentIn(g, ctx, row))).To(BeTrue(), "the parent is reconciled")
	if row.object == nil {
		return
	}
	s.othersStay(g, ctx, row)
	if why := row.allowed(row.forgery.name); why != "" {
		t.Log("it counts as a child: " + why)
		return
	}
	if row.removed != "" {
		g.Eventually(func(g Gomega) { s.isLeftAlone(g, ctx, row) }, patience, 100*time.Millisecond).Should(Succeed())
	}
	s.isLeftAlone(g, ctx, row)
	s.isNotCounted(g, ctx, row)
	if row.gvk.Kind == "Pod" {
		s.isNotSelected(g, ctx, row)
	}
	if taken := row.object.GetName(); taken == row.child.name && row.said != "" {
		g.Eventually(func(g Gomega) {
			g.Expect(conditions(s.parentIn(g, ctx, row))).To(ContainElement(And(ContainSubstring(row.said), ContainSubstring(taken))))
		}, patience, 100*time.Millisecond).Should(Succeed(), "it reports which name is taken")
	}
}

// isRefused reports whether a policy, if it exists for the child, rejects the owner of the forgery.
func (f *forged) isRefused() bool {
	return f.forgery.name == byAll.name || f.forgery.name == byUID.name
}

// isLeftAlone asserts that the forged object still exists and has not changed since its creation. Only the
// changes in removed, marked and released are ignored.
func (s site) isLeftAlone(g Gomega, ctx context.Context, row *forged) {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(row.gvk)
	g.Expect(s.admin.Get(ctx, client.ObjectKeyFromObject(row.object), now)).To(Succeed(), "it exists")
	g.Expect(now.GetUID()).To(Equal(row.object.GetUID()), "it was not deleted and recreated")
	g.Expect(now.GetDeletionTimestamp()).To(BeNil(), "it is not being deleted")
	was := row.object.DeepCopy()
	now.SetLabels(without(now.GetLabels(), strings.Fields(row.marked)...))
	now.SetAnnotations(without(now.GetAnnotations(), strings.Fields(row.marked)...))
	if row.released {
		now.SetOwnerReferences(nil)
		was.SetOwnerReferences(nil)
	}
	if row.labelled && row.removed != "" {
		was.SetLabels(without(was.GetLabels(), strings.Fields(row.removed)...))
	}
	g.Expect(essence(now)).To(Equal(essence(was)), "it was not changed")
}

// essence returns the object as JSON, without the fields that kubelets, the scheduler and the controllers of
// Kubernetes write.
func essence(object *unstructured.Unstructured) string {
	kept := object.DeepCopy().Object
	delete(kept, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(kept, "metadata", field)
	}
	unstructured.RemoveNestedField(kept, "spec", "nodeName")
	for _, field := range []string{"labels", "annotations"} {
		if words, _, _ := unstructured.NestedMap(kept, "metadata", field); len(words) == 0 {
			unstructured.RemoveNestedField(kept, "metadata", field)
		}
	}
	text, _ := json.MarshalIndent(kept, "", " ") // never fails: the object was decoded from JSON
	return string(text)
}

// isNotCounted asserts that the status of the parent does not contain the object. Conditions may name it.
func (s site) isNotCounted(g Gomega, ctx context.Context, row *forged) {
	parent := s.parentIn(g, ctx, row)
	status, _, _ := unstructured.NestedMap(parent.Object, "status")
	delete(status, "conditions")
	text, err := json.Marshal(status)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).NotTo(ContainSubstring(string(row.object.GetUID())), "the status contains it")
	if row.object.GetName() == row.as {
		g.Expect(string(text)).NotTo(ContainSubstring(`"`+row.as+`"`), "the status contains it")
	}
	if row.gvk.Kind == "Pod" && row.labelled {
		g.Expect(numbers(parent)).To(Equal(row.counts), "the status counts it")
	}
}

// othersStay asserts that no genuine pod or claim was deleted or recreated because of the forged object.
func (s site) othersStay(g Gomega, ctx context.Context, row *forged) {
	for uid, name := range row.genuine {
		kind, name, _ := strings.Cut(name, " ")
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
		g.Expect(s.admin.Get(ctx, client.ObjectKey{Namespace: row.namespace, Name: name}, now)).To(Succeed(), name)
		g.Expect(now.GetUID()).To(Equal(uid), name)
		g.Expect(now.GetDeletionTimestamp()).To(BeNil(), name)
	}
}

// isNotSelected asserts that no budget or Service of the namespace, except headless, selects the forged pod.
func (s site) isNotSelected(g Gomega, ctx context.Context, row *forged) {
	var pod corev1.Pod
	g.Expect(s.admin.Get(ctx, client.ObjectKeyFromObject(row.object), &pod)).To(Succeed())
	var budgets policyv1.PodDisruptionBudgetList
	g.Expect(s.admin.List(ctx, &budgets, client.InNamespace(row.namespace))).To(Succeed())
	g.Expect(budgets.Items).NotTo(BeEmpty(), "there is a budget that could count it")
	for i := range budgets.Items {
		selector, err := metav1.LabelSelectorAsSelector(budgets.Items[i].Spec.Selector)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(selector.Matches(labels.Set(pod.Labels))).To(BeFalse(), "budget %s counts it, and allows the eviction of a genuine pod because of it", budgets.Items[i].Name)
	}
	var services corev1.ServiceList
	g.Expect(s.admin.List(ctx, &services, client.InNamespace(row.namespace))).To(Succeed())
	for i := range services.Items {
		selector := services.Items[i].Spec.Selector
		if services.Items[i].Name == row.headless {
			continue
		}
		g.Expect(len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels))).To(BeFalse(), "Service %s selects it", services.Items[i].Name)
	}
}

// conditions returns the conditions of an object as strings.
func conditions(object *unstructured.Unstructured) (all []string) {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range list {
		var c metav1.Condition
		if runtime.DefaultUnstructuredConverter.FromUnstructured(item.(map[string]any), &c) == nil {
			all = append(all, c.Type+" "+string(c.Status)+" "+c.Reason+": "+c.Message)
		}
	}
	return all
}
