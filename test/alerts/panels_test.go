package alerts_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
)

// dashboard has the fields of a Grafana dashboard that the test checks.
type dashboard struct {
	Title      string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		Title   string
		Targets []struct {
			Expr    string
			Instant bool
		}
	}
}

// dashboards returns all dashboards in the cluster.
func (s site) dashboards() []dashboard {
	s.t.Helper()
	var maps struct {
		Items []struct{ Data map[string]string }
	}
	s.Expect(json.Unmarshal([]byte(s.kubectl("get configmaps -n "+operators+" -l grafana_dashboard=1 -o json")), &maps)).To(Succeed())
	var all []dashboard
	for _, item := range maps.Items {
		for _, text := range item.Data {
			var d dashboard
			s.Expect(json.Unmarshal([]byte(text), &d)).To(Succeed())
			all = append(all, d)
		}
	}
	files, err := filepath.Glob(filepath.Join("config", "monitoring", "dashboards", "*.json"))
	s.Expect(err).To(Succeed())
	s.Expect(all).To(HaveLen(len(files)), "dashboards in the cluster")
	return all
}

// ofGrafana replaces Grafana's variables such that all objects are selected.
var ofGrafana = strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h", "$__interval", "5m", "$namespace", ".*", "$name", ".*")

// valuesOf matches a variable's query for the values of a label.
var valuesOf = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// mayBeZero maps panels whose series may all be 0 during this test to the reason.
var mayBeZero = map[string]string{
	"Queued objects":                "an object would have to be queued during a scrape",
	"Failed reconciles":             "reconciles fail only when the API server fails",
	"Commands with unknown outcome": "a response would have to be lost",
}

// mayBeEmpty maps panels that may have no series to the reason.
var mayBeEmpty = map[string]string{
	"More than one pod may run the program": "it violates the guarantee",
}

// panelsShow expects that each variable has values and that Prometheus answers each query of each
// panel. Each query must return series, and each panel must show a value other than 0.
func (s site) panelsShow() {
	since := time.Now().Add(-time.Hour)
	for _, d := range s.dashboards() {
		for _, v := range d.Templating.List {
			if found := valuesOf.FindStringSubmatch(v.Query); found != nil {
				values, err := s.prometheus.values(s.t.Context(), ofGrafana.Replace(found[1]), found[2])
				s.Expect(err).To(Succeed(), "%s, variable %s", d.Title, v.Name)
				s.Expect(values).NotTo(BeEmpty(), "%s, variable %s", d.Title, v.Name)
			}
		}
		for _, p := range d.Panels {
			empty := mayBeEmpty[p.Title] != ""
			s.Expect(p.Targets).NotTo(BeEmpty(), "%s, %s", d.Title, p.Title)
			var drawn []seen
			for _, target := range p.Targets {
				expr := ofGrafana.Replace(target.Expr)
				var lines []seen
				s.until(func(g Gomega) {
					var err error
					if target.Instant {
						lines, err = s.prometheus.query(s.t.Context(), expr)
					} else {
						lines, err = s.prometheus.queryRange(s.t.Context(), expr, since)
					}
					g.Expect(err).To(Succeed(), "%s, %s: %s", d.Title, p.Title, expr)
					if !empty {
						g.Expect(lines).NotTo(BeEmpty(), "%s, %s: %s", d.Title, p.Title, expr)
					}
				})
				drawn = append(drawn, lines...)
			}
			shows := slices.ContainsFunc(drawn, func(line seen) bool {
				return slices.ContainsFunc(line.Values, func(number float64) bool { return number != 0 })
			})
			if !empty && mayBeZero[p.Title] == "" {
				s.Expect(shows).To(BeTrueBecause("%s, %s has only the value 0: %v", d.Title, p.Title, p.Targets))
			}
			s.t.Logf("%s, %s: %d lines", d.Title, p.Title, len(drawn))
		}
	}
}
