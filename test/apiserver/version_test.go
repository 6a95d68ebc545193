package apiserver

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// needs finds what a suite says that an older API server lacks.
var needs = regexp.MustCompile(`\.Needs\("([0-9.]+)", "([^"]+)"\)`)

// What is not tried on an older Kubernetes is not hidden.
func TestThePageSaysWhatIsNotTried(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "kubernetes-versions.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(root, "controllers"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, found := range needs.FindAllStringSubmatch(string(code), -1) {
			if row := "| " + found[2] + " | " + found[1] + " |"; !strings.Contains(string(page), row) {
				t.Errorf("%s is left out before Kubernetes %s; docs/kubernetes-versions.md has no row %q", path, found[1], row)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
