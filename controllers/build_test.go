package controllers

import (
	"io"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

func TestTheProgramSaysWhichItIs(t *testing.T) {
	g := NewWithT(t)
	said := NewBuild("1.2.3", "0123abc")
	g.Expect(said.String()).To(HavePrefix("stateful-operator 1.2.3, commit 0123abc, go1."))
	g.Expect(NewBuild("", "")).To(Equal(Build{Version: "unknown", Commit: "unknown"}), "a test binary has a version or commit")
	nothing := func(string) string { return "" }
	options, err := ParseOptions([]string{"--version"}, nothing, io.Discard)
	g.Expect(err).To(Succeed(), "--version works without a namespace")
	g.Expect(options.ShowVersion).To(BeTrue())
	_, err = ParseOptions(nil, nothing, io.Discard)
	g.Expect(err).To(HaveOccurred(), "a namespace is required without --version")
}

func TestTheMetricsSayWhichProgramThisIs(t *testing.T) {
	g := NewWithT(t)
	NewBuild("1.2.3", "0123abc").measure()
	families, err := metrics.Registry.Gather()
	g.Expect(err).To(Succeed())
	var found []string
	for _, family := range families {
		if family.GetName() != "stateful_operator_build_info" {
			continue
		}
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			g.Expect(metric.GetGauge().GetValue()).To(BeEquivalentTo(1))
			found = append(found, strings.Join(labels, " "))
		}
	}
	g.Expect(found).To(ContainElement("commit=0123abc goversion=" + runtime.Version() + " version=1.2.3"))
}
