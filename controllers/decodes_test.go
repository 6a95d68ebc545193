package controllers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	fissilev1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	statefulsingletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// extremes are JSON values at and beyond the range of each type that a field may have.
var extremes = []string{
	`null`, `true`, `{}`, `[]`, `{"a":"b"}`, `{"a":1}`, `["a"]`, `[1]`, `[{}]`, `{"a":{}}`,
	`0`, `-1`, `127`, `128`, `255`, `256`, `65535`, `65536`, `2147483647`, `2147483648`, `-2147483648`, `-2147483649`,
	`99999999999`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775809`, `1e19`, `1e300`, `1.5`, `1e2`,
	`""`, `"a"`, `"1"`, `"-1"`, `"99999999999"`, `"99999999999%"`, `"1.5"`, `".5"`, `"5."`, `"1e99"`, `"-1e-99"`, `"1Ei"`, `"99999999999Ei"`, `"12345678901234567890e99"`,
	`"1s"`, `"-1h"`, `"1d"`, `"99999999999h"`, `"1.000000000000000000000001s"`, `"2562048h"`,
	`"2020-01-01T00:00:00Z"`, `"2020-01-01t00:00:00z"`, `"2020-01-01"`, `"2020-01-01T00:00:00+99:99"`, `"0000-00-00T00:00:00Z"`,
	`"2020-01-01T24:00:00Z"`, `"2020-12-31T23:59:60Z"`, `"2020-01-01T00:00:00.123456789Z"`, `"2020-01-01 00:00:00Z"`,
	`"AA=="`, `"AA"`, `"!"`, `"\u0000"`, `"\ud800"`,
}

// N1: the Go type of a kind can decode everything that its schema accepts. An object that did not
// decode stopped the operator for all objects. For the status, which users may not write, it is
// enough that a list decodes: the schema accepts an array for each string with a format.
func TestWhatTheSchemaAcceptsDecodes(t *testing.T) {
	for file, problems := range map[string]func([]byte) (string, error){
		"enge.me_statefulclusters.yaml": func(text []byte) (string, error) {
			var o engev1alpha1.StatefulCluster
			err := kjson.UnmarshalCaseSensitivePreserveInts(text, &o)
			return o.Spec.Problem, err
		},
		"clusterlabs.org_replicatedstatefulsets.yaml": func(text []byte) (string, error) {
			var o clusterlabsv1alpha1.ReplicatedStatefulSet
			err := kjson.UnmarshalCaseSensitivePreserveInts(text, &o)
			return o.Spec.Problem, err
		},
		"fissile.cloudfoundry.org_extendedstatefulsets.yaml": func(text []byte) (string, error) {
			var o fissilev1alpha1.ExtendedStatefulSet
			err := kjson.UnmarshalCaseSensitivePreserveInts(text, &o)
			return o.Spec.Problem, err
		},
		"apps.openshift.statefulsingleton.com_statefulsingletons.yaml": func(text []byte) (string, error) {
			var o statefulsingletonv1.StatefulSingleton
			err := kjson.UnmarshalCaseSensitivePreserveInts(text, &o)
			return o.Spec.Problem, err
		},
	} {
		t.Run(file, func(t *testing.T) {
			tried := 0
			for _, part := range []string{"spec", "status"} {
				root := schemaOf(t, file).Properties[part]
				walkSchema(&root, []string{part}, func(schema *apiextensions.JSONSchemaProps, path []string) {
					for _, value := range accepted(t, schema) {
						tried++
						text := nested(path, value)
						if problem, err := problems([]byte(text)); err != nil || problem != "" {
							t.Errorf("the schema accepts %s, and the type does not: %s %v", text, problem, err)
						}
					}
				})
			}
			if tried < 100 {
				t.Errorf("%d values were tried", tried)
			}
		})
	}
}

// schemaOf reads the schema of a definition that has one version.
func schemaOf(t *testing.T, file string) *apiextensions.JSONSchemaProps {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "config", "crd", "bases", file))
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	var schema apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, &schema, nil); err != nil {
		t.Fatal(err)
	}
	return &schema
}

// walkSchema calls visit for a schema and all schemas inside. An element of a list has the key "".
func walkSchema(schema *apiextensions.JSONSchemaProps, path []string, visit func(*apiextensions.JSONSchemaProps, []string)) {
	visit(schema, path)
	within := func(key string) []string { return append(path[:len(path):len(path)], key) }
	for name := range schema.Properties {
		field := schema.Properties[name]
		walkSchema(&field, within(name), visit)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walkSchema(schema.Items.Schema, within(""), visit)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		walkSchema(schema.AdditionalProperties.Schema, within("any"), visit)
	}
}

// accepted returns the extremes that a schema accepts, after the API server has pruned them.
func accepted(t *testing.T, schema *apiextensions.JSONSchemaProps) (values []string) {
	t.Helper()
	validator, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range extremes {
		var value any
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &value); err != nil {
			continue // the API server cannot decode it
		}
		if len(validation.ValidateCustomResource(nil, value, validator)) > 0 {
			continue
		}
		if fields, isObject := value.(map[string]any); isObject && !preserves(schema) {
			for name := range fields {
				if _, known := schema.Properties[name]; !known && schema.AdditionalProperties == nil {
					delete(fields, name)
				}
			}
		}
		stored, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, string(stored))
	}
	return values
}

func preserves(schema *apiextensions.JSONSchemaProps) bool {
	return schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields
}
