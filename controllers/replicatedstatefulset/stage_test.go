package replicatedstatefulset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// stage is a simulated cluster with an operator that runs one pass at a time.
type stage struct {
	t *testing.T
	*simulation.Cluster
	simtest.Verdict
	db        *fakeDB
	invariant *invariant
	r         *observe.Reader
	nodes     int
	net       network
	// room is the max cpu of a resized pod; 0 means any.
	room  int64
	moved map[string]string // new nodes for the pods of a node that is out of service
	// shown is the operator's cache, and at its version. since is the version that it must reach
	// before the next pass.
	shown     *objects.Objects
	at, since int
	// race, if set, runs between a live read and the writes that follow it.
	race func()
	// between, if set, runs between each live read of the object and the read of its Leases.
	between func()
	isLive  bool
	// two is true while another operator acts. It may not know a running command.
	two bool
	// hasty is an operator that does not wait until its cache shows its own writes.
	hasty bool
	// acted is when something other than a query was last done.
	acted time.Time
	// rule is the action of the last pass.
	rule string
	// mark are the pods at an earlier time, for comparison.
	mark []*corev1.Pod
	// book contains the entries of the webhooks.
	book map[types.UID]facts.Entry
}

// invariant is what must hold at every step of every story.
type invariant struct {
	s      *stage
	target int // the highest number of primaries wanted since all others stopped
}

// acting checks that there are never more primaries than wanted.
func (l *invariant) acting() {
	if now := l.s.db.acting(); len(now) > l.target {
		var ids []string
		for _, c := range now {
			ids = append(ids, c.pod+" ("+c.id+")")
		}
		l.s.Breaks("%d primaries act, and at most %d may: %s", len(now), l.target, strings.Join(ids, ", "))
	}
}

// parked checks that a member that is reported as parked gets no mutating command.
func (l *invariant) parked(c podexec.Command) {
	set := l.s.set()
	if set == nil || set.DeletionTimestamp != nil || spec.Asks(c.Name) {
		return
	}
	for _, m := range set.Status.Maintenance {
		wanted := slices.Contains(set.Spec.Maintenance, m.Pod)
		if wanted && m.Pod == c.Pod.Name && m.State == v1alpha1.MaintenanceParked {
			l.s.Breaks("%s is sent to %s, which is parked", c.Name, m.Pod)
		}
	}
}

// first checks that the first primary has every acknowledged entry.
func (l *invariant) first(c *fakeContainer, d *disk) {
	for _, entry := range l.s.db.acked {
		if !slices.Contains(d.log, entry) {
			l.s.Breaks("%s becomes the first primary, and lacks entry %d, which was acknowledged", c.pod, entry)
			return
		}
	}
}

func newStage(t *testing.T, set *v1alpha1.ReplicatedStatefulSet) *stage {
	c := simulation.New(fixture.Noon)
	s := &stage{t: t, Cluster: c, Verdict: simtest.VerdictOf(c), nodes: 5, moved: map[string]string{},
		net: network{cut: map[string]bool{}, begun: map[string]int{}}}
	s.db = newFakeDB(s)
	s.invariant = &invariant{s: s, target: int(max(1, ptr.Deref(set.Spec.Primaries, *set.Spec.Replicas)))}
	s.Send = s.db.send
	for i := range s.nodes {
		kubelet.Turn(s.Cluster, fmt.Sprintf("n%d", i+1), true)
	}
	s.Indexes = map[string]func(client.Object) string{configuration.IndexRestarts: func(o client.Object) string {
		return strings.Join(configuration.RestartIndex(facts.RestartsSince)(o), "")
	}}
	s.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	s.Put(set)
	s.restart()
	s.look()
	return s
}

// tick advances the time a little and returns it, so that no two events are simultaneous.
func (s *stage) tick() time.Time {
	s.Now = s.Now.Add(time.Millisecond)
	return s.Now
}

