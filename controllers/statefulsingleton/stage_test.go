package statefulsingleton

import (
	"context"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// stage is a simulated cluster with operators. It also records the programs that really run
// on its machines, regardless of the API.
type stage struct {
	t *testing.T
	*simulation.Cluster
	simtest.Verdict
	invariant *invariant
	operators []*operator
	acting    *operator // the one that acts now
	machines  []*machine
	bodies    map[types.UID]*body
	// object is the last object that the user created, to recreate it.
	object *v1.StatefulSingleton
	// madeAt is when it was created. Shortly after that no webhook knows the object.
	madeAt time.Time
	letter int
	queue  []string // the moves of this round
	// chance is nil if everything happens in the usual order.
	chance *rand.Rand
	// failing selects the write that fails, and how.
	failing func(n int, a action.Action) (before, after error)
}

func newStage(t *testing.T, operators int) *stage {
	c := simulation.New(fixture.Noon)
	s := &stage{t: t, Cluster: c, Verdict: simtest.VerdictOf(c), bodies: map[types.UID]*body{}}
	s.invariant = newInvariant(s)
	s.Changed = s.invariant.changed
	s.Interfere = s.interfere
	for _, name := range []string{"n1", "n2", "n3"} {
		s.machines = append(s.machines, &machine{name: name, on: true, reachable: true})
		s.putNode(name, corev1.ConditionTrue)
	}
	s.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Key.Namespace}})
	for i := range operators {
		o := &operator{s: s, name: string(rune('A' + i))}
		o.restart()
		s.operators = append(s.operators, o)
	}
	return s
}

// interfere is called before each write of an operator.
func (s *stage) interfere(n int, a action.Action) (before, after error) {
	if !s.acting.pause() {
		return simulation.ErrKilled, nil
	}
	if s.failing != nil {
		return s.failing(n, a)
	}
	return nil, nil
}

// make creates the object for the user. A pass that has already found that there is no
// object ends first: pods of a deleted object are released without a lock, and only
// SettleAfter protects a new object from that.
func (s *stage) make(object *fixture.SingletonFixture) {
	for _, o := range s.operators {
		if o.objects > 1 {
			o.finish()
		}
	}
	object.UID = ""
	s.object = spec.WithDefaults(&object.StatefulSingleton)
	s.Put(s.object)
	s.madeAt = s.Now
}

// now returns the current object; nil if there is none.
func (s *stage) now() *v1.StatefulSingleton {
	var object v1.StatefulSingleton
	if s.Get(context.Background(), fixture.Key, &object) != nil {
		return nil
	}
	return &object
}

// edit changes an existing object as a client other than the operator.
func edit[T client.Object](s *stage, obj T, change func(T)) {
	if have, exists := s.All[objects.KeyOf(obj)].(T); exists {
		next := objects.Clone(have)
		change(next)
		s.Put(next)
	}
}

// every returns all objects of a kind, by name.
func every[T any, P interface {
	*T
	client.Object
}](s *stage) (found []P) {
	for _, obj := range s.All {
		if o, ok := obj.(P); ok {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b P) int { return strings.Compare(a.GetName(), b.GetName()) })
	return found
}

func (s *stage) pods() []*corev1.Pod { return every[corev1.Pod](s) }

// move is a possible step of a client other than an operator.
type move struct {
	key string
	do  func()
}

func (s *stage) moves() []move {
	return slices.Concat(s.ownerMoves(), s.controlPlaneMoves(), s.kubeletMoves())
}

// moveOne makes the next move. Each possible move is made once per round.
func (s *stage) moveOne() bool {
	moves := s.moves()
	find := func() bool {
		for len(s.queue) > 0 {
			i := slices.IndexFunc(moves, func(m move) bool { return m.key == s.queue[0] })
			s.queue = s.queue[1:]
			if i >= 0 {
				moves[i].do()
				return true
			}
		}
		return false
	}
	if find() {
		return true
	}
	for _, m := range moves {
		s.queue = append(s.queue, m.key)
	}
	return find()
}

