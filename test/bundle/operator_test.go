package bundle_test

import (
	"reflect"
	"slices"
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

// inNamespaces are the generated roles that OLM is to grant in the namespaces of the
// OperatorGroup only.
var inNamespaces = []string{"manager-role", "exec-role", "own-namespace-role"}

// forCertificates tells whether a rule is for making certificates, which OLM does,
// and what is left of it.
func forCertificates(rule rbacv1.PolicyRule) (left rbacv1.PolicyRule, gone bool) {
	for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		if slices.Contains(rule.Resources, resource) {
			return rule, true
		}
	}
	if slices.Contains(rule.ResourceNames, "stateful-operator-webhook-certs") {
		return rule, true
	}
	if slices.Equal(rule.Resources, []string{"secrets"}) && slices.Equal(rule.Verbs, []string{"create", "list", "watch"}) {
		rule.Verbs = []string{"create"}
	}
	return rule, false
}

func TestRightsAreThoseOfConfig(t *testing.T) {
	strategy := read(t).CSV.Spec.InstallStrategy.StrategySpec
	for _, scope := range []struct {
		name    string
		granted []v1alpha1.StrategyDeploymentPermissions
	}{{"in namespaces", strategy.Permissions}, {"in the cluster", strategy.ClusterPermissions}} {
		var want []rbacv1.PolicyRule
		for _, role := range documents[rbacv1.ClusterRole](t, "../../config/rbac/role.yaml") {
			if slices.Contains(inNamespaces, role.Name) != (scope.name == "in namespaces") {
				continue
			}
			for _, rule := range role.Rules {
				if left, gone := forCertificates(rule); !gone {
					want = append(want, left)
				}
			}
		}
		g := NewWithT(t)
		g.Expect(scope.granted).To(HaveLen(1), "accounts that have rights %s", scope.name)
		g.Expect(want).NotTo(BeEmpty(), "rules that are wanted %s", scope.name)
		missing(t, scope.name+" the bundle lacks", want, scope.granted[0].Rules)
		missing(t, scope.name+" config lacks", scope.granted[0].Rules, want)
	}
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
		g.Expect(validation.IsValidLabelValue(d.GenerateName)).To(BeEmpty(), "OLM makes a label of the name %s", d.GenerateName)
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
			g.Expect(made).To(Equal(*w), "what OLM makes of %s", w.Name)
		}
	}
	g.Expect(described).To(And(HaveLen(wanted), Not(BeEmpty())))
}

// S28: what OLM installs for all namespaces has the webhook that holds the pods of
// StatefulSingletons back, and the one that refuses wrong ones. That their
// certificates work, make test-olm shows.
func TestS28TheBundleHasTheWebhooksOfStatefulSingletons(t *testing.T) {
	g, csv := telling(t), read(t).CSV
	g.Expect(csv.Spec.InstallModes).To(ContainElement(v1alpha1.InstallMode{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true}))
	for name, want := range map[string]v1alpha1.WebhookAdmissionType{
		"mpod.kb.io": v1alpha1.MutatingAdmissionWebhook,
		"statefulsingletons.apps.openshift.statefulsingleton.com": v1alpha1.ValidatingAdmissionWebhook,
	} {
		has := func(d v1alpha1.WebhookDescription) bool { return d.GenerateName == name && d.Type == want }
		g.Expect(slices.ContainsFunc(csv.Spec.WebhookDefinitions, has)).To(BeTrueBecause("it has no webhook %s of type %s", name, want))
	}
}

// A webhook of pods that fails closed may see only pods of ours, because OLM cannot
// be told to leave a namespace out.
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

// OLM installs many operators into one namespace, and makes the webhooks' Service
// from the labels that the Deployment selects by.
func TestTheDeploymentIsReadyForOLM(t *testing.T) {
	g, csv := telling(t), read(t).CSV
	deployments := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	NewWithT(t).Expect(deployments).To(HaveLen(1))
	spec := deployments[0].Spec
	g.Expect(spec.Selector.MatchLabels).To(HaveKeyWithValue("app.kubernetes.io/name", "stateful-operator"), "it selects as others do")
	g.Expect(spec.Template.Spec.Volumes).To(BeEmpty(), "OLM knows nothing of volumes")
	ports := map[string]bool{}
	for _, container := range spec.Template.Spec.Containers {
		g.Expect(container.Resources.Requests).NotTo(BeEmpty(), "container %s asks for nothing", container.Name)
		for _, port := range container.Ports {
			ports[port.Name] = true
		}
	}
	for _, d := range csv.Spec.WebhookDefinitions {
		g.Expect(d.DeploymentName == deployments[0].Name && d.TargetPort != nil && ports[d.TargetPort.StrVal]).To(
			BeTrueBecause("%s does not lead to a port of the Deployment", d.GenerateName))
	}
	for _, object := range read(t).Objects {
		if object.GetKind() == "Service" {
			var service corev1.Service
			parse(t, folder+"/manifests/"+object.GetName()+"_v1_service.yaml", &service)
			g.Expect(service.Spec.Selector).To(Equal(spec.Selector.MatchLabels), "Service %s", service.Name)
		}
	}
}
