package statefulcluster

import (
	"strings"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// W2: a power failure during a surge update.
func TestW2AnOutageInASurgeUpdate(t *testing.T) {
	s := newStage(t, fixture.Set("db").Surge(1))
	s.settle(15 * time.Minute)
	s.Now = s.Now.Add(time.Hour)
	command("serve").do(s)
	turn := func(on bool) {
		for _, node := range []string{"n1", "n2", "n3", "n4"} {
			kubelet.Turn(s.Cluster, node, on)
		}
		for range 30 {
			s.Look()
			s.Pass()
			s.Now = s.Now.Add(10 * time.Second)
		}
	}
	s.Look()
	s.Pass()
	turn(false)
	if story := strings.Join(s.Story, "\n"); strings.Contains(story, "delete ") {
		t.Errorf("objects were deleted in the outage:\n%s", story)
	}
	turn(true)
	s.settle(15 * time.Minute)
	s.ends()
	s.Check(t)
}
