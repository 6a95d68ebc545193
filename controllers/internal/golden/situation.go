package golden

import (
	"cmp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// statuses is the folder with the recorded statuses, one file for each kind. The tests beside it evaluate
// them with kstatus and with the health checks of Argo CD.
const statuses = "test/readiness/testdata"

// Situation describes a state of an object, and the status that tools must show for it.
type Situation struct {
	Sentence string `json:"situation"`
	// Kstatus is the expected result of kstatus: Current, InProgress or Failed.
	Kstatus string `json:"kstatus"`
	// Argo is the expected health in Argo CD. If it is empty, it is derived from Kstatus.
	Argo string `json:"argo"`
}

// Statuses are the situations of a kind, with the fields of their objects that tools read.
type Statuses []recorded

// recorded is an entry of a file.
type recorded struct {
	Situation `json:",inline"`
	Object    map[string]any `json:"object"`
}

// Add adds an object with its status.
func (all *Statuses) Add(t *testing.T, s Situation, object any) {
	t.Helper()
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	if s.Argo == "" {
		s.Argo = map[string]string{"Current": "Healthy", "InProgress": "Progressing", "Failed": "Degraded"}[s.Kstatus]
	}
	reduced := pick(whole, "apiVersion", "kind")
	reduced["metadata"] = pick(in(whole, "metadata"), "name", "namespace", "generation")
	reduced["spec"] = pick(in(whole, "spec"), "paused")
	if in(whole, "spec", "template") != nil {
		in(reduced, "spec")["template"] = map[string]any{}
	}
	reduced["status"] = pick(in(whole, "status"), "observedGeneration", "conditions", "members")
	conditions, _ := in(reduced, "status")["conditions"].([]any)
	for i := range conditions {
		condition, _ := conditions[i].(map[string]any)
		conditions[i] = pick(condition, "type", "status", "reason", "message")
	}
	*all = append(*all, recorded{s, reduced})
}

// Check compares the statuses with the recorded file of the kind.
func (all Statuses) Check(t *testing.T, kind string) {
	t.Helper()
	slices.SortFunc(all, func(a, b recorded) int { return cmp.Compare(a.Sentence, b.Sentence) })
	text, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	Check(t, inModule(t, statuses, kind+".yaml"), string(text))
}

// in returns the map at a path; nil if there is none.
func in(object map[string]any, path ...string) map[string]any {
	for _, key := range path {
		object, _ = object[key].(map[string]any)
	}
	return object
}

// pick returns the given fields of a map.
func pick(from map[string]any, keys ...string) map[string]any {
	to := map[string]any{}
	for _, key := range keys {
		if value, ok := from[key]; ok {
			to[key] = value
		}
	}
	return to
}
