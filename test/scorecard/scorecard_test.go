package scorecard

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

var keep = flag.String("keep", "", "`name` of a local cluster that is used again and not taken down")

// site is a local cluster with the operator and the images of the tests.
type site struct {
	*testing.T
	local  *cluster.Cluster
	folder string
}

// TestScorecard runs scorecard as its users do, and then has it fail.
func TestScorecard(t *testing.T) {
	s := boot(t)
	t.Run("all tests pass", s.allPass)
	t.Run("a broken bundle fails", s.brokenBundle)
	t.Run("a broken operator fails", s.brokenOperator)
}

func boot(t *testing.T) *site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a local cluster with nodes needs root")
	}
	ctx, name := t.Context(), cmp.Or(*keep, "scorecard")
	release, err := cluster.Hold(ctx, name, os.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	local, err := cluster.Up(ctx, cluster.Options{Name: name, Nodes: 2, Log: os.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if *keep != "" {
			return
		}
		if err := cluster.Down(context.WithoutCancel(ctx), name, os.Stdout); err != nil {
			t.Error(err)
		}
	})
	t.Chdir(root)
	s := &site{T: t, local: local, folder: t.TempDir()}
	s.load()
	s.shell("go tool -modfile=tools/generate/go.mod kustomize build config/scorecard/rbac | kubectl apply -f -")
	return s
}

// load makes the images under the names that the bundle has for them, and
// installs the operator.
func (s *site) load() {
	s.Helper()
	ctx, tar := s.Context(), func(name string) string { return filepath.Join(s.folder, name+".tar") }
	operator := program.Operator(tar("operator"))
	ref, err := operator.Write(ctx)
	if err != nil {
		s.Fatal(err)
	}
	if _, err := WriteImage(ctx, tar("scorecard"), s.customImage(), cluster.BusyboxImage); err != nil {
		s.Fatal(err)
	}
	if err := WriteBuiltIn(ctx, tar("built-in")); err != nil {
		s.Fatal(err)
	}
	for _, name := range []string{"operator", "scorecard", "built-in"} {
		if err := s.local.LoadImage(ctx, tar(name)); err != nil {
			s.Fatal(err)
		}
	}
	s.shell("make --no-print-directory deploy IMAGE=" + ref)
	s.shell("kubectl rollout status --namespace=stateful-operator-system deployment/stateful-operator-controller-manager --timeout=5m")
}

func (s *site) shell(command string) {
	s.Helper()
	run := exec.CommandContext(context.WithoutCancel(s.Context()), "bash", "-euo", "pipefail", "-c", command)
	run.Env = append(os.Environ(), "KUBECONFIG="+s.local.Kubeconfig(), "PATH="+s.local.Programs()+":"+os.Getenv("PATH"))
	if out, err := run.CombinedOutput(); err != nil {
		s.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// config is the one in the bundle.
func (s *site) config() v1alpha3.Configuration {
	s.Helper()
	text, err := os.ReadFile("bundle/tests/scorecard/config.yaml")
	if err != nil {
		s.Fatal(err)
	}
	var config v1alpha3.Configuration
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		s.Fatal(err)
	}
	return config
}

// customImage is the image of the promises' tests.
func (s *site) customImage() string {
	s.Helper()
	for _, stage := range s.config().Stages {
		for _, one := range stage.Tests {
			if one.Labels["suite"] == "stateful-operator" {
				return one.Image
			}
		}
	}
	s.Fatal("the bundle has no tests of ours: make bundle")
	return ""
}

// run runs tests, and fails unless just those fail.
func (s *site) run(t *testing.T, r Run, fail ...string) v1alpha3.TestList {
	t.Helper()
	r.Kubeconfig, r.Bundle, r.Untar, r.Wait = s.local.Kubeconfig(), cmp.Or(r.Bundle, "bundle"), BuiltIn, 40*time.Minute
	list, err := r.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if failed := Failed(list); !slices.Equal(failed, fail) {
		for _, one := range list.Items {
			t.Log(one.MarshalText())
		}
		t.Fatalf("failed: %v, and should: %v", failed, fail)
	}
	return list
}

func (s *site) allPass(t *testing.T) {
	list := s.run(t, Run{})
	var want int
	for _, stage := range s.config().Stages {
		want += len(stage.Tests)
	}
	if len(list.Items) != want || want < 6+4*3 {
		t.Errorf("%d tests of %d were run", len(list.Items), want)
	}
	if err := WriteReports(list, "build"); err != nil {
		t.Error(err)
	}
}

func (s *site) brokenBundle(t *testing.T) {
	bundle := filepath.Join(t.TempDir(), "bundle")
	if err := os.CopyFS(bundle, os.DirFS("bundle")); err != nil {
		t.Fatal(err)
	}
	edit(t, bundle, without("specDescriptors"))
	list := s.run(t, Run{Bundle: bundle, Selector: "suite=olm"}, "olm-spec-descriptors-test")
	if said := text(list); !strings.Contains(said, "does not have a spec descriptor") {
		t.Errorf("it does not say what is missing: %s", said)
	}
}

// brokenOperator tries a promise where nobody keeps it.
func (s *site) brokenOperator(t *testing.T) {
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
	file := filepath.Join(t.TempDir(), "config.yaml")
	out, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out, 0o644); err != nil {
		t.Fatal(err)
	}
	s.shell("kubectl scale --namespace=stateful-operator-system deployment/stateful-operator-controller-manager --replicas=0")
	defer s.shell("kubectl scale --namespace=stateful-operator-system deployment/stateful-operator-controller-manager --replicas=2")
	list := s.run(t, Run{Config: file}, name+"-test")
	result := list.Items[0].Status.Results[0]
	if result.State != v1alpha3.FailState || len(result.Errors) == 0 {
		t.Errorf("%+v", result)
	}
	if want := "0 pods are wanted and 0 are available"; !strings.Contains(fmt.Sprint(result.Suggestions), want) {
		t.Errorf("%q does not say that the operator is away", result.Suggestions)
	}
}

func text(list v1alpha3.TestList) string {
	var all strings.Builder
	for _, one := range list.Items {
		all.WriteString(one.MarshalText())
	}
	return all.String()
}
