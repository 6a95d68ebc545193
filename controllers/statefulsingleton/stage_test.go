package statefulsingleton

import (
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// stage is a simulation in a test, with several operators.
type stage struct {
	t *testing.T
	*simulate.Simulation
	simtest.Verdict
	invariant *invariant
	operators []*simulate.Operator
	// object is the last object that the user created, to recreate it.
	object *v1.StatefulSingleton
	// madeAt is when it was created. Shortly after that no webhook knows the object.
	madeAt time.Time
	queue  []string // the moves of this round
	// chance is nil if everything happens in the usual order.
	chance *rand.Rand
	// failing selects the write that fails, and how.
	failing func(n int, a action.Action) (before, after error)
}

func newStage(t *testing.T, operators int) *stage {
	c := simulation.New(fixture.Noon)
	for _, name := range []string{"n1", "n2", "n3"} {
		c.Put(newNode(name))
	}
	c.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Key.Namespace}})
	s := &stage{t: t, Simulation: simulate.New(c, fixture.Key), Verdict: simtest.VerdictOf(c)}
	s.Around = fixture.Around()
	s.invariant = newInvariant(s)
	s.Changed = s.invariant.changed
	s.Interfere = s.interfere
	s.Hooks = simulate.Hooks{Lives: s.invariant.lives, Blind: s.blind, Wakes: wakes, Cut: cutAsCached,
		Stale: func() bool { return s.chance != nil && s.chance.Intn(2) == 0 }}
	for i := range operators {
		s.operators = append(s.operators, s.Start(string(rune('A'+i))))
	}
	return s
}

// newNode returns a Ready Node.
func newNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}

// interfere is called before each write of an operator.
func (s *stage) interfere(n int, a action.Action) (before, after error) {
	if !s.Acting.Pause() {
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
		if o.ObjectReads > 1 {
			o.Finish()
		}
	}
	object.UID = ""
	s.object = spec.WithDefaults(&object.StatefulSingleton)
	s.Put(s.object)
	s.madeAt = s.Now
}

// edit changes an existing object as a client other than the operator.
func edit[T client.Object](s *stage, obj T, change func(T)) { simulate.Edit(s.Cluster, obj, change) }

// every returns all objects of a kind, by name.
func every[T any, P interface {
	*T
	client.Object
}](s *stage) []P {
	return simulate.Every[T, P](s.Cluster)
}

// moveOne makes the next move. Each possible move is made once per round.
func (s *stage) moveOne() bool {
	moves := s.Moves()
	find := func() bool {
		for len(s.queue) > 0 {
			i := slices.IndexFunc(moves, func(m simulate.Move) bool { return m.Key == s.queue[0] })
			s.queue = s.queue[1:]
			if i >= 0 {
				moves[i].Do()
				return true
			}
		}
		return false
	}
	if find() {
		return true
	}
	for _, m := range moves {
		s.queue = append(s.queue, m.Key)
	}
	return find()
}

// react lets all operators with queued keys make a pass; it returns false if there are none
// queued.
func (s *stage) react() (busy bool) {
	for _, o := range s.operators {
		busy = react(o) || busy
		s.Check(s.t)
	}
	return busy
}

// react finishes the current pass of an operator, and makes another one if something queues the key.
func react(o *simulate.Operator) bool {
	busy := o.Finish()
	o.Asleep = false
	o.Look()
	if o.Queued() {
		o.Pass()
		return true
	}
	return busy
}

// settle lets all act in turn until nothing moves and no operator requeues its key within
// patience. Operators act only when something queues their key.
func (s *stage) settle(patience time.Duration) {
	busy := 0
	for range 3000 {
		if s.react() {
			// Two operators overwrite the status of each other until both remember for a minute
			// why a pod does not start.
			if busy++; busy > 100 {
				s.tick(time.Second)
			}
			s.tick(10 * time.Millisecond)
			continue
		}
		busy = 0
		if s.moveOne() {
			s.Check(s.t)
			s.tick(100 * time.Millisecond)
			continue
		}
		var next time.Time
		for _, o := range s.operators {
			if !o.Due.IsZero() && o.Idle < 70 && (next.IsZero() || o.Due.Before(next)) {
				next = o.Due
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
	for _, m := range s.Machines {
		if limit := m.MissingSince.Add(spec.FenceAfter - 5*time.Second); m.On && !m.MissingSince.IsZero() && s.Now.Add(d).After(limit) {
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
			if moves := s.Moves(); len(moves) > 0 {
				moves[s.chance.Intn(len(moves))].Do()
			}
		case n < 78:
			if !o.Asleep {
				o.Step()
			}
		case n < 87:
			if mayBe(h.looks) {
				o.Look()
			}
		case n < 94:
			s.tick(time.Duration(s.chance.Intn(1500)/h.slow) * time.Millisecond)
		case n < 98:
			o.Asleep = o.Asleep != mayBe(h.naps)
		case n < 99:
			crashOne.do(s)
		default:
			s.Say("# operator %s restarts", o.Name)
			o.Restart()
		}
		s.Check(s.t)
	}
}

// failures are the ways in which one write can fail.
var failures = []simulation.Failure{simulation.DiesBefore, simulation.DiesAfter, simulation.NoAnswer, simulation.Fails}

func (s *stage) failNth(nth, way int) { s.failing = failures[way].At(s.Cluster, nth) }

// tell adds to the story the state at rest as a user sees it.
func (s *stage) tell() {
	o := s.Object()
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
