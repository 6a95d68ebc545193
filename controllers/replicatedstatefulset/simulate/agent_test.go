package simulate

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
)

// TestAgentsOfLiveObjects tests that an agent whose Lease names its pod is armed, renews the Lease, and ends its
// container when it cannot.
func TestAgentsOfLiveObjects(t *testing.T) {
	c := copyOf(clusterWith(t, sets()["PostgreSQL with a Lease"]))
	s := Kind{}.Start(c, shop).(*Simulation)
	if !s.HasLeases() || len(s.Leases()) != 3 {
		t.Fatalf("there are %d Leases", len(s.Leases()))
	}
	acting := s.DB.Acting()[0]
	for _, member := range s.DB.All() {
		if a := member.Agent; a == nil || a.Armed != (member == acting) || (a.Shown > 0) != a.Armed {
			t.Errorf("the agent of %s is %+v", member.Pod, a)
		}
	}
	for range 6 {
		s.Now = s.Now.Add(10 * time.Second)
		s.KeepUp()
	}
	if last := s.Lease(acting.Agent.Lease).Spec.RenewTime; s.Now.Sub(last.Time) > 10*time.Second || s.Net.Fenced > 0 || s.IsExpiring() {
		t.Errorf("the Lease was last renewed at %v, now %v", last, s.Now)
	}
	kubelet.Turn(s.Cluster, acting.Node, false)
	s.Now = s.Now.Add(21 * time.Second)
	if s.KeepUp(); s.Net.Fenced != 1 || !s.IsExpiring() {
		t.Errorf("%d containers have ended", s.Net.Fenced)
	}
}

// TestACommandOfAnEpoch tests that a start begins only in a container that is armed with its epoch.
func TestACommandOfAnEpoch(t *testing.T) {
	start := []string{"/agent", "fenced", "--epoch=3", "--", "/agent", "postgresql", "promote"}
	for _, row := range []struct {
		agent *Agent
		may   bool
	}{{nil, false}, {&Agent{}, false}, {&Agent{Shown: 2}, false}, {&Agent{Shown: 3}, true}} {
		if got := mayBegin(&Container{Agent: row.agent}, start); got != row.may {
			t.Errorf("an agent %+v begins the command: %t", row.agent, got)
		}
	}
	if !mayBegin(&Container{}, start[4:]) {
		t.Error("a command without an epoch does not begin")
	}
}
