package bundle_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/bundle"
)

// blob is a package, a channel or a bundle in a catalog.
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

// asked returns a variable that make exports, or the value for the tree's own files.
func asked(variable, otherwise string) string {
	if value, ok := os.LookupEnv(variable); ok {
		return value
	}
	return otherwise
}

// The bundle's image, and the ClusterServiceVersion that it replaces, if one was released.
var (
	present  = asked("BUNDLE_IMAGE", "localhost/stateful-operator-bundle:0.1.0")
	replaced = nameOf(asked("PREVIOUS", ""))
)

// nameOf returns the name of a version's ClusterServiceVersion.
func nameOf(version string) string {
	if version == "" {
		return ""
	}
	return "stateful-operator.v" + version
}

func TestTheCatalogUpgradesToThisVersion(t *testing.T) {
	g, csv := telling(t), read(t).CSV
	images, labels := map[string]string{}, []any{}
	var channels []string
	for _, b := range documents[blob](t, "../../catalog/stateful-operator/catalog.yaml") {
		switch b.Schema {
		case "olm.package":
			g.Expect(b.DefaultChannel).To(Equal("stable"))
		case "olm.bundle":
			images[b.Name] = b.Image
			for _, p := range b.Properties {
				if p.Type == "olm.label" {
					labels = append(labels, p.Value)
				}
			}
		case "olm.channel":
			channels = append(channels, b.Name)
			upgraded := replaced == ""
			for _, entry := range b.Entries {
				g.Expect(entry.SkipRange).To(Equal("<"+strings.TrimPrefix(entry.Name, "stateful-operator.v")),
					"channel %s: %s can be reached from all earlier versions", b.Name, entry.Name)
				upgraded = upgraded || entry.Name == csv.Name && (entry.Replaces == csv.Spec.Replaces || slices.Contains(entry.Skips, csv.Spec.Replaces))
			}
			g.Expect(upgraded).To(BeTrueBecause("channel %s does not upgrade %s to %s", b.Name, csv.Spec.Replaces, csv.Name))
		}
	}
	g.Expect(channels).To(ConsistOf("stable", "candidate"))
	g.Expect(images).To(HaveKeyWithValue(csv.Name, present), "the bundles and their images")
	delete(images, csv.Name)
	for name, image := range images {
		g.Expect(image).To(ContainSubstring("@sha256:"), "%s was released: its bundle must be referenced by digest", name)
	}
	g.Expect(labels).To(And(HaveLen(len(images)+1), HaveEach(Equal(map[string]any{"label": "stateful-workloads"}))),
		"the labels of the bundles, on which others depend")
}

// TestACatalogHasTheImagesThatAreAskedFor tests Render with a script instead of opm, which prints its
// input. `make catalog` runs the real opm.
func TestACatalogHasTheImagesThatAreAskedFor(t *testing.T) {
	opm, err := filepath.Abs("testdata/opm")
	NewWithT(t).Expect(err).To(Succeed())
	present := bundle.Version{Name: "present", Image: "registry.example.com:5000/you/bundle:1.2.3", Folder: folder}
	previous := bundle.Version{Name: "previous", Image: "registry.example.com:5000/you/bundle:1.1.0", Folder: folder}
	for _, row := range []struct {
		says     string
		versions []bundle.Version
		want     []any
	}{
		{"two versions of another registry", []bundle.Version{present, previous}, []any{previous.Image, present.Image}},
		{"a channel without the previous version", []bundle.Version{present}, []any{present.Image}},
	} {
		t.Run(row.says, func(t *testing.T) {
			g := NewWithT(t)
			text, err := bundle.Render(t.Context(), opm, "../olm/testdata/catalog.yaml", row.versions...)
			g.Expect(err).To(Succeed())
			type channel struct{ Bundles []map[string]any }
			var template struct{ Candidate, Stable channel }
			g.Expect(yaml.Unmarshal(text, &template)).To(Succeed())
			for _, c := range []channel{template.Candidate, template.Stable} {
				var got []any
				for _, b := range c.Bundles {
					got = append(got, b["image"])
				}
				g.Expect(got).To(Equal(row.want))
			}
		})
	}
	_, err = bundle.Render(t.Context(), opm, "../../config/olm/catalog.yaml", bundle.Version{Name: "next", Folder: folder})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("has no version next")))
}

func TestScorecardAsksWhatAnyBundleIsAsked(t *testing.T) {
	var config v1alpha3.Configuration
	parse(t, folder+"/tests/scorecard/config.yaml", &config)
	g, asked := telling(t), []string{}
	for _, stage := range config.Stages {
		for _, test := range stage.Tests {
			g.Expect(test.Image != "" && test.Labels["suite"] != "" && test.Labels["test"] != "").To(
				BeTrueBecause("%v has no image or no labels", test.Entrypoint))
			asked = append(asked, test.Entrypoint[len(test.Entrypoint)-1])
		}
	}
	g.Expect(asked).To(ContainElements("basic-check-spec", "olm-bundle-validation", "olm-crds-have-validation",
		"olm-crds-have-resources", "olm-spec-descriptors", "olm-status-descriptors"))
}
