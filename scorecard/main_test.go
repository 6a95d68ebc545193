package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/scorecard/promises"
)

func TestTests(t *testing.T) {
	if len(tests) != 4 || len(ofKind) != 4 {
		t.Errorf("there are tests of %d kinds and promises of %d", len(tests), len(ofKind))
	}
	tried := map[string]string{}
	for kind, all := range tests {
		if len(all) < 3 {
			t.Errorf("%s has %d tests: want three at least", kind, len(all))
		}
		for _, one := range all {
			p, err := promised(one.name)
			switch {
			case err != nil:
				t.Errorf("%s: %v", one.name, err)
			case !strings.HasPrefix(one.name, kind+"-"):
				t.Errorf("%s is among the tests of %s", one.name, kind)
			case p.Faults && !p.Scribed:
				t.Errorf("%s: %q wants the nodes, of which a pod has no hold", one.name, p.Name)
			case tried[p.Name] != "":
				t.Errorf("%s and %s try the same promise", one.name, tried[p.Name])
			}
			tried[p.Name] = one.name
		}
	}
}

// TestConfig compares config/scorecard with the table.
func TestConfig(t *testing.T) {
	text, err := os.ReadFile("../config/scorecard/patches/promises.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var patches []struct {
		Op, Path string
		Value    v1alpha3.StageConfiguration
	}
	if err := yaml.UnmarshalStrict(text, &patches); err != nil {
		t.Fatal(err)
	}
	if len(patches) != len(tests) {
		t.Errorf("%d stages for %d kinds", len(patches), len(tests))
	}
	configured := map[string][]string{}
	for _, stage := range patches {
		if stage.Op != "add" || stage.Path != "/stages/-" || !stage.Value.Parallel {
			t.Errorf("%s %s, parallel %t: want a stage more, in which tests go on together", stage.Op, stage.Path, stage.Value.Parallel)
		}
		for _, one := range stage.Value.Tests {
			if len(one.Entrypoint) != 2 || one.Entrypoint[0] != "/scorecard" {
				t.Errorf("entrypoint %v", one.Entrypoint)
				continue
			}
			name, kind := one.Entrypoint[1], one.Labels["kind"]
			configured[kind] = append(configured[kind], name)
			if one.Labels["suite"] != "stateful-operator" || one.Labels["test"] != name+"-test" || len(validation.IsValidLabelValue(name+"-test")) > 0 {
				t.Errorf("%s has labels %v", name, one.Labels)
			}
		}
	}
	for kind, all := range tests {
		var want []string
		for _, one := range all {
			want = append(want, one.name)
		}
		if !slices.Equal(configured[kind], want) {
			t.Errorf("%s has tests %v in config/scorecard and %v here", kind, configured[kind], want)
		}
	}
}

// on is a cluster where nothing happens.
func on(t *testing.T) func(context.Context) (*promises.Cluster, error) {
	t.Helper()
	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	return func(context.Context) (*promises.Cluster, error) {
		return &promises.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme).Build(), Shared: t.TempDir(), Scribe: "127.0.0.1:1"}, nil
	}
}

func TestBrokenPromise(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // time is up
	for _, name := range []string{"statefulcluster-names-once", "replicatedstatefulset-failover", "statefulsingleton-standbys"} {
		got := run(ctx, name, on(t))
		if got.State != v1alpha3.FailState || len(got.Errors) == 0 || got.Name != name {
			t.Errorf("%s: nobody acts, and the result is %+v", name, got)
		}
		if len(got.Suggestions) != 1 || !strings.HasPrefix(got.Suggestions[0], "install the operator") {
			t.Errorf("%s: %q should say that there is no operator", name, got.Suggestions)
		}
	}
}

func TestCannotTry(t *testing.T) {
	for name, got := range map[string]v1alpha3.TestResult{
		"there is no test": run(t.Context(), "no-such-test", on(t)),
		"no cluster here": run(t.Context(), "statefulcluster-names-once", func(context.Context) (*promises.Cluster, error) {
			return nil, errors.New("no cluster here")
		}),
		"panic": run(t.Context(), "statefulcluster-names-once", func(context.Context) (*promises.Cluster, error) {
			panic("lost")
		}),
	} {
		if got.State != v1alpha3.ErrorState || len(got.Errors) != 1 || !strings.Contains(got.Errors[0], name) {
			t.Errorf("want an error with %q: %+v", name, got)
		}
	}
}

// TestOutput reads the output as scorecard does.
func TestOutput(t *testing.T) {
	var out bytes.Buffer
	printStatus(&out, v1alpha3.TestResult{Name: "x", State: v1alpha3.FailState, Errors: []string{`<"&`}})
	var status v1alpha3.TestStatus
	if err := json.Unmarshal(out.Bytes(), &status); err != nil || len(status.Results) != 1 || status.Results[0].Errors[0] != `<"&` {
		t.Errorf("%v: %s", err, out.String())
	}
}
