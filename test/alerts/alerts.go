// Package alerts reads the alerting rules of config/prometheus.
package alerts

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// Alert is an alerting rule as written in its file.
type Alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// Files returns all rule files of config/prometheus by file name, in Prometheus' own format: only the
// spec of each PrometheusRule. config is the path of the folder config.
func Files(config string) (map[string]json.RawMessage, error) {
	paths, err := filepath.Glob(filepath.Join(config, "prometheus", "*.yaml"))
	if err != nil {
		return nil, err
	}
	files := map[string]json.RawMessage{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var file struct {
			Kind string          `json:"kind"`
			Spec json.RawMessage `json:"spec"`
		}
		// A file of another kind may contain several documents and fail to decode. It is skipped.
		if err := yaml.Unmarshal(text, &file); err == nil && file.Kind == "PrometheusRule" {
			files[filepath.Base(path)] = file.Spec
		}
	}
	return files, nil
}

// All returns the alerts of all files.
func All(config string) ([]Alert, error) {
	files, err := Files(config)
	if err != nil {
		return nil, err
	}
	var all []Alert
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var rules struct {
			Groups []struct{ Rules []Alert }
		}
		if err := json.Unmarshal(files[name], &rules); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, group := range rules.Groups {
			all = append(all, group.Rules...)
		}
	}
	return all, nil
}
