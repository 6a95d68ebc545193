package alerts_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/cluster"
)

var given = flag.String("prometheus", "", "`program` of another version of Prometheus, instead of the one that tools/prometheus pins")

const (
	// interval is the scrape interval and the evaluation interval.
	interval = 5 * time.Second
	// sooner is the factor by which alerts fire earlier than in config/prometheus: 10 minutes become 5
	// s, and 12 hours become 6 minutes.
	sooner = 120
)

// prometheus is a Prometheus that runs on this machine.
type prometheus struct{ url string }

// startPrometheus starts a Prometheus on the loopback address of this machine. It discovers and scrapes
// the targets of the ServiceMonitors in the cluster, and loads the cluster's alerts. It ends with the
// cluster.
func (s site) startPrometheus() prometheus {
	s.t.Helper()
	ctx, folder := s.t.Context(), filepath.Join(s.local.Dir(), "prometheus")
	s.Expect(os.MkdirAll(folder, 0o700)).To(Succeed())
	s.kubectl("create namespace " + shop + " --dry-run=client -o yaml | kubectl apply -f -")
	s.kubectl("apply -f test/alerts/testdata/prometheus.yaml")
	s.writeRules(filepath.Join(folder, "rules.yaml"))
	s.write(filepath.Join(folder, "prometheus.yaml"), object{
		"global":         object{"scrape_interval": interval.String(), "evaluation_interval": interval.String()},
		"rule_files":     []string{filepath.Join(folder, "rules.yaml")},
		"scrape_configs": []object{s.scrapeConfig(folder)},
	})
	program := *given
	if program == "" {
		folders, err := cluster.Build(ctx, os.Stdout, cluster.Prometheus)
		s.Expect(err).To(Succeed())
		program = filepath.Join(folders[cluster.Prometheus], "prometheus")
	}
	ports, err := cluster.FreePorts("127.0.0.1", 1)
	s.Expect(err).To(Succeed())
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	s.Expect(s.local.Run(ctx, "prometheus", nil, program, "--config.file="+filepath.Join(folder, "prometheus.yaml"),
		"--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+address)).To(Succeed())
	p := prometheus{"http://" + address}
	s.until(func(g Gomega) {
		if !s.local.Alive("prometheus") {
			StopTrying("it has exited; see " + filepath.Join(s.local.Dir(), "logs", "prometheus.log")).Now()
		}
		err := p.ask(ctx, "status/buildinfo", nil, nil)
		g.Expect(err).To(Succeed())
	}, "waited for Prometheus")
	return p
}

// scrapeConfig returns the scrape configuration for the ServiceMonitor in the cluster.
func (s site) scrapeConfig(folder string) object {
	s.t.Helper()
	m, err := readMonitor([]byte(s.kubectl("get servicemonitor stateful-operator -n " + operators + " -o jsonpath='{.spec}'")))
	s.Expect(err).To(Succeed())
	kubeconfig := filepath.Join(folder, "kubeconfig")
	config, err := clientcmd.LoadFromFile(s.local.Kubeconfig())
	s.Expect(err).To(Succeed())
	token := s.kubectl("create token prometheus -n " + shop + " --duration=24h")
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{Token: token}
	}
	s.Expect(clientcmd.WriteToFile(*config, kubeconfig)).To(Succeed())
	return m.scrapes(operators, kubeconfig, func(key keyOf) string {
		var content []byte
		s.until(func(g Gomega) {
			var secret struct{ Data map[string][]byte }
			g.Expect(json.Unmarshal([]byte(s.kubectl("get secret "+key.Name+" -n "+operators+" -o json")), &secret)).To(Succeed())
			content = secret.Data[key.Key]
			g.Expect(content).NotTo(BeEmpty(), "key %s of Secret %s", key.Key, key.Name)
		})
		file := filepath.Join(folder, key.Name+"."+key.Key)
		s.Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
		return file
	})
}

// writeRules writes the groups of all PrometheusRules in the cluster, with shorter delays.
func (s site) writeRules(file string) {
	s.t.Helper()
	var rules struct {
		Items []struct {
			Spec struct {
				Groups []struct {
					Name  string   `json:"name"`
					Rules []object `json:"rules"`
				} `json:"groups"`
			} `json:"spec"`
		} `json:"items"`
	}
	s.Expect(json.Unmarshal([]byte(s.kubectl("get prometheusrules -n "+operators+" -o json")), &rules)).To(Succeed())
	var groups []object
	for _, item := range rules.Items {
		for _, group := range item.Spec.Groups {
			for _, rule := range group.Rules {
				if patience, found := rule["for"].(string); found {
					long, err := time.ParseDuration(patience)
					s.Expect(err).To(Succeed(), "for of %v", rule["alert"])
					rule["for"] = fmt.Sprintf("%dms", (long / sooner).Milliseconds())
				}
			}
			groups = append(groups, object{"name": group.Name, "rules": group.Rules})
		}
	}
	s.Expect(groups).NotTo(BeEmpty(), "PrometheusRules in the cluster")
	s.write(file, object{"groups": groups})
}

func (s site) write(file string, content object) {
	s.t.Helper()
	text, err := yaml.Marshal(content)
	s.Expect(err).To(Succeed())
	s.Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
}

// ask sends a request to Prometheus' API and decodes the data of the response.
func (p prometheus) ask(ctx context.Context, path string, values url.Values, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/"+path+"?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Warnings      []string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s of Prometheus returns %s: %w", path, response.Status, err)
	}
	if answer.Status != "success" || len(answer.Warnings) > 0 {
		return errors.New(answer.Error + fmt.Sprint(answer.Warnings))
	}
	return nil
}

