package scorecard

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/cluster/clustertest"
)

// builtIn runs a built-in test as a program on this machine. It expects the bundle at /bundle, so it
// runs with folder as its root directory.
func builtIn(t *testing.T, folder, name string) (status v1alpha3.TestStatus) {
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
	g := NewWithT(t)
	g.Expect(command.Run()).To(Succeed(), "%s: %s", name, &words)
	g.Expect(json.Unmarshal(out.Bytes(), &status)).To(Succeed(), "%s: %s", name, &out)
	return status
}

// bundleRoot returns a folder with the tests' program and a copy of the bundle.
func bundleRoot(t *testing.T) string {
	t.Helper()
	g, folder := NewWithT(t), t.TempDir()
	sdk, err := programs(t.Context())
	g.Expect(err).To(Succeed())
	program, err := os.ReadFile(filepath.Join(sdk, "scorecard-test"))
	g.Expect(err).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "scorecard-test"), program, 0o755)).To(Succeed())
	g.Expect(os.Mkdir(filepath.Join(folder, "tmp"), 0o777)).To(Succeed())
	g.Expect(os.CopyFS(filepath.Join(folder, "bundle"), os.DirFS(filepath.Join(clustertest.Root, "bundle")))).To(Succeed())
	return folder
}

const csvFile = "manifests/stateful-operator.clusterserviceversion.yaml"

// edit changes the objects in files.
func edit(g Gomega, pattern string, change func(object map[string]any)) {
	files, err := filepath.Glob(pattern)
	g.Expect(err).To(Succeed())
	g.Expect(files).NotTo(BeEmpty(), pattern)
	for _, file := range files {
		text, err := os.ReadFile(file)
		g.Expect(err).To(Succeed())
		var object map[string]any
		g.Expect(yaml.Unmarshal(text, &object)).To(Succeed())
		change(object)
		text, err = yaml.Marshal(object)
		g.Expect(err).To(Succeed())
		g.Expect(os.WriteFile(file, text, 0o644)).To(Succeed())
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

// withoutExamples sets examples that cannot be decoded. An example without a spec would only cause a
// suggestion, which TestBuiltInTestsPass also rejects.
func withoutExamples(csv map[string]any) {
	csv["metadata"].(map[string]any)["annotations"].(map[string]any)["alm-examples"] = "[{"
}

// withoutSchemas removes the properties of a CRD.
func withoutSchemas(object map[string]any) {
	if object["kind"] != "CustomResourceDefinition" {
		return
	}
	for _, version := range object["spec"].(map[string]any)["versions"].([]any) {
		version.(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}
	}
}

// builtInTests are the six built-in tests, each with a change that breaks a bundle for it.
var builtInTests = map[string]struct {
	files  string
	change func(object map[string]any)
}{
	"basic-check-spec":         {csvFile, withoutExamples},
	"olm-crds-have-resources":  {csvFile, without("resources")},
	"olm-spec-descriptors":     {csvFile, without("specDescriptors")},
	"olm-status-descriptors":   {csvFile, without("statusDescriptors")},
	"olm-bundle-validation":    {csvFile, without("kind")},
	"olm-crds-have-validation": {"manifests/*.yaml", withoutSchemas},
}

// TestBuiltInTestsPass needs no cluster.
func TestBuiltInTestsPass(t *testing.T) {
	folder := bundleRoot(t)
	for name := range builtInTests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(builtIn(t, folder, name).Results).To(HaveExactElements(
				And(HaveField("State", v1alpha3.PassState), HaveField("Errors", BeEmpty()), HaveField("Suggestions", BeEmpty()))))
		})
	}
}

// TestBuiltInTestsFail breaks the bundle for each test.
func TestBuiltInTestsFail(t *testing.T) {
	for name, broken := range builtInTests {
		t.Run(name, func(t *testing.T) {
			g, folder := NewWithT(t), bundleRoot(t)
			edit(g, filepath.Join(folder, "bundle", broken.files), broken.change)
			g.Expect(builtIn(t, folder, name).Results).To(And(Not(BeEmpty()), HaveEach(HaveField("State", Not(Equal(v1alpha3.PassState))))),
				"a broken bundle passed")
		})
	}
}

// TestBuiltInVersion verifies that the tool, the local image and the bundle use the same version.
func TestBuiltInVersion(t *testing.T) {
	_, version, _ := strings.Cut(BuiltIn, ":")
	for file, want := range map[string]string{
		"tools/operator-sdk/go.mod":           "github.com/operator-framework/operator-sdk " + version,
		"config/scorecard/patches/basic.yaml": BuiltIn,
		"config/scorecard/patches/olm.yaml":   BuiltIn,
	} {
		text, err := os.ReadFile(filepath.Join(clustertest.Root, file))
		NewWithT(t).Expect(string(text), err).To(ContainSubstring(want), file)
	}
}
