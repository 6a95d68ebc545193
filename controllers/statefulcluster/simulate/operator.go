package simulate

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/pass"
)

// Hooks are for tests. They are nil in plans.
type Hooks struct {
	// Cut is the transform of the operator's cache. It returns nil for an object that is not cached.
	Cut func(client.Object) client.Object
	// ID returns the nth id of new members. By default it is "new1", "new2" and so on.
	ID func(n int) string
	// Decided is called with the facts of each decision before it is carried out.
	Decided func(*facts.Facts)
}

// Simulation is an operator for one set in a simulated cluster.
type Simulation struct {
	*simulation.Cluster
	Hooks
	// Process is the present process of the operator.
	*Process

	key types.NamespacedName
	// used are the ids that a pod had.
	used map[string]bool
}

// Process is a process of the operator.
type Process struct {
	Reader *observe.Reader

	reconciler *pass.Reconciler
	// shown is the content of the cache, and at the number of writes that it contains.
	shown *objects.Objects
	at    int
	// since is the number of writes that the cache must contain before the next pass.
	since int
	// events are the changes of pods that the cache does not contain yet.
	events []podEvent
	// killed is true if a write killed the process.
	killed bool
}

// podEvent is a change of a pod. was is nil for a new pod, and is is nil for a pod that is gone.
type podEvent struct{ was, is client.Object }

var _ simulation.Operator = &Simulation{}

// New starts an operator for the set of that key. Its pod watch is added to Changed of the cluster.
func New(c *simulation.Cluster, key types.NamespacedName, hooks Hooks) *Simulation {
	s := &Simulation{Cluster: c, Hooks: hooks, key: key, used: map[string]bool{}}
	if c.Indexes == nil {
		c.Indexes = map[string]func(client.Object) string{}
	}
	c.Indexes[observe.IndexOwner] = func(o client.Object) string { return o.GetLabels()[v1alpha1.LabelClusterUID] }
	for _, pod := range kubelet.Pods(c) {
		s.use(pod)
	}
	next := c.Changed
	c.Changed = func(act *action.Action, was, is client.Object) {
		s.watch(was, is)
		if next != nil {
			next(act, was, is)
		}
	}
	s.Restart()
	return s
}

// Restart replaces the operator by a new process without the memory of the old one, and updates its cache.
func (s *Simulation) Restart() {
	p := &Process{Reader: &observe.Reader{Live: s.Cluster, Now: func() time.Time { return s.Now }, Fresh: s.fresh}}
	// The simulation itself checks whether the cache contains all writes: time does not pass for a Tracker.
	p.reconciler = pass.New(p.Reader, writer{s, p}, &consistency.Tracker{}, &events.FakeRecorder{})
	p.reconciler.Decided = s.Decided
	s.Process = p
	for _, pod := range kubelet.Pods(s.Cluster) {
		s.watch(nil, pod)
	}
	s.Look()
}

// Look updates the cache of the operator to the present state of the cluster.
func (s *Simulation) Look() {
	p := s.Process
	p.shown, p.at = s.Snapshot(s.cut), s.Writes()
	p.Reader.Cache = p.shown
	watch := p.Reader.PodHandler()
	for _, e := range p.events {
		switch {
		case e.was == nil:
			watch.OnAdd(e.is, false)
		case e.is == nil:
			watch.OnDelete(e.was)
		default:
			watch.OnUpdate(e.was, e.is)
		}
	}
	p.events = nil
}

// Pass runs one pass on the present cache. It does nothing while the cache lacks own writes.
func (s *Simulation) Pass() simulation.Passed {
	p := s.Process
	if p.at < p.since {
		return simulation.Passed{}
	}
	before := s.Writes()
	result, err := p.reconciler.Reconcile(context.Background(), reconcile.Request{NamespacedName: s.key})
	if p.killed {
		s.Restart()
	}
	s.since = s.Writes()
	return simulation.Passed{Acted: s.Writes() > before, Wait: result.RequeueAfter, Err: err}
}

// Moves returns the steps that the garbage collector, the scheduler and kubelets could take now.
func (s *Simulation) Moves() []func() {
	return append(simulation.Garbage(s.Cluster), kubelet.Moves(s.Cluster)...)
}

// watch adds a change of an object to the events of the pod watch, if it is a pod.
func (s *Simulation) watch(was, is client.Object) {
	if _, isPod := is.(*corev1.Pod); isPod {
		s.use(is)
		is = s.cut(objects.Clone(is))
	}
	if _, isPod := was.(*corev1.Pod); isPod {
		was = s.cut(objects.Clone(was))
	}
	_, isPod := is.(*corev1.Pod)
	_, wasPod := was.(*corev1.Pod)
	if isPod || wasPod {
		s.events = append(s.events, podEvent{was, is})
	}
}

// cut returns an object as the cache holds it.
func (s *Simulation) cut(obj client.Object) client.Object {
	if s.Cut == nil {
		return obj
	}
	return s.Cut(obj)
}

// Use marks ids as used, so that no new member gets them.
func (s *Simulation) Use(ids ...string) {
	for _, id := range ids {
		s.used[id] = true
	}
}

// use marks the id of a pod as used.
func (s *Simulation) use(pod client.Object) {
	if id, ours := strings.CutPrefix(pod.GetName(), s.key.Name+"-"); ours && pod.GetNamespace() == s.key.Namespace {
		s.Use(id)
	}
}

// fresh returns the first n ids that are neither used nor taken.
func (s *Simulation) fresh(n int, taken func(string) bool) []string {
	id := s.ID
	if id == nil {
		id = func(n int) string { return fmt.Sprintf("new%d", n+1) }
	}
	ids := make([]string, 0, n)
	for i := 0; len(ids) < n; i++ {
		if next := id(i); !s.used[next] && !taken(next) {
			ids = append(ids, next)
		}
	}
	return ids
}

// writer writes to the simulated cluster for a process. A killed process writes nothing.
type writer struct {
	s *Simulation
	p *Process
}

// Run executes the steps. Successful writes of the status are not added to the story.
func (w writer) Run(_ context.Context, _ types.NamespacedName, steps action.Steps) []action.Outcome {
	if w.p.killed {
		return nil
	}
	lines := len(w.s.Story)
	outcomes, alive := w.s.Apply(steps)
	w.p.killed = !alive
	w.s.HideStatus(lines, outcomes)
	return outcomes
}
