package olm_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"
)

// What TestOLM runs of docs/install.md is what the console and the README say.
func TestRemovalIsTheSameEverywhere(t *testing.T) {
	text, err := removal(root + "/docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.Split(strings.TrimSpace(text), "\n")
	// In this order: the operator takes off the finalizers of the objects, and it
	// makes the guard again, which must be gone before the CRD.
	at := -1
	for _, step := range []string{"annotate statefulsingletons", "delete statefulsingletons,", "delete subscriptions.operators.coreos.com",
		"delete clusterserviceversions.operators.coreos.com", "wait --for=delete pod", "delete validatingadmissionpolicybindings,", "delete crd"} {
		next := slices.IndexFunc(commands, func(c string) bool { return strings.HasPrefix(c, "kubectl "+step) })
		if next <= at {
			t.Errorf("%q is command %d, and the one before it %d", step, next, at)
		}
		at = next
	}
	var csv operatorsv1alpha1.ClusterServiceVersion
	content, err := os.ReadFile(root + "/bundle/manifests/stateful-operator.clusterserviceversion.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &csv); err != nil {
		t.Fatal(err)
	}
	described := strings.ReplaceAll(csv.Spec.Description, "<namespace of the operator>", lifeNamespace)
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		if !strings.HasPrefix(command, "kubectl delete namespace ") && !strings.Contains(described, "    "+command+"\n") {
			t.Errorf("the bundle's description lacks %s", command)
		}
		inAllWays := strings.Contains(command, "statefulsingletons") && !strings.Contains(command, "delete crd") || strings.Contains(command, "validatingadmissionpolicies")
		if inAllWays && !strings.Contains(string(readme), "    "+command+"\n") {
			t.Errorf("the README lacks %s", command)
		}
	}
}
