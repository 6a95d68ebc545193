package bundle_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/bundle"
)

const folder = "../../bundle"

// read gives the bundle as it is in the tree; `make check-generated` says that it is
// what `make bundle` writes.
func read(t *testing.T) *manifests.Bundle {
	t.Helper()
	read, err := once()
	if err != nil {
		t.Fatal(err)
	}
	annotations, err := bundle.Annotations(folder)
	if err != nil {
		t.Fatal(err)
	}
	read.Package = annotations["operators.operatorframework.io.bundle.package.v1"]
	read.Channels = strings.Split(annotations["operators.operatorframework.io.bundle.channels.v1"], ",")
	read.DefaultChannel = annotations["operators.operatorframework.io.bundle.channel.default.v1"]
	return read
}

// once, because a megabyte of YAML takes seconds.
var once = sync.OnceValues(func() (*manifests.Bundle, error) {
	return manifests.GetBundleFromDir(filepath.Join(folder, "manifests"))
})

// parse reads a YAML file of the tree into an object.
func parse(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func TestNoValidatorOfOLMComplains(t *testing.T) {
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", testdata+string(os.PathListSeparator)+os.Getenv("PATH"))
	checked := 0
	for _, result := range validation.AllValidators.Validate(read(t).ObjectsToValidate()...) {
		checked++
		for _, complaint := range slices.Concat(result.Errors, result.Warnings) {
			t.Errorf("%s: %v", result.Name, complaint)
		}
	}
	if checked < len(validation.AllValidators) {
		t.Errorf("%d results of %d validators", checked, len(validation.AllValidators))
	}
}

func TestTheBundleHasTheCRDsOfConfig(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	owned := map[string]bool{}
	for _, crd := range read(t).CSV.Spec.CustomResourceDefinitions.Owned {
		owned[crd.Name] = true
	}
	for _, file := range files {
		var crd, have apiextensionsv1.CustomResourceDefinition
		parse(t, file, &crd)
		parse(t, filepath.Join(folder, "manifests", filepath.Base(file)), &have)
		if !reflect.DeepEqual(have.Spec, crd.Spec) || have.Name != crd.Name || !owned[crd.Name] {
			t.Errorf("%s is not in the bundle as it is in config, or not owned", crd.Name)
		}
	}
}

// mostAnnotations is what the API server takes of all annotations of an object
// together. kubectl apply keeps the whole object in one, as JSON.
const mostAnnotations = 256 << 10

func TestTheCRDsCanBeApplied(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		var crd any
		parse(t, file, &crd)
		object, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		// Some are left for labels and other annotations.
		if room := mostAnnotations - 4<<10; len(object) > room {
			t.Errorf("%s has %d bytes: above %d kubectl apply takes it with --server-side only", file, len(object), room)
		}
	}
}

// examples are the objects that the console offers.
func examples(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(read(t).CSV.Annotations["alm-examples"]), &objects); err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestEachKindHasAnExampleWithStatus(t *testing.T) {
	kinds := map[string]int{}
	for _, object := range examples(t) {
		if object.Object["spec"] == nil || object.Object["status"] == nil {
			t.Errorf("%s %s has no spec, or no status", object.GetKind(), object.GetName())
		}
		kinds[object.GetKind()]++
	}
	for _, owned := range read(t).CSV.Spec.CustomResourceDefinitions.Owned {
		if kinds[owned.Kind] == 0 {
			t.Errorf("there is no example of %s", owned.Kind)
		}
	}
}

func TestExamplesRunAsTheyAre(t *testing.T) {
	kinds := map[string]bool{}
	for _, object := range examples(t) {
		if kinds[object.GetKind()] {
			t.Errorf("the console shows the first example of %s only, and %s is another", object.GetKind(), object.GetName())
		}
		kinds[object.GetKind()] = true
		runsAsItIs(t, object.GetKind()+" "+object.GetName(), object.Object)
	}
}

func TestTheConsolesSamplesRunAsTheyAre(t *testing.T) {
	for _, sample := range documents[unstructured.Unstructured](t, "../../config/openshift/samples.yaml") {
		var object unstructured.Unstructured
		shown, _, _ := unstructured.NestedString(sample.Object, "spec", "yaml")
		if err := yaml.Unmarshal([]byte(shown), &object); err != nil || object.GetKind() == "" {
			t.Fatalf("%q shows no object: %v", sample.GetName(), err)
		}
		runsAsItIs(t, sample.GetName(), object.Object)
	}
}

