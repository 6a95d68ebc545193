package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/manifest"
)

const samples = "../../samples"

func objects(t *testing.T, text []byte) []unstructured.Unstructured {
	t.Helper()
	all, err := manifest.Read[unstructured.Unstructured](text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheConsoleOffersTheSamples(t *testing.T) {
	var out bytes.Buffer
	if err := write(&out, samples); err != nil {
		t.Fatal(err)
	}
	kinds, names := map[string]bool{}, map[string]bool{}
	for i, s := range objects(t, out.Bytes()) {
		var sample consoleSample
		text, err := yaml.Marshal(s.Object)
		if err == nil {
			err = yaml.UnmarshalStrict(text, &sample)
		}
		if err != nil {
			t.Fatal(err)
		}
		if kinds[sample.Spec.TargetResource.Kind] = true; names[sample.Metadata.Name] {
			t.Errorf("two samples are named %s", sample.Metadata.Name)
		}
		names[sample.Metadata.Name] = true
		file, err := os.ReadFile(filepath.Join(samples, offered[i].file))
		if err != nil {
			t.Fatal(err)
		}
		shown := objects(t, []byte(sample.Spec.YAML))
		if len(shown) != 1 || shown[0].GetKind() != sample.Spec.TargetResource.Kind || shown[0].GetAPIVersion() != sample.Spec.TargetResource.APIVersion {
			t.Fatalf("%s: %v", sample.Metadata.Name, shown)
		}
		found := false
		for _, object := range objects(t, file) {
			found = found || reflect.DeepEqual(object, shown[0])
		}
		if !found {
			t.Errorf("%s differs from %s", sample.Metadata.Name, offered[i].file)
		}
	}
	if len(kinds) != 4 || len(names) != len(offered) {
		t.Errorf("%d samples of kinds %v", len(names), kinds)
	}
}

func TestWhatCannotBeOffered(t *testing.T) {
	const one = "# A comment.\napiVersion: enge.me/v1alpha1\nkind: StatefulCluster\n"
	for text, want := range map[string]string{
		"# A comment.\napiVersion: v1\nkind: Service\n": "no object of the operator's kinds",
		strings.TrimPrefix(one, "# A comment.\n"):       "no comment",
		one + "---\n" + one:                             "two objects of the operator's kinds",
	} {
		if _, err := convert("title", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is accepted, or refused for %v; want %q", text, err, want)
		}
	}
}
