package rbac

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stateful-operator/stateful-operator/test/manifest"
)

const (
	own  = "stateful-operator-system"
	data = "stateful-data"
)

// folders are folders of config/, each rendered once.
var folders = map[string]func() ([]unstructured.Unstructured, error){
	"default": sync.OnceValues(func() ([]unstructured.Unstructured, error) {
		return manifest.Render(filepath.Join("..", "..", "config", "default"))
	}),
	"namespaced": sync.OnceValues(func() ([]unstructured.Unstructured, error) {
		return manifest.Render(filepath.Join("..", "..", "config", "namespaced"))
	}),
}

// rendered returns the objects of a kind that kustomize generates from a folder.
func rendered[T any](g Gomega, folder, kind string) (found []T) {
	objects, err := folders[folder]()
	g.Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		if object.GetKind() == kind {
			var one T
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &one)).To(Succeed())
			found = append(found, one)
		}
	}
	g.Expect(found).NotTo(BeEmpty())
	return found
}

// TestTheOperatorAndWhatItManagesShareNoNamespace verifies that the operator's account is not in the
// namespace of the managed pods, and has no rights on pods in its own namespace. Everyone who may
// edit a namespace may use the accounts in it.
func TestTheOperatorAndWhatItManagesShareNoNamespace(t *testing.T) {
	g := NewWithT(t)
	where := map[string]string{}
	for _, binding := range rendered[rbacv1.RoleBinding](g, "namespaced", "RoleBinding") {
		g.Expect(binding.Subjects).To(ConsistOf(And(HaveField("Kind", rbacv1.ServiceAccountKind), HaveField("Namespace", own), HaveField("Name", HavePrefix("stateful-operator-")))))
		where[binding.RoleRef.Kind+" "+binding.RoleRef.Name+" for "+binding.Subjects[0].Name] = binding.Namespace
	}
	g.Expect(where).To(Equal(map[string]string{
		"Role stateful-operator-statefulcluster-role for stateful-operator-controller-manager":       data,
		"Role stateful-operator-replicatedstatefulset-role for stateful-operator-controller-manager": data,
		"Role stateful-operator-extendedstatefulset-role for stateful-operator-controller-manager":   data,
		"Role stateful-operator-statefulsingleton-role for stateful-operator-controller-manager":     data,
		"Role stateful-operator-exec-role for stateful-operator-controller-manager":                  data,
		"Role stateful-operator-secrets-role for stateful-operator-controller-manager":               data,
		"Role stateful-operator-webhook-role for stateful-operator-webhook":                          data,
		"Role stateful-operator-own-namespace-role for stateful-operator-controller-manager":         own,
		"Role stateful-operator-webhook-own-namespace-role for stateful-operator-webhook":            own,
		"Role stateful-operator-installer-own-namespace-role for stateful-operator-installer":        own,
	}))
	for _, role := range rendered[rbacv1.Role](g, "namespaced", "Role") {
		g.Expect(slices.Sorted(maps.Keys(where))).To(ContainElement(HavePrefix("Role "+role.Name+" for ")), role.Name)
		for key, namespace := range where {
			if strings.HasPrefix(key, "Role "+role.Name+" for ") {
				g.Expect(role.Namespace).To(Equal(namespace), role.Name)
			}
		}
	}
	var everywhere []string
	for _, binding := range rendered[rbacv1.ClusterRoleBinding](g, "namespaced", "ClusterRoleBinding") {
		everywhere = append(everywhere, binding.RoleRef.Name)
	}
	g.Expect(everywhere).To(ConsistOf("stateful-operator-cluster-scoped-role", "stateful-operator-webhook-cluster-scoped-role", "stateful-operator-metrics-auth-role", "stateful-operator-installer-role"))
	for _, part := range rendered[appsv1.Deployment](g, "namespaced", "Deployment") {
		g.Expect(part.Namespace).To(Equal(own), part.Name)
		g.Expect(part.Spec.Template.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "WATCH_NAMESPACE", Value: data}), part.Name)
	}
	for _, webhooks := range rendered[admissionv1.MutatingWebhookConfiguration](g, "namespaced", "MutatingWebhookConfiguration") {
		for _, w := range webhooks.Webhooks {
			g.Expect(w.NamespaceSelector.MatchLabels).To(Equal(map[string]string{corev1.LabelMetadataName: data}), w.Name)
		}
	}
}

