package olm_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/cluster/clustertest"
)

// What TestOLM runs of docs/install.md is what the console and docs/guide/uninstall.md say.
func TestRemovalIsTheSameEverywhere(t *testing.T) {
	g := NewWithT(t)
	text, err := removal(clustertest.Root + "/docs/install.md")
	g.Expect(err).To(Succeed())
	commands := strings.Split(strings.TrimSpace(text), "\n")
	// The order matters: the operator removes the finalizers of the objects. It also recreates the
	// guard, which must be deleted before the CRD.
	at := -1
	for _, step := range []string{"annotate statefulsingletons", "delete statefulsingletons,", "delete subscriptions.operators.coreos.com",
		"delete clusterserviceversions.operators.coreos.com", "wait --for=delete pod", "delete validatingadmissionpolicybindings,", "delete crd"} {
		next := slices.IndexFunc(commands, func(c string) bool { return strings.HasPrefix(c, "kubectl "+step) })
		g.Expect(next).To(BeNumerically(">", at), "%q is this command, and the previous one is that command", step)
		at = next
	}
	var csv operatorsv1alpha1.ClusterServiceVersion
	content, err := os.ReadFile(clustertest.Root + "/bundle/manifests/stateful-operator.clusterserviceversion.yaml")
	g.Expect(err).To(Succeed())
	g.Expect(yaml.Unmarshal(content, &csv)).To(Succeed())
	described := strings.ReplaceAll(csv.Spec.Description, "<namespace of the operator>", lifeNamespace)
	page, err := os.ReadFile(clustertest.Root + "/docs/guide/uninstall.md")
	g.Expect(err).To(Succeed())
	for _, command := range commands {
		if !strings.HasPrefix(command, "kubectl delete namespace ") && !strings.Contains(described, "    "+command+"\n") {
			t.Errorf("the bundle's description does not contain %s", command)
		}
		inAllWays := strings.Contains(command, "statefulsingletons") && !strings.Contains(command, "delete crd") || strings.Contains(command, "validatingadmissionpolicies")
		if inAllWays && !strings.Contains(string(page), "    "+command+"\n") {
			t.Errorf("docs/guide/uninstall.md does not contain %s", command)
		}
	}
}
