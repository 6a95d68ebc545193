// Package readiness_test reads the statuses of real situations with tools that do not know the
// operator's kinds: kstatus, which Flux and Helm use to wait, and the scripts for Argo CD.
package readiness_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

// fewest is the min number of situations of each kind.
const fewest = 10

// kinds maps the files of testdata to kinds.
var kinds = map[string]string{
	"statefulcluster": "StatefulCluster", "replicatedstatefulset": "ReplicatedStatefulSet",
	"extendedstatefulset": "ExtendedStatefulSet", "statefulsingleton": "StatefulSingleton",
}

// situation is an object with the status of a real situation, and the expected results of the tools.
type situation struct {
	name, kstatus, argo string
	object              *unstructured.Unstructured
}

// situationsOf reads the file of a kind in testdata. Integers are decoded as kubectl and tools do.
func situationsOf(t *testing.T, kind string) (all []situation) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", kind+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		t.Fatal(err)
	}
	var entries []struct {
		Situation, Kstatus, Argo string
		Object                   unstructured.Unstructured
	}
	if err := json.Unmarshal(text, &entries); err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		e := &entries[i]
		all = append(all, situation{name: e.Situation, kstatus: e.Kstatus, argo: e.Argo, object: &e.Object})
	}
	return all
}

// conditionsOf returns the types of an object's conditions, and which of Ready, Reconciling and Stalled
// are True.
func conditionsOf(t *testing.T, s situation) (types, isTrue []string) {
	t.Helper()
	conditions, _, err := unstructured.NestedSlice(s.object.Object, "status", "conditions")
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		kind, _ := condition["type"].(string)
		if types = append(types, kind); slices.Contains(forTools, kind) && condition["status"] == "True" {
			isTrue = append(isTrue, kind)
		}
	}
	return types, isTrue
}

// forTools are the conditions for which tools wait.
var forTools = []string{"Ready", "Reconciling", "Stalled"}

// TestEachKindHasTheSameConditionsAlways verifies that every condition is always present. Tools
// cannot wait for a missing condition, and treat it as healthy.
func TestEachKindHasTheSameConditionsAlways(t *testing.T) {
	everywhere := append([]string{"Available", "Progressing", "Degraded"}, forTools...)
	for folder := range kinds {
		var always []string
		for _, s := range situationsOf(t, folder) {
			types, isTrue := conditionsOf(t, s)
			if len(types) == 0 { // the object was not observed yet
				continue
			}
			if slices.Sort(types); always == nil {
				always = types
			}
			if !slices.Equal(types, always) {
				t.Errorf("%s, %s: it has %v, and others have %v", folder, s.name, types, always)
			}
			if len(isTrue) != 1 {
				t.Errorf("%s, %s: several of %v are True: %v, want one", folder, s.name, forTools, isTrue)
			}
		}
		for _, kind := range everywhere {
			if !slices.Contains(always, kind) {
				t.Errorf("%s has no condition %s", folder, kind)
			}
		}
	}
}

func TestKstatus(t *testing.T) {
	for folder, kind := range kinds {
		all := situationsOf(t, folder)
		if len(all) < fewest {
			t.Errorf("%d situations of %s, want %d", len(all), kind, fewest)
		}
		for _, s := range all {
			if s.object.GetKind() != kind {
				t.Errorf("%s, %s: kind %s", folder, s.name, s.object.GetKind())
			}
			result, err := status.Compute(s.object)
			if err != nil {
				t.Errorf("%s, %s: %v", folder, s.name, err)
			} else if string(result.Status) != s.kstatus {
				t.Errorf("%s, %s: kstatus returns %s (%s), want %s", folder, s.name, result.Status, strings.TrimSpace(result.Message), s.kstatus)
			}
		}
	}
}
