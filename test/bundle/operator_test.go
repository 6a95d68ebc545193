package bundle_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stateful-operator/stateful-operator/test/manifest"
)

// documents reads all objects of a file.
func documents[T any](t *testing.T, file string) []T {
	t.Helper()
	all, err := manifest.ReadFile[T](file)
	NewWithT(t).Expect(err).To(Succeed())
	return all
}

// inNamespaces reports whether OLM must grant a generated role only in the namespaces of the
// OperatorGroup.
func inNamespaces(role string) bool {
	return slices.Contains([]string{"statefulcluster-role", "replicatedstatefulset-role", "extendedstatefulset-role", "statefulsingleton-role", "exec-role", "secrets-role", "webhook-role"}, role) ||
		strings.HasSuffix(role, "own-namespace-role")
}

// forCertificates reports whether a rule is for creating certificates or for reading those that the
// operator creates. OLM creates and mounts certificates itself.
func forCertificates(role string, rule rbacv1.PolicyRule) bool {
	return slices.Contains(rule.Resources, "mutatingwebhookconfigurations") || slices.Contains(rule.Resources, "validatingwebhookconfigurations") ||
		slices.Contains(rule.ResourceNames, "stateful-operator-webhook-certs") ||
		role == "installer-own-namespace-role" && slices.Contains(rule.Resources, "secrets")
}

func TestRightsAreThoseOfConfig(t *testing.T) {
	strategy := read(t).CSV.Spec.InstallStrategy.StrategySpec
	roles := documents[rbacv1.ClusterRole](t, "../../config/rbac/role.yaml")
	bindings := documents[rbacv1.ClusterRoleBinding](t, "../../config/rbac/role_bindings.yaml")
	for _, scope := range []struct {
		name    string
		granted []v1alpha1.StrategyDeploymentPermissions
	}{{"in namespaces", strategy.Permissions}, {"in the cluster", strategy.ClusterPermissions}} {
		want := map[string][]rbacv1.PolicyRule{}
		for _, binding := range bindings {
			i := slices.IndexFunc(roles, func(r rbacv1.ClusterRole) bool {
				return r.Kind == binding.RoleRef.Kind && r.Name == binding.RoleRef.Name
			})
			if inNamespaces(roles[i].Name) != (scope.name == "in namespaces") {
				continue
			}
			for _, account := range binding.Subjects {
				for _, rule := range roles[i].Rules {
					if !forCertificates(roles[i].Name, rule) {
						want["stateful-operator-"+account.Name] = append(want["stateful-operator-"+account.Name], rule)
					}
				}
			}
		}
		g := NewWithT(t)
		g.Expect(scope.granted).To(HaveLen(3), "accounts with permissions %s", scope.name)
		for _, granted := range scope.granted {
			account := granted.ServiceAccountName
			g.Expect(want[account]).NotTo(BeEmpty(), "rules that are required %s for %s", scope.name, account)
			missing(t, scope.name+" missing in the bundle: "+account, want[account], granted.Rules)
			missing(t, scope.name+" missing in config: "+account, granted.Rules, want[account])
		}
	}
}

// TestTheRoleForFencingIsNotBound verifies that the bundle has the ClusterRole for fencing by a Lease as
// an object, which an administrator binds to the account of the controllers, and that OLM does not grant
// its rules.
func TestTheRoleForFencingIsNotBound(t *testing.T) {
	g := NewWithT(t)
	roles := documents[rbacv1.ClusterRole](t, "../../config/rbac/role.yaml")
	i := slices.IndexFunc(roles, func(r rbacv1.ClusterRole) bool { return r.Name == "fencing-role" })
	var have rbacv1.ClusterRole
	parse(t, folder+"/manifests/stateful-operator-fencing-role_rbac.authorization.k8s.io_v1_clusterrole.yaml", &have)
	g.Expect(have.Name).To(Equal("stateful-operator-fencing-role"))
	g.Expect(have.Rules).To(Equal(roles[i].Rules))
	for _, object := range read(t).Objects {
		g.Expect(object.GetKind()).NotTo(BeElementOf("ClusterRoleBinding", "RoleBinding"), object.GetName())
	}
	strategy := read(t).CSV.Spec.InstallStrategy.StrategySpec
	accounts := 0
	for _, granted := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		if granted.ServiceAccountName == "stateful-operator-controller-manager" {
			accounts++
		}
		for _, rule := range granted.Rules {
			g.Expect(rule.Resources).NotTo(ContainElements("roles"), granted.ServiceAccountName)
		}
	}
	g.Expect(accounts).To(Equal(2), "the account in the command of docs/security.md")
}

func missing(t *testing.T, text string, these, among []rbacv1.PolicyRule) {
	for _, rule := range these {
		has := slices.ContainsFunc(among, func(other rbacv1.PolicyRule) bool { return reflect.DeepEqual(rule, other) })
		telling(t).Expect(has).To(BeTrueBecause("%s %v", text, rule))
	}
}

