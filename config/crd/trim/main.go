// Command trim drops the descriptions and the defaults inside the Kubernetes types that our
// CustomResourceDefinitions embed, and keeps those of our own fields.
//
// A whole pod template with its descriptions is larger than the annotation in which `kubectl apply`
// keeps the last applied object (262,144 bytes), and `kubectl explain pod` prints the same
// descriptions.
//
// The API server sets the defaults when the operator creates the pods. In a
// CustomResourceDefinition they are harmful: the form of OpenShift's console also sets defaults of
// objects that the user has not specified, such as the fsType of an azureDisk for each volume. The
// result is then refused.
//
// For the pods of Jobs before and after an upgrade, it keeps only the quantities: three whole
// templates are too long for a definition. UpdateJob.UnmarshalJSON checks the rest. It also drops
// ephemeral containers, which the API server refuses in every pod template.
//
// It limits the integers of fields that hold an integer or a string: the Go type has 32 bits, and
// an object with a value that does not decode makes every list of objects fail. The status of a
// claim template becomes an empty object for the same reason.
//
// It also limits quantities, and the selectors that are compared with every pod: a marker cannot do
// that for a Kubernetes type. A quantity with an exponent of many digits matches the pattern that
// controller-gen writes, and exhausts the memory of the process that decodes it.
package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// embedded are the fields that hold a Kubernetes type. They keep their own description.
var embedded = map[string]bool{
	"affinity":             true,
	"containers":           true,
	"postUpdateJob":        true,
	"preUpdateJob":         true,
	"initContainers":       true,
	"securityContext":      true,
	"servicePorts":         true,
	"template":             true,
	"tolerations":          true,
	"volumeClaimTemplates": true,
	"volumes":              true,
}

// jobs are the fields that hold a Job. Only the quantities of its pods are checked.
var jobs = map[string]bool{"preUpdateJob": true, "postUpdateJob": true}

// preserved marks the schema of an object that may have other fields too.
const preserved = "x-kubernetes-preserve-unknown-fields"

// intOrString marks the schema of an intstr.IntOrString, and of a quantity, which has a pattern.
const intOrString = "x-kubernetes-int-or-string"

// claimTemplates is the field that holds PersistentVolumeClaims.
const claimTemplates = "volumeClaimTemplates"

// selectors are the label selectors in spec that are limited, by the name of the definition.
var selectors = map[string][]string{
	"statefulsingletons.apps.openshift.statefulsingleton.com": {"selector"},
}

// Limits of a selector. The key of a label has at most 253 characters of prefix, a slash and 63
// characters; its value has at most 63.
const (
	maxTerms  = 32 // max number of labels, and of expressions
	maxValues = 32 // max number of values of an expression
	maxKey    = 317
	longest   = 63
)

// anyQuantity is controller-gen's pattern of a quantity. quantity is the replacement: an exponent
// has at most two digits. controllers/internal/bounds applies the same limit in webhooks.
const (
	anyQuantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`
	quantity    = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,2}))?$`
	maxQuantity = 64
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: trim FOLDER")
		os.Exit(2)
	}
	if err := trimFolder(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "trim:", err)
		os.Exit(1)
	}
}

func trimFolder(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := trimFile(file); err != nil {
			return fmt.Errorf("trim %s: %w", file, err)
		}
	}
	return nil
}

func trimFile(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	trimmed, err := trim(content)
	if err != nil {
		return err
	}
	return os.WriteFile(file, trimmed, 0o644)
}

func trim(content []byte) ([]byte, error) {
	var object map[string]any
	if err := yaml.Unmarshal(content, &object); err != nil {
		return nil, err
	}
	walk(object)
	bound(object)
	trimmed, err := yaml.Marshal(object)
	return append([]byte("---\n"), trimmed...), err
}

// walk finds schemas to trim: objects with properties, and quantities.
func walk(node any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			walk(item)
		}
	case map[string]any:
		if node["pattern"] == anyQuantity {
			node["pattern"], node["maxLength"] = quantity, maxQuantity
		}
		if node[intOrString] == true && node["pattern"] == nil {
			node["minimum"], node["maximum"] = math.MinInt32, math.MaxInt32
		}
		if properties, ok := node["properties"].(map[string]any); ok {
			if node[preserved] != true {
				dropEphemeral(properties)
			}
			for name, schema := range properties {
				if embedded[name] {
					keepOwn(schema)
				}
				if name == claimTemplates {
					dropStatus(schema)
				}
				if jobs[name] {
					keepQuantities(schema)
				}
			}
		}
		for _, child := range node {
			walk(child)
		}
	}
}

