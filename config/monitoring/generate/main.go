// Command generate writes the Grafana dashboards of config/monitoring, one file each: for the
// operator, and for the objects of each kind.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	for _, d := range dashboards {
		text, err := d.text()
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, d.name+".json"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// text returns the JSON of a dashboard for Grafana.
func (d dashboard) text() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false) // keeps comparisons in queries readable
	if err := encoder.Encode(d.model()); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}
