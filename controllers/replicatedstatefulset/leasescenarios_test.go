package replicatedstatefulset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Scenarios of members with Leases. The invariant fails a test if two primaries act, or if the first primary lacks an
// acknowledged entry.

// leasedSet returns a stage with a running set of three members with Leases. The primary is rss-db-0.
func leasedSet(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, fencedByLease(fixture.SetOf(3, 1)))
	s.settle(time.Minute)
	write(s)
	s.hasPrimary("rss-db-0")
	s.isArmed()
	return s
}

// hasPrimary checks that exactly this member acts as primary.
func (s *stage) hasPrimary(name string) {
	s.t.Helper()
	var names []string
	for _, c := range s.db.Acting() {
		names = append(names, c.Pod)
	}
	if !slices.Equal(names, []string{name}) {
		s.Fatal(s.t, fmt.Sprintf("primaries are %q, want %s", names, name))
	}
}

// isHealthy checks that the set is as wanted, and that the agents agree.
func (s *stage) isHealthy() {
	s.t.Helper()
	s.ends(&scenario{})
	s.isArmed()
}

// during lets all actors act for some time.
func (s *stage) during(d time.Duration) {
	s.t.Helper()
	for end := s.Now.Add(d); s.Now.Before(end); s.sleep(500 * time.Millisecond) {
		s.round()
		s.check()
	}
}

// hasFenced checks how many containers the agents have ended.
func (s *stage) hasFenced(n int) {
	s.t.Helper()
	if s.Net.Fenced != n {
		s.Fatal(s.t, fmt.Sprintf("agents have ended %d containers, want %d", s.Net.Fenced, n))
	}
}

func TestASecondaryReplacesThePrimaryOfANodeThatIsCutOff(t *testing.T) {
	for name, r := range map[string]struct{ lose, find func(*stage) }{
		"from everything":                    {partition("n1"), answers("n1")},
		"from the API server":                {loseServer("n1", false), findServer("n1")},
		"from the API server, for pods only": {loseServer("n1", true), findServer("n1")},
	} {
		t.Run(name, func(t *testing.T) {
			s := leasedSet(t)
			old := s.db.Containers["rss-db-0"]
			r.lose(s)
			s.during(18 * time.Second)
			s.hasPrimary("rss-db-0")
			s.during(50 * time.Second)
			s.hasPrimary("rss-db-1")
			s.hasFenced(1)
			write(s)
			r.find(s)
			s.settle(2 * time.Minute)
			now := s.db.Containers["rss-db-0"]
			if now.Role != record.Secondary || now == old {
				s.Fatal(t, "the former primary is no secondary in a new container")
			}
			s.hasPrimary("rss-db-1")
			s.isHealthy()
		})
	}
}

// TestAPrimaryIsFencedBeforeItIsReplaced tests the times: the primary ends before its Lease has expired.
func TestAPrimaryIsFencedBeforeItIsReplaced(t *testing.T) {
	s := leasedSet(t)
	since := s.Now
	partition("n1")(s)
	for s.Net.Fenced == 0 {
		s.during(500 * time.Millisecond)
	}
	ended := s.Now.Sub(since)
	for len(s.db.Acting()) == 0 {
		s.during(500 * time.Millisecond)
	}
	if replaced := s.Now.Sub(since); ended > 21*time.Second || replaced < 30*time.Second || replaced > 45*time.Second {
		s.Fatal(t, fmt.Sprintf("the primary has ended after %s, and another one was started after %s", ended, replaced))
	}
}

func TestAnAPIServerThatIsAwayForAShortTimeEndsNothing(t *testing.T) {
	s := leasedSet(t)
	for range 5 {
		s.serverAway(nil, 8*time.Second)
		s.during(12 * time.Second)
	}
	s.hasFenced(0)
	s.hasPrimary("rss-db-0")
	s.isHealthy()
}

