package bundle_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	fieldGroup      = "urn:alm:descriptor:com.tectonic.ui:fieldGroup:"
	fieldDependency = "urn:alm:descriptor:com.tectonic.ui:fieldDependency:"
)

func TestDescriptorsAndSchemaAgree(t *testing.T) {
	read := read(t)
	for i := range read.CSV.Spec.CustomResourceDefinitions.Owned {
		owned := &read.CSV.Spec.CustomResourceDefinitions.Owned[i]
		t.Run(owned.Kind, func(t *testing.T) {
			at := slices.IndexFunc(read.V1CRDs, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == owned.Name })
			NewWithT(t).Expect(at).To(BeNumerically(">=", 0), "no CRD %s", owned.Name)
			schema := read.V1CRDs[at].Spec.Versions[0].Schema.OpenAPIV3Schema
			g := telling(t)
			g.Expect(owned.DisplayName != "" && owned.Description != "" && len(owned.Resources) > 0).To(
				BeTrueBecause("it has no name, no description or no resources"))
			var status []v1alpha1.SpecDescriptor // it has the same fields
			for _, d := range owned.StatusDescriptors {
				status = append(status, v1alpha1.SpecDescriptor(d))
			}
			compare(g, owned.SpecDescriptors, schema.Properties["spec"])
			compare(g, status, schema.Properties["status"])
		})
	}
}

// compare expects that every descriptor has a field and every field a descriptor.
func compare(g Gomega, descriptors []v1alpha1.SpecDescriptor, schema apiextensionsv1.JSONSchemaProps) {
	described := map[string]bool{}
	for _, d := range descriptors {
		g.Expect(described).NotTo(HaveKey(d.Path), "two descriptors have the same path")
		for path := range described {
			g.Expect(strings.HasPrefix(path, d.Path+".") || strings.HasPrefix(path, d.Path+"[")).To(
				BeFalseBecause("%s is described after %s, which the form of the console then ignores", d.Path, path))
		}
		described[d.Path] = true
		g.Expect(d.DisplayName != "" && d.Description != "").To(BeTrueBecause("the descriptor of %s is too short", d.Path))
		for _, path := range append(depends(g, d), d.Path) {
			g.Expect(exists(schema, path)).To(BeTrueBecause("the descriptor of %s is for %s, which is not in the schema", d.Path, path))
		}
	}
	for name := range schema.Properties {
		g.Expect(described[name]).To(BeTrueBecause("%s has no descriptor", name))
	}
}

// depends returns the paths in the x-descriptors.
func depends(g Gomega, d v1alpha1.SpecDescriptor) (paths []string) {
	for _, x := range d.XDescriptors {
		if group, ok := strings.CutPrefix(x, fieldGroup); ok {
			paths = append(paths, group)
			top, _, _ := strings.Cut(d.Path, ".")
			g.Expect(group).To(Equal(top), "the group of %s", d.Path)
		}
		if on, ok := strings.CutPrefix(x, fieldDependency); ok {
			path, value, _ := strings.Cut(on, ":")
			paths = append(paths, path)
			g.Expect(value).NotTo(BeEmpty(), "%s depends on %s without a value", d.Path, path)
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

// TestObjectsThatAFormFillsIn lists the objects that must be valid with only their defaults. The
// console's form also sends objects that the user left out if their schema contains a default.
func TestObjectsThatAFormFillsIn(t *testing.T) {
	want := map[string][]string{
		"StatefulCluster":       {"persistentVolumeClaimRetentionPolicy", "replacement", "updateStrategy"},
		"ReplicatedStatefulSet": {"failover", "fencing", "persistentVolumeClaimRetentionPolicy", "updateStrategy"},
		"ExtendedStatefulSet":   {"updateStrategy"},
		"StatefulSingleton":     {"fencing"},
	}
	for _, crd := range read(t).V1CRDs {
		got, kind := filledIn("", crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]), crd.Spec.Names.Kind
		telling(t).Expect(got).To(ConsistOf(want[kind]), "fields of the form of a %s", kind)
	}
}

// filledIn returns the paths of the optional objects that contain a field with a default.
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

// hasDefaults reports whether a field of the object has a default. The form omits empty strings.
func hasDefaults(object apiextensionsv1.JSONSchemaProps) bool {
	for _, field := range object.Properties {
		if field.Default != nil && string(field.Default.Raw) != `""` || hasDefaults(field) {
			return true
		}
	}
	return false
}
