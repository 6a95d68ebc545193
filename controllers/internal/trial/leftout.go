package trial

import (
	"encoding/json"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// mostLeftOut is how many fields are told of that an API server leaves out.
const mostLeftOut = 5

// leftOut warns of what an API server leaves out of an object that it takes. It does so
// without a word with a field that it is too old for, or that is turned off. at says where
// a field of the object comes from.
func leftOut(sent, taken any, at func(path string) string) admission.Warnings {
	var warnings admission.Warnings
	paths := missing("", sent, taken)
	slices.Sort(paths)
	for _, path := range paths[:min(len(paths), mostLeftOut)] {
		warnings = append(warnings, fmt.Sprintf("%s: the API server leaves this field out of what is made from it, as its Kubernetes "+
			"is too old for it or has it turned off. Take the field out, or upgrade the cluster", at(path)))
	}
	return warnings
}

// missing are the paths of the fields that were sent and are not among those taken. Items of
// a list that have a name are compared by it, as admission may put others between them. An
// item that is gone altogether was taken out by somebody, and is no field.
func missing(path string, sent, taken any) (paths []string) {
	switch sent := sent.(type) {
	case map[string]any:
		has, _ := taken.(map[string]any)
		for name, value := range sent {
			switch child := join(path, name); {
			case isEmpty(value):
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

// counterpart is the item of a list that was made of another; one that is like it in all if
// there is none.
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

// isEmpty reports whether a value says nothing, so that it may as well be left out.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// specOf is the spec of an object as it is in JSON.
func specOf(object any) any {
	var fields struct {
		Spec any `json:"spec"`
	}
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil { // what cannot be written cannot be compared
		return nil
	}
	return map[string]any{"spec": fields.Spec}
}