// TestTheRoleForFencingIsNotBound verifies that the controllers have the permissions for fencing by a
// Lease only after an administrator has bound them. An operator for some namespaces has the same
// ClusterRole, for RoleBindings.
func TestTheRoleForFencingIsNotBound(t *testing.T) {
	g := NewWithT(t)
	for folder := range folders {
		var granted []string
		for _, role := range rendered[rbacv1.ClusterRole](g, folder, "ClusterRole") {
			if role.Name == "stateful-operator-fencing-role" {
				for _, p := range Granted([]rbacv1.ClusterRole{role}) {
					granted = append(granted, p.Verb+" "+p.Resource)
				}
			}
		}
		g.Expect(granted).To(ConsistOf(
			"get leases", "list leases", "watch leases", "create leases", "update leases", "patch leases", "delete leases",
			"get roles", "create roles", "patch roles", "delete roles",
			"get rolebindings", "create rolebindings", "patch rolebindings", "delete rolebindings"), folder)
		for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
			for _, binding := range rendered[rbacv1.RoleBinding](g, folder, kind) { // it has the same fields
				g.Expect(binding.RoleRef.Name).NotTo(ContainSubstring("fencing"), "%s %s in %s", kind, binding.Name, folder)
			}
		}
	}
}

func TestWebhooksOfPodsLeaveOutWhatTheClusterRunsOn(t *testing.T) {
	g := NewWithT(t)
	seen := 0
	for _, webhooks := range rendered[admissionv1.MutatingWebhookConfiguration](g, "default", "MutatingWebhookConfiguration") {
		for _, w := range webhooks.Webhooks {
			if w.Rules[0].Resources[0] != "pods" {
				continue
			}
			seen++
			g.Expect(w.NamespaceSelector).To(Equal(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{metav1.NamespaceSystem, own}}}}), w.Name)
		}
	}
	g.Expect(seen).To(Equal(2))
}

// TestEachPartHasItsOwnAccount verifies that one account maintains the objects that the API server
// trusts, and does nothing else. No account that acts for users may write them.
func TestEachPartHasItsOwnAccount(t *testing.T) {
	g := NewWithT(t)
	roles := map[string]rbacv1.ClusterRole{}
	for _, role := range rendered[rbacv1.ClusterRole](g, "default", "ClusterRole") {
		roles["ClusterRole "+role.Name] = role
	}
	for _, role := range rendered[rbacv1.ClusterRole](g, "default", "Role") { // it has the same fields
		roles["Role "+role.Name] = role
	}
	writes := map[string][]string{} // write permissions by account
	add := func(ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		for _, p := range Granted([]rbacv1.ClusterRole{roles[ref.Kind+" "+ref.Name]}) {
			if p.Verb == "get" || p.Verb == "list" || p.Verb == "watch" {
				continue
			}
			for _, s := range subjects {
				writes[s.Name] = append(writes[s.Name], p.Verb+" "+p.Resource)
			}
		}
	}
	for _, b := range rendered[rbacv1.ClusterRoleBinding](g, "default", "ClusterRoleBinding") {
		add(b.RoleRef, b.Subjects)
	}
	for _, b := range rendered[rbacv1.RoleBinding](g, "default", "RoleBinding") {
		add(b.RoleRef, b.Subjects)
	}
	g.Expect(writes).To(HaveLen(3))
	g.Expect(writes["stateful-operator-installer"]).To(ConsistOf(
		"create leases", "update leases", "create events", "patch events", "update secrets", "update secrets",
		"update mutatingwebhookconfigurations", "update validatingwebhookconfigurations",
		"create validatingwebhookconfigurations", "patch validatingwebhookconfigurations",
		"create validatingadmissionpolicies", "patch validatingadmissionpolicies", "delete validatingadmissionpolicies",
		"create validatingadmissionpolicybindings", "patch validatingadmissionpolicybindings", "delete validatingadmissionpolicybindings"))
	g.Expect(writes["stateful-operator-webhook"]).To(HaveEach(Or(HavePrefix("create "), Equal("patch configmaps"))), "by dry run, or the ConfigMap of evictions")
	g.Expect(writes["stateful-operator-controller-manager"]).NotTo(ContainElement(Or(
		ContainSubstring("webhookconfigurations"), ContainSubstring("validatingadmissionpolic"), ContainSubstring("serviceaccounts"), ContainSubstring("rolebindings"))))
	for _, part := range rendered[appsv1.Deployment](g, "default", "Deployment") {
		g.Expect(part.Spec.Template.Spec.ServiceAccountName).To(Equal(part.Name))
	}
}
