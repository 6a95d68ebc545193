package trial

import (
	"encoding/json"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stateful-operator/stateful-operator/controllers/internal/decoded"
)

// maxLeftOut is the max number of dropped fields that are reported.
const maxLeftOut = 5

// leftOut returns warnings about fields that the API server dropped from an accepted object. It
// silently drops fields that it does not support or that are disabled. The function at maps the path of
// a field to its origin.
func leftOut(sent, taken any, at func(path string) string) admission.Warnings {
	var warnings admission.Warnings
	paths := missing("", sent, taken)
	slices.Sort(paths)
	for _, path := range paths[:min(len(paths), maxLeftOut)] {
		warnings = append(warnings, fmt.Sprintf("%s: the API server dropped this field from the object created from it, because its Kubernetes "+
			"is too old or has the feature disabled. Remove the field, or upgrade the cluster", at(path)))
	}
	return warnings
}

// missing returns the paths of fields that were sent but are missing in the accepted object. List items
// with a name are compared by name, because admission may insert others. Items that are completely
// missing were removed by another party and are not reported.
func missing(path string, sent, taken any) (paths []string) {
	switch sent := sent.(type) {
	case map[string]any:
		has, _ := taken.(map[string]any)
		for name, value := range sent {
			switch child := decoded.Below(path, name); {
			case decoded.IsEmpty(value):
			case has[name] == nil:
				paths = append(paths, child)
			default:
				paths = append(paths, missing(child, value, has[name])...)
			}
		}
	case []any:
		has, _ := taken.([]any)
		for i, item := range sent {
			paths = append(paths, missing(fmt.Sprintf("%s[%d]", path, i), item, counterpart(item, i, has))...)
		}
	}
	return paths
}

// counterpart returns the item of a list that corresponds to the given item. If there is none, it
// returns the item itself.
func counterpart(item any, at int, among []any) any {
	fields, _ := item.(map[string]any)
	if name, named := fields["name"]; named {
		same := func(other any) bool {
			fields, _ := other.(map[string]any)
			return fields["name"] == name
		}
		if i := slices.IndexFunc(among, same); i >= 0 {
			return among[i]
		}
		return item
	}
	if at < len(among) {
		return among[at]
	}
	return item
}

// specOf returns the spec of an object as decoded JSON.
func specOf(object any) any {
	var fields struct {
		Spec any `json:"spec"`
	}
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil { // cannot be compared
		return nil
	}
	return map[string]any{"spec": fields.Spec}
}
