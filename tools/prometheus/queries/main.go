// Command queries parses queries of Prometheus. It reads a JSON object of queries by name on
// standard input. For each query it writes the metrics that it uses, or the error.
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

// answer is the result of a query.
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

// metricsOf returns the names of the metrics that a query uses, without duplicates.
func metricsOf(query string) ([]string, error) {
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, matchers := range parser.ExtractSelectors(expression) {
		i := slices.IndexFunc(matchers, func(m *labels.Matcher) bool { return m.Name == labels.MetricName })
		if i < 0 || matchers[i].Type != labels.MatchEqual {
			return nil, errors.New("a selector has no metric name")
		}
		names = append(names, matchers[i].Value)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
