package documents

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// maxPhrases is the max number of phrases of testdata/words.txt in 100,000 words of comments.
const maxPhrases = 150

// bound matches names of bounds. Their names begin with max or min.
var bound = regexp.MustCompile(`^(most|least|longest|shortest)[A-Z]`)

// phrases returns the expression that matches the phrases of testdata/words.txt.
func phrases(t *testing.T) *regexp.Regexp {
	t.Helper()
	text, err := os.ReadFile("testdata/words.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if phrase, _, ok := strings.Cut(line, "\t"); ok && !strings.HasPrefix(line, "#") {
			all = append(all, phrase)
		}
	}
	return regexp.MustCompile(`(?i)\b(` + strings.Join(all, "|") + `)\b`)
}

// TestComments verifies that comments use the words of Kubernetes' own code.
func TestComments(t *testing.T) {
	phrase := phrases(t)
	var words int
	var found []string
	for name, file := range goFiles(t) {
		for _, group := range file.parsed.Comments {
			text := group.Text()
			words += len(strings.Fields(text))
			for _, match := range phrase.FindAllString(text, -1) {
				found = append(found, fmt.Sprintf("%s:%d: %s", name, file.set.Position(group.Pos()).Line, match))
			}
		}
	}
	if len(found)*100_000 > maxPhrases*words {
		slices.Sort(found)
		t.Errorf("%d phrases in %d words of comments; see testdata/words.txt for replacements:\n%s", len(found), words, strings.Join(found, "\n"))
	}
}

// TestNamesOfBounds verifies that bounds have the names that the field uses.
func TestNamesOfBounds(t *testing.T) {
	for name, file := range goFiles(t) {
		ast.Inspect(file.parsed, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && bound.MatchString(id.Name) && id.Name != "mostLikelyCurrent" { // Kubernetes' name
				t.Errorf("%s:%d: %s: use max or min", name, file.set.Position(id.Pos()).Line, id.Name)
			}
			return true
		})
	}
}

type goFile struct {
	set    *token.FileSet
	parsed *ast.File
}

// goFiles returns the Go files of the tree, generated ones excepted. They are parsed once.
func goFiles(t *testing.T) map[string]goFile {
	t.Helper()
	all, err := parsedTree()
	if err != nil || len(all) < 100 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

var parsedTree = sync.OnceValues(func() (map[string]goFile, error) {
	all := map[string]goFile{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", "build", "testdata", "vendor"}, entry.Name()) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasPrefix(entry.Name(), "zz_") {
			return nil
		}
		file := goFile{set: token.NewFileSet()}
		if file.parsed, err = parser.ParseFile(file.set, path, nil, parser.ParseComments|parser.SkipObjectResolution); err == nil {
			all[path] = file
		}
		return err
	})
	return all, err
})
