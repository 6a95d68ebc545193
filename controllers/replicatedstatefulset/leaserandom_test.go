package replicatedstatefulset

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

// leaseScenarios are stories of sets whose members have Leases, for random orders.
var leaseScenarios = []scenario{
	{name: "faults", set: fencedByLease(fixture.SetOf(3, 1)), steps: []func(*stage){write, write, write}, wait: 30 * time.Second},
	{name: "fencing is switched off and on", set: fencedByLease(fixture.SetOf(3, 1)), steps: []func(*stage){write, fence(false), write, fence(true), write}, wait: 40 * time.Second},
	{name: "fencing is switched on and off", set: fixture.SetOf(3, 1), steps: []func(*stage){write, fence(true), write, fence(false), write}, wait: 40 * time.Second},
	{name: "switchovers and Leases that are deleted", set: fencedByLease(fixture.SetOf(3, 1)), steps: []func(*stage){write, switchTo(2), deleteLease(2), write, deleteLease(0), switchTo(0), deleteLease(1), write}, wait: 40 * time.Second},
	{name: "scale 3 to 1 to 3", set: fencedByLease(fixture.SetOf(3, 1)), steps: []func(*stage){write, scaleTo(1), write, scaleTo(3), write, scaleTo(0), scaleTo(3), write}, wait: 30 * time.Second},
	{name: "without demote", set: fencedByLease(fixture.SetOf(3, 1, "demote", "promote", "seed")), steps: []func(*stage){write, switchTo(2), write, image("two"), write}, wait: 40 * time.Second},
	{name: "a rolling update", set: fencedByLease(fixture.Restarting(fixture.SetOf(3, 1))), steps: []func(*stage){write, image("two"), write, deleted(0), write}, wait: 40 * time.Second},
}

// fence switches fencing by a Lease on or off.
func fence(on bool) func(*stage) {
	return func(s *stage) {
		s.Say("# fencing by a Lease: %t", on)
		s.change(func(set *v1alpha1.ReplicatedStatefulSet) {
			if set.Spec.Pod.Containers[0].Command = nil; on {
				fencedByLease(set)
			}
		})
	}
}

// deleteLease deletes the Lease of a member, as a user does.
func deleteLease(ordinal int) func(*stage) {
	return func(s *stage) {
		if lease := s.lease(fmt.Sprintf("rss-db-%d.member", ordinal)); lease != nil {
			s.Say("# Lease %s is deleted", lease.Name)
			s.Delete(lease)
		}
	}
}

// loseServer cuts the API server off from a node. The nodes reach each other. If the Node stays Ready, only its pods
// do not reach the API server.
func loseServer(node string, isReady bool) func(*stage) {
	return func(s *stage) {
		s.Say("# %s does not reach the API server; its Node is Ready: %t", node, isReady)
		s.net.cut[node] = true
		kubelet.Turn(s.Cluster, node, isReady)
	}
}

// findServer ends that.
func findServer(node string) func(*stage) {
	return func(s *stage) {
		s.Say("# %s reaches the API server again", node)
		delete(s.net.cut, node)
		kubelet.Turn(s.Cluster, node, true)
	}
}

// freeze stops all processes of a container.
func freeze(s *stage, c *fakeContainer) {
	s.Say("# %s is frozen", c.id)
	c.frozen = true
}

// thaw continues them. The agent is scheduled before the program has an effect.
func thaw(s *stage, c *fakeContainer) {
	s.Say("# %s continues", c.id)
	c.frozen = false
	a := c.agent
	if a == nil {
		return
	}
	if a.nextAt.Before(s.Now) {
		a.nextAt = s.Now
	}
	if a.request != nil && a.request.answerAt.Before(s.Now) {
		a.request.answerAt = s.Now
	}
	s.keepUp()
}

// scrambleLeases runs random steps in random order, with faults of agents.
func (s *stage) scrambleLeases(chance *rand.Rand, steps int) {
	s.t.Helper()
	for range steps {
		switch n := chance.Intn(100); {
		case n < 80:
			s.scramble(chance, 1)
		case n < 86:
			s.between = s.another
			s.scramble(chance, 2)
			s.between = nil
		case n < 91:
			s.sleep(time.Duration(chance.Intn(12_000)) * time.Millisecond)
		case n < 95:
			s.executeLate(chance)
		default:
			s.leaseFault(chance)
		}
		s.check()
	}
}

