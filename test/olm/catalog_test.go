package olm

import (
	"io"
	"os"
	"strings"
	"testing"
)

const project = "../.."

func TestABundleOfAnEarlierVersionSaysSoThroughout(t *testing.T) {
	m := &Manager{folder: t.TempDir(), log: io.Discard}
	const image = "localhost/stateful-operator:of-the-test"
	bundle, err := m.Bundle(project+"/bundle", "0.0.3", image)
	if err != nil {
		t.Fatal(err)
	}
	file, csv, err := readCSV(bundle.Folder)
	if err != nil {
		t.Fatal(err)
	}
	if bundle.Name != "stateful-operator.v0.0.3" || csv.Name != bundle.Name || csv.Spec.Version.String() != "0.0.3" {
		t.Errorf("bundle %s is of %s, version %s", bundle.Name, csv.Name, csv.Spec.Version)
	}
	if csv.Spec.Replaces != "" || csv.Annotations["olm.skipRange"] != "" {
		t.Errorf("it replaces %q and skips %q", csv.Spec.Replaces, csv.Annotations["olm.skipRange"])
	}
	_, before, err := readCSV(project + "/bundle")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	was := before.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image
	if strings.Contains(string(text), was) || strings.Count(string(text), image) < 3 {
		t.Errorf("it says %s, and %s only %d times", was, image, strings.Count(string(text), image))
	}
}

func TestABundleAsItIsKeepsItsVersion(t *testing.T) {
	m := &Manager{folder: t.TempDir(), log: io.Discard}
	bundle, err := m.Bundle(project+"/bundle", "", "localhost/stateful-operator:of-the-test")
	if err != nil {
		t.Fatal(err)
	}
	_, want, err := readCSV(project + "/bundle")
	if err != nil {
		t.Fatal(err)
	}
	_, got, err := readCSV(bundle.Folder)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != want.Name || got.Spec.Replaces != want.Spec.Replaces || got.Annotations["olm.skipRange"] != want.Annotations["olm.skipRange"] {
		t.Errorf("%s became %s, replacing %q and skipping %q", want.Name, got.Name, got.Spec.Replaces, got.Annotations["olm.skipRange"])
	}
}
