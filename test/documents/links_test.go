package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// linkBase matches the link prefix that docs/install.md replaces.
var linkBase = regexp.MustCompile(`sed 's,(\S+?),`)

func TestW23RunbookLinksBeginAsThePageSays(t *testing.T) {
	g := NewWithT(t)
	base := linkBase.FindStringSubmatch(read(t, "docs/install.md"))
	g.Expect(base).NotTo(BeNil())
	links := 0
	for _, file := range []string{"config/prometheus/rules.yaml", "config/prometheus/conditions.yaml"} {
		for _, link := range regexp.MustCompile(`runbook_url: (\S+)`).FindAllStringSubmatch(read(t, file), -1) {
			page, cut := strings.CutPrefix(link[1], base[1])
			g.Expect(cut).To(BeTrue(), link[1])
			g.Expect(filepath.Join(root, page)).To(BeARegularFile())
			links++
		}
	}
	g.Expect(links).To(BeNumerically(">=", 20))
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	idTag   = regexp.MustCompile(`<a id="([^"]+)">`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks verifies that each relative link of a page leads to a file, and to a heading of it.
func TestLinks(t *testing.T) {
	g := NewWithT(t)
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		g.Expect(err).NotTo(HaveOccurred())
		pages = append(pages, found...)
	}
	g.Expect(len(pages)).To(BeNumerically(">", 50))
	for _, page := range pages {
		text, err := os.ReadFile(page)
		g.Expect(err).NotTo(HaveOccurred())
		for _, match := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			file, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(file, ":") {
				continue // another site
			}
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			content, err := os.ReadFile(target)
			if info, statErr := os.Stat(target); statErr == nil && info.IsDir() && anchor == "" {
				continue
			}
			if err != nil {
				t.Errorf("%s: %s: no such file", page, match[1])
			} else if anchor != "" && !slices.Contains(anchors(string(content)), anchor) {
				t.Errorf("%s: %s: no such heading", page, match[1])
			}
		}
	}
}

// anchors returns the anchors of the headings of a page, as GitHub makes them.
func anchors(text string) []string {
	var all []string
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		plain := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(match[1], "$1")
		slug := strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(plain), ""), " ", "-")
		all = append(all, slug)
	}
	for _, match := range idTag.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}
