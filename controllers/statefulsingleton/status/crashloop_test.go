package status_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

// handingOver returns a world whose holder is in a crash loop, which is to be handed over.
func handingOver(members ...*fixture.MemberFixture) *facts.World {
	members = append([]*fixture.MemberFixture{fixture.Leased("a").Crashing()}, members...)
	return fixture.LeasedBy(fixture.WorldOf(fixture.HeldByLease().HandsOverCrashLoops(), members...), "a", 1, time.Second, "b")
}

func TestS53ACrashLoopIsReported(t *testing.T) {
	const (
		stuck  = "Available=False ActivePodNotReady: pod a may run its program, but cannot start: CrashLoopBackOff of container app; see: kubectl -n ns describe pod a"
		failed = "Degraded=True PodFailing: pod a has its turn, but its program cannot start: CrashLoopBackOff of container app; "
		see    = ". See: kubectl -n ns describe pod a, and: kubectl -n ns logs a --previous"
	)
	newest := fixture.WorldOf(fixture.HeldByLease().HandsOverCrashLoops(), fixture.Leased("a").Of("web").Old().Serving(), fixture.Leased("b").Of("web").Looped())
	say(t, []situation{
		{"another pod takes over", handingOver(fixture.Leased("b")), "Running, a, 1",
			[]string{stuck, steady, failed + "a waiting pod takes over when the program ends again, or when the Lease has expired" + see}},
		{"no other pod can take over", handingOver(fixture.Leased("b").Looped()), "Running, a, 1",
			[]string{stuck, steady, failed + "no other pod starts until it is deleted, because no pod waits that can take over: at its gate, on a Node that is Ready, and not in a crash loop before" + see}},
		{"a pod of the newest revision does not replace the running one", fixture.LeasedBy(newest, "a", 1, time.Second, ""), "Running, a, 1",
			[]string{"Available=True ActivePodReady: pod a is running", steady, healthy,
				"RolloutHeld=True CrashLooped: pod b of the newest revision does not replace pod a, because its program was in a crash loop, and spec.onCrashLoop is Handover. " +
					"See: kubectl -n ns logs b --previous. To start it again when the cause is fixed: kubectl -n ns delete pod b"}},
	})
}
