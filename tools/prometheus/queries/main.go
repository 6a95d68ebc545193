// Command queries reads queries of Prometheus by name, a JSON object on its standard input,
// and writes for each which metrics it asks for, or what is wrong with it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// answer is what is known of a query.
type answer struct {
	Metrics []string `json:"metrics,omitempty"`
	Error   string   `json:"error,omitempty"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "queries:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	var asked map[string]string
	if err := json.NewDecoder(in).Decode(&asked); err != nil {
		return err
	}
	answers := map[string]answer{}
	for name, query := range asked {
		metrics, err := metricsOf(query)
		if err != nil {
			answers[name] = answer{Error: err.Error()}
			continue
		}
		answers[name] = answer{Metrics: metrics}
	}
	return json.NewEncoder(out).Encode(answers)
}

// metricsOf are the names of the metrics that a query asks for, each once.
func metricsOf(query string) ([]string, error) {
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, matchers := range parser.ExtractSelectors(expression) {
		i := slices.IndexFunc(matchers, func(m *labels.Matcher) bool { return m.Name == labels.MetricName })
		if i < 0 || matchers[i].Type != labels.MatchEqual {
			return nil, errors.New("a selector names no metric")
		}
		names = append(names, matchers[i].Value)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
