package controllers

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// board is the part of a dashboard that is checked.
type board struct {
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Query string `json:"query"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		Title   string `json:"title"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

// boards returns all dashboards, by file name.
func boards(t *testing.T) map[string]board {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "config", "monitoring", "dashboards", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d dashboards: %v", len(paths), err)
	}
	all := map[string]board{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		var b board
		if err == nil {
			err = json.Unmarshal(text, &b)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[filepath.Base(path)] = b
	}
	return all
}

// ofGrafana replaces Grafana's own variables by typical values.
var ofGrafana = strings.NewReplacer("$__rate_interval", "5m", "$__range", "6h", "$__interval", "5m")

// valuesOf matches a variable's query for the values of a label.
var valuesOf = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// queries returns all queries, by their locations.
func queries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, a := range alertsOn(t) {
		all["alert "+a.Alert] = a.Expr
	}
	for file, b := range boards(t) {
		for _, p := range b.Panels {
			for i, target := range p.Targets {
				all[file+" "+p.Title+" "+string(rune('A'+i))] = ofGrafana.Replace(target.Expr)
			}
		}
		for _, v := range b.Templating.List {
			if found := valuesOf.FindStringSubmatch(v.Query); found != nil {
				all[file+" variable "+v.Name] = found[1]
			}
		}
	}
	return all
}

// notOurs are metrics that Prometheus generates itself.
var notOurs = map[string]bool{"ALERTS": true}

// registered returns the metrics of the operator, by name. It uses their descriptions and not their
// values, because a metric without any count has no values.
func registered(t *testing.T) map[string]bool {
	t.Helper()
	registry, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatal("the registry does not return the names of its metrics")
	}
	found := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(found)
		(&conditionMetrics{}).Describe(found) // registered only while a process leads
		close(found)
	}()
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	names := map[string]bool{}
	for desc := range found {
		names[name.FindStringSubmatch(desc.String())[1]] = true
	}
	return names
}

// Prometheus' own parser parses each query, and each metric in it is a metric of the operator.
func TestPrometheusQueries(t *testing.T) {
	g := NewWithT(t)
	asked := queries(t)
	question, err := json.Marshal(asked)
	g.Expect(err).NotTo(HaveOccurred())
	folders, err := cluster.Build(t.Context(), os.Stderr, cluster.Prometheus)
	g.Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(t.Context(), filepath.Join(folders[cluster.Prometheus], "queries"))
	command.Stdin, command.Stderr = bytes.NewReader(question), os.Stderr
	out, err := command.Output()
	g.Expect(err).NotTo(HaveOccurred())
	var answers map[string]struct {
		Metrics []string `json:"metrics"`
		Error   string   `json:"error"`
	}
	g.Expect(json.Unmarshal(out, &answers)).To(Succeed())
	g.Expect(answers).To(HaveLen(len(asked)))
	known := registered(t)
	for where, answer := range answers {
		if answer.Error != "" {
			t.Errorf("%s: %s\n%s", where, answer.Error, asked[where])
		}
		for _, metric := range answer.Metrics {
			ofHistogram := known[strings.TrimSuffix(metric, "_bucket")]
			if !known[metric] && !ofHistogram && !notOurs[metric] {
				t.Errorf("%s: the operator has no metric %s", where, metric)
			}
		}
	}
}

// Prometheus sees no increase in the first sample of a counter. A counter of rare events therefore
// has a sample before the first event. Otherwise a dashboard would not show the only failover of a
// day.
func TestWhatIsRareIsCountedFromZero(t *testing.T) {
	g := NewWithT(t)
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	var counted []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			counted = append(counted, strings.Join(append([]string{family.GetName()}, labels...), " "))
		}
	}
	for _, rare := range []string{
		"extendedstatefulset_upgrades_total stale", "extendedstatefulset_upgrades_total aborted", "extendedstatefulset_upgrades_total held",
		"replicatedstatefulset_actions_total Promote exec", "replicatedstatefulset_actions_total Seed exec",
		"replicatedstatefulset_commands_unknown_total promote", "replicatedstatefulset_commands_unknown_total sequence",
		"statefulsingleton_actions_total Grant patch", "statefulsingleton_timeouts_total",
	} {
		g.Expect(counted).To(ContainElement(rare))
	}
}