// dropStatus drops the fields of the status from the items of a list of claims. They are not used,
// and they contain times that the schema cannot check.
func dropStatus(list any) {
	if status, ok := at(list, "items", "properties", "status").(map[string]any); ok {
		delete(status, "properties")
	}
}

// keepOwn trims the schemas below a schema, but not the schema itself.
func keepOwn(schema any) {
	if top, ok := schema.(map[string]any); ok {
		trimBelow(top, nil)
	}
}

// trimBelow trims the schemas inside a schema. keys are the list-map keys of the list whose items
// it describes. An API server refuses a list whose keys have neither a value nor a default.
func trimBelow(schema map[string]any, keys []any) {
	properties, _ := schema["properties"].(map[string]any)
	for name, field := range properties {
		bare(field, slices.Contains(keys, any(name)), nil)
	}
	itemKeys, _ := schema["x-kubernetes-list-map-keys"].([]any)
	bare(schema["items"], false, itemKeys)
	bare(schema["additionalProperties"], false, nil)
}

// bare drops a schema's description and its default. It keeps the default of a list-map key, and a
// default of "".
func bare(schema any, isKey bool, keys []any) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	delete(s, "description")
	if s["default"] != "" && !isKey {
		delete(s, "default")
	}
	trimBelow(s, keys)
}

// dropEphemeral drops ephemeral containers from a pod. If unknown fields are preserved, ephemeral
// containers and their quantities are preserved too.
func dropEphemeral(properties map[string]any) {
	if _, isPod := properties["initContainers"]; isPod {
		delete(properties, "ephemeralContainers")
	}
}

// keepQuantities drops everything except quantities from the template of a Job.
func keepQuantities(job any) {
	spec, _ := at(job, "properties", "spec", "properties").(map[string]any)
	template, ok := spec["template"].(map[string]any)
	if !ok {
		return
	}
	kept := map[string]any{"type": "object"}
	if toQuantities(template) {
		kept = template
	}
	kept[preserved] = true
	spec["template"] = kept
}

// toQuantities drops the parts of a schema that contain no quantity, and reports whether any are
// left.
func toQuantities(node any) bool {
	schema, ok := node.(map[string]any)
	if !ok {
		return false
	}
	if pattern := schema["pattern"]; pattern == anyQuantity || pattern == quantity {
		return true
	}
	found := false
	properties, _ := schema["properties"].(map[string]any)
	for name, field := range properties {
		if toQuantities(field) {
			found = true
		} else {
			delete(properties, name)
		}
	}
	if found {
		schema[preserved] = true
		delete(schema, "required") // required fields and list keys may have been dropped
	}
	for _, inner := range []any{schema["items"], schema["additionalProperties"]} {
		found = toQuantities(inner) || found
	}
	delete(schema, "x-kubernetes-list-type")
	delete(schema, "x-kubernetes-list-map-keys")
	return found
}

// bound adds limits to the selectors of a definition.
func bound(definition map[string]any) {
	name, _ := at(definition, "metadata", "name").(string)
	versions, _ := at(definition, "spec", "versions").([]any)
	for _, version := range versions {
		spec := at(version, "schema", "openAPIV3Schema", "properties", "spec", "properties")
		for _, field := range selectors[name] {
			boundSelector(at(spec, field, "properties"))
		}
	}
}

func boundSelector(properties any) {
	set := func(key string, value int, path ...string) {
		if schema, ok := at(properties, path...).(map[string]any); ok {
			schema[key] = value
		}
	}
	set("maxProperties", maxTerms, "matchLabels")
	set("maxLength", longest, "matchLabels", "additionalProperties")
	set("maxItems", maxTerms, "matchExpressions")
	set("maxLength", maxKey, "matchExpressions", "items", "properties", "key")
	set("maxLength", longest, "matchExpressions", "items", "properties", "operator")
	set("maxItems", maxValues, "matchExpressions", "items", "properties", "values")
	set("maxLength", longest, "matchExpressions", "items", "properties", "values", "items")
}

// at returns the value at a path of keys, or nil if there is none.
func at(node any, path ...string) any {
	for _, key := range path {
		object, _ := node.(map[string]any)
		node = object[key]
	}
	return node
}
