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
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest/objects"
)

// stage is a simulated cluster with operators in it, and with the truth: what really
// runs on its machines, whatever the API shows.
type stage struct {
	t *testing.T
	*simtest.Cluster
	invariant *invariant
	operators []*operator
	acting    *operator // whose turn it is
	machines  []*machine
	bodies    map[types.UID]*body
	// object is what the user made last, for making it again.
	object *v1.StatefulSingleton
	// madeAt is when; for a moment, no webhook knows the object yet.
	madeAt time.Time
	letter int
	queue  []string // the moves of this round
	// chance is nil where everything goes its usual way.
	chance *rand.Rand
	// failing is the write that goes wrong, and how.
	failing func(n int, a action.Action) (before, after error)
}

var key = types.NamespacedName{Namespace: "ns", Name: "db"}

func newStage(t *testing.T, operators int) *stage {
	s := &stage{t: t, Cluster: simtest.New(noon), bodies: map[types.UID]*body{}}
	s.invariant = newInvariant(s)
	s.Changed = s.invariant.changed
	s.Interfere = s.interfere
	for _, name := range []string{"n1", "n2", "n3"} {
		s.machines = append(s.machines, &machine{name: name, on: true, reachable: true})
		s.putNode(name, corev1.ConditionTrue)
	}
	s.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}})
	for i := range operators {
		o := &operator{s: s, name: string(rune('A' + i))}
		o.restart()
		s.operators = append(s.operators, o)
	}
	return s
}

// interfere comes before each write of an operator.
func (s *stage) interfere(n int, a action.Action) (before, after error) {
	if !s.acting.pause() {
		return simtest.ErrKilled, nil
	}
	if s.failing != nil {
		return s.failing(n, a)
	}
	return nil, nil
}

// make makes the object, as the user wants it. A pass that has made sure that
// there is none ends before: pods of an object that is gone are let go without a
// lock, and what keeps them from a new object is that it settles.
func (s *stage) make(object *singletonFixture) {
	for _, o := range s.operators {
		if o.objects > 1 {
			o.finish()
		}
	}
	object.UID = ""
	s.object = withDefaults(&object.StatefulSingleton)
	s.Put(s.object)
	s.madeAt = s.Now
}

// now is the object as it is; nil if there is none.
func (s *stage) now() *v1.StatefulSingleton {
	var object v1.StatefulSingleton
	if s.Get(context.Background(), key, &object) != nil {
		return nil
	}
	return &object
}

// edit changes an object that is there, as another client than the operator.
func edit[T client.Object](s *stage, obj T, change func(T)) {
	if have, exists := s.All[objects.KeyOf(obj)].(T); exists {
		next := objects.Clone(have)
		change(next)
		s.Put(next)
	}
}

// every lists all objects of a kind, by name.
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

// move is a step that another client than an operator could take now.
type move struct {
	key string
	do  func()
}

func (s *stage) moves() []move {
	return slices.Concat(s.ownerMoves(), s.controlPlaneMoves(), s.kubeletMoves())
}

// moveOne makes the next move; each that could be made in a round is made once.
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

// react lets all operators look that something woke; false if nothing did.
func (s *stage) react() (busy bool) {
	for _, o := range s.operators {
		busy = o.react() || busy
		s.Check(s.t)
	}
	return busy
}

// settle lets all act in turn until nothing moves and no operator wants to look
// again within patience. Operators look when something wakes them, and only then.
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
	s.Fatal(s.t, "it does not come to rest")
}

// tick moves the clock; not so far that a Node which was deleted by mistake
// would count as the word of an administrator.
func (s *stage) tick(d time.Duration) {
	for _, m := range s.machines {
		if limit := m.missingSince.Add(fenceAfter - 5*time.Second); m.on && !m.missingSince.IsZero() && s.Now.Add(d).After(limit) {
			d = max(limit.Sub(s.Now), 0)
		}
	}
	s.Now = s.Now.Add(d)
}

// habits are how a random order differs from another one.
type habits struct {
	looks int // how often a cache shows what there is, of 20 times
	naps  int // how often an operator falls asleep or wakes, of 20 times
	first int // how often it is the turn of the first operator, of 20 times
	slow  int // how slowly time passes
}

func (s *stage) drawHabits() habits {
	return habits{looks: 1 + s.chance.Intn(2)*15, naps: 1 + s.chance.Intn(2)*8, first: 3 + s.chance.Intn(15), slow: 1 + s.chance.Intn(2)*29}
}

// scramble lets anything happen in any order for a while.
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
			s.Say("! operator %s restarts", o.name)
			o.restart()
		}
		s.Check(s.t)
	}
}

// failures are the ways in which one write can go wrong.
var failures = []simtest.Failure{simtest.DiesBefore, simtest.DiesAfter, simtest.NoAnswer, simtest.Fails}

func (s *stage) failNth(nth, way int) { s.failing = failures[way].At(s.Cluster, nth) }

// tell adds to the story what a user sees at rest.
func (s *stage) tell() {
	o := s.now()
	if o == nil {
		s.Say("= there is no StatefulSingleton")
		return
	}
	waits := strings.Join(o.Status.Waiting, ", ")
	s.Say("= %s, active: %s, waiting: %s", o.Status.Phase, orNone(o.Status.ActivePod), orNone(waits))
	for _, c := range slices.DeleteFunc(o.Status.Conditions, isSilent) {
		s.Say("= %s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
