package bundle_test

import (
	"slices"
	"strings"
	"testing"
)

// blob is what a catalog says of a package, a channel or a bundle.
type blob struct {
	Schema         string
	Name           string
	Image          string
	DefaultChannel string
	Entries        []struct {
		Name, Replaces string
		Skips          []string
	}
}

func TestTheCatalogUpgradesToThisVersion(t *testing.T) {
	csv := read(t).CSV
	channels, bundles := map[string]bool{}, map[string]bool{}
	for _, b := range documents[blob](t, "../../catalog/stateful-operator/catalog.yaml") {
		switch b.Schema {
		case "olm.package":
			if b.DefaultChannel != "stable" {
				t.Errorf("the default channel is %s", b.DefaultChannel)
			}
		case "olm.bundle":
			bundles[b.Name] = true
			if !strings.HasPrefix(b.Image, "localhost/stateful-operator-bundle:") {
				t.Errorf("bundle %s is in image %q", b.Name, b.Image)
			}
		case "olm.channel":
			channels[b.Name] = true
			upgraded := false
			for _, entry := range b.Entries {
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
	if !bundles[csv.Name] || !bundles[csv.Spec.Replaces] || len(bundles) != 2 {
		t.Errorf("the bundles are %v", bundles)
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
