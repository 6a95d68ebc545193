package bundle_test

import (
	"reflect"
	"slices"
	"testing"

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
	if err != nil {
		t.Fatal(err)
	}
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
		if len(scope.granted) != 1 || len(want) == 0 {
			t.Fatalf("%s %d accounts have rights, and %d rules are wanted", scope.name, len(scope.granted), len(want))
		}
		missing(t, scope.name+" the bundle lacks", want, scope.granted[0].Rules)
		missing(t, scope.name+" config lacks", scope.granted[0].Rules, want)
	}
}

func missing(t *testing.T, text string, these, among []rbacv1.PolicyRule) {
	t.Helper()
	for _, rule := range these {
		if !slices.ContainsFunc(among, func(other rbacv1.PolicyRule) bool { return reflect.DeepEqual(rule, other) }) {
			t.Errorf("%s %v", text, rule)
		}
	}
}

func TestWebhooksAreThoseOfConfig(t *testing.T) {
	described := map[string]v1alpha1.WebhookDescription{}
	for _, d := range read(t).CSV.Spec.WebhookDefinitions {
		described[d.GenerateName] = d
		if faults := validation.IsValidLabelValue(d.GenerateName); len(faults) > 0 {
			t.Errorf("OLM makes a label of the name %s: %v", d.GenerateName, faults)
		}
	}
	wanted := 0
	for _, c := range documents[admissionv1.MutatingWebhookConfiguration](t, "../../config/webhook/manifests.yaml") {
		for i := range c.Webhooks {
			w, d := &c.Webhooks[i], described[c.Webhooks[i].Name]
			wanted++
			if w.NamespaceSelector != nil || len(w.MatchConditions) > 0 {
				t.Errorf("%s has selectors that OLM drops", w.Name)
			}
			made := d.GetMutatingWebhook("", nil, nil)
			if c.Kind == "ValidatingWebhookConfiguration" {
				made.ReinvocationPolicy = nil
			}
			made.ClientConfig, w.ClientConfig.Service.Path = w.ClientConfig, d.WebhookPath
			if !reflect.DeepEqual(made, *w) {
				t.Errorf("OLM makes of %s\n%+v, and wanted is\n%+v", w.Name, made, *w)
			}
		}
	}
	if len(described) != wanted || wanted == 0 {
		t.Errorf("%d webhooks, want %d", len(described), wanted)
	}
}

// S28: what OLM installs for all namespaces has the webhook that holds the pods of
// StatefulSingletons back, and the one that refuses wrong ones. That their
// certificates work, make test-olm shows.
func TestS28TheBundleHasTheWebhooksOfStatefulSingletons(t *testing.T) {
	csv := read(t).CSV
	if !slices.Contains(csv.Spec.InstallModes, v1alpha1.InstallMode{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true}) {
		t.Errorf("it cannot be installed for all namespaces: %v", csv.Spec.InstallModes)
	}
	for name, want := range map[string]v1alpha1.WebhookAdmissionType{
		"mpod.kb.io": v1alpha1.MutatingAdmissionWebhook,
		"statefulsingletons.apps.openshift.statefulsingleton.com": v1alpha1.ValidatingAdmissionWebhook,
	} {
		i := slices.IndexFunc(csv.Spec.WebhookDefinitions, func(d v1alpha1.WebhookDescription) bool { return d.GenerateName == name && d.Type == want })
		if i < 0 {
			t.Errorf("it has no webhook %s of type %s", name, want)
		}
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
			if d.ObjectSelector == nil || len(d.ObjectSelector.MatchExpressions)+len(d.ObjectSelector.MatchLabels) == 0 {
				t.Errorf("%s fails closed for every pod", d.GenerateName)
			}
		}
	}
}

// OLM installs many operators into one namespace, and makes the webhooks' Service
// from the labels that the Deployment selects by.
func TestTheDeploymentIsReadyForOLM(t *testing.T) {
	csv := read(t).CSV
	deployments := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	if len(deployments) != 1 {
		t.Fatalf("%d deployments", len(deployments))
	}
	spec := deployments[0].Spec
	if spec.Selector.MatchLabels["app.kubernetes.io/name"] != "stateful-operator" {
		t.Errorf("it selects by %v, as others do", spec.Selector.MatchLabels)
	}
	if len(spec.Template.Spec.Volumes) > 0 {
		t.Error("it has volumes, of which OLM knows nothing")
	}
	ports := map[string]bool{}
	for _, container := range spec.Template.Spec.Containers {
		if len(container.Resources.Requests) == 0 {
			t.Errorf("container %s asks for nothing", container.Name)
		}
		for _, port := range container.Ports {
			ports[port.Name] = true
		}
	}
	for _, d := range csv.Spec.WebhookDefinitions {
		if d.DeploymentName != deployments[0].Name || d.TargetPort == nil || !ports[d.TargetPort.StrVal] {
			t.Errorf("%s does not lead to a port of the Deployment", d.GenerateName)
		}
	}
	for _, object := range read(t).Objects {
		if object.GetKind() == "Service" {
			var service corev1.Service
			parse(t, folder+"/manifests/"+object.GetName()+"_v1_service.yaml", &service)
			if !reflect.DeepEqual(service.Spec.Selector, spec.Selector.MatchLabels) {
				t.Errorf("Service %s selects by %v", service.Name, service.Spec.Selector)
			}
		}
	}
}
