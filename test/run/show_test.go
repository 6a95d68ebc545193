package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/run/place"
)

// TestTheLastScreenFits verifies that the screen fits into 24 lines of a terminal, with the line
// with the time above and the prompt below.
func TestTheLastScreenFits(t *testing.T) {
	for _, where := range []place.Place{
		{Kind: place.Given, Kubeconfig: "/home/somebody/.kube/config", Kubectl: "kubectl"},
		{Kind: place.Local, Local: &cluster.Cluster{}, Kubeconfig: "/home/somebody/.cache/stateful-operator/clusters/local/admin.kubeconfig",
			Kubectl: "/home/somebody/.cache/stateful-operator/kubernetes-v1.36.3-48fd8094/kubectl"},
		{Kind: place.Simulated, Local: &cluster.Cluster{}, Kubeconfig: "/home/somebody/.cache/stateful-operator/clusters/local/admin.kubeconfig",
			Kubectl: "/home/somebody/.cache/stateful-operator/kubernetes-v1.36.3-48fd8094/kubectl"},
	} {
		g := NewWithT(t)
		text := shown{where}.screen("coder-stateful-7dc5fc9b8-x8z2q", "node-2", "rss-"+shown{where}.replicatedKey().Name+"-0")
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		g.Expect(len(lines)).To(BeNumerically("<=", 22), text)
		for _, line := range lines {
			g.Expect(utf8.RuneCountInString(line)).To(BeNumerically("<=", 100), line)
		}
		g.Expect(strings.Contains(text, "cluster cut")).To(Equal(where.Kind == place.Local), text)
		for _, kind := range []string{"delete pod coder", "deployment mailer", shown{where}.replicatedKey().Name, "ests shop"} {
			g.Expect(text).To(ContainSubstring(kind))
		}
	}
}
