package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

const untrimmed = `kind: CustomResourceDefinition
spec:
  versions:
  - schema:
      openAPIV3Schema:
        description: the kind
        properties:
          spec:
            description: what is wanted
            properties:
              replicas:
                default: 3
                description: how many
                type: integer
              template:
                description: the pods
                properties:
                  description:
                    description: a field of that name
                    type: string
                  spec:
                    description: a pod
                    items:
                      description: deep
                      properties:
                        default:
                          default: no key
                          type: string
                        protocol:
                          default: TCP
                          type: string
                        secret:
                          default: ""
                          type: string
                      type: object
                    type: array
                    x-kubernetes-list-map-keys:
                    - protocol
                type: object
            type: object
`

const trimmed = `---
kind: CustomResourceDefinition
spec:
  versions:
  - schema:
      openAPIV3Schema:
        description: the kind
        properties:
          spec:
            description: what is wanted
            properties:
              replicas:
                default: 3
                description: how many
                type: integer
              template:
                description: the pods
                properties:
                  description:
                    type: string
                  spec:
                    items:
                      properties:
                        default:
                          type: string
                        protocol:
                          default: TCP
                          type: string
                        secret:
                          default: ""
                          type: string
                      type: object
                    type: array
                    x-kubernetes-list-map-keys:
                    - protocol
                type: object
            type: object
`

func TestDescriptionsAndDefaultsInsideEmbeddedTypesGo(t *testing.T) {
	for name, input := range map[string]string{"a generated file": untrimmed, "a trimmed file": trimmed} {
		t.Run(name, func(t *testing.T) {
			got, err := trim([]byte(input))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != trimmed {
				t.Errorf("got:\n%s\nwant:\n%s", got, trimmed)
			}
		})
	}
}

const unbounded = `kind: CustomResourceDefinition
metadata:
  name: %s
spec:
  versions:
  - schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              selector:
                properties:
                  matchExpressions:
                    items:
                      properties:
                        key:
                          type: string
                        operator:
                          type: string
                        values:
                          items:
                            type: string
                          type: array
                      type: object
                    type: array
                  matchLabels:
                    additionalProperties:
                      type: string
                    type: object
                type: object
            type: object
`

const boundedSelector = `---
kind: CustomResourceDefinition
metadata:
  name: statefulsingletons.apps.openshift.statefulsingleton.com
spec:
  versions:
  - schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              selector:
                properties:
                  matchExpressions:
                    items:
                      properties:
                        key:
                          maxLength: 317
                          type: string
                        operator:
                          maxLength: 63
                          type: string
                        values:
                          items:
                            maxLength: 63
                            type: string
                          maxItems: 32
                          type: array
                      type: object
                    maxItems: 32
                    type: array
                  matchLabels:
                    additionalProperties:
                      maxLength: 63
                      type: string
                    maxProperties: 32
                    type: object
                type: object
            type: object
`