func TestAnAPIServerThatIsAwayForLongEndsThePrimary(t *testing.T) {
	for _, away := range []time.Duration{21 * time.Second, 40 * time.Second, 10 * time.Minute} {
		s := leasedSet(t)
		link("rss-db-2")(s) // so that the copies differ
		write(s)
		s.serverAway(nil, away)
		s.hasFenced(1)
		if all := s.db.Acting(); len(all) > 0 {
			s.Fatal(t, all[0].Pod+" is primary without the API server")
		}
		s.settle(2 * time.Minute)
		write(s)
		s.isHealthy()
	}
}

// failAt makes the writes fail that match. Each failure happens as often as it is listed.
func (s *stage) failAt(matches func(action.Action) bool, failures ...simulation.Failure) {
	s.Interfere = func(_ int, a action.Action) (before, after error) {
		if len(failures) == 0 || !matches(a) {
			return nil, nil
		}
		f := failures[0]
		failures = failures[1:]
		s.Say("# the next write %s", f.Name)
		return f.Before, f.After
	}
}

func writesLease(a action.Action) bool {
	_, isLease := a.Object.(*coordinationv1.Lease)
	return isLease
}

func starts(a action.Action) bool {
	return a.Verb == action.Exec && spec.StartsPrimary(a.Command.Name)
}

// TestInterruptedAssignments tests each failure of the writes by which a secondary becomes primary, and by which a
// primary steps down.
func TestInterruptedAssignments(t *testing.T) {
	refused := simulation.Failure{Name: "is refused", Before: apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "a", errors.New("denied"))}
	outdated := simulation.Failure{Name: "is outdated", Before: apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "a", errors.New("changed"))}
	for name, r := range map[string]struct {
		matches  func(action.Action) bool
		failures []simulation.Failure
	}{
		"the operator dies between the record and the Lease":  {writesLease, []simulation.Failure{simulation.DiesBefore}},
		"the operator dies between the Lease and the command": {writesLease, []simulation.Failure{simulation.DiesAfter}},
		"the operator dies before the command":                {starts, []simulation.Failure{simulation.DiesBefore}},
		"the operator dies after the command":                 {starts, []simulation.Failure{simulation.DiesAfter}},
		"the Lease is refused":                                {writesLease, []simulation.Failure{refused, refused, refused}},
		"the Lease has changed":                               {writesLease, []simulation.Failure{outdated, outdated}},
		"the response for the Lease is lost":                  {writesLease, []simulation.Failure{simulation.NoAnswer, simulation.NoAnswer, simulation.NoAnswer}},
	} {
		for what, step := range map[string]func(*stage){
			"the primary crashes": crash(0), "a switchover": switchTo(1), "the node is lost": partition("n1"), "an update": image("two"),
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				s := leasedSet(t)
				s.failAt(r.matches, r.failures...)
				step(s)
				s.settle(2 * time.Minute)
				s.during(2 * time.Minute)
				if len(s.db.Acting()) != 1 {
					s.Fatal(t, "no member is primary")
				}
				together(answers("n1"), write)(s)
				s.settle(2 * time.Minute)
				s.isHealthy()
			})
		}
	}
}

func TestAPrimaryWhoseLeaseIsDeletedGoesOn(t *testing.T) {
	s := leasedSet(t)
	for range 3 {
		deleteLease(0)(s)
		s.during(30 * time.Second)
		s.hasPrimary("rss-db-0")
		write(s)
	}
	s.hasFenced(0)
	s.isHealthy()
	deleteLease(0)(s) // while no operator acts
	s.sleep(25 * time.Second)
	s.hasFenced(1)
	s.settle(2 * time.Minute)
	s.isHealthy()
}

func TestMembersWithLeasesThatAreScaled(t *testing.T) {
	s := leasedSet(t)
	for _, step := range []func(*stage){switchTo(2), scaleTo(1), scaleTo(3), scaleTo(0), scaleTo(3), switchTo(1), scaleTo(5), scaleTo(2)} {
		step(s)
		s.settle(2 * time.Minute)
		write(s)
		if *s.Set().Spec.Replicas > 0 {
			s.isHealthy()
		}
	}
	var names []string
	for _, l := range s.Leases() {
		names = append(names, l.Name)
	}
	if !slices.Equal(names, []string{"rss-db-0.member", "rss-db-1.member"}) {
		s.Fatal(t, fmt.Sprintf("the Leases are %q", names))
	}
}

