package statefulcluster

import (
	"slices"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// SC-43 No member is retired for a Node that is cordoned only in the cache.
func TestACacheThatShowsACordon(t *testing.T) {
	s := newStage(t, three().ReplacesFirst())
	s.settle(2 * time.Second)
	kubelet.Cordon(s.Cluster, "n1", true)
	s.Look()
	kubelet.Cordon(s.Cluster, "n1", false) // the cache does not show it yet
	s.Pass()
	if n := len(kubelet.Pods(s.Cluster)); n != 3 {
		t.Errorf("SC-43 there are %d pods, want 3", n)
	}
	w := s.observe(s.set(), engine.View{Reader: s.Cluster, Live: true})
	if i := slices.IndexFunc(w.Members, func(m *facts.Member) bool { return m.Node.Cordoned }); i >= 0 {
		t.Errorf("SC-43 %s is on a cordoned node", w.Members[i].Name())
	}
}
