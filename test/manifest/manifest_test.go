package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDocumentsAreRead(t *testing.T) {
	const text = "# What this is.\n---\nkind: One\nspec: {size: 3}\n---\n# nothing\n---\n---\nkind: Two\n"
	file := filepath.Join(t.TempDir(), "two.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := ReadFile[unstructured.Unstructured](file)
	if err != nil || len(all) != 2 || all[0].GetKind() != "One" || all[1].GetKind() != "Two" {
		t.Fatal(all, err)
	}
	// A whole number stays one, as the API server has it.
	if size, found, err := unstructured.NestedInt64(all[0].Object, "spec", "size"); size != 3 || !found || err != nil {
		t.Error(size, found, err)
	}
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\n---\na: x\n":    "document 2",
		"a: 1\n---\n\ta: 1\n":  "document 2",
		"- 1\n---\na: [1, 2\n": "document 1",
	} {
		if all, err := Read[struct{ A int }]([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, and the error %v; want %q", text, all, err, want)
		}
	}
	if _, err := ReadFile[struct{}](filepath.Join(t.TempDir(), "missing.yaml")); err == nil {
		t.Error("a file that is missing is read")
	}
}