func TestFencingIsSwitchedOffAndOn(t *testing.T) {
	s := leasedSet(t)
	for i := range 6 {
		fence(i%2 == 1)(s)
		s.during(20 * time.Second) // some members are updated
		write(s)
		if i == 3 {
			partition("n3")(s)
			s.during(2 * time.Minute)
			answers("n3")(s)
		}
		s.settle(2 * time.Minute)
		write(s)
		s.isHealthy()
		if s.HasLeases() != (i%2 == 1) {
			s.Fatal(t, "the members are not as wanted")
		}
	}
	s.hasFenced(0)
}

// TestAFrozenPrimaryIsReplaced tests that a program which is frozen together with its agent ends as soon as its agent is
// scheduled again.
func TestAFrozenPrimaryIsReplaced(t *testing.T) {
	s := leasedSet(t)
	old := s.db.Containers["rss-db-0"]
	freeze(s, old)
	s.during(50 * time.Second)
	s.hasPrimary("rss-db-1")
	thaw(s, old)
	s.hasPrimary("rss-db-1")
	s.hasFenced(1)
	s.settle(2 * time.Minute)
	s.isHealthy()
}

// TestAnAgentThatWasNeverArmed tests an agent whose only renewal has succeeded without a response, and that then loses
// the API server until its Lease has expired. Its container continues, and counts as ended by the annotation of the Lease.
func TestAnAgentThatWasNeverArmed(t *testing.T) {
	s := leasedSet(t)
	s.Net.Loses = func(a *simulate.Agent, renews bool) bool {
		isFirst := renews && a.Container.Pod == "rss-db-1"
		if isFirst {
			loseServer("n2", false)(s)
		}
		return isFirst
	}
	crash(0)(s)
	s.during(2 * time.Minute)
	s.Net.Loses = nil
	findServer("n2")(s)
	s.settle(2 * time.Minute)
	if len(s.db.Acting()) != 1 {
		s.Fatal(t, "no member is primary")
	}
	s.settle(2 * time.Minute) // its pod is recreated
	s.isHealthy()
}

// TestALeaseThatAnotherOperatorHasAssignedMeanwhile tests that an operator does not release the Lease of a grant that
// another one has recorded after the first one read the object.
func TestALeaseThatAnotherOperatorHasAssignedMeanwhile(t *testing.T) {
	s := leasedSet(t)
	for _, step := range []func(*stage){crash(0), switchTo(2), deleted(2), partition("n1"), answers("n1")} {
		s.Between = s.another
		step(s)
		s.during(time.Minute)
		s.Between = nil
		s.settle(2 * time.Minute)
		write(s)
	}
	s.isHealthy()
}

// TestAStartWaitsForItsEpoch tests that a start that reaches a container without the Lease of its epoch does not begin.
func TestAStartWaitsForItsEpoch(t *testing.T) {
	s := leasedSet(t)
	loseServer("n2", true)(s)
	together(crash(0), func(s *stage) { s.moved["n1"] = "n9"; s.DeleteNow(s.pod(0)) })(s)
	s.during(20 * time.Second)
	if story := strings.Join(s.Story, "\n"); !strings.Contains(story, "does not begin") {
		s.Fatal(t, "no start was sent to rss-db-1, whose agent is not armed")
	}
	findServer("n2")(s)
	delete(s.moved, "n1")
	s.settle(2 * time.Minute)
	s.isHealthy()
}

// TestALostPodOfAMemberWithoutALease tests that a mixed set waits for an administrator only for the member without a
// Lease.
func TestALostPodOfAMemberWithoutALease(t *testing.T) {
	s := newStage(t, fixture.SetOf(3, 1))
	s.settle(time.Minute)
	write(s)
	fence(true)(s)
	partition("n1")(s)
	s.during(5 * time.Minute)
	s.hasPrimary("rss-db-0")
	if c := s.db.Containers["rss-db-0"]; c.Agent != nil {
		s.Fatal(t, "the primary on the lost node has a Lease")
	}
	answers("n1")(s)
	s.settle(2 * time.Minute)
	s.isHealthy()
}
