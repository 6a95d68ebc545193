package documents

import (
	"path/filepath"
	"regexp"
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
