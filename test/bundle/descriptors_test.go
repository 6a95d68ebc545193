package bundle_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	fieldGroup      = "urn:alm:descriptor:com.tectonic.ui:fieldGroup:"
	fieldDependency = "urn:alm:descriptor:com.tectonic.ui:fieldDependency:"
)

// A descriptor is of the spec or of the status; both say the same.
type descriptor struct {
	path, displayName, description string
	x                              []string
}

func specOf(owned *v1alpha1.CRDDescription) []descriptor {
	var all []descriptor
	for _, d := range owned.SpecDescriptors {
		all = append(all, descriptor{d.Path, d.DisplayName, d.Description, d.XDescriptors})
	}
	return all
}

func statusOf(owned *v1alpha1.CRDDescription) []descriptor {
	var all []descriptor
	for _, d := range owned.StatusDescriptors {
		all = append(all, descriptor{d.Path, d.DisplayName, d.Description, d.XDescriptors})
	}
	return all
}

func TestDescriptorsAndSchemaAgree(t *testing.T) {
	read := read(t)
	for i := range read.CSV.Spec.CustomResourceDefinitions.Owned {
		owned := &read.CSV.Spec.CustomResourceDefinitions.Owned[i]
		at := slices.IndexFunc(read.V1CRDs, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == owned.Name })
		if at < 0 {
			t.Errorf("there is no CRD %s", owned.Name)
			continue
		}
		schema := read.V1CRDs[at].Spec.Versions[0].Schema.OpenAPIV3Schema
		t.Run(owned.Kind, func(t *testing.T) {
			if owned.DisplayName == "" || owned.Description == "" || len(owned.Resources) == 0 {
				t.Error("it has no name, no description or no resources")
			}
			compare(t, specOf(owned), schema.Properties["spec"])
			compare(t, statusOf(owned), schema.Properties["status"])
		})
	}
}

// compare looks for descriptors of nothing, and for fields without one.
func compare(t *testing.T, descriptors []descriptor, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	described := map[string]bool{}
	for _, d := range descriptors {
		if described[d.path] {
			t.Errorf("two descriptors say %s", d.path)
		}
		for path := range described {
			if strings.HasPrefix(path, d.path+".") || strings.HasPrefix(path, d.path+"[") {
				t.Errorf("%s is described after %s, which the console's form then forgets", d.path, path)
			}
		}
		described[d.path] = true
		if d.displayName == "" || d.description == "" {
			t.Errorf("the descriptor of %s says too little", d.path)
		}
		for _, path := range append(depends(t, d), d.path) {
			if !exists(schema, path) {
				t.Errorf("the descriptor of %s speaks of %s, which is not in the schema", d.path, path)
			}
		}
	}
	for name := range schema.Properties {
		if !described[name] {
			t.Errorf("%s has no descriptor", name)
		}
	}
}

// depends are the paths that the x-descriptors name.
func depends(t *testing.T, d descriptor) []string {
	t.Helper()
	var paths []string
	for _, x := range d.x {
		if group, ok := strings.CutPrefix(x, fieldGroup); ok {
			paths = append(paths, group)
			if top, _, _ := strings.Cut(d.path, "."); top != group {
				t.Errorf("%s is in group %s", d.path, group)
			}
		}
		if on, ok := strings.CutPrefix(x, fieldDependency); ok {
			path, value, _ := strings.Cut(on, ":")
			paths = append(paths, path)
			if value == "" {
				t.Errorf("%s depends on %s without a value", d.path, path)
			}
		}
	}
	return paths
}

func exists(schema apiextensionsv1.JSONSchemaProps, path string) bool {
	for name := range strings.SplitSeq(path, ".") {
		name, list := strings.CutSuffix(name, "[0]")
		next, ok := schema.Properties[name]
		if !ok {
			return false
		}
		if schema = next; list {
			if schema.Items == nil || schema.Items.Schema == nil {
				return false
			}
			schema = *schema.Items.Schema
		}
	}
	return true
}

// The console's form sends also what is not written, where the schema has a default
// in it. So these objects must be right with nothing else in them.
func TestObjectsThatAFormFillsIn(t *testing.T) {
	want := map[string][]string{
		"StatefulCluster":     {"persistentVolumeClaimRetentionPolicy", "replacement", "updateStrategy"},
		"ExtendedStatefulSet": {"updateStrategy"},
	}
	for _, crd := range read(t).V1CRDs {
		got := filledIn("", crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
		slices.Sort(got)
		if kind := crd.Spec.Names.Kind; !slices.Equal(got, want[kind]) {
			t.Errorf("of a %s a form fills in %q, want %q", kind, got, want[kind])
		}
	}
}

// filledIn are the paths of the objects below that need not be there, and have a
// field with a default.
func filledIn(path string, schema apiextensionsv1.JSONSchemaProps) (found []string) {
	for name, field := range schema.Properties {
		below := strings.TrimPrefix(path+"."+name, ".")
		if field.Items != nil && field.Items.Schema != nil {
			found = append(found, filledIn(below+"[0]", *field.Items.Schema)...)
			continue
		}
		if hasDefaults(field) && !slices.Contains(schema.Required, name) {
			found = append(found, below)
		}
		found = append(found, filledIn(below, field)...)
	}
	return found
}

// hasDefaults tells whether a field of the object has a default. The form leaves
// out what is empty.
func hasDefaults(object apiextensionsv1.JSONSchemaProps) bool {
	for _, field := range object.Properties {
		if field.Default != nil && string(field.Default.Raw) != `""` || hasDefaults(field) {
			return true
		}
	}
	return false
}