func TestWebhooksAreThoseOfConfig(t *testing.T) {
	g, described := telling(t), map[string]v1alpha1.WebhookDescription{}
	for _, d := range read(t).CSV.Spec.WebhookDefinitions {
		described[d.GenerateName] = d
		g.Expect(validation.IsValidLabelValue(d.GenerateName)).To(BeEmpty(), "OLM creates a label from the name %s", d.GenerateName)
	}
	wanted := 0
	for _, c := range documents[admissionv1.MutatingWebhookConfiguration](t, "../../config/webhook/manifests.yaml") {
		for i := range c.Webhooks {
			w, d := &c.Webhooks[i], described[c.Webhooks[i].Name]
			wanted++
			g.Expect(w.NamespaceSelector == nil && len(w.MatchConditions) == 0).To(BeTrueBecause("%s has selectors that OLM drops", w.Name))
			made := d.GetMutatingWebhook("", nil, nil)
			if c.Kind == "ValidatingWebhookConfiguration" {
				made.ReinvocationPolicy = nil
			}
			made.ClientConfig, w.ClientConfig.Service.Path = w.ClientConfig, d.WebhookPath
			g.Expect(made).To(Equal(*w), "objects that OLM creates from %s", w.Name)
		}
	}
	g.Expect(described).To(And(HaveLen(wanted), Not(BeEmpty())))
}

// TestS28TheBundleHasTheWebhooksOfStatefulSingletons verifies S28: a bundle that OLM installs for
// all namespaces has the webhook that gates the pods of StatefulSingletons and the validating
// webhook. make test-olm verifies that their certificates work.
func TestS28TheBundleHasTheWebhooksOfStatefulSingletons(t *testing.T) {
	g, csv := telling(t), read(t).CSV
	g.Expect(csv.Spec.InstallModes).To(ContainElement(v1alpha1.InstallMode{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true}))
	for name, want := range map[string]v1alpha1.WebhookAdmissionType{
		"mpod.kb.io": v1alpha1.MutatingAdmissionWebhook,
		"statefulsingletons.apps.openshift.statefulsingleton.com": v1alpha1.ValidatingAdmissionWebhook,
	} {
		has := func(d v1alpha1.WebhookDescription) bool { return d.GenerateName == name && d.Type == want }
		g.Expect(slices.ContainsFunc(csv.Spec.WebhookDefinitions, has)).To(BeTrueBecause("%s has no webhook of type %s", name, want))
	}
}

// TestNoWebhookStandsInTheWayOfOtherPods verifies that a webhook for pods with failurePolicy Fail
// matches only managed pods, because OLM cannot exclude a namespace.
func TestNoWebhookStandsInTheWayOfOtherPods(t *testing.T) {
	for _, d := range read(t).CSV.Spec.WebhookDefinitions {
		for _, rule := range d.Rules {
			if !slices.Contains(rule.Resources, "pods") || *d.FailurePolicy == admissionv1.Ignore {
				continue
			}
			telling(t).Expect(d.ObjectSelector != nil && len(d.ObjectSelector.MatchExpressions)+len(d.ObjectSelector.MatchLabels) > 0).To(
				BeTrueBecause("%s fails closed for every pod", d.GenerateName))
		}
	}
}

// TestTheDeploymentsAreReadyForOLM verifies that the Deployments' selectors match only this operator.
// OLM installs many operators into one namespace, and creates the webhooks' Service from the
// Deployment's selector.
func TestTheDeploymentsAreReadyForOLM(t *testing.T) {
	g, csv := telling(t), read(t).CSV
	ports, selects := map[string]bool{}, map[string]map[string]string{}
	for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		selects[d.Name] = d.Spec.Selector.MatchLabels
		g.Expect(selects[d.Name]).To(HaveKeyWithValue("app.kubernetes.io/name", "stateful-operator"), "%s has the same selector as another one", d.Name)
		g.Expect(d.Spec.Template.Spec.ServiceAccountName).To(Equal(d.Name))
		for _, container := range d.Spec.Template.Spec.Containers {
			g.Expect(container.Resources.Requests).NotTo(BeEmpty(), "container %s of %s requests no resources", container.Name, d.Name)
			for _, port := range container.Ports {
				ports[d.Name+" "+port.Name] = true
			}
		}
	}
	g.Expect(selects).To(And(HaveLen(3), HaveKey("stateful-operator-webhook")))
	for _, d := range csv.Spec.WebhookDefinitions {
		g.Expect(d.DeploymentName == "stateful-operator-webhook" && d.TargetPort != nil && ports[d.DeploymentName+" "+d.TargetPort.StrVal]).To(
			BeTrueBecause("%s has no port of the Deployment", d.GenerateName))
	}
	for _, object := range read(t).Objects {
		if object.GetKind() == "Service" {
			var service corev1.Service
			parse(t, folder+"/manifests/"+object.GetName()+"_v1_service.yaml", &service)
			g.Expect(service.Spec.Selector).To(Equal(map[string]string{"metrics": "served", "app.kubernetes.io/name": "stateful-operator"}), "Service %s", service.Name)
		}
	}
}

// TestOLMsCertificateIsMountedByItsName verifies that the Deployment that serves metrics mounts
// OLM's certificate by its name, which is derived from the webhooks' Deployment.
func TestOLMsCertificateIsMountedByItsName(t *testing.T) {
	g, seen := NewWithT(t), 0
	for _, d := range read(t).CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, v := range d.Spec.Template.Spec.Volumes {
			seen++
			g.Expect(d.Name).To(Equal("stateful-operator-controller-manager"))
			g.Expect(v.Secret.SecretName).To(Equal("stateful-operator-webhook-service-cert"))
		}
	}
	g.Expect(seen).To(Equal(1))
}