// restart starts a new operator process without the memory of the old one.
func (s *stage) restart() {
	s.db.forget()
	s.r = &observe.Reader{Live: liveReader{s}, Nodes: s.Cluster, Board: s.db, Now: s.tick, Book: observe.EvictionBook{Entries: s.book}}
	s.r.Config = &observe.ConfigReader{
		Reader:  configuration.Reader{Live: s.Cluster, Key: oneKey{}, Account: "system:operator", MaxBytes: observe.MaxConfigBytes},
		Turns:   configuration.Turns{Kind: "ReplicatedStatefulSet", Began: facts.RestartsSince, Wake: func(types.NamespacedName) {}},
		Secrets: &configuration.Secrets{},
	}
	s.look()
}

// look updates the operator's cache.
func (s *stage) look() {
	s.shown, s.at = s.Snapshot(cutAsCached), s.Writes()
	s.r.Cache, s.r.Config.Cache, s.r.Config.Turns.Cache = s.shown, s.shown, s.shown
}

func (s *stage) set() *v1alpha1.ReplicatedStatefulSet {
	var set v1alpha1.ReplicatedStatefulSet
	if s.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "db"}, &set) != nil {
		return nil
	}
	return &set
}

func (s *stage) statefulSet() *appsv1.StatefulSet {
	var set appsv1.StatefulSet
	if s.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "rss-db"}, &set) != nil {
		return nil
	}
	return &set
}

