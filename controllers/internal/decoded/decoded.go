// Package decoded has functions for objects that are decoded from JSON without a type.
package decoded

// IsEmpty reports whether a value is null, or an object or a list without content, so that it can be omitted.
func IsEmpty(value any) bool {
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

// Below returns the path of a field of the object at a path. The path of the whole value is "".
func Below(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}
