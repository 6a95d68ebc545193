package bundle_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// shownBy matches the name of a test in a row of docs/capabilities.md.
var shownBy = regexp.MustCompile("`((?:SC-|RS-|OLM-|E|S)[0-9][^`]*|Test[A-Za-z]+)`")

// TestCapabilitiesAreShown verifies that the page names existing tests and that the bundle states the
// level that it reaches.
func TestCapabilitiesAreShown(t *testing.T) {
	g := telling(t)
	text, err := os.ReadFile("../../docs/capabilities.md")
	NewWithT(t).Expect(err).To(Succeed())
	tests := testSources(t)
	reached, whole, level := "", true, ""
	for line := range strings.SplitSeq(string(text)+"## ", "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			if whole && level != "" {
				reached = level
			}
			level = title
		}
		cells := strings.Split(line, "|")
		if level == "" || len(cells) != 5 || strings.Contains(cells[1], "---") || cells[1] == " line " {
			continue
		}
		named := shownBy.FindAllStringSubmatch(cells[3], -1)
		yes := strings.TrimSpace(cells[2]) == "yes"
		whole = whole && yes
		g.Expect(yes && len(named) == 0).To(BeFalseBecause("there is no evidence that%s", strings.ToLower(cells[1])))
		for _, name := range named {
			g.Expect(strings.Contains(tests, `"`+name[1]) || strings.Contains(tests, "func "+name[1]+"(")).To(BeTrueBecause("no test %s", name[1]))
		}
	}
	g.Expect(read(t).CSV.Annotations).To(HaveKeyWithValue("capabilities", reached), "the bundle claims the capabilities that the page lists")
}

// testSources returns the text of all tests and promises.
func testSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range []string{"../../controllers", "../../scorecard", "../../test"} {
		err := fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "promises/") {
				return err
			}
			text, err := fs.ReadFile(os.DirFS(folder), path)
			all.Write(text)
			return err
		})
		NewWithT(t).Expect(err).To(Succeed())
	}
	return all.String()
}
