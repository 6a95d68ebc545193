package promises_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/scorecard/promises"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

func TestTests(t *testing.T) {
	if len(tests) != 4 {
		t.Errorf("there are tests of %d kinds", len(tests))
	}
	tried := map[string]string{}
	for kind, all := range tests {
		if len(all) < 3 {
			t.Errorf("%s has %d tests: want at least three", kind, len(all))
		}
		for _, one := range all {
			p, err := promised(one)
			switch {
			case err != nil:
				t.Errorf("%s: %v", one.name, err)
			case !strings.HasPrefix(one.name, kind+"-"):
				t.Errorf("%s is among the tests of %s", one.name, kind)
			case p.Faults && !p.Scribed:
				t.Errorf("%s: %q requires nodes, which are not available to a pod", one.name, p.Name)
			case tried[p.Name] != "":
				t.Errorf("%s and %s test the same promise", one.name, tried[p.Name])
			}
			tried[p.Name] = one.name
		}
	}
}

// promised returns the only promise of a test.
func promised(one test) (found kit.Promise, err error) {
	matches := 0
	for _, list := range promises.Lists {
		for _, p := range list.Promises {
			if testOf(p) == one.name {
				found, matches = p, matches+1
			}
		}
	}
	if matches != 1 {
		err = fmt.Errorf("%d promises begin with %q", matches, one.promise)
	}
	return found, err
}

// TestConfig compares config/scorecard with the table.
func TestConfig(t *testing.T) {
	text, err := os.ReadFile("../../config/scorecard/patches/promises.yaml")
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
			t.Errorf("%s %s, parallel %t: want one more stage, with parallel tests", stage.Op, stage.Path, stage.Value.Parallel)
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

// TestSuggestions looks for an operator on a cluster without one.
func TestSuggestions(t *testing.T) {
	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	got := operators(t.Context(), &kit.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme).Build()})
	if len(got) != 1 || !strings.HasPrefix(got[0], "install the operator") {
		t.Errorf("%q should report that there is no operator", got)
	}
}

// TestJudge converts each possible report to a result. A promise with failed expectations is
// broken. A promise with any other problem was not tested.
func TestJudge(t *testing.T) {
	it := types.SpecReport{LeafNodeType: types.NodeTypeIt, LeafNodeText: "SC-8", CapturedGinkgoWriterOutput: "meanwhile\n"}
	before := types.SpecReport{LeafNodeType: types.NodeTypeBeforeSuite, State: types.SpecStatePassed}
	cleanup := types.SpecReport{LeafNodeType: types.NodeTypeReportAfterSuite, State: types.SpecStateFailed, Failure: types.Failure{Message: "refused"}}
	with := func(spec types.SpecReport, state types.SpecState, message, thrown string) types.SpecReport {
		spec.State, spec.Failure = state, types.Failure{Message: message, ForwardedPanic: thrown}
		return spec
	}
	skipped := with(it, types.SpecStateSkipped, "", "")
	for name, row := range map[string]struct {
		specs []types.SpecReport
		want  v1alpha3.State
		says  string
	}{
		"kept":                      {[]types.SpecReport{before, skipped, with(it, types.SpecStatePassed, "", "")}, v1alpha3.PassState, ""},
		"broken":                    {[]types.SpecReport{before, with(it, types.SpecStateFailed, "refused", ""), skipped}, v1alpha3.FailState, "refused"},
		"too late":                  {[]types.SpecReport{before, with(it, types.SpecStateTimedout, "refused", "")}, v1alpha3.FailState, "refused"},
		"panic":                     {[]types.SpecReport{before, with(it, types.SpecStatePanicked, "panic", "refused")}, v1alpha3.ErrorState, "refused"},
		"no cluster":                {[]types.SpecReport{with(before, types.SpecStateFailed, "refused", ""), skipped}, v1alpha3.ErrorState, "refused"},
		"one kept and one violated": {[]types.SpecReport{before, with(it, types.SpecStatePassed, "", ""), cleanup}, v1alpha3.FailState, "refused"},
		"no promise tested":         {[]types.SpecReport{before, skipped}, v1alpha3.ErrorState, ""},
	} {
		got := v1alpha3.TestResult{State: v1alpha3.ErrorState}
		judge(&got, types.Report{SpecReports: row.specs})
		if got.State != row.want || (len(got.Errors) == 1) != (row.says != "") || !strings.Contains(strings.Join(got.Errors, ""), row.says) {
			t.Errorf("%s: want state %q with one reason: %+v", name, row.want, got)
		}
	}
}

// TestOutput parses the output like scorecard.
func TestOutput(t *testing.T) {
	var out bytes.Buffer
	printStatus(&out, v1alpha3.TestResult{Name: "x", State: v1alpha3.FailState, Errors: []string{`<"&`}})
	var status v1alpha3.TestStatus
	if err := json.Unmarshal(out.Bytes(), &status); err != nil || len(status.Results) != 1 || status.Results[0].Errors[0] != `<"&` {
		t.Errorf("%v: %s", err, out.String())
	}
}
