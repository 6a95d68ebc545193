package release

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// variable matches a variable in make's arguments.
var variable = regexp.MustCompile(`^[A-Z_]+=`)

// TestWorkflowsCallMakeAndNothingElse verifies that workflows only call make. A workflow is for one
// forge, and its steps must also be possible on any other machine.
func TestWorkflowsCallMakeAndNothingElse(t *testing.T) {
	g := NewWithT(t)
	makefile, err := os.ReadFile("../../Makefile")
	g.Expect(err).To(Succeed())
	files, err := filepath.Glob("../../.github/workflows/*.yaml")
	g.Expect(err).To(Succeed())
	g.Expect(files).To(HaveLen(3))
	for _, file := range files {
		var workflow struct {
			Jobs map[string]struct {
				Strategy    struct{ Matrix struct{ Target []string } }
				Environment string
				Env         map[string]string
				Steps       []struct{ Uses, Run string }
			}
		}
		text, err := os.ReadFile(file)
		g.Expect(err).To(Succeed())
		g.Expect(yaml.Unmarshal(text, &workflow)).To(Succeed(), file)
		g.Expect(workflow.Jobs).NotTo(BeEmpty())
		for name, job := range workflow.Jobs {
			if filepath.Base(file) == "release.yaml" {
				g.Expect(job.Environment).To(Equal("release"), "any user who can push a tag could make a release")
				g.Expect(job.Env).To(BeEmpty(), "each step would have the tokens")
			}
			targets := job.Strategy.Matrix.Target
			for _, step := range job.Steps {
				if step.Uses != "" {
					g.Expect(step.Uses).To(MatchRegexp(`@[0-9a-f]{40}$`), "a user who moves a tag could run code in this job")
					continue
				}
				command := strings.TrimPrefix(step.Run, `sudo env "PATH=$PATH" `)
				arguments, isMake := strings.CutPrefix(command, "make ")
				g.Expect(isMake).To(BeTrue(), "%s, job %s runs %q", file, name, step.Run)
				for _, argument := range strings.Fields(strings.ReplaceAll(arguments, "${{ matrix.target }}", "")) {
					if !variable.MatchString(argument) {
						targets = append(targets, argument)
					}
				}
			}
			g.Expect(targets).NotTo(BeEmpty(), "%s, job %s", file, name)
			for _, target := range targets {
				g.Expect(string(makefile)).To(ContainSubstring("\n"+target+":"), "%s, job %s", file, name)
			}
		}
	}
}
