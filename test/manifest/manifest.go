// Package manifest reads files of objects, a YAML document each.
package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Read decodes all documents but those that have only comments. It is an error if
// one is no YAML, or not a T.
func Read[T any](content []byte) ([]T, error) {
	var all []T
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		var one T
		var text []byte
		if err == nil {
			text, err = yaml.YAMLToJSON(document)
		}
		if err == nil && string(text) == "null" {
			continue
		}
		if err == nil {
			err = json.Unmarshal(text, &one)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		all = append(all, one)
	}
}

// ReadFile does so with a file, which its errors name.
func ReadFile[T any](file string) ([]T, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all, err := Read[T](content)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return all, nil
}