func TestSelectorsAreBounded(t *testing.T) {
	for name, want := range map[string]string{
		"statefulsingletons.apps.openshift.statefulsingleton.com": boundedSelector,
		"strangers.example.com":                                   "---\n" + fmt.Sprintf(unbounded, "strangers.example.com"),
	} {
		got, err := trim(fmt.Appendf(nil, unbounded, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
		}
	}
}

// A quantity of 30 characters exhausted the memory of the process that decoded it.
func TestQuantitiesAreBounded(t *testing.T) {
	got, err := trim([]byte("storage:\n  pattern: " + anyQuantity + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "---\nstorage:\n  maxLength: 64\n  pattern: " + quantity + "\n"; string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for text, taken := range map[string]bool{"1Gi": true, "1.5": true, "-2e+10": true, "1e3": true, "12345678901234567890e2000000000": false, "1e100": false, "1e.5": false} {
		if is := regexp.MustCompile(quantity).MatchString(text); is != taken {
			t.Errorf("%s is accepted: %v", text, is)
		}
	}
}

// maxBytes is the max size of a definition as JSON. kubectl apply stores a copy in an annotation,
// the API server keeps another copy of each version in memory, and a bundle contains all
// definitions.
const maxBytes = 120 << 10

func TestDefinitionsAreShort(t *testing.T) {
	files, err := filepath.Glob("../bases/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		object, err := json.Marshal(read(t, file))
		if err != nil {
			t.Fatal(err)
		}
		if len(object) > maxBytes {
			t.Errorf("%s has %d bytes as JSON, and may have %d: embed fewer fields", file, len(object), maxBytes)
		}
	}
}

func read(t *testing.T, file string) (object map[string]any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// quantitiesOf returns the schema paths of all quantities in a type.
func quantitiesOf(of reflect.Type, at []string, within map[reflect.Type]bool) (paths [][]string) {
	switch {
	case of == reflect.TypeFor[resource.Quantity]():
		return [][]string{at}
	case of.Kind() == reflect.Pointer:
		return quantitiesOf(of.Elem(), at, within)
	case of.Kind() == reflect.Slice:
		return quantitiesOf(of.Elem(), with(at, "items"), within)
	case of.Kind() == reflect.Map:
		return quantitiesOf(of.Elem(), with(at, "additionalProperties"), within)
	case of.Kind() != reflect.Struct || within[of]:
		return nil
	}
	within[of] = true
	defer delete(within, of)
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		below := at
		if name != "" {
			below = with(at, "properties", name)
		}
		paths = append(paths, quantitiesOf(of.Field(i).Type, below, within)...)
	}
	return paths
}

// with returns a longer path, and does not change the original.
func with(path []string, more ...string) []string { return slices.Concat(path, more) }

// E44: the schema checks each quantity of a job, even if it checks nothing else. A quantity with a
// long exponent exhausts the memory of the process that decodes it.
func TestE44EachQuantityOfAJobIsBounded(t *testing.T) {
	definition := read(t, "../bases/fissile.cloudfoundry.org_extendedstatefulsets.yaml")
	paths := quantitiesOf(reflect.TypeFor[batchv1.JobTemplateSpec](), nil, map[reflect.Type]bool{})
	if len(paths) < 15 {
		t.Fatalf("%d quantities in a Job: some are missing", len(paths))
	}
	for _, version := range at(definition, "spec", "versions").([]any) {
		strategy := at(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", "updateStrategy", "properties")
		for job := range jobs {
			for _, path := range paths {
				schema := at(at(strategy, job), path...)
				if at(schema, "pattern") != quantity {
					t.Errorf("%s: %s has no limit", job, strings.Join(path, "."))
				}
			}
		}
	}
}

const jobOf = `preUpdateJob:
  properties:
    spec:
      properties:
        backoffLimit: {type: integer}
        template:
          description: the pods
          properties:
            spec:
              properties:
                hostname: {type: string}
                initContainers: {type: array, items: {type: object, properties: {name: {type: string}}}}
                ephemeralContainers:
                  items:
                    properties:
                      name: {type: string}
                      size: {pattern: '%[1]s'}
                    required: [name]
                    type: object
                  type: array
                  x-kubernetes-list-map-keys: [name]
                  x-kubernetes-list-type: map
              required: [containers]
              type: object
          type: object
`

const trimmedJob = `---
properties:
  preUpdateJob:
    properties:
      spec:
        properties:
          backoffLimit:
            type: integer
          template:
            properties:
              spec:
                properties:
                  ephemeralContainers:
                    items:
                      properties:
                        size:
                          maxLength: 64
                          pattern: %[1]s
                      type: object
                      x-kubernetes-preserve-unknown-fields: true
                    type: array
                type: object
                x-kubernetes-preserve-unknown-fields: true
            type: object
            x-kubernetes-preserve-unknown-fields: true
`

func TestOfJobsOnlyQuantitiesAreKept(t *testing.T) {
	input := "properties:\n  " + strings.ReplaceAll(strings.TrimSuffix(fmt.Sprintf(jobOf, anyQuantity), "\n"), "\n", "\n  ") + "\n"
	want := fmt.Sprintf(trimmedJob, quantity)
	for range 2 { // trimming is idempotent
		got, err := trim([]byte(input))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Fatalf("got:\n%s\nwant:\n%s", got, want)
		}
		input = string(got)
	}
}

func TestPodsHaveNoEphemeralContainers(t *testing.T) {
	got, err := trim([]byte("properties:\n  ephemeralContainers: {type: array}\n  initContainers: {type: array}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "---\nproperties:\n  initContainers:\n    type: array\n"; string(got) != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
