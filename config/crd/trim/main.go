// Command trim drops the descriptions inside the Kubernetes types that our
// CustomResourceDefinitions embed, and keeps those of our own fields.
//
// A whole pod template with its descriptions is larger than the annotation in
// which `kubectl apply` keeps the last applied object (262,144 bytes), and
// `kubectl explain pod` says the same.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// embedded are the fields that hold a Kubernetes type. They keep their own
// description.
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
			return fmt.Errorf("trimming %s: %w", file, err)
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
	trimmed, err := yaml.Marshal(object)
	return append([]byte("---\n"), trimmed...), err
}

// walk looks for schemas: objects with properties.
func walk(node any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			walk(item)
		}
	case map[string]any:
		if properties, ok := node["properties"].(map[string]any); ok {
			for name, schema := range properties {
				if embedded[name] {
					keepOwn(schema)
				}
			}
		}
		for _, child := range node {
			walk(child)
		}
	}
}

// keepOwn drops every description below the schema's own.
func keepOwn(schema any) {
	top, ok := schema.(map[string]any)
	if !ok {
		return
	}
	for _, below := range []string{"properties", "items", "additionalProperties"} {
		drop(top[below], below == "properties")
	}
}

// drop removes descriptions. In a map of properties, "description" would be
// the name of a field and not a text about one.
func drop(node any, isProperties bool) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			drop(item, false)
		}
	case map[string]any:
		if !isProperties {
			delete(node, "description")
		}
		for name, child := range node {
			drop(child, !isProperties && name == "properties")
		}
	}
}
