// Package monitoring tests the alerts of config with Prometheus' own code, and the scrape configuration
// with the installed objects.
package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/alerts"
	"github.com/stateful-operator/stateful-operator/test/cluster"
)

const config = "../../config"

// ruleFiles returns all rule files, by name.
func ruleFiles(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	files, err := alerts.Files(config)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// alertsByName returns the alerts of all files.
func alertsByName(t *testing.T) map[string]alerts.Alert {
	t.Helper()
	all, err := alerts.All(config)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]alerts.Alert{}
	for _, a := range all {
		if _, twice := byName[a.Alert]; twice || a.Alert == "" {
			t.Fatalf("rule %q is a duplicate, or not an alert", a.Alert)
		}
		byName[a.Alert] = a
	}
	return byName
}

func TestEachAlertIsTried(t *testing.T) {
	g := NewWithT(t)
	known := alertsByName(t)
	tried := map[string]bool{}
	for _, s := range situations {
		g.Expect(known).To(HaveKey(s.alert), "no such alert")
		g.Expect(s.fault).NotTo(BeEmpty(), s.alert)
		g.Expect(s.rest).NotTo(BeEmpty(), s.alert)
		tried[s.alert] = true
		g.Expect(len(s.flap) > 0).To(Equal(s.patience > 0), "%s: an alert without a delay has no short fault, and others have one", s.alert)
	}
	for name := range known {
		g.Expect(tried).To(HaveKey(name), "an alert of config/prometheus is not in situations_test.go")
	}
}

// TestPrometheusRules checks with Prometheus' own code which alerts fire, and their annotations.
func TestPrometheusRules(t *testing.T) {
	folder := t.TempDir()
	var names []string
	for name, file := range ruleFiles(t) {
		writeYAML(t, filepath.Join(folder, name), file)
		names = append(names, name)
	}
	known := alertsByName(t)
	args := []string{"test", "rules"}
	for _, s := range situations {
		file := filepath.Join(folder, s.alert+".test.yaml")
		writeYAML(t, file, s.tests(names, known[s.alert]))
		args = append(args, file)
	}
	out, err := exec.CommandContext(t.Context(), program(t, "promtool"), args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	for _, s := range situations {
		if !strings.Contains(string(out), s.alert+".test.yaml\n  SUCCESS") {
			t.Errorf("%s was not tested", s.alert)
		}
	}
}

// program returns the path of a Prometheus binary.
func program(t *testing.T, name string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	folders, err := cluster.Build(ctx, os.Stderr, cluster.Prometheus)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folders[cluster.Prometheus], name)
}

func writeYAML(t *testing.T, file string, content any) {
	t.Helper()
	text, err := yaml.Marshal(content)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ruleTests is a test file of promtool.
type ruleTests struct {
	Files    []string   `json:"rule_files"`
	Interval string     `json:"evaluation_interval"`
	Tests    []ruleTest `json:"tests"`
}

type ruleTest struct {
	Name     string      `json:"name"`
	Interval string      `json:"interval"`
	Series   []input     `json:"input_series"`
	Alerts   []alertTest `json:"alert_rule_test"`
}

type input struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

type alertTest struct {
	At     string   `json:"eval_time"`
	Alert  string   `json:"alertname"`
	Expect []expect `json:"exp_alerts"`
}

type expect struct {
	Labels      map[string]string `json:"exp_labels"`
	Annotations map[string]string `json:"exp_annotations"`
}

// tests returns the tests of a situation. The alert must fire after its delay and not before, with the
// expected annotations. It must fire neither at rest nor for a flapping fault.
func (s situation) tests(files []string, r alerts.Alert) ruleTests {
	patience := s.delay + s.patience
	all := ruleTests{Files: files, Interval: "1m"}
	add := func(name string, series map[string]string, expected ...alertTest) {
		all.Tests = append(all.Tests, ruleTest{Name: s.alert + " " + name, Interval: "1m", Series: inputs(series), Alerts: expected})
	}
	at := func(when time.Duration, expected ...expect) alertTest {
		return alertTest{At: when.String(), Alert: s.alert, Expect: expected}
	}
	add("fires", s.fault, at(patience, s.expected(r)))
	if s.patience > 0 {
		add("waits for the delay", s.fault, at(patience-time.Minute))
	}
	quiet := map[string]map[string]string{"at rest": s.rest, "flaps": s.flap}
	for name, series := range s.quiet {
		quiet[name] = series
	}
	for name, series := range quiet {
		if series == nil {
			continue
		}
		var expected []alertTest
		for when := time.Duration(0); when <= 3*patience+time.Hour; when += time.Minute {
			expected = append(expected, at(when))
		}
		add(name, series, expected...)
	}
	for name, series := range s.loud {
		add(name, series, at(patience, s.expected(r)))
	}
	return all
}

func inputs(series map[string]string) []input {
	var all []input
	for name, values := range series {
		all = append(all, input{Series: name, Values: values})
	}
	return all
}

// expected returns the alert with its labels and annotations. A placeholder without a label stays, and
// then differs from Prometheus' result.
func (s situation) expected(r alerts.Alert) expect {
	labels := map[string]string{"severity": r.Labels["severity"]}
	var words []string
	for name, value := range s.labels {
		labels[name] = value
		words = append(words, fmt.Sprintf("{{ $labels.%s }}", name), value)
	}
	words = append(words, "{{ $value }}", s.value)
	annotations := map[string]string{}
	for name, text := range r.Annotations {
		annotations[name] = strings.NewReplacer(words...).Replace(text)
	}
	return expect{Labels: labels, Annotations: annotations}
}
