package replicatedstatefulset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// stage is a simulation with what must hold at each of its steps.
type stage struct {
	t *testing.T
	*simulate.Simulation
	simtest.Verdict
	db        *simulate.Database
	invariant *invariant
	nodes     int
	moved     map[string]string // new nodes for the pods of a node that is out of service
	// mark are the pods at an earlier time, for comparison.
	mark []*corev1.Pod
	// acked are the acknowledged entries, and entries is the number of all entries.
	acked   []int
	entries int
}

// invariant is what must hold at every step of every story.
type invariant struct {
	s      *stage
	target int // the highest number of primaries wanted since all others stopped
}

// acting checks that there are never more primaries than wanted.
func (l *invariant) acting() {
	if now := l.s.db.Acting(); len(now) > l.target {
		var ids []string
		for _, c := range now {
			ids = append(ids, c.Pod+" ("+c.ID+")")
		}
		l.s.Breaks("%d primaries act, and at most %d may: %s", len(now), l.target, strings.Join(ids, ", "))
	}
}

// parked checks that a member that is reported as parked gets no mutating command.
func (l *invariant) parked(c podexec.Command) {
	set := l.s.Set()
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

// overlaps records that a command was sent while another one is running in the member.
func (l *invariant) overlaps(a action.Action) {
	l.s.Breaks("%s is sent while another command is running in the member", a)
}

// first checks that the first primary has every acknowledged entry.
func (l *invariant) first(c *simulate.Container, d *simulate.Disk) {
	for _, entry := range l.s.acked {
		if !slices.Contains(d.Log, entry) {
			l.s.Breaks("%s becomes the first primary, and lacks entry %d, which was acknowledged", c.Pod, entry)
			return
		}
	}
}

// granted checks that each member with a Lease that acts as primary has a grant on record.
func (l *invariant) granted() {
	set := l.s.Set()
	for _, c := range l.s.db.Acting() {
		if c.Agent == nil || set == nil {
			continue
		}
		if !slices.ContainsFunc(set.Status.Grants, func(g v1alpha1.Grant) bool { return g.Pod == c.Pod }) {
			l.s.Breaks("%s acts as primary without a grant", c.ID)
		}
	}
}

// ourKey is the key of the set.
var ourKey = types.NamespacedName{Namespace: "ns", Name: "db"}

func newStage(t *testing.T, set *v1alpha1.ReplicatedStatefulSet) *stage {
	c := simulation.New(fixture.Noon)
	s := &stage{t: t, Simulation: simulate.New(c, ourKey), Verdict: simtest.VerdictOf(c), nodes: 5, moved: map[string]string{}}
	s.db, s.invariant = s.DB, &invariant{s: s, target: int(max(1, ptr.Deref(set.Spec.Primaries, *set.Spec.Replicas)))}
	s.db.Sends, s.db.First, s.db.Promoted = s.invariant.parked, s.invariant.first, s.invariant.acting
	s.Overlaps, s.Place, s.Config = s.invariant.overlaps, s.nodeOf, s.config
	s.Eager = true // the stories are older than the pause between two patches of a child
	for i := range s.nodes {
		kubelet.Turn(s.Cluster, fmt.Sprintf("n%d", i+1), true)
	}
	s.Indexes = map[string]func(client.Object) string{configuration.IndexRestarts: func(o client.Object) string {
		return strings.Join(configuration.RestartIndex(facts.RestartsSince)(o), "")
	}}
	s.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	s.Put(set)
	s.Restart()
	return s
}

// config returns what follows ConfigMaps and Secrets in a new operator process.
func (s *stage) config() *observe.ConfigReader {
	return &observe.ConfigReader{
		Reader:  configuration.Reader{Live: s.Cluster, Key: oneKey{}, Account: "system:operator", MaxBytes: observe.MaxConfigBytes},
		Turns:   configuration.Turns{Kind: "ReplicatedStatefulSet", Began: facts.RestartsSince, Wake: func(types.NamespacedName) {}},
		Secrets: &configuration.Secrets{},
	}
}

// restart starts a new operator process.
func (s *stage) restart() { s.Restart() }

// nodeOf returns the node of a new pod: that of its ordinal, unless its pods move.
func (s *stage) nodeOf(p *corev1.Pod) string {
	ordinal, _ := spec.OrdinalOf(fixture.SetOf(1, 1), p.Name)
	node := fmt.Sprintf("n%d", ordinal%s.nodes+1)
	if s.moved[node] != "" {
		node = s.moved[node]
	}
	if s.IsCordoned(node) {
		node = "n4"
	}
	if !s.Up(node) || s.IsCordoned(node) {
		return ""
	}
	return node
}

// sleep lets time pass.
func (s *stage) sleep(d time.Duration) {
	s.Now = s.Now.Add(d)
	s.KeepUp()
}

func (s *stage) pod(ordinal int) *corev1.Pod {
	for _, p := range s.Pods() {
		if p.Name == fmt.Sprintf("rss-db-%d", ordinal) {
			return p
		}
	}
	return nil
}

// change is a user's change of the set.
func (s *stage) change(f func(*v1alpha1.ReplicatedStatefulSet)) {
	set := s.Set()
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

// pass runs a pass. It reports whether anything was written or sent, and when to run the next pass.
func (s *stage) pass() (acted bool, wait time.Duration) {
	before := s.Writes()
	passed := s.Pass()
	if passed.Err != nil && s.Writes() == before {
		s.t.Fatal(passed.Err) // reads do not fail
	}
	return s.Writes() > before, passed.Wait
}

func (s *stage) observe(set *v1alpha1.ReplicatedStatefulSet, from engine.View) *facts.World {
	w, err := s.Reader.Observe(context.Background(), set, from)
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

// settle lets all actors act in turn until nothing changes, or for that long.
func (s *stage) settle(patience time.Duration) {
	s.t.Helper()
	s.ActedAt = s.Now
	for range 5000 {
		s.Look()
		acted, wait := s.pass()
		s.check()
		machines := s.Machines()
		if len(machines) > 0 {
			s.ActedAt = s.Now
		}
		moves := slices.Concat(machines, s.db.Moves())
		for _, move := range moves {
			move()
			s.check()
		}
		s.Tick()
		s.KeepUp()
		rests := wait == 0 || s.Now.Add(wait).Sub(s.ActedAt) > patience
		if s.IsExpiring() || s.db.Waits() { // a change of a Lease triggers a pass
			rests, wait = false, 2*time.Second
		}
		if (acted || len(moves) > 0) && s.Now.Sub(s.ActedAt) < patience+time.Minute {
			continue
		}
		if rests {
			if set := s.Set(); set != nil {
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
	s.KeepUp()
	s.invariant.acting()
	s.invariant.granted()
	s.Check(s.t)
}

// tell adds to the story the status that a user sees at rest.
func (s *stage) tell() {
	st := s.Set().Status
	s.Say("= %s: ready %v primary %v secondary %v failed %v", st.Phase, st.Members.Ready, st.Members.Primary, st.Members.Secondary, st.Members.Failed)
}

// writeTo is a client's write to one primary. A primary acknowledges an entry when every follower that it reaches has it,
// and at least one does. Primaries that cannot reach each other write nothing.
func (s *stage) writeTo(p *simulate.Container) {
	s.entries++
	entry, copies := s.entries, 0
	for _, c := range s.db.Acting() {
		if p.Behind || !s.db.Reach(p, c) {
			return
		}
	}
	d := s.db.Disk(p.Pod)
	d.Log = append(d.Log, entry)
	for _, c := range s.db.All() {
		if c == p || c.Role == record.Idle || c.Behind || c.Slow {
			continue
		}
		if other := s.db.Disk(c.Pod); s.db.Reach(p, c) && other.Term == d.Term && len(other.Log) == len(d.Log)-1 {
			other.Log = append(other.Log, entry)
			copies++
		} else {
			c.Behind = true
		}
	}
	if set := s.Set(); copies > 0 || set != nil && *set.Spec.Replicas == 1 {
		s.acked = append(s.acked, entry)
	}
}

// fencedByLease returns a set whose members have Leases, as `describe --filled` prints it.
func fencedByLease(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	set.Spec.Pod.Containers[0].Command = []string{fixture.AgentPath, "postgresql", "idle",
		fencing.LeaseFlag + "$(POD_NAME)" + v1alpha1.LeaseSuffix, fencing.DurationArgument(fixture.LeaseSeconds)}
	return set
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
