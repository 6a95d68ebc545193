package gather

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// LeftOut replaces a redacted value.
const LeftOut = "(omitted)"

// lastApplied contains the whole manifest, including all values that are redacted in the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// keptAnnotations are the domains of the annotations whose values are kept: those of Kubernetes and of
// the operator. Other tools keep whole manifests in theirs.
var keptAnnotations = []string{"kubernetes.io", "k8s.io", "enge.me", "clusterlabs.org", "fissile.cloudfoundry.org", "statefulsingleton.com"}

// keeps reports whether the value of an annotation is kept.
func keeps(key string) bool {
	domain, _, has := strings.Cut(key, "/")
	return has && slices.ContainsFunc(keptAnnotations, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// withValues are the lists of names and values in pod templates. Their values are redacted.
var withValues = []string{"env", "httpHeaders"}

// Redact removes confidential data from an object at any depth: many kinds, and their revisions,
// contain a template.
func Redact(object *unstructured.Unstructured, keepEnv bool) {
	object.SetManagedFields(nil)
	clean(object.Object, keepEnv)
}

func clean(value any, keepEnv bool) {
	switch v := value.(type) {
	case map[string]any:
		cleanMap(v, keepEnv)
	case []any:
		for _, item := range v {
			clean(item, keepEnv)
		}
	}
}

func cleanMap(m map[string]any, keepEnv bool) {
	if annotations, ok := m["annotations"].(map[string]any); ok {
		delete(annotations, lastApplied)
		for key := range annotations {
			if !keeps(key) {
				annotations[key] = LeftOut
			}
		}
	}
	if !keepEnv {
		for _, key := range withValues {
			leaveOut(m[key])
		}
	}
	for _, below := range m {
		clean(below, keepEnv)
	}
}

// leaveOut redacts the values in a list of names and values.
func leaveOut(list any) {
	items, _ := list.([]any) // a missing list is empty
	for _, item := range items {
		if pair, ok := item.(map[string]any); ok && pair["value"] != nil {
			pair["value"] = LeftOut
		}
	}
}