// another is another operator that acts between the reads of this one, with all that follows at once.
func (s *stage) another() {
	s.two = true
	s.look()
	s.pass()
	s.keepUp()
	s.keepUp()
	for _, move := range s.db.moves() {
		move()
	}
	s.two = false
}

// executeLate executes a request of an agent that was late.
func (s *stage) executeLate(chance *rand.Rand) {
	if n := len(s.net.late); n > 0 {
		i := chance.Intn(n)
		execute := s.net.late[i]
		s.net.late = slices.Delete(s.net.late, i, i+1)
		execute()
	}
}

// leaseFault is a fault of a node, of a container, or of the API server, or ends one.
func (s *stage) leaseFault(chance *rand.Rand) {
	node := fmt.Sprintf("n%d", chance.Intn(3)+1)
	switch n := chance.Intn(10); {
	case n < 3 && s.net.cut[node]:
		findServer(node)(s)
	case n < 3 && s.up(node):
		loseServer(node, chance.Intn(2) == 0)(s)
	case n < 6:
		s.anyContainer(chance)
	case n < 7:
		deleteLease(chance.Intn(3))(s)
	case n < 8:
		s.serverAway(chance, time.Duration(chance.Intn(60))*time.Second)
	default:
		s.sleep(time.Duration(chance.Intn(40)) * time.Second)
	}
}

// anyContainer freezes a container of a member with a Lease, or lets it continue. A program without an agent would
// continue when another member is primary.
func (s *stage) anyContainer(chance *rand.Rand) {
	all := slices.DeleteFunc(s.db.all(), func(c *fakeContainer) bool { return c.agent == nil })
	if len(all) == 0 {
		return
	}
	if c := all[chance.Intn(len(all))]; c.frozen {
		thaw(s, c)
	} else {
		freeze(s, c)
	}
}

// serverAway is a time in which neither agents nor kubelets nor the operator reach the API server.
func (s *stage) serverAway(chance *rand.Rand, d time.Duration) {
	s.Say("# the API server is unreachable for %s", d)
	s.net.away = true
	for end := s.Now.Add(d); s.Now.Before(end); {
		s.sleep(min(end.Sub(s.Now), time.Second))
		if chance != nil && chance.Intn(5) == 0 {
			s.takesEffect(chance)
		}
		s.check()
	}
	s.net.away = false
}

// healLeases ends all faults, including those of agents.
func (s *stage) healLeases() {
	s.net.chance, s.net.cut = nil, map[string]bool{}
	for len(s.net.late) > 0 {
		s.executeLate(rand.New(rand.NewSource(1)))
	}
	for _, c := range s.db.all() {
		if c.frozen {
			thaw(s, c)
		}
	}
	s.heal()
}

// TestRandomOrdersWithLeases runs stories of members with Leases in random orders, while nodes are cut off, containers
// are frozen, requests are late, and the operator dies. Programs that are frozen do not count as primaries.
func TestRandomOrdersWithLeases(t *testing.T) {
	const orders = 4
	fenced := 0
	for _, story := range leaseScenarios {
		t.Run(story.name, func(t *testing.T) {
			first, count := simtest.Orders(orders)
			for seed := first; seed < first+count; seed++ {
				s := inAnyOrder(t, &story, int64(seed), true)
				s.isArmed()
				fenced += s.net.fenced
			}
		})
	}
	if fenced == 0 {
		t.Error("no agent has ended a container")
	}
}

// isArmed checks that the agents of all primaries are armed with the epoch of their grant, and no other agents.
func (s *stage) isArmed() {
	s.t.Helper()
	for _, c := range s.db.all() {
		a, want := c.agent, int64(0)
		if a == nil {
			continue
		}
		for _, g := range s.set().Status.Grants {
			if g.ContainerID == c.id {
				want = g.LeaseEpoch
			}
		}
		lease := s.lease(a.lease)
		holds := fencing.HolderOf(lease) == a.identity
		if a.shown != want || a.armed != (want > 0) || holds != (want > 0) {
			s.Fatal(s.t, fmt.Sprintf("%s is armed %t with epoch %d, want epoch %d; its Lease is %+v", c.id, a.armed, a.shown, want, lease))
		}
	}
}
