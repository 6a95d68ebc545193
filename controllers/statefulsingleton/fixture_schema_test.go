package statefulsingleton

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// crd is our CustomResourceDefinition in the API server's own code.
type crd struct {
	definition *apiextensionsv1.CustomResourceDefinition
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// readCRD reads the generated file, and checks that an API server accepts it.
func readCRD(t *testing.T) crd {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", "apps.openshift.statefulsingleton.com_statefulsingletons.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := crd{definition: &apiextensionsv1.CustomResourceDefinition{}}
	if err := yaml.UnmarshalStrict(text, c.definition); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(c.definition)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&c.definition.Spec)
	c.definition.Status.StoredVersions = []string{"v1"}
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(c.definition, &internal, nil); err != nil {
		t.Fatal(err)
	}
	if errs := crdvalidation.ValidateCustomResourceDefinition(context.Background(), &internal); len(errs) > 0 {
		t.Fatalf("the API server would refuse the definition: %v", errs.ToAggregate())
	}
	schema := internal.Spec.Validation
	if schema == nil {
		schema = internal.Spec.Versions[0].Schema
	}
	if c.structural, err = structuralschema.NewStructural(schema.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	if c.schema, _, err = validation.NewSchemaValidator(schema.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	c.rules = cel.NewValidator(c.structural, true, celconfig.PerCallLimit)
	return c
}

// take processes an object as the API server does: it prunes unknown fields, sets defaults
// and validates. It returns the object to be stored.
func (c crd) take(t *testing.T, manifest string, old *v1.StatefulSingleton) (*v1.StatefulSingleton, field.ErrorList) {
	t.Helper()
	var tree map[string]any
	text, err := yaml.YAMLToJSON([]byte(manifest))
	if err == nil {
		err = utiljson.Unmarshal(text, &tree) // decodes integers as the API server does
	}
	if err != nil {
		t.Fatal(err)
	}
	pruning.Prune(tree, c.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(tree, c.structural)
	defaulting.Default(tree, c.structural)
	var errs field.ErrorList
	var before map[string]any
	if old == nil {
		errs = validation.ValidateCustomResource(nil, tree, c.schema)
	} else {
		var err error
		if before, err = runtime.DefaultUnstructuredConverter.ToUnstructured(old); err != nil {
			t.Fatal(err)
		}
		errs = validation.ValidateCustomResourceUpdate(nil, tree, before, c.schema)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, tree)...)
	if len(errs) == 0 {
		var oldTree any
		if before != nil {
			oldTree = before
		}
		broken, _ := c.rules.Validate(context.Background(), nil, c.structural, tree, oldTree, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	var stored v1.StatefulSingleton
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, &stored); err != nil && len(errs) == 0 {
		t.Fatal(err)
	}
	return &stored, errs
}

// asSent returns the object as a Go client sends it.
func asSent(t *testing.T, s *v1.StatefulSingleton) string {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
