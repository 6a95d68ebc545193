package readiness_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

// schemas returns the shipped CRDs by the folder of their kind.
func schemas(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[strings.ToLower(crd.Spec.Names.Kind)] = &crd
	}
	return all
}

// asRead returns an object without a status as read from the API server, with the defaults of its
// schema.
func asRead(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *unstructured.Unstructured {
	t.Helper()
	version := crd.Spec.Versions[0]
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(&internal)
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{"apiVersion": crd.Spec.Group + "/" + version.Name, "kind": crd.Spec.Names.Kind,
		"metadata": map[string]any{"name": "db", "namespace": "ns", "generation": int64(1)}, "spec": map[string]any{}}
	defaulting.Default(object, structural)
	return &unstructured.Unstructured{Object: object}
}

func TestNobodyHasLookedYet(t *testing.T) {
	all := schemas(t)
	for folder := range kinds {
		crd := all[folder]
		if crd == nil {
			t.Fatalf("no CRD is of %s", folder)
		}
		object := asRead(t, crd)
		result, err := status.Compute(object)
		if err != nil || result.Status != status.InProgressStatus {
			t.Errorf("%s: kstatus returns %+v, %v for an object that was not reconciled yet, want InProgress", folder, result, err)
		}
		if got, message := health(t, folder, object.Object); got != "Progressing" || message != "the operator has not looked at it yet" {
			t.Errorf("%s: Argo CD returns %s (%s), want Progressing", folder, got, message)
		}
	}
}
