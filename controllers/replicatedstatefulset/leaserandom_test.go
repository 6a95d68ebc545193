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
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/simulate"
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
		if lease := s.Lease(fmt.Sprintf("rss-db-%d.member", ordinal)); lease != nil {
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
		s.Net.Cut[node] = true
		kubelet.Turn(s.Cluster, node, isReady)
	}
}

// findServer ends that.
func findServer(node string) func(*stage) {
	return func(s *stage) {
		s.Say("# %s reaches the API server again", node)
		delete(s.Net.Cut, node)
		kubelet.Turn(s.Cluster, node, true)
	}
}

// freeze stops all processes of a container.
func freeze(s *stage, c *simulate.Container) {
	s.Say("# %s is frozen", c.ID)
	c.Frozen = true
}

// thaw continues them.
func thaw(s *stage, c *simulate.Container) {
	s.Say("# %s continues", c.ID)
	c.Thaw(s.Simulation)
}

// scrambleLeases runs random steps in random order, with faults of agents.
func (s *stage) scrambleLeases(chance *rand.Rand, steps int) {
	s.t.Helper()
	for range steps {
		switch n := chance.Intn(100); {
		case n < 80:
			s.scramble(chance, 1)
		case n < 86:
			s.Between = s.another
			s.scramble(chance, 2)
			s.Between = nil
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
	s.Two = true
	s.Look()
	s.pass()
	s.KeepUp()
	s.KeepUp()
	for _, move := range s.db.Moves() {
		move()
	}
	s.Two = false
}

// executeLate executes a request of an agent that was late.
func (s *stage) executeLate(chance *rand.Rand) {
	if n := len(s.Net.Late); n > 0 {
		i := chance.Intn(n)
		execute := s.Net.Late[i]
		s.Net.Late = slices.Delete(s.Net.Late, i, i+1)
		execute()
	}
}

// leaseFault is a fault of a node, of a container, or of the API server, or ends one.
func (s *stage) leaseFault(chance *rand.Rand) {
	node := fmt.Sprintf("n%d", chance.Intn(3)+1)
	switch n := chance.Intn(10); {
	case n < 3 && s.Net.Cut[node]:
		findServer(node)(s)
	case n < 3 && s.Up(node):
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
	all := slices.DeleteFunc(s.db.All(), func(c *simulate.Container) bool { return c.Agent == nil })
	if len(all) == 0 {
		return
	}
	if c := all[chance.Intn(len(all))]; c.Frozen {
		thaw(s, c)
	} else {
		freeze(s, c)
	}
}

// serverAway is a time in which neither agents nor kubelets nor the operator reach the API server.
func (s *stage) serverAway(chance *rand.Rand, d time.Duration) {
	s.Say("# the API server is unreachable for %s", d)
	s.Net.Away = true
	for end := s.Now.Add(d); s.Now.Before(end); {
		s.sleep(min(end.Sub(s.Now), time.Second))
		if chance != nil && chance.Intn(5) == 0 {
			s.takesEffect(chance)
		}
		s.check()
	}
	s.Net.Away = false
}

// healLeases ends all faults, including those of agents.
func (s *stage) healLeases() {
	s.Net.Chance, s.Net.Cut = nil, map[string]bool{}
	for len(s.Net.Late) > 0 {
		s.executeLate(rand.New(rand.NewSource(1)))
	}
	for _, c := range s.db.All() {
		if c.Frozen {
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
				fenced += s.Net.Fenced
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
	for _, c := range s.db.All() {
		a, want := c.Agent, int64(0)
		if a == nil {
			continue
		}
		for _, g := range s.Set().Status.Grants {
			if g.ContainerID == c.ID {
				want = g.LeaseEpoch
			}
		}
		lease := s.Lease(a.Lease)
		holds := fencing.HolderOf(lease) == a.Identity
		if a.Shown != want || a.Armed != (want > 0) || holds != (want > 0) {
			s.Fatal(s.t, fmt.Sprintf("%s is armed %t with epoch %d, want epoch %d; its Lease is %+v", c.ID, a.Armed, a.Shown, want, lease))
		}
	}
}