// pods returns the stored pods. They must not be modified.
func (s *stage) pods() (pods []*corev1.Pod) {
	for _, obj := range s.All {
		if p, ok := obj.(*corev1.Pod); ok {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

func (s *stage) pod(ordinal int) *corev1.Pod {
	for _, p := range s.pods() {
		if p.Name == fmt.Sprintf("rss-db-%d", ordinal) {
			return p
		}
	}
	return nil
}

func (s *stage) up(node string) bool {
	var n corev1.Node
	return s.Get(context.Background(), client.ObjectKey{Name: node}, &n) == nil && n.Status.Conditions[0].Status == corev1.ConditionTrue
}

// change is a user's change of the set.
func (s *stage) change(f func(*v1alpha1.ReplicatedStatefulSet)) {
	set := s.set()
	was := set.DeepCopy()
	f(set)
	if !apiequality.Semantic.DeepEqual(was.Spec, set.Spec) {
		set.Generation++
	}
	if n := int(ptr.Deref(set.Spec.Primaries, *set.Spec.Replicas)); n > s.invariant.target {
		s.invariant.target = n
	}
	s.Put(set)
}

// pass is Reconciler.pass with the writes of the fake database. It reports whether anything but
// queries was done, and when to run the next pass.
func (s *stage) pass() (acted bool, wait time.Duration) {
	s.keepUp()
	if s.net.away {
		return false, 0 // it cannot read the Leases
	}
	if s.at < s.since && !s.hasty {
		return false, 0 // its own writes are not in its cache yet
	}
	var cached v1alpha1.ReplicatedStatefulSet
	if s.shown.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "db"}, &cached) != nil {
		return s.afterDeletion(), 0
	}
	w := s.observe(&cached, engine.View{Reader: s.shown})
	p, raced := rules.Decide(w), s.race != nil
	if !p.AsksOnly() || p.LooksLive || w.Deleting() {
		set := s.set()
		if set == nil || set.UID != cached.UID {
			return false, 0
		}
		s.isLive = true
		w = s.observe(set, engine.View{Reader: s.Cluster, Live: true})
		s.isLive = false
		p = rules.Decide(w)
		if s.race != nil {
			s.race()
		}
	}
	isRaced := raced && s.race == nil
	rivals := s.two || isRaced || s.between != nil
	s.rule = p.Rule
	before := s.Writes()
	lines := len(s.Story)
	outcomes, alive := s.Apply(p.Steps)
	s.quiet(lines)
	s.noteNotSent(p.Steps, outcomes)
	for _, o := range outcomes {
		if errors.Is(o.Err, action.ErrNotBegun) && !rivals {
			s.Breaks("%s is sent while another command is running in the member", o.Action)
		}
		s.r.MemoryOf(w.Set).LearnResize(&o)
		s.r.MemoryOf(w.Set).LearnDryRun(w, &o)
	}
	if alive && p.AsksOnly() {
		alive = s.report(&p)
	}
	if !alive {
		s.restart()
	}
	s.since = s.Writes()
	if !p.AsksOnly() || s.Writes() > before+len(outcomes) {
		s.acted = s.Now
	}
	return s.Writes() > before, p.Wait
}

// noteNotSent stores the results of commands that were not sent because a write failed after the record was written, as
// the Runner does.
func (s *stage) noteNotSent(steps action.Steps, outcomes []action.Outcome) {
	for _, chain := range slices.Concat(steps...) {
		last, isStored := chain[len(chain)-1], false
		if last.Verb != action.Exec {
			continue
		}
		for _, a := range chain[:len(chain)-1] {
			i := slices.IndexFunc(outcomes, func(o action.Outcome) bool { return o.Verb == a.Verb && o.Object == a.Object })
			if isStored && i >= 0 && outcomes[i].Err != nil {
				s.db.notSent(*last.Command, outcomes[i].Err.Error())
			}
			isStored = isStored || a.Verb == action.PatchStatus
		}
	}
}

// afterDeletion is Reconciler.afterDeletion: it releases the pods of a deleted set.
func (s *stage) afterDeletion() bool {
	before := s.Writes()
	for _, p := range s.pods() {
		if m := (&facts.Member{Pod: p}); s.set() == nil && m.Protected() {
			s.Apply(action.Steps{{action.Chain{rules.Unprotect(m)}}})
		}
	}
	return s.Writes() > before
}

// quiet removes queries and dry runs from the story.
func (s *stage) quiet(from int) {
	s.Story = append(s.Story[:from], slices.DeleteFunc(s.Story[from:], func(line string) bool {
		return strings.Contains(line, ": Ask, ") || strings.Contains(line, ": Trial, ")
	})...)
}

func (s *stage) observe(set *v1alpha1.ReplicatedStatefulSet, from engine.View) *facts.World {
	w, err := s.r.Observe(context.Background(), set, from)
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

func (s *stage) report(p *rules.Plan) (alive bool) {
	w := p.On.World
	status := status.Summarize(p)
	if apiequality.Semantic.DeepEqual(w.Set.Status, status) {
		return true
	}
	set := w.Set.DeepCopy()
	set.Status = status
	lines := len(s.Story)
	_, alive = s.Apply(action.Steps{{{{Verb: action.PatchStatus, Object: set, From: w.Set, Reason: "Observed"}}}})
	if alive {
		s.Story = s.Story[:lines] // the status is shown where the set comes to rest
	}
	return alive
}

// settle lets all actors act in turn until nothing changes, or for that long.
func (s *stage) settle(patience time.Duration) {
	s.t.Helper()
	s.acted = s.Now
	for range 5000 {
		s.look()
		acted, wait := s.pass()
		s.check()
		machines := s.machines()
		if len(machines) > 0 {
			s.acted = s.Now
		}
		moves := slices.Concat(machines, s.db.moves())
		for _, move := range moves {
			move()
			s.check()
		}
		s.tick()
		s.keepUp()
		rests := wait == 0 || s.Now.Add(wait).Sub(s.acted) > patience
		if s.isExpiring() || s.db.waits() { // a change of a Lease triggers a pass
			rests, wait = false, 2*time.Second
		}
		if (acted || len(moves) > 0) && s.Now.Sub(s.acted) < patience+time.Minute {
			continue
		}
		if rests {
			if set := s.set(); set != nil {
				s.invariant.target = int(max(1, ptr.Deref(set.Spec.Primaries, *set.Spec.Replicas)))
			}
			return
		}
		s.sleep(wait)
	}
	s.Fatal(s.t, "the set is still being changed after the time limit")
}

func (s *stage) check() {
	s.t.Helper()
	s.keepUp()
	s.invariant.acting()
	s.invariant.granted()
	s.Check(s.t)
}

// tell adds to the story the status that a user sees at rest.
func (s *stage) tell() {
	st := s.set().Status
	s.Say("= %s: ready %v primary %v secondary %v failed %v", st.Phase, st.Members.Ready, st.Members.Primary, st.Members.Secondary, st.Members.Failed)
}

func cutAsCached(obj client.Object) client.Object {
	cut, err := observe.CutPod(obj)
	if err != nil {
		panic(err)
	}
	return cut.(client.Object)
}
