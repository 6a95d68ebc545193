package scorecard

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/clustertest"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

// site is a local cluster with the operator and the images of the tests, for one test.
type site struct {
	Gomega
	t     *testing.T
	local *cluster.Cluster
}

// TestScorecard runs scorecard as its users do, and then verifies that it can fail.
func TestScorecard(t *testing.T) {
	local := boot(t)
	for _, part := range []struct {
		name string
		do   func(site)
	}{
		{"all tests pass", site.allPass},
		{"a broken bundle fails", site.brokenBundle},
		{"a broken operator fails", site.brokenOperator},
	} {
		t.Run(part.name, func(t *testing.T) { part.do(site{NewWithT(t), t, local}) })
	}
}

func boot(t *testing.T) *cluster.Cluster {
	t.Helper()
	local := clustertest.Boot(t, cluster.Options{Name: "scorecard", Nodes: 2})
	s := site{NewWithT(t), t, local}
	s.load(t.Context(), t.TempDir())
	s.shell("kubectl apply --kustomize=config/scorecard/rbac")
	return local
}

// load loads the images under their names in the bundle, and installs the operator.
func (s site) load(ctx context.Context, folder string) {
	tar := func(name string) string { return filepath.Join(folder, name+".tar") }
	ref, err := program.Operator(tar("operator")).Write(ctx)
	s.Expect(err).To(Succeed())
	_, err = WriteImage(ctx, tar("scorecard"), s.customImage(), cluster.BusyboxImage)
	s.Expect(err).To(Succeed())
	s.Expect(WriteBuiltIn(ctx, tar("built-in"))).To(Succeed())
	for _, name := range []string{"operator", "scorecard", "built-in"} {
		s.Expect(s.local.LoadImage(ctx, tar(name))).To(Succeed())
	}
	s.shell("make --no-print-directory deploy IMAGE=" + ref)
	s.shell("kubectl rollout status --namespace=stateful-operator-system deployment/stateful-operator-controller-manager --timeout=5m")
}

func (s site) shell(command string) {
	out, err := s.local.Shell(context.WithoutCancel(s.t.Context()), command).CombinedOutput()
	s.Expect(err).To(Succeed(), "%s\n%s", command, out)
}

// config returns the configuration in the bundle.
func (s site) config() (config v1alpha3.Configuration) {
	text, err := os.ReadFile("bundle/tests/scorecard/config.yaml")
	s.Expect(err).To(Succeed())
	s.Expect(yaml.UnmarshalStrict(text, &config)).To(Succeed())
	return config
}

// customImage returns the image of the promises' tests.
func (s site) customImage() string {
	for _, stage := range s.config().Stages {
		for _, one := range stage.Tests {
			if one.Labels["suite"] == "stateful-operator" {
				return one.Image
			}
		}
	}
	s.t.Fatal("the bundle has no tests of this project: make bundle")
	return ""
}

// run runs tests, and expects that exactly the given ones fail.
func (s site) run(r Run, fail ...string) v1alpha3.TestList {
	r.Kubeconfig, r.Bundle, r.Untar, r.Wait = s.local.Kubeconfig(), cmp.Or(r.Bundle, "bundle"), BuiltIn, 40*time.Minute
	list, err := r.Do(s.t.Context())
	s.Expect(err).To(Succeed())
	if failed := Failed(list); !slices.Equal(failed, fail) {
		s.t.Fatalf("%s\nfailed: %v, want: %v", text(list), failed, fail)
	}
	return list
}

func (s site) allPass() {
	list := s.run(Run{})
	var want int
	for _, stage := range s.config().Stages {
		want += len(stage.Tests)
	}
	s.Expect(WriteReports(list, "build")).To(Succeed())
	s.Expect(len(list.Items)).To(And(Equal(want), BeNumerically(">=", 6+4*3)), "tests that were run")
}

func (s site) brokenBundle() {
	bundle := filepath.Join(s.t.TempDir(), "bundle")
	s.Expect(os.CopyFS(bundle, os.DirFS("bundle"))).To(Succeed())
	edit(s, filepath.Join(bundle, csvFile), without("specDescriptors"))
	list := s.run(Run{Bundle: bundle, Selector: "suite=olm"}, "olm-spec-descriptors-test")
	s.Expect(text(list)).To(ContainSubstring("does not have a spec descriptor"))
}

// brokenOperator tests a promise while the operator is stopped.
func (s site) brokenOperator() {
	const name = "statefulcluster-names-once"
	config := s.config()
	for i := range config.Stages {
		config.Stages[i].Tests = slices.DeleteFunc(config.Stages[i].Tests, func(one v1alpha3.TestConfiguration) bool {
			return !slices.Contains(one.Entrypoint, name)
		})
		for j := range config.Stages[i].Tests {
			config.Stages[i].Tests[j].Entrypoint = []string{"/scorecard", "--within=30s", name}
		}
	}
	file := filepath.Join(s.t.TempDir(), "config.yaml")
	out, err := yaml.Marshal(config)
	s.Expect(err).To(Succeed())
	s.Expect(os.WriteFile(file, out, 0o644)).To(Succeed())
	s.shell("kubectl scale --namespace=stateful-operator-system deployment/stateful-operator-controller-manager --replicas=0")
	defer s.shell("kubectl scale --namespace=stateful-operator-system deployment/stateful-operator-controller-manager --replicas=2")
	result := s.run(Run{Config: file}, name+"-test").Items[0].Status.Results[0]
	s.Expect(result).To(And(HaveField("State", v1alpha3.FailState), HaveField("Errors", Not(BeEmpty()))))
	s.Expect(result.Suggestions).To(ContainElement(ContainSubstring("has 0 desired and 0 available pods")), "the operator is down")
}

func text(list v1alpha3.TestList) string {
	var all strings.Builder
	for _, one := range list.Items {
		all.WriteString(one.MarshalText())
	}
	return all.String()
}