// runsAsItIs complains of what the console must not offer: its users choose no
// user and no low port, have made no Secret, and find images in registries only.
func runsAsItIs(t *testing.T, name string, object map[string]any) {
	t.Helper()
	each(object, func(key string, value any) {
		port, isPort := value.(int64)
		image, isImage := value.(string)
		registry, _, _ := strings.Cut(image, "/")
		switch {
		case slices.Contains([]string{"runAsUser", "runAsGroup", "fsGroup", "hostPath", "hostPort", "hostNetwork", "privileged",
			"secret", "secretRef", "secretKeyRef", "configMap", "configMapRef", "configMapKeyRef"}, key),
			(key == "containerPort" || key == "port") && isPort && port < 1024,
			key == "image" && isImage && (!strings.Contains(registry, ".") || strings.Contains(image, "library/nginx")): // starts as root
			t.Errorf("%s has %s: %v", name, key, value)
		}
	})
}

// each visits all fields of a value.
func each(value any, visit func(key string, value any)) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			visit(key, inner)
			each(inner, visit)
		}
	case []any:
		for _, inner := range v {
			each(inner, visit)
		}
	}
}

func TestEveryImageIsRelated(t *testing.T) {
	csv := read(t).CSV
	var related []string
	for _, image := range csv.Spec.RelatedImages {
		related = append(related, image.Image)
	}
	used := []string{csv.Annotations["containerImage"]}
	for _, deployment := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		spec := deployment.Spec.Template.Spec
		for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
			used = append(used, container.Image)
		}
	}
	for _, image := range used {
		if !slices.Contains(related, image) {
			t.Errorf("image %s is not one of relatedImages %v", image, related)
		}
	}
}

func TestTheCSVSaysWhatItIs(t *testing.T) {
	csv := read(t).CSV
	if got := len(csv.Spec.InstallModes); got != 4 || slices.ContainsFunc(csv.Spec.InstallModes, func(m v1alpha1.InstallMode) bool { return !m.Supported }) {
		t.Errorf("install modes %v, want all four", csv.Spec.InstallModes)
	}
	features := 0
	for key, value := range csv.Annotations {
		if strings.HasPrefix(key, "features.operators.openshift.io/") && (value == "true" || value == "false") {
			features++
		}
	}
	if features != 10 {
		t.Errorf("%d features are true or false, want 10", features)
	}
	byTag := slices.ContainsFunc(csv.Spec.RelatedImages, func(i v1alpha1.RelatedImage) bool { return !strings.Contains(i.Image, "@sha256:") })
	if says := csv.Annotations["features.operators.openshift.io/disconnected"]; says != strconv.FormatBool(!byTag) {
		t.Errorf("disconnected is %s, and images that no mirror can stand for are named: %t", says, byTag)
	}
	if csv.Spec.Replaces == "" && !first || !strings.HasSuffix(csv.Annotations["olm.skipRange"], "<"+csv.Spec.Version.String()) {
		t.Errorf("replaces %q, skips %q: nothing is upgraded to %s", csv.Spec.Replaces, csv.Annotations["olm.skipRange"], csv.Spec.Version)
	}
	icon, err := os.ReadFile("../../config/manifests/icon.svg")
	if err != nil || len(csv.Spec.Icon) != 1 || csv.Spec.Icon[0].Data != base64.StdEncoding.EncodeToString(icon) {
		t.Errorf("the icon is not config/manifests/icon.svg: %v", err)
	}
}

// mostBytes is what a ConfigMap can hold, in which OLM unpacks a bundle.
const mostBytes = 1 << 20

func TestTheBundleFitsAConfigMap(t *testing.T) {
	var size counter
	packed := gzip.NewWriter(&size)
	archive := tar.NewWriter(packed)
	if err := archive.AddFS(os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if size > mostBytes*3/4 { // it is kept as base64
		t.Errorf("the bundle has %d bytes compressed", size)
	}
}

type counter int

func (c *counter) Write(bytes []byte) (int, error) {
	*c += counter(len(bytes))
	return len(bytes), nil
}