// react lets all operators with queued keys make a pass; it returns false if there are none
// queued.
func (s *stage) react() (busy bool) {
	for _, o := range s.operators {
		busy = o.react() || busy
		s.Check(s.t)
	}
	return busy
}

// settle lets all act in turn until nothing moves and no operator requeues its key within
// patience. Operators act only when something queues their key.
func (s *stage) settle(patience time.Duration) {
	for range 3000 {
		if s.react() {
			s.tick(10 * time.Millisecond)
			continue
		}
		if s.moveOne() {
			s.Check(s.t)
			s.tick(100 * time.Millisecond)
			continue
		}
		var next time.Time
		for _, o := range s.operators {
			if !o.due.IsZero() && o.idle < 70 && (next.IsZero() || o.due.Before(next)) {
				next = o.due
			}
		}
		if next.IsZero() || next.After(s.Now.Add(patience)) {
			return
		}
		s.tick(next.Sub(s.Now))
	}
	s.Fatal(s.t, "the state does not come to rest")
}

// tick advances the clock, but not so far that a Node that was deleted by mistake would
// count as off.
func (s *stage) tick(d time.Duration) {
	for _, m := range s.machines {
		if limit := m.missingSince.Add(spec.FenceAfter - 5*time.Second); m.on && !m.missingSince.IsZero() && s.Now.Add(d).After(limit) {
			d = max(limit.Sub(s.Now), 0)
		}
	}
	s.Now = s.Now.Add(d)
}

// habits are the parameters of a random order.
type habits struct {
	looks int // how often a cache is updated, of 20 times
	naps  int // how often an operator falls asleep or wakes, of 20 times
	first int // how often the first operator acts, of 20 times
	slow  int // how slowly time passes
}

func (s *stage) drawHabits() habits {
	return habits{looks: 1 + s.chance.Intn(2)*15, naps: 1 + s.chance.Intn(2)*8, first: 3 + s.chance.Intn(15), slow: 1 + s.chance.Intn(2)*29}
}

// scramble makes moves in random order for a while.
func (s *stage) scramble(steps int) {
	h := s.drawHabits()
	mayBe := func(of20 int) bool { return s.chance.Intn(20) < of20 }
	for range steps {
		o := s.operators[0]
		if !mayBe(h.first) {
			o = s.operators[1]
		}
		switch n := s.chance.Intn(100); {
		case n < 40:
			if moves := s.moves(); len(moves) > 0 {
				moves[s.chance.Intn(len(moves))].do()
			}
		case n < 78:
			if !o.asleep {
				o.step()
			}
		case n < 87:
			if mayBe(h.looks) {
				o.look()
			}
		case n < 94:
			s.tick(time.Duration(s.chance.Intn(1500)/h.slow) * time.Millisecond)
		case n < 98:
			o.asleep = o.asleep != mayBe(h.naps)
		case n < 99:
			crashOne.do(s)
		default:
			s.Say("# operator %s restarts", o.name)
			o.restart()
		}
		s.Check(s.t)
	}
}

// failures are the ways in which one write can fail.
var failures = []simulation.Failure{simulation.DiesBefore, simulation.DiesAfter, simulation.NoAnswer, simulation.Fails}

func (s *stage) failNth(nth, way int) { s.failing = failures[way].At(s.Cluster, nth) }

// tell adds to the story the state at rest as a user sees it.
func (s *stage) tell() {
	o := s.now()
	if o == nil {
		s.Say("= the StatefulSingleton does not exist")
		return
	}
	waits := strings.Join(o.Status.Waiting, ", ")
	s.Say("= %s, active: %s, waiting: %s", o.Status.Phase, orNone(o.Status.ActivePod), orNone(waits))
	for _, c := range slices.DeleteFunc(o.Status.Conditions, fixture.IsSilent) {
		s.Say("= %s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
