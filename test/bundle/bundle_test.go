package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/bundle"
)

const folder = "../../bundle"

// telling returns a Gomega that reports every failure: the test continues after one.
func telling(t *testing.T) Gomega {
	g := NewWithT(t)
	g.Fail = func(message string, _ ...int) {
		t.Helper()
		t.Error("\n" + message)
	}
	return g
}

// read returns the bundle in the tree. `make check-generated` verifies that it equals the output of
// `make bundle`.
func read(t *testing.T) *manifests.Bundle {
	t.Helper()
	g := NewWithT(t)
	read, err := once()
	g.Expect(err).To(Succeed())
	annotations, err := bundle.Annotations(folder)
	g.Expect(err).To(Succeed())
	read.Package = annotations["operators.operatorframework.io.bundle.package.v1"]
	read.Channels = strings.Split(annotations["operators.operatorframework.io.bundle.channels.v1"], ",")
	read.DefaultChannel = annotations["operators.operatorframework.io.bundle.channel.default.v1"]
	return read
}

// once caches the bundle, because parsing a megabyte of YAML takes seconds.
var once = sync.OnceValues(func() (*manifests.Bundle, error) {
	return manifests.GetBundleFromDir(filepath.Join(folder, "manifests"))
})

// parse decodes a YAML file of the tree into an object.
func parse(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	NewWithT(t).Expect(err).To(Succeed())
	NewWithT(t).Expect(yaml.Unmarshal(text, into)).To(Succeed(), file)
}

func TestNoValidatorOfOLMComplains(t *testing.T) {
	g := telling(t)
	testdata, err := filepath.Abs("testdata")
	g.Expect(err).To(Succeed())
	t.Setenv("PATH", testdata+string(os.PathListSeparator)+os.Getenv("PATH"))
	results := validation.AllValidators.Validate(read(t).ObjectsToValidate()...)
	for _, result := range results {
		for _, complaint := range slices.Concat(result.Errors, result.Warnings) {
			t.Errorf("%s: %v", result.Name, complaint)
		}
	}
	g.Expect(len(results)).To(BeNumerically(">=", len(validation.AllValidators)), "results of all validators")
}

// crds returns the generated CRD files.
func crds(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	NewWithT(t).Expect(files, err).To(HaveLen(4))
	return files
}

func TestTheBundleHasTheCRDsOfConfig(t *testing.T) {
	g, owned := telling(t), map[string]bool{}
	for _, crd := range read(t).CSV.Spec.CustomResourceDefinitions.Owned {
		owned[crd.Name] = true
	}
	for _, file := range crds(t) {
		var crd, have apiextensionsv1.CustomResourceDefinition
		parse(t, file, &crd)
		parse(t, filepath.Join(folder, "manifests", filepath.Base(file)), &have)
		same := reflect.DeepEqual(have.Spec, crd.Spec) && have.Name == crd.Name && owned[crd.Name]
		g.Expect(same).To(BeTrueBecause("%s in the bundle differs from config, or is not owned", crd.Name))
	}
}

// examples returns the example objects of the OpenShift console.
func examples(t *testing.T) (objects []unstructured.Unstructured) {
	t.Helper()
	NewWithT(t).Expect(yaml.Unmarshal([]byte(read(t).CSV.Annotations["alm-examples"]), &objects)).To(Succeed())
	return objects
}

func TestEachKindHasAnExampleWithStatus(t *testing.T) {
	g, kinds := telling(t), map[string]bool{}
	for _, object := range examples(t) {
		g.Expect(object.Object).To(And(HaveKeyWithValue("spec", Not(BeNil())), HaveKeyWithValue("status", Not(BeNil()))), object.GetName())
		kinds[object.GetKind()] = true
	}
	for _, owned := range read(t).CSV.Spec.CustomResourceDefinitions.Owned {
		g.Expect(kinds).To(HaveKey(owned.Kind), "kinds with an example")
	}
}

func TestExamplesRunAsTheyAre(t *testing.T) {
	g, kinds := telling(t), map[string]bool{}
	for _, object := range examples(t) {
		g.Expect(kinds).NotTo(HaveKey(object.GetKind()), "the console shows only the first example of a kind, and %s is another one", object.GetName())
		kinds[object.GetKind()] = true
		runsAsItIs(t, object.GetKind()+" "+object.GetName(), object.Object)
	}
}

func TestTheConsolesSamplesRunAsTheyAre(t *testing.T) {
	for _, sample := range documents[unstructured.Unstructured](t, "../../config/openshift/samples.yaml") {
		var object unstructured.Unstructured
		shown, _, _ := unstructured.NestedString(sample.Object, "spec", "yaml")
		NewWithT(t).Expect(yaml.Unmarshal([]byte(shown), &object)).To(Succeed(), sample.GetName())
		NewWithT(t).Expect(object.GetKind()).NotTo(BeEmpty(), "%q shows no object", sample.GetName())
		runsAsItIs(t, sample.GetName(), object.Object)
	}
}

// runsAsItIs fails the test for fields that the console must not offer. Its users cannot choose a user
// or a low port, have no Secrets yet, and can pull images only from registries.
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
	NewWithT(t).Expect(used).To(HaveEach(BeElementOf(related)))
}

func TestTheCSVSaysWhatItIs(t *testing.T) {
	g, csv := telling(t), read(t).CSV
	for _, mode := range csv.Spec.InstallModes {
		// Everyone who may edit the operator's own namespace has the rights of its account.
		g.Expect(mode.Supported).To(Equal(mode.Type != v1alpha1.InstallModeTypeOwnNamespace), string(mode.Type))
	}
	g.Expect(csv.Spec.InstallModes).To(HaveLen(4))
	features := 0
	for key, value := range csv.Annotations {
		if strings.HasPrefix(key, "features.operators.openshift.io/") && (value == "true" || value == "false") {
			features++
		}
	}
	g.Expect(features).To(Equal(10), "features with value true or false")
	byTag := slices.ContainsFunc(csv.Spec.RelatedImages, func(i v1alpha1.RelatedImage) bool { return !strings.Contains(i.Image, "@sha256:") })
	g.Expect(csv.Annotations).To(HaveKeyWithValue("features.operators.openshift.io/disconnected", strconv.FormatBool(!byTag)),
		"images without a mirror are listed: %t", byTag)
	g.Expect(csv.Spec.Replaces).To(Equal(replaced), "the replaced version is the last released one")
	g.Expect(csv.Annotations["olm.skipRange"]).To(HaveSuffix("<" + csv.Spec.Version.String()))
	icon, err := os.ReadFile("../../config/manifests/icon.svg")
	g.Expect(err).To(Succeed())
	g.Expect(csv.Spec.Icon).To(HaveExactElements(HaveField("Data", base64.StdEncoding.EncodeToString(icon))), "config/manifests/icon.svg")
}

// maxBytes is the max size of a ConfigMap. OLM unpacks a bundle into one.
const maxBytes = 1 << 20

func TestTheBundleFitsAConfigMap(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	archive := tar.NewWriter(packed)
	g.Expect(archive.AddFS(os.DirFS(folder))).To(Succeed())
	g.Expect(archive.Close()).To(Succeed())
	g.Expect(packed.Close()).To(Succeed())
	g.Expect(out.Len()).To(BeNumerically("<=", maxBytes*3/4), "bytes compressed; it is kept as base64")
}
