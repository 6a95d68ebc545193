package bundle_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/bundle"
)

// blob is what a catalog says of a package, a channel or a bundle.
type blob struct {
	Schema         string
	Name           string
	Image          string
	DefaultChannel string
	Entries        []struct {
		Name, Replaces, SkipRange string
		Skips                     []string
	}
	Properties []struct {
		Type  string
		Value any
	}
}

// asked is what make was asked for, which gives its variables on to what it runs,
// or else what the tree's own files are made of.
func asked(variable, otherwise string) string {
	if value, ok := os.LookupEnv(variable); ok {
		return value
	}
	return otherwise
}

// The bundles' images, and whether a catalog has no version before this one.
var (
	present  = asked("BUNDLE_IMAGE", "localhost/stateful-operator-bundle:0.1.0")
	previous = asked("PREVIOUS_BUNDLE_IMAGE", "localhost/stateful-operator-bundle:0.0.9")
	first    = asked("PREVIOUS", "0.0.9") == ""
)

func TestTheCatalogUpgradesToThisVersion(t *testing.T) {
	csv := read(t).CSV
	image := map[string]string{csv.Name: present, csv.Spec.Replaces: previous}
	channels, bundles, labels := map[string]bool{}, map[string]bool{}, []any{}
	for _, b := range documents[blob](t, "../../catalog/stateful-operator/catalog.yaml") {
		switch b.Schema {
		case "olm.package":
			if b.DefaultChannel != "stable" {
				t.Errorf("the default channel is %s", b.DefaultChannel)
			}
		case "olm.bundle":
			bundles[b.Name] = true
			for _, p := range b.Properties {
				if p.Type == "olm.label" {
					labels = append(labels, p.Value)
				}
			}
			if b.Image != image[b.Name] {
				t.Errorf("bundle %s is in image %q, want %q", b.Name, b.Image, image[b.Name])
			}
		case "olm.channel":
			channels[b.Name] = true
			upgraded := first
			for _, entry := range b.Entries {
				if version := strings.TrimPrefix(entry.Name, "stateful-operator.v"); entry.SkipRange != "<"+version {
					t.Errorf("channel %s: %s is reached from %q, want all before it", b.Name, entry.Name, entry.SkipRange)
				}
				upgraded = upgraded || entry.Name == csv.Name && (entry.Replaces == csv.Spec.Replaces || slices.Contains(entry.Skips, csv.Spec.Replaces))
			}
			if !upgraded {
				t.Errorf("channel %s does not upgrade %s to %s", b.Name, csv.Spec.Replaces, csv.Name)
			}
		}
	}
	if !channels["stable"] || !channels["candidate"] || len(channels) != 2 {
		t.Errorf("the channels are %v", channels)
	}
	want := map[string]bool{csv.Name: true}
	if !first {
		want[csv.Spec.Replaces] = true
	}
	if !reflect.DeepEqual(bundles, want) {
		t.Errorf("the bundles are %v, want %v", bundles, want)
	}
	purpose := map[string]any{"label": "stateful-workloads"}
	if slices.ContainsFunc(labels, func(l any) bool { return !reflect.DeepEqual(l, any(purpose)) }) || len(labels) != len(bundles) {
		t.Errorf("the bundles have labels %v, each should have %v, by which others depend on it", labels, purpose)
	}
}

// opm itself is asked by `make catalog`; here a script gives back what it is told.
func TestACatalogHasTheImagesThatAreAskedFor(t *testing.T) {
	opm, err := filepath.Abs("testdata/opm")
	if err != nil {
		t.Fatal(err)
	}
	present := bundle.Version{Name: "present", Image: "registry.example.com:5000/you/bundle:1.2.3", Folder: folder}
	previous := bundle.Version{Name: "previous", Image: "registry.example.com:5000/you/bundle:1.1.0", Folder: folder}
	for _, row := range []struct {
		says     string
		versions []bundle.Version
		want     []string
	}{
		{"two versions of another registry", []bundle.Version{present, previous}, []string{previous.Image, present.Image}},
		{"one without the version before", []bundle.Version{present}, []string{present.Image}},
	} {
		t.Run(row.says, func(t *testing.T) {
			text, err := bundle.Render(t.Context(), opm, "../../config/olm/catalog.yaml", row.versions...)
			if err != nil {
				t.Fatal(err)
			}
			type channel struct{ Bundles []struct{ Image string } }
			var template struct{ Candidate, Stable channel }
			if err := yaml.Unmarshal(text, &template); err != nil {
				t.Fatal(err)
			}
			for _, c := range []channel{template.Candidate, template.Stable} {
				var got []string
				for _, b := range c.Bundles {
					got = append(got, b.Image)
				}
				if !reflect.DeepEqual(got, row.want) {
					t.Errorf("%v in a channel, want %v", got, row.want)
				}
			}
		})
	}
	if _, err := bundle.Render(t.Context(), opm, "../../config/olm/catalog.yaml", bundle.Version{Name: "next", Folder: folder}); err == nil {
		t.Error("a version that the template does not have was taken")
	}
}

func TestScorecardAsksWhatAnyBundleIsAsked(t *testing.T) {
	var config struct {
		Stages []struct {
			Tests []struct {
				Image      string
				Entrypoint []string
				Labels     map[string]string
			}
		}
	}
	parse(t, folder+"/tests/scorecard/config.yaml", &config)
	var asked []string
	for _, stage := range config.Stages {
		for _, test := range stage.Tests {
			if test.Image == "" || test.Labels["suite"] == "" || test.Labels["test"] == "" {
				t.Errorf("%v has no image or no labels", test.Entrypoint)
			}
			asked = append(asked, test.Entrypoint[len(test.Entrypoint)-1])
		}
	}
	for _, builtIn := range []string{"basic-check-spec", "olm-bundle-validation", "olm-crds-have-validation",
		"olm-crds-have-resources", "olm-spec-descriptors", "olm-status-descriptors"} {
		if !slices.Contains(asked, builtIn) {
			t.Errorf("%s is not asked", builtIn)
		}
	}
}
