package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const names = `package v1

// Reasons of the conditions. They do not change.
const (
	// ReasonReady: all pods are Ready.
	ReasonReady = "AllReady"
	// Prefix + "x" is resolved.
	LabelX = Prefix + "x" // unused
)

// Max number of pods.
const maxPods = 3
`

const definition = `
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            required: [size]
            properties:
              size: {type: integer, format: int32, minimum: 1, maximum: 3, description: "Size is the size.", x-kubernetes-validations: [{rule: "true", message: "must be odd"}]}
              selector: {type: object, description: Selector selects pods., properties: {matchLabels: {type: object, description: matchLabels is of Kubernetes.}}}
              parts: {type: array, items: {type: object, properties: {name: {type: string, description: "Name of the part, a|b."}}}}
          status: {properties: {phase: {type: string, enum: [A, B], description: "Phase is the phase.\n\nA: first."}}}
`

func TestPage(t *testing.T) {
	folder := t.TempDir()
	crd, constants := filepath.Join(folder, "crd.yaml"), filepath.Join(folder, "names.go")
	for path, text := range map[string]string{crd: definition, constants: names} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := page("Kind", crd, constants)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"| `size` | int32; required; min 1; max 3 | size is the size.<br>Validated: must be odd. |",
		"| `parts[].name` | string | name of the part, a\\|b. |",
		"| `phase` | string; one of `A`, `B` | phase is the phase.<br>A: first. |",
		"## Reasons of the conditions",
		"They do not change.",
		"| `AllReady` | all pods are Ready. |",
		"| `…/x` | Prefix + \"x\" is resolved. |",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the page lacks %q:\n%s", line, text)
		}
	}
	for _, absent := range []string{"matchLabels", "maxPods"} {
		if strings.Contains(text, absent) {
			t.Errorf("the page has %q:\n%s", absent, text)
		}
	}
}
