package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestWhatAContainerLacksForNodesIsNamed(t *testing.T) {
	g := NewWithT(t)
	g.Expect(missingCapabilities("Name:\ttest\nCapEff:\t000001ffffffffff\nCapBnd:\t0\n")).To(BeEmpty())
	docker := missingCapabilities("CapEff:\t00000000a80425fb\n")
	g.Expect(docker).To(Equal([]string{"CAP_NET_ADMIN", "CAP_SYS_ADMIN"}), "a Docker container with default settings")
	g.Expect(missingCapabilities("")).To(HaveLen(len(needed)))
}
