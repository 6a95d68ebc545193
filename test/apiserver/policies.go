package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Mutation is the change that a policy of the cluster makes to objects of one resource.
type Mutation struct {
	Group, Version, Resource string
	// Operations are the operations that the policy matches. Default: create and update.
	Operations []admissionv1.OperationType
	// Patch is a CEL expression that returns a list of JSONPatch.
	Patch string
}

// Mutate installs a MutatingAdmissionPolicy for a namespace until the spec ends, and waits until the
// API server enforces it. The spec is skipped if the API server does not serve this API.
func (s Server) Mutate(ctx context.Context, namespace string, m Mutation) {
	GinkgoHelper()
	if !s.AtLeast("1.36") {
		Skip("MutatingAdmissionPolicies require Kubernetes 1.36 or later")
	}
	if len(m.Operations) == 0 {
		m.Operations = []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
	}
	// A dry-run creation of a ConfigMap shows whether the policy is enforced.
	expression := fmt.Sprintf(`request.resource.resource == "configmaps" && object.metadata.name == "is-followed"
		? [JSONPatch{op: "add", path: "/data", value: {"followed": "yes"}}]
		: (request.resource.resource == "%s" ? (%s) : [])`, m.Resource, m.Patch)
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "mutates-" + namespace},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy:      ptr.To(admissionv1.Fail),
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{
					rule("", "v1", "configmaps", admissionv1.Create), rule(m.Group, m.Version, m.Resource, m.Operations...)},
			},
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: expression}}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name}}
	for _, obj := range []client.Object{policy, binding} {
		Expect(s.User.Create(ctx, obj)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(s.User.Delete(ctx, obj)).To(Succeed()) })
	}
	Eventually(func(g Gomega) {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "is-followed"}}
		g.Expect(s.User.Create(ctx, probe, client.DryRunAll)).To(Succeed())
		g.Expect(probe.Data).To(HaveKeyWithValue("followed", "yes"))
	}).Should(Succeed())
}

// Add returns the patch that sets a field to a string.
func Add(path, value string) string {
	return fmt.Sprintf(`[JSONPatch{op: "add", path: %q, value: %q}]`, path, value)
}

// RemoveLabel returns the patch that removes a label.
func RemoveLabel(key string) string {
	return fmt.Sprintf(`has(object.metadata.labels) && %q in object.metadata.labels
		? [JSONPatch{op: "remove", path: "/metadata/labels/" + jsonpatch.escapeKey(%q)}] : []`, key, key)
}

func rule(group, version, resource string, operations ...admissionv1.OperationType) admissionv1.NamedRuleWithOperations {
	return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{Operations: operations,
		Rule: admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}}}}
}

// Writes records the write requests of TheOperator, except those for events and leases.
type Writes struct {
	mu   sync.Mutex
	seen []string
}

// roundTrip records requests.
func (w *Writes) roundTrip(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		isWrite := r.Method != http.MethodGet && r.Header.Get("Impersonate-User") == TheOperator
		if isWrite && !strings.Contains(r.URL.Path, "/events") && !strings.Contains(r.URL.Path, "/leases") {
			w.mu.Lock()
			w.seen = append(w.seen, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// In returns the recorded writes in a namespace, each as its method and path.
func (w *Writes) In(namespace string) (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, write := range w.seen {
		if strings.Contains(write, "/namespaces/"+namespace+"/") {
			all = append(all, write)
		}
	}
	return all
}

// Rests waits until TheOperator writes nothing in a namespace for the given duration.
func (s Server) Rests(ctx context.Context, namespace string, during time.Duration) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		before := s.Writes.In(namespace)
		g.Consistently(func() []string { return s.Writes.In(namespace) }, during, 100*time.Millisecond).Should(HaveLen(len(before)))
	}).WithTimeout(2 * time.Minute).Should(Succeed())
}
