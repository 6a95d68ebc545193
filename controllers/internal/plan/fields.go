package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Diff returns the fields of the spec, labels and annotations that differ between two objects of one type. was
// is nil for a new object, which has no changed fields.
func Diff(was, is client.Object) ([]Field, error) {
	fields := []Field{}
	if was == nil {
		return fields, nil
	}
	old, err := written(was)
	if err != nil {
		return nil, err
	}
	now, err := written(is)
	if err != nil {
		return nil, err
	}
	return append(fields, diff("", old, now)...), nil
}

// written returns the parts of an object that a user writes.
func written(object client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", object.GetName(), err)
	}
	metadata := map[string]any{}
	for _, field := range []string{"labels", "annotations"} {
		if all, isMap := content["metadata"].(map[string]any)[field].(map[string]any); isMap {
			delete(all, corev1.LastAppliedConfigAnnotation)
			for key, value := range all {
				metadata[field+"."+key] = value
			}
		}
	}
	parts := map[string]any{"metadata": metadata}
	for field, value := range content {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, field) {
			parts[field] = value
		}
	}
	return parts, nil
}

// diff compares two values at a path. Lists are compared by the names of their items, if all have one.
func diff(path string, was, is any) []Field {
	if reflect.DeepEqual(was, is) {
		return nil
	}
	old, now, comparable := items(was, is)
	if !comparable {
		return []Field{{Path: path, From: text(was), To: text(is)}}
	}
	all := maps.Clone(old)
	maps.Copy(all, now)
	var fields []Field
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fields = append(fields, diff(path+key, old[key], now[key])...)
	}
	if len(fields) == 0 { // only the order of a list has changed
		return []Field{{Path: path, From: text(was), To: text(is)}}
	}
	for i := range fields {
		if path == "" {
			fields[i].Path = fields[i].Path[1:] // without the first dot
		}
	}
	return fields
}

// items returns the items of two maps or lists of named maps, by the text that follows the path of their
// parent.
func items(was, is any) (old, now map[string]any, comparable bool) {
	old, isOld := itemsOf(was)
	now, isNow := itemsOf(is)
	return old, now, isOld && isNow
}

func itemsOf(value any) (found map[string]any, ok bool) {
	found = map[string]any{}
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			found["."+key] = item
		}
		return found, true
	case []any:
		for _, item := range v {
			fields, isMap := item.(map[string]any)
			name, isNamed := fields["name"].(string)
			if !isMap || !isNamed || found["["+name+"]"] != nil {
				return nil, false
			}
			found["["+name+"]"] = item
		}
		return found, true
	}
	return nil, false
}

// text returns a value as JSON; "" if it is not set.
func text(value any) string {
	if value == nil {
		return ""
	}
	return compact(value)
}
