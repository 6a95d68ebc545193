package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const folder = "../dashboards"

func TestDashboardsAreWrittenAnew(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(len(dashboards)), "a file of a removed dashboard")
	for _, d := range dashboards {
		want, err := d.text()
		g.Expect(err).NotTo(HaveOccurred())
		is, err := os.ReadFile(filepath.Join(folder, d.name+".json"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(is)).To(Equal(string(want)), "%s is outdated: run make manifests", d.name)
	}
}

// place is the position of a panel in Grafana's grid.
type place struct {
	ID      int
	Title   string
	GridPos struct{ X, Y, W, H int }
}

// over reports whether two panels overlap.
func (p place) over(q place) bool {
	a, b := p.GridPos, q.GridPos
	beside := a.X+a.W <= b.X || b.X+b.W <= a.X
	below := a.Y+a.H <= b.Y || b.Y+b.H <= a.Y
	return !beside && !below
}

func TestPanelsFitTheirDashboard(t *testing.T) {
	uids := map[string]bool{}
	for _, d := range dashboards {
		t.Run(d.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(len(d.uid())).To(BeNumerically("<=", 40), "Grafana allows no longer uid")
			g.Expect(uids).NotTo(HaveKey(d.uid()))
			uids[d.uid()] = true
			text, err := d.text()
			g.Expect(err).NotTo(HaveOccurred())
			var model struct{ Panels []place }
			g.Expect(json.Unmarshal(text, &model)).To(Succeed())
			g.Expect(len(model.Panels)).To(BeNumerically("<=", 20), "too many panels")
			for i, p := range model.Panels {
				g.Expect(p.ID).To(Equal(i+1), p.Title)
				g.Expect(p.GridPos.X+p.GridPos.W).To(BeNumerically("<=", columns), p.Title)
				for _, q := range model.Panels[:i] {
					g.Expect(p.over(q)).To(BeFalse(), "%s overlaps %s", p.Title, q.Title)
				}
			}
		})
	}
}

func TestEachPanelSaysHowToReadIt(t *testing.T) {
	for _, d := range dashboards {
		titles := map[string]bool{}
		for _, p := range d.panels {
			g := NewWithT(t)
			where := d.title + ", " + p.title
			g.Expect(titles).NotTo(HaveKey(p.title), where)
			titles[p.title] = true
			g.Expect(p.about).To(HaveSuffix("."), where)
			g.Expect(p.queries).NotTo(BeEmpty(), where)
			for _, q := range p.queries {
				g.Expect(d.kind == "" && strings.Contains(q.expr, "$name")).To(BeFalse(), "%s: nothing can be selected", where)
				// A legend uses only labels that the query keeps.
				for label := range strings.SplitSeq(q.legend, "{{") {
					name, _, is := strings.Cut(label, "}}")
					kept := !strings.Contains(q.expr, "by (") || strings.Contains(q.expr, name)
					g.Expect(!is || kept).To(BeTrue(), "%s: no series has a label %s", where, name)
				}
			}
		}
	}
}

// leavesOut matches a comparison, which drops series for which it is false.
var leavesOut = regexp.MustCompile(` (==|!=|>|>=) (\d|max)`)

func TestNothingIsExplained(t *testing.T) {
	for _, d := range dashboards {
		for _, p := range d.panels {
			mayBeEmpty := p.shape.kind == table.kind
			for _, q := range p.queries {
				mayBeEmpty = mayBeEmpty || leavesOut.MatchString(q.expr)
			}
			if mayBeEmpty && p.none == "" {
				t.Errorf("%s, %s: the text for an empty panel is missing", d.title, p.title)
			}
		}
	}
}
