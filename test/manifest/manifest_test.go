package manifest

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDocumentsAreRead(t *testing.T) {
	const text = "# A comment.\n---\nkind: One\nspec: {size: 3}\n---\n# nothing\n---\n---\nkind: Two\n"
	g, file := NewWithT(t), filepath.Join(t.TempDir(), "two.yaml")
	g.Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	all, err := ReadFile[unstructured.Unstructured](file)
	g.Expect(err).To(Succeed())
	g.Expect(all).To(HaveExactElements(HaveField("GetKind()", "One"), HaveField("GetKind()", "Two")))
	// An integer stays an integer, as in the API server.
	g.Expect(all[0].Object).To(HaveKeyWithValue("spec", HaveKeyWithValue("size", int64(3))))
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	g := NewWithT(t)
	for text, want := range map[string]string{
		"a: 1\n---\na: x\n":    "document 2",
		"a: 1\n---\n\ta: 1\n":  "document 2",
		"- 1\n---\na: [1, 2\n": "document 1",
	} {
		_, err := Read[struct{ A int }]([]byte(text))
		g.Expect(err).To(MatchError(ContainSubstring(want)), text)
	}
	_, err := ReadFile[struct{}](filepath.Join(t.TempDir(), "missing.yaml"))
	g.Expect(err).To(MatchError(os.ErrNotExist))
}
