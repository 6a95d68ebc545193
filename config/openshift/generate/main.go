// Command generate writes the ConsoleYAMLSamples of config/openshift. The OpenShift console offers
// them to users who create an object of one of the kinds. They are generated from config/samples,
// so that each example has only one source.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// offered are the samples with their titles, in the order of the console. Each runs unchanged under
// restricted-v2. Samples that need a user, a Secret or a ConfigMap are not included.
var offered = []struct{ file, title string }{
	{"statefulcluster/plain.yaml", "Three members, each with a claim"},
	{"statefulcluster/rolling-surge.yaml", "Updates without a missing member"},
	{"replicatedstatefulset/plain.yaml", "One primary and two secondaries"},
	{"extendedstatefulset/plain.yaml", "Versions side by side"},
	{"extendedstatefulset/blue-green.yaml", "Blue and green behind one Service"},
	{"extendedstatefulset/canary.yaml", "A canary, and the way back"},
	{"extendedstatefulset/zones.yaml", "Zone by zone"},
	{"extendedstatefulset/jobs.yaml", "Jobs before and after an upgrade"},
	{"statefulsingleton/deployment.yaml", "A program that never runs twice"},
	{"statefulsingleton/init.yaml", "The whole pod waits"},
}

// consoleSample is a ConsoleYAMLSample of console.openshift.io/v1.
type consoleSample struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		TargetResource metav1.TypeMeta `json:"targetResource"`
		Title          string          `json:"title"`
		Description    string          `json:"description"`
		YAML           string          `json:"yaml"`
	} `json:"spec"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate SAMPLES >FILE")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func write(out io.Writer, samples string) error {
	for _, o := range offered {
		text, err := os.ReadFile(filepath.Join(samples, filepath.FromSlash(o.file)))
		if err != nil {
			return err
		}
		s, err := convert(o.title, text)
		if err != nil {
			return fmt.Errorf("%s: %w", o.file, err)
		}
		s.Metadata.Name = strings.ToLower(s.Spec.TargetResource.Kind) + "-" + strings.TrimSuffix(filepath.Base(o.file), ".yaml")
		converted, err := yaml.Marshal(s)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "---\n%s", converted); err != nil {
			return err
		}
	}
	return nil
}

// ours are the API groups of this project.
var ours = []string{"enge.me", "clusterlabs.org", "fissile.cloudfoundry.org", "apps.openshift.statefulsingleton.com"}

// convert extracts the only object of this project's kinds from a sample: the console's editor
// creates one object at a time. The comment at the top is its description. Other objects in the
// sample are listed in the description, because the console does not create them.
func convert(title string, sample []byte) (*consoleSample, error) {
	s := &consoleSample{TypeMeta: metav1.TypeMeta{APIVersion: "console.openshift.io/v1", Kind: "ConsoleYAMLSample"}}
	s.Spec.Title, s.Spec.Description = title, firstParagraph(string(sample))
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(sample)))
	var others []string
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var is metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(document, &is); err != nil {
			return nil, err
		}
		if group := schema.FromAPIVersionAndKind(is.APIVersion, is.Kind).Group; !slices.Contains(ours, group) {
			if is.Kind != "" { // not only comments
				others = append(others, is.Kind+" "+is.Name)
			}
			continue
		}
		if s.Spec.YAML != "" {
			return nil, errors.New("it has two objects of the operator's kinds")
		}
		s.Spec.TargetResource, s.Spec.YAML = is.TypeMeta, strings.TrimPrefix(string(document), "---\n")
	}
	if s.Spec.YAML == "" || s.Spec.Description == "" {
		return nil, errors.New("it has no object of the operator's kinds, or no comment at the top")
	}
	if len(others) > 0 {
		s.Spec.Description += " It is used with " + strings.Join(others, ", ") + ", which is not included."
	}
	return s, nil
}

// firstParagraph returns the comment at the top of a sample, up to a line without text, as one
// line.
func firstParagraph(sample string) string {
	var words []string
	for line := range strings.Lines(sample) {
		text, comment := strings.CutPrefix(line, "#")
		if text = strings.TrimSpace(text); !comment || text == "" {
			break
		}
		words = append(words, text)
	}
	return strings.Join(words, " ")
}
