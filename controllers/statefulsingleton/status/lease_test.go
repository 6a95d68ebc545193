package status_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

// TestALeaseThatIsNotRenewedIsReported checks that Degraded names the pod whose agent cannot renew the Lease.
func TestALeaseThatIsNotRenewedIsReported(t *testing.T) {
	const (
		runs    = "Available=True ActivePodReady: pod a is running"
		restart = "Available=False ActivePodNotReady: pod a may run its program, but is not Ready yet"
		failed  = "Degraded=True PodFailing: pod a has its turn, but its agent has not renewed Lease db.singleton for 10s, and does not let the program run without it. " +
			"The pod must reach the API server, and its service account must be able to write this Lease: check NetworkPolicies, and the log: kubectl -n ns logs a -c app. " +
			"If it is not renewed for 15s, the pod loses its turn"
	)
	world := func(unchanged time.Duration, a *fixture.MemberFixture) *facts.World {
		return fixture.LeasedBy(fixture.WorldOf(fixture.HeldByLease(), a), "a", 1, unchanged, "")
	}
	a := func() *fixture.MemberFixture { return fixture.Leased("a") }
	say(t, []situation{
		{"the agent renews the Lease", world(9*time.Second, a().Serving()), "Running, a, 0", []string{runs, steady, healthy}},
		{"the agent does not renew the Lease", world(10*time.Second, a().Serving()), "Running, a, 0", []string{runs, steady, failed}},
		{"the agent has ended the container, which has just restarted", world(10*time.Second, a().StartedFor(time.Second).Restarted(1).LastExit(fencing.ExitFenced)), "Running, a, 0",
			[]string{restart, steady, failed}},
		{"the program has ended, and its container has just restarted", world(10*time.Second, a().StartedFor(time.Second).Restarted(1)), "Running, a, 0",
			[]string{restart, steady, "Degraded=True PodFailing: pod a has its turn, but its container app ended with exit code 1 and was restarted; no other pod starts until it is deleted. " +
				"See: kubectl -n ns describe pod a, and: kubectl -n ns logs a --previous"}},
		{"the Lease has expired", world(15*time.Second, a().Serving()), "Running, , 0", []string{"Available=False NoPods: no pod matches the selector", steady, failed}},
		{"the node is unreachable", world(10*time.Second, a().Serving().OnNode(fixture.Unresponsive)), "Running, a, 0",
			[]string{"Available=False ActivePodNotReady: cannot determine whether pod a is running: its Node n1 is unreachable", steady,
				"Degraded=True NodeUnreachable: pod a may be running its program on Node n1, which is unreachable; another pod starts when it has not renewed the Lease for 15s"}},
	})
}
