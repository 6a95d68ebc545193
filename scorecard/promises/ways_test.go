package promises_test

import (
	"os"
	"os/exec"
	"testing"

	. "github.com/onsi/gomega"
)

// Ginkgo builds different specs for each of these configurations, and `make test` runs only one of
// them.
func TestSpecsCanBeBuiltInEachWay(t *testing.T) {
	for name, way := range map[string]struct {
		environment string
		flags       []string
	}{
		"a cluster a site":                    {environment: "KUBECONFIG="},
		"one cluster for all exclusive specs": {environment: "KUBECONFIG=", flags: []string{"-in-turn"}},
		"somebody's":                          {environment: "KUBECONFIG=/nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			try := exec.Command(os.Args[0], append([]string{"-test.run=^TestPromises$", "-ginkgo.dry-run", "-ginkgo.no-color"}, way.flags...)...)
			try.Env = append(os.Environ(), way.environment)
			out, err := try.CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), string(out))
			g.Expect(string(out)).To(MatchRegexp(`Ran ([1-9]\d*) of [1-9]\d* Specs`))
			g.Expect(string(out)).To(ContainSubstring("| 0 Skipped"))
		})
	}
}
