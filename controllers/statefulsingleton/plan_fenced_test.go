package statefulsingleton

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

// healthyMessage is the message of condition Degraded without a problem.
const healthyMessage = "no problems detected"

// TestAnAgentThatCannotRenew checks that the status names a pod whose agent cannot renew the Lease although its Node
// is Ready, and that it does not when the agent renews it again. The watch of Leases triggers one pass, after half of
// the duration. The other passes are requeued.
func TestAnAgentThatCannotRenew(t *testing.T) {
	s := newStage(t, 1)
	o := s.operators[0]
	s.make(fixture.Singleton("db").Leased())
	s.deployment(1, rolling)
	s.settle(4 * time.Second)
	pod := s.Pods()[0]
	triggered := func() {
		o.Look()
		o.Woken = true
		o.Pass()
	}
	requeued := func(within time.Duration) {
		t.Helper()
		if o.Due.IsZero() || o.Due.After(s.Now.Add(within)) {
			s.Fatal(t, "the key is not requeued")
		}
		s.tick(o.Due.Sub(s.Now))
		react(o)
	}
	expect := func(when, message string) {
		t.Helper()
		c := meta.FindStatusCondition(s.Object().Status.Conditions, v1.ConditionDegraded)
		if c == nil || !strings.Contains(c.Message, message) {
			s.Fatal(t, when+": condition Degraded is "+c.String())
		}
	}
	s.tick(children.LeaseDuration(pod) / 3)
	triggered()                                    // the agent has renewed the Lease
	s.Machine(pod.Spec.NodeName).Reachable = false // its kubelet and its agent, before its Node becomes not Ready
	s.tick(children.LeaseDuration(pod) / 2)
	triggered()
	expect("after half of the duration", healthyMessage)
	requeued(children.LeaseDuration(pod) / 4)
	expect("when the agent has ended the program", "pod "+pod.Name+" has its turn, but its agent has not renewed Lease db.singleton for 10s")
	s.Machine(pod.Spec.NodeName).Reachable = true
	requeued(children.LeaseDuration(pod) / 2)
	expect("when the agent renews the Lease again", healthyMessage)
}
