package replicatedstatefulset

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// inAnyOrder runs the steps of a story among random steps, then ends all faults, and checks the end. With Leases, there
// are also faults of agents.
func inAnyOrder(t *testing.T, story *scenario, seed int64, leases bool) *stage {
	t.Helper()
	chance := rand.New(rand.NewSource(seed))
	set := story.set.DeepCopy()
	if !leases && seed%5 == 4 && set.Spec.Failover == nil && len(set.Spec.Pod.VolumeClaimTemplates) > 0 {
		set = fixture.LosingAtMost(0, set)
	}
	s := newStage(t, set)
	s.Say("order %d", seed)
	if seed%3 > 0 { // and some from the very beginning
		s.settle(story.wait)
	}
	s.Shuffle = chance
	scramble, heal, least := s.scramble, s.heal, 20
	if leases {
		s.Net.Chance = chance
		scramble, heal, least = s.scrambleLeases, s.healLeases, 50
	}
	if seed%2 == 0 {
		s.meddle(chance)
	}
	for _, step := range story.steps {
		scramble(chance, least+chance.Intn(150))
		if s.Set() != nil {
			step(s)
		}
	}
	scramble(chance, 200)
	heal()
	s.settle(2 * time.Minute)
	for range 3 { // failures lapse, and the deadline of a resize in place passes for one member after another
		s.sleep(15 * time.Minute)
		s.settle(2 * time.Minute)
	}
	s.ends(story)
	return s
}

// scramble runs random steps in random order.
func (s *stage) scramble(chance *rand.Rand, steps int) {
	s.t.Helper()
	for range steps {
		s.Tick()
		switch n := chance.Intn(100); {
		case n < 25:
			s.any(chance, s.Machines())
		case n < 45:
			s.anyCommand(chance)
		case n < 70:
			s.Hasty = chance.Intn(10) == 0
			switch chance.Intn(8) {
			case 0, 1:
				s.Race = func() { s.any(chance, s.Machines()) }
			case 2:
				s.Race = s.rival
			}
			s.pass()
			s.Hasty, s.Race = false, nil
		case n < 85:
			s.Look()
		case n < 92:
			s.Now = s.Now.Add(time.Duration(chance.Intn(3000)) * time.Millisecond)
		case n < 95:
			write(s)
		case n < 97:
			s.takesEffect(chance)
		case n < 98:
			s.Say("# the operator restarts")
			s.restart()
		default:
			s.misfortune(chance)
		}
		s.check()
	}
}

// rival is another operator that acts between the reads and the writes of this one.
func (s *stage) rival() {
	s.Race, s.Two = nil, true
	s.Look()
	s.pass()
	s.Two = false
}

// misfortune affects a member, a node, or all requests to the API server.
func (s *stage) misfortune(chance *rand.Rand) {
	member, node := chance.Intn(3), fmt.Sprintf("n%d", chance.Intn(3)+1)
	switch n := chance.Intn(12); {
	case s.Set() == nil, n < 4:
		crash(member)(s)
	case n < 6:
		deleted(member)(s)
	case n < 7 && spec.NeedsFinalizer(spec.WithDefaults(s.Set())):
		forced(member)(s)
	case n < 9 && s.Up(node):
		partition(node)(s)
	case n < 9 && s.moved[node] == "":
		s.Say("# %s is reachable again", node)
		kubelet.Turn(s.Cluster, node, true)
	case n < 10 && len(s.moved) == 0:
		powerOff(node)(s)
		outOfService(node)(s)
	default:
		s.outage(chance)
	}
}

// outage is a time without an API server: nothing acts, streams break, and running containers go on
// or crash.
func (s *stage) outage(chance *rand.Rand) {
	s.Say("# the API server is unreachable")
	s.Net.Away = true
	defer func() { s.Net.Away = false }()
	for _, uid := range sortedKeys(s.db.Running) {
		s.db.End(s.db.Running[uid], []simulate.End{simulate.Unsent, simulate.Unanswered, simulate.Delayed}[chance.Intn(3)])
		s.check()
	}
	if chance.Intn(2) == 0 {
		crash(chance.Intn(3))(s)
	}
	s.takesEffect(chance)
	for end := s.Now.Add(time.Duration(chance.Intn(60)) * time.Second); s.Now.Before(end); s.Now = s.Now.Add(time.Duration(chance.Intn(10000)) * time.Millisecond) {
		s.inVain()
	}
}

// inVain is a pass without an API server: it decides on cached data, and its queries are never
// sent.
func (s *stage) inVain() {
	if s.KeepUp(); s.HasLeases() {
		return // a pass that cannot read the Leases does nothing
	}
	var cached v1alpha1.ReplicatedStatefulSet
	if s.Reader.Cache.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "db"}, &cached) != nil {
		return
	}
	if p := rules.Decide(s.observe(&cached, engine.View{Reader: s.Reader.Cache})); p.AsksOnly() {
		for _, chain := range slices.Concat(p.Steps...) {
			for _, a := range chain {
				s.db.Send(*a.Command)
			}
		}
	}
	for _, uid := range sortedKeys(s.db.Running) {
		s.db.End(s.db.Running[uid], simulate.Unsent)
	}
}

// takesEffect applies one delayed effect of a command whose result is no longer awaited.
func (s *stage) takesEffect(chance *rand.Rand) {
	if n := len(s.db.Late); n > 0 {
		i := chance.Intn(n)
		late := s.db.Late[i]
		s.db.Late = slices.Delete(s.db.Late, i, i+1)
		late()
	}
}

func (s *stage) any(chance *rand.Rand, moves []func()) {
	if len(moves) > 0 {
		moves[chance.Intn(len(moves))]()
	}
}

// anyCommand lets a random command go on, or end in one of the possible ways.
func (s *stage) anyCommand(chance *rand.Rand) {
	keys := sortedKeys(s.db.Running)
	if len(keys) == 0 {
		return
	}
	c := s.db.Running[keys[chance.Intn(len(keys))]]
	switch n := chance.Intn(100); {
	case !c.HasArrived() && n < 50:
		s.db.Arrive(c)
	case s.db.Hangs[c.Pod.Name+" "+c.Name]:
		s.any(chance, s.db.Moves())
	case n < 80:
		s.db.End(c, simulate.Ends)
	default:
		how := []simulate.End{simulate.Unsent, simulate.Unanswered, simulate.Delayed, simulate.Fails}[n%4]
		if spec.Starts(c.Name) && n >= 90 {
			how = simulate.Premature
		}
		s.db.End(c, how)
	}
}

// meddle makes some writes fail, loses their responses, or kills the operator.
func (s *stage) meddle(chance *rand.Rand) {
	s.Interfere = func(int, action.Action) (before, after error) {
		err := apierrors.NewInternalError(errors.New("injected failure"))
		switch chance.Intn(60) {
		case 0, 1:
			return err, nil
		case 2, 3:
			return nil, err
		case 4:
			return simulation.ErrKilled, nil
		case 5:
			return nil, simulation.ErrKilled
		}
		return nil, nil
	}
}

// heal ends all failures, and delivers all requests in flight.
func (s *stage) heal() {
	s.Say("# all failures end")
	s.Interfere, s.db.Hangs, s.db.Fails = nil, map[string]bool{}, map[string]int{}
	for i := range s.nodes {
		if name := fmt.Sprintf("n%d", i+1); !s.Up(name) && s.moved[name] == "" {
			kubelet.Turn(s.Cluster, name, true)
		}
	}
	effect(s)
}
