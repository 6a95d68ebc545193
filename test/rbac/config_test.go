package rbac

import (
	"path/filepath"
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

// folders of config/, each rendered once.
var folders = map[string]func() ([]unstructured.Unstructured, error){
	"default": sync.OnceValues(func() ([]unstructured.Unstructured, error) {
		return manifest.Render(filepath.Join("..", "..", "config", "default"))
	}),
	"namespaced": sync.OnceValues(func() ([]unstructured.Unstructured, error) {
		return manifest.Render(filepath.Join("..", "..", "config", "namespaced"))
	}),
}

// rendered are the objects of a kind that kustomize makes of a folder.
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

// Who may edit the namespace of pods may use the accounts in it: the operator's must not be
// there, nor have rights over pods where it is.
func TestTheOperatorAndWhatItManagesShareNoNamespace(t *testing.T) {
	g := NewWithT(t)
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: own, Name: "stateful-operator-controller-manager"}
	where := map[string]string{}
	for _, binding := range rendered[rbacv1.RoleBinding](g, "namespaced", "RoleBinding") {
		g.Expect(binding.Subjects).To(ConsistOf(account))
		where[binding.RoleRef.Kind+" "+binding.RoleRef.Name] = binding.Namespace
	}
	g.Expect(where).To(Equal(map[string]string{
		"Role stateful-operator-manager-role":       data,
		"Role stateful-operator-exec-role":          data,
		"Role stateful-operator-own-namespace-role": own,
	}))
	for _, role := range rendered[rbacv1.Role](g, "namespaced", "Role") {
		g.Expect(role.Namespace).To(Equal(where["Role "+role.Name]), role.Name)
	}
	var everywhere []string
	for _, binding := range rendered[rbacv1.ClusterRoleBinding](g, "namespaced", "ClusterRoleBinding") {
		everywhere = append(everywhere, binding.RoleRef.Name)
	}
	g.Expect(everywhere).To(ConsistOf("stateful-operator-cluster-scoped-role", "stateful-operator-metrics-auth-role"))
	operator := rendered[appsv1.Deployment](g, "namespaced", "Deployment")[0]
	g.Expect(operator.Namespace).To(Equal(own))
	g.Expect(operator.Spec.Template.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "WATCH_NAMESPACE", Value: data}))
	for _, webhooks := range rendered[admissionv1.MutatingWebhookConfiguration](g, "namespaced", "MutatingWebhookConfiguration") {
		for _, w := range webhooks.Webhooks {
			g.Expect(w.NamespaceSelector.MatchLabels).To(Equal(map[string]string{corev1.LabelMetadataName: data}), w.Name)
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
