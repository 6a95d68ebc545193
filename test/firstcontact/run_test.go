// Package firstcontact runs what README.md, docs/install.md and docs/guide/uninstall.md tell a reader to run.
package firstcontact

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/clustertest"
	"github.com/stateful-operator/stateful-operator/test/documents"
)

// substitute replaces the registry, which is missing in the test. The nodes load the image from the tar
// file that make writes.
var substitute = strings.NewReplacer(
	"<registry>", "localhost", "registry.example.com/you", "localhost",
	"--namespace=…", "--namespace=stateful-operator-system",
)

// site is a local cluster and the commands of the pages.
type site struct {
	Gomega
	t       *testing.T
	local   *cluster.Cluster
	exports string
}

// TestPromisesFirstContact runs the commands of README.md, docs/install.md and docs/guide/uninstall.md that need
// neither OLM nor a registry, in the order of a reader.
func TestPromisesFirstContact(t *testing.T) {
	local := clustertest.Boot(t, cluster.Options{Name: "firstcontact", Nodes: 3})
	s := &site{Gomega: NewWithT(t), t: t, local: local}
	readme, install, uninstall := s.page("README.md"), s.page("docs/install.md"), s.page("docs/guide/uninstall.md")
	s.exports = strings.Join(install("export REGISTRY="), "\n")

	s.run(readme("make image IMAGE="))
	s.Expect(local.LoadImage(t.Context(), "build/stateful-operator.tar")).To(Succeed())
	s.run(readme("make deploy IMAGE="))
	samples := s.block("README.md", "kubectl apply")
	s.run(samples)

	// The operator does not run and cannot be started.
	s.run([]string{"kubectl delete deployment --all --namespace=stateful-operator-system --cascade=foreground"})
	s.run([]string{"kubectl delete statefulsingletons,replicatedstatefulsets,extendedstatefulsets,statefulclusters --all-namespaces --all --wait=false"})
	s.Expect(s.left()).NotTo(BeEmpty(), "objects have finalizers of the operator")
	s.run(uninstall("kubectl get pods,stateful"))
	s.Eventually(s.left).WithTimeout(5 * time.Minute).WithPolling(time.Second).Should(BeEmpty())
	s.forgetMailer()

	s.run(install("make image "))
	s.Expect(local.LoadImage(t.Context(), "build/stateful-operator.tar")).To(Succeed())
	s.run(install("make deploy "))
	s.run(install("kubectl get pods --namespace"))
	s.run(samples)
	s.run(s.block("docs/guide/uninstall.md", "kubectl annotate"))
	s.run(install("kubectl delete --ignore-not-found lease/"))
	s.forgetMailer()

	mine := filepath.Join("build", "mine")
	s.Expect(os.MkdirAll(mine, 0o755)).To(Succeed())
	s.Expect(os.WriteFile(filepath.Join(mine, "kustomization.yaml"), []byte(substitute.Replace(install("resources:")[0])), 0o600)).To(Succeed())
	s.run([]string{"kubectl apply --kustomize=build/mine"})
	s.run(samples)
	s.run(uninstall("make undeploy"))
	s.Expect(s.try("kubectl get crd --output=name")).NotTo(ContainSubstring("statefulclusters"))
}

// forgetMailer deletes the Deployment of a sample. Its pods are not deleted with their
// StatefulSingleton, and no other StatefulSingleton selects them.
func (s *site) forgetMailer() {
	s.run([]string{"kubectl delete deployment mailer", "kubectl wait pod --selector=app=mailer --for=delete --timeout=5m"})
}

// block returns the first block of a page whose first command has the prefix.
func (s *site) block(file, beginning string) []string {
	text, err := os.ReadFile(file)
	s.Expect(err).To(Succeed())
	all := documents.Blocks(string(text))
	at := slices.IndexFunc(all, func(b []string) bool { return strings.HasPrefix(b[0], beginning) })
	s.Expect(at).To(BeNumerically(">=", 0), "%s: %s", file, beginning)
	return all[at]
}

// page returns a function that returns the commands of a page with a prefix.
func (s *site) page(file string) func(beginning string) []string {
	text, err := os.ReadFile(file)
	s.Expect(err).To(Succeed())
	all := slices.Concat(documents.Blocks(string(text))...)
	return func(beginning string) (found []string) {
		for _, command := range all {
			if strings.HasPrefix(command, beginning) {
				found = append(found, command)
			}
		}
		s.Expect(found).NotTo(BeEmpty(), "%s: %s", file, beginning)
		return found
	}
}

// run runs commands in bash.
func (s *site) run(commands []string) {
	s.t.Helper()
	for _, command := range commands {
		s.t.Logf("$ %s", command)
		out, err := s.local.Shell(context.WithoutCancel(s.t.Context()), substitute.Replace(s.exports+"\n"+command)).CombinedOutput()
		s.Expect(err).To(Succeed(), "%s\n%s", command, out)
	}
}

// left returns the existing objects of the four kinds.
func (s *site) left() string {
	return s.try("kubectl get statefulsingletons,replicatedstatefulsets,extendedstatefulsets,statefulclusters --all-namespaces --output=name")
}

func (s *site) try(command string) string {
	out, err := s.local.Shell(context.WithoutCancel(s.t.Context()), command).Output()
	s.Expect(err).To(Succeed(), command)
	return strings.TrimSpace(string(out))
}
