package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/stateful-operator/stateful-operator/test/manifest"
)

// kubectl runs kubectl as a user does, and returns its output.
func kubectl(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	program := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	out, err := exec.CommandContext(t.Context(), program, append([]string{"--kubeconfig=" + kubeconfig}, args...)...).CombinedOutput()
	NewWithT(t).Expect(err).To(Succeed(), "kubectl %s\n%s", strings.Join(args, " "), out)
	return string(out)
}

// TestAPIInstall verifies that the released manifests can be applied repeatedly by kubectl without
// options, and that kubectl explain describes their fields.
func TestAPIInstall(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("no API server: `make test-api` builds one and sets KUBEBUILDER_ASSETS")
	}
	g := NewWithT(t)
	server := &envtest.Environment{}
	t.Cleanup(func() { g.Expect(server.Stop()).To(Succeed()) })
	_, err := server.Start()
	g.Expect(err).To(Succeed())
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, server.KubeConfig, 0o600)).To(Succeed())
	image := "registry.example.com/us/stateful-operator:1.2.3@sha256:" + strings.Repeat("0", 64)
	for _, folder := range []string{"default", "namespaced"} {
		text, err := manifest.Text(filepath.Join("..", "..", "config", folder), map[string]string{built: image})
		g.Expect(err).To(Succeed())
		file := filepath.Join(t.TempDir(), folder+".yaml")
		g.Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
		kubectl(t, kubeconfig, "apply", "-f", file)
		g.Expect(kubectl(t, kubeconfig, "apply", "-f", file)).NotTo(ContainSubstring("created"), "the second time")
	}
	for path, want := range map[string]string{
		"extendedstatefulsets.spec.updateStrategy.canaryWatchTime": "CanaryWatchTime is",
		"extendedstatefulsets.spec.updateStrategy.preUpdateJob":    "PreUpdateJob runs before",
		"statefulclusters.spec.replicas":                           "Replicas is",
		"replicatedstatefulsets.spec.primaries":                    "Primaries is",
		"statefulsingletons.spec.selector":                         "elector",
	} {
		g.Eventually(func() string { return kubectl(t, kubeconfig, "explain", path) }, "1m").Should(ContainSubstring(want), path)
	}
}
