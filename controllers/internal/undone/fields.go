// Package undone detects fields of a write that the API server accepted, but an admission webhook or
// policy changed back. It delays the repetition of such writes.
package undone

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/decoded"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
)

// Field is a field that differs from its written value.
type Field struct {
	// Path is the path of the field, such as spec.maxUnavailable.
	Path string
	// Wanted and Present are values in JSON. They are empty if the field is not set.
	Wanted, Present string
}

// String returns the path with the wanted and present values. It omits the values of environment
// variables, because they may be secret.
func (f Field) String() string {
	if strings.Contains(f.Path, ".env[") {
		return f.Path
	}
	return fmt.Sprintf("%s (wanted %s, present %s)", f.Path, shown(f.Wanted), shown(f.Present))
}

// maxValue is the max number of bytes of a value in messages.
const maxValue = 80

// shown returns a value for a message, truncated to maxValue.
func shown(value string) string {
	if value == "" {
		return "none"
	}
	if len(value) > maxValue {
		return excerpt.Of(value, maxValue) + "…"
	}
	return value
}

// isImage reports whether the path is that of a container image.
func isImage(path string) bool { return strings.HasSuffix(path, "].image") }

// Covers reports whether have contains everything that is set in want. Additional fields in have, such
// as defaults, are ignored. Additional items of lists are ignored too.
func Covers(have, want any) bool { return len(Missing(have, want)) == 0 }

// Missing returns the fields of want that differ or are missing in have.
func Missing(have, want any) []Field {
	d := differences{}
	d.compare("", nil, jsonOf(want), jsonOf(have))
	return d.found
}

// Of returns the fields that a patch from one object to another should have changed, but that the API
// server's response does not have. Fields that the patch should have removed count if they are in the
// metadata. Other fields may have been set to a default. They count only if the patch changed nothing
// at all.
func Of(from, to, answer client.Object) []Field {
	version := answer.GetResourceVersion()
	d := differences{removals: version != "" && version == from.GetResourceVersion()}
	d.compare("", written(from), written(to), written(answer))
	return d.found
}

// changed returns the fields that a patch changes, with their present values.
func changed(from, to client.Object) []Field {
	d := differences{removals: true}
	d.compare("", written(from), written(to), written(from))
	return d.found
}

// written returns the fields of an object that a client writes.
func written(object client.Object) any {
	fields, _ := jsonOf(object).(map[string]any)
	for _, key := range []string{"status", "kind", "apiVersion"} { // a cache sets the last two
		delete(fields, key)
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		for _, key := range []string{"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp"} {
			delete(metadata, key)
		}
	}
	return fields
}

// jsonOf returns a value as decoded JSON.
func jsonOf(value any) (fields any) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil { // cannot happen: the value was read from JSON
		panic(fmt.Sprintf("decode the fields of %T: %v", value, err))
	}
	return fields
}

// differences collects the fields in which a response differs from the wanted object.
type differences struct {
	// removals is true if all fields that should have been removed count, not only those of the
	// metadata.
	removals bool
	found    []Field
}

// compare finds the fields that differ between from and to, and compares them with the response.
func (d *differences) compare(path string, from, to, answer any) {
	if to == nil || reflect.DeepEqual(from, to) {
		return
	}
	switch to := to.(type) {
	case map[string]any:
		before, _ := from.(map[string]any)
		now, _ := answer.(map[string]any)
		d.compareFields(path, before, to, now)
	case []any:
		before, _ := from.([]any)
		now, _ := answer.([]any)
		d.compareItems(path, before, to, now)
	default:
		if answer != to && (answer != nil || !isZero(to)) {
			d.add(path, to, answer)
		}
	}
}

// isZero reports whether a value may be omitted in JSON.
func isZero(value any) bool { return value == false || value == "" || value == float64(0) }

// compareFields compares the fields of an object, including those that were removed.
func (d *differences) compareFields(path string, from, to, answer map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(to)) {
		d.compare(decoded.Below(path, key), from[key], to[key], answer[key])
	}
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if _, stays := to[key]; !stays {
			d.compareRemoved(decoded.Below(path, key), from[key], answer[key])
		}
	}
}

// compareItems compares items with a name by that name, and other items in order. Additional items in
// the response are ignored.
func (d *differences) compareItems(path string, from, to, answer []any) {
	if !named(to) {
		if !hasInOrder(answer, to) {
			d.add(path, to, answer)
		}
		for _, item := range from {
			if scalar(item) && !slices.Contains(to, item) && slices.Contains(answer, item) {
				d.compareRemoved(decoded.Below(path, fmt.Sprint(item)), item, item)
			}
		}
		return
	}
	for _, item := range to {
		name := nameOf(item)
		d.compare(path+"["+name+"]", find(from, name), item, find(answer, name))
	}
	for _, item := range from {
		if name := nameOf(item); name != "" && find(to, name) == nil {
			d.compareRemoved(path+"["+name+"]", item, find(answer, name))
		}
	}
}

// compareRemoved checks a field that should have been removed.
func (d *differences) compareRemoved(path string, from, answer any) {
	counts := d.removals || strings.HasPrefix(path, "metadata.")
	if counts && from != nil && reflect.DeepEqual(from, answer) {
		d.add(path, nil, answer)
	}
}

func (d *differences) add(path string, wanted, present any) {
	d.found = append(d.found, Field{Path: path, Wanted: textOf(wanted), Present: textOf(present)})
}

func textOf(value any) string {
	if value == nil {
		return ""
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// names are the fields that identify items of a list for the API server. The first one that an item has
// is used.
var names = []string{"name", "mountPath", "devicePath", "uid", "port", "containerPort", "topologyKey", "key"}

// nameOf returns the key by which an item is identified in its list; "" if there is none.
func nameOf(item any) string {
	fields, _ := item.(map[string]any)
	for _, key := range names {
		if value, ok := fields[key]; ok && scalar(value) {
			return fmt.Sprintf("%s=%v", key, value)
		}
	}
	return ""
}

// named reports whether all items of a list have distinct names.
func named(items []any) bool {
	seen := map[string]bool{}
	for _, item := range items {
		name := nameOf(item)
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return len(items) > 0
}

func find(items []any, name string) any {
	for _, item := range items {
		if nameOf(item) == name {
			return item
		}
	}
	return nil
}

func scalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// hasInOrder reports whether a list contains the items in order, possibly with others in between.
func hasInOrder(have, want []any) bool {
	for _, item := range have {
		if len(want) == 0 {
			break
		}
		d := differences{}
		if d.compare("", nil, want[0], item); len(d.found) == 0 {
			want = want[1:]
		}
	}
	return len(want) == 0
}
