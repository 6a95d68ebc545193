package olm

import (
	"io"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const project = "../.."

func TestABundleOfAnEarlierVersionSaysSoThroughout(t *testing.T) {
	m := &Manager{Gomega: NewWithT(t), folder: t.TempDir(), log: io.Discard}
	const image = "localhost/stateful-operator:of-the-test"
	bundle := m.Bundle(project+"/bundle", "0.0.3", image)
	file, csv := m.readCSV(bundle.Folder)
	m.Expect([]string{bundle.Name, csv.Name, csv.Spec.Version.String()}).To(
		Equal([]string{"stateful-operator.v0.0.3", "stateful-operator.v0.0.3", "0.0.3"}), "names and version")
	m.Expect(csv.Spec.Replaces+csv.Annotations["olm.skipRange"]).To(BeEmpty(), "replaced or skipped versions")
	was := m.operatorImage(m.readCSV(project + "/bundle"))
	text := m.read(file)
	m.Expect(strings.Count(text, was)).To(BeZero(), "it contains %s", was)
	m.Expect(strings.Count(text, image)).To(BeNumerically(">=", 5), "%s occurs too rarely", image)
}

func TestABundleAsItIsKeepsItsVersion(t *testing.T) {
	m := &Manager{Gomega: NewWithT(t), folder: t.TempDir(), log: io.Discard}
	bundle := m.Bundle(project+"/bundle", "", "localhost/stateful-operator:of-the-test")
	_, want := m.readCSV(project + "/bundle")
	_, got := m.readCSV(bundle.Folder)
	m.Expect([]string{got.Name, got.Spec.Replaces, got.Annotations["olm.skipRange"]}).To(
		Equal([]string{want.Name, want.Spec.Replaces, want.Annotations["olm.skipRange"]}), "name, replaced and skipped versions")
}
