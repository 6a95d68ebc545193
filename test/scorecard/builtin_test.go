package scorecard

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"sigs.k8s.io/yaml"
)

// root is the project's folder.
const root = "../.."

const csvFile = "manifests/stateful-operator.clusterserviceversion.yaml"

// builtIn runs a built-in test as a program on this machine. It looks for the
// bundle at /bundle, so that folder has to be one of its own root.
func builtIn(t *testing.T, folder, name string) v1alpha3.TestStatus {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/scorecard-test", name)
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: folder}
	if uid := os.Geteuid(); uid != 0 {
		command.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
	}
	command.Path, command.Dir = "/scorecard-test", "/"
	var out, words bytes.Buffer
	command.Stdout, command.Stderr = &out, &words
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, words.String())
	}
	var status v1alpha3.TestStatus
	if err := json.Unmarshal(out.Bytes(), &status); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out.String())
	}
	return status
}

// bundleRoot is a folder with the tests' program and a copy of the bundle.
func bundleRoot(t *testing.T) string {
	t.Helper()
	sdk, err := programs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	program, err := os.ReadFile(filepath.Join(sdk, "scorecard-test"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "scorecard-test"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	copyBundle(t, filepath.Join(folder, "bundle"))
	return folder
}

func copyBundle(t *testing.T, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(filepath.Join(root, "bundle"))); err != nil {
		t.Fatal(err)
	}
}

// edit changes the ClusterServiceVersion of a bundle.
func edit(t *testing.T, bundle string, change func(csv map[string]any)) {
	t.Helper()
	path := filepath.Join(bundle, csvFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var csv map[string]any
	if err := yaml.Unmarshal(text, &csv); err != nil {
		t.Fatal(err)
	}
	change(csv)
	if text, err = yaml.Marshal(csv); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// without removes a key of each kind that the bundle owns.
func without(key string) func(map[string]any) {
	return func(csv map[string]any) {
		kinds := csv["spec"].(map[string]any)["customresourcedefinitions"].(map[string]any)["owned"].([]any)
		for _, kind := range kinds {
			delete(kind.(map[string]any), key)
		}
	}
}

// withoutExamples has examples that cannot be read. One without a spec would get
// a suggestion only, which TestBuiltInTestsPass takes for a fault too.
func withoutExamples(csv map[string]any) {
	csv["metadata"].(map[string]any)["annotations"].(map[string]any)["alm-examples"] = "[{"
}

// builtInTests are the six, each with what breaks a bundle for it.
var builtInTests = map[string]func(csv map[string]any){
	"basic-check-spec":         withoutExamples,
	"olm-crds-have-resources":  without("resources"),
	"olm-spec-descriptors":     without("specDescriptors"),
	"olm-status-descriptors":   without("statusDescriptors"),
	"olm-bundle-validation":    without("kind"),
	"olm-crds-have-validation": nil, // below
}

// TestBuiltInTestsPass needs no cluster.
func TestBuiltInTestsPass(t *testing.T) {
	folder := bundleRoot(t)
	for name := range builtInTests {
		t.Run(name, func(t *testing.T) {
			status := builtIn(t, folder, name)
			if len(status.Results) != 1 {
				t.Fatalf("%d results", len(status.Results))
			}
			r := status.Results[0]
			if r.State != v1alpha3.PassState || len(r.Errors) > 0 || len(r.Suggestions) > 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestBuiltInTestsFail breaks the bundle for each of them.
func TestBuiltInTestsFail(t *testing.T) {
	for name, change := range builtInTests {
		t.Run(name, func(t *testing.T) {
			folder := bundleRoot(t)
			bundle := filepath.Join(folder, "bundle")
			if change != nil {
				edit(t, bundle, change)
			} else {
				removeSchemas(t, bundle)
			}
			status := builtIn(t, folder, name)
			passes := func(r v1alpha3.TestResult) bool { return r.State == v1alpha3.PassState }
			if len(status.Results) == 0 || slices.ContainsFunc(status.Results, passes) {
				t.Errorf("the bundle is broken, and it passed: %+v", status)
			}
		})
	}
}

// removeSchemas takes the properties off the CRDs.
func removeSchemas(t *testing.T, bundle string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(bundle, "manifests", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var crd map[string]any
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		if crd["kind"] != "CustomResourceDefinition" {
			continue
		}
		for _, version := range crd["spec"].(map[string]any)["versions"].([]any) {
			version.(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}
		}
		if text, err = yaml.Marshal(crd); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBuiltInVersion keeps one version: of the tool, of the image that is written
// here, and of the one that the bundle names.
func TestBuiltInVersion(t *testing.T) {
	_, version, _ := strings.Cut(BuiltIn, ":")
	for _, file := range []string{"tools/operator-sdk/go.mod", "config/scorecard/patches/basic.yaml", "config/scorecard/patches/olm.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		want := BuiltIn
		if strings.HasSuffix(file, "go.mod") {
			want = "github.com/operator-framework/operator-sdk " + version
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s has no %s", file, want)
		}
	}
}