// alert is an alert in Prometheus' API.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

// firing returns the firing alerts.
func (p prometheus) firing(ctx context.Context) ([]alert, error) {
	var all struct{ Alerts []alert }
	if err := p.ask(ctx, "alerts", nil, &all); err != nil {
		return nil, err
	}
	var firing []alert
	for _, a := range all.Alerts {
		if a.State == "firing" {
			firing = append(firing, a)
		}
	}
	return firing, nil
}

// target is a scrape target of Prometheus.
type target struct {
	Labels            map[string]string
	Health, LastError string
}

func (p prometheus) targets(ctx context.Context) ([]target, error) {
	var all struct{ ActiveTargets []target }
	err := p.ask(ctx, "targets", url.Values{"state": {"active"}}, &all)
	return all.ActiveTargets, err
}

// scraped expects that each operator pod that serves metrics is a healthy target.
func (s site) scraped() {
	s.until(func(g Gomega) {
		targets, err := s.prometheus.targets(s.t.Context())
		g.Expect(err).To(Succeed())
		pods := strings.Fields(s.kubectl("get pods -n " + operators + " -l metrics=served -o jsonpath='{.items[*].metadata.name}'"))
		var found []string
		for _, one := range targets {
			g.Expect(one.Health).To(Equal("up"), "%s: %s", one.Labels["pod"], one.LastError)
			found = append(found, one.Labels["pod"])
		}
		g.Expect(found).To(ConsistOf(pods))
		g.Expect(pods).NotTo(BeEmpty())
	}, "waited for the targets")
}

// seen is a series of a query result with its values.
type seen struct {
	Labels map[string]string
	Values []float64
}

// result is a series in Prometheus' format: with one current value, or several values.
type result struct {
	Metric map[string]string
	Value  sample
	Values []sample
}

// sample is a timestamp and a number encoded as a string.
type sample [2]any

func (r result) seen() (seen, error) {
	s := seen{Labels: r.Metric}
	for _, one := range append(r.Values, r.Value) {
		text, isText := one[1].(string)
		if !isText {
			continue // no value
		}
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return s, err
		}
		if !math.IsNaN(number) { // a panel shows a gap for NaN
			s.Values = append(s.Values, number)
		}
	}
	return s, nil
}

// query returns the current values of an expression.
func (p prometheus) query(ctx context.Context, expr string) ([]seen, error) {
	return p.series(ctx, "query", url.Values{"query": {expr}})
}

// queryRange returns the values of an expression since a time.
func (p prometheus) queryRange(ctx context.Context, expr string, since time.Time) ([]seen, error) {
	return p.series(ctx, "query_range", url.Values{"query": {expr}, "step": {interval.String()},
		"start": {since.Format(time.RFC3339)}, "end": {time.Now().Format(time.RFC3339)}})
}

func (p prometheus) series(ctx context.Context, path string, values url.Values) ([]seen, error) {
	var answer struct{ Result []result }
	if err := p.ask(ctx, path, values, &answer); err != nil {
		return nil, err
	}
	var all []seen
	for _, r := range answer.Result {
		s, err := r.seen()
		if err != nil {
			return nil, err
		}
		if len(s.Values) > 0 {
			all = append(all, s)
		}
	}
	return all, nil
}

// values returns the values of a label of a metric.
func (p prometheus) values(ctx context.Context, metric, label string) ([]string, error) {
	var all []string
	err := p.ask(ctx, "label/"+url.PathEscape(label)+"/values", url.Values{"match[]": {metric}}, &all)
	return all, err
}
