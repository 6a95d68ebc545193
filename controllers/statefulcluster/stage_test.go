package statefulcluster

import (
	"context"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

// stage is a simulated cluster with an operator whose passes are run one by one. Ids are a, b, c,
// ..., so that stories are readable.
type stage struct {
	t *testing.T
	*simulation.Cluster
	simtest.Verdict
	invariants *invariants
	r          *observe.Reader
	used       map[string]bool // ids that a pod had

	shown *objects.Objects // the operator's cache
	since int              // the version of the API server that the cache must show before the next pass
	at    int              // the version that the cache shows
	// race, if set, is called between a live read and the writes that follow it.
	race func()
}

func newStage(t *testing.T, set *fixture.SetFixture) *stage {
	c := simulation.New(fixture.Noon)
	s := &stage{t: t, Cluster: c, Verdict: simtest.VerdictOf(c), used: map[string]bool{}}
	s.Indexes = map[string]func(client.Object) string{
		observe.IndexOwner: func(o client.Object) string { return o.GetLabels()[v1alpha1.LabelClusterUID] },
	}
	s.invariants = newInvariants(s)
	s.Changed = s.invariants.changed
	s.restart()
	for _, n := range []string{"n1", "n2", "n3", "n4"} {
		kubelet.Turn(s.Cluster, n, true)
	}
	set.UID = ""
	s.Put(&set.StatefulCluster)
	s.look()
	return s
}

// restart replaces the operator by a new process without the memory of the old one.
func (s *stage) restart() {
	s.r = &observe.Reader{Live: s.Cluster, Now: func() time.Time { return s.Now }}
}

// look updates the operator's cache to the present state, with its transforms applied.
func (s *stage) look() {
	s.shown, s.at = s.Snapshot(cutAsCached), s.Writes()
	s.r.Cache = s.shown
}

func cutAsCached(obj client.Object) client.Object {
	for kind, by := range Cache() {
		if objects.KindOf(kind) != objects.KindOf(obj) {
			continue
		}
		if by.Label != nil && !by.Label.Matches(labels.Set(obj.GetLabels())) {
			return nil
		}
		cut, err := by.Transform(obj)
		if err != nil {
			panic(err)
		}
		return cut.(client.Object)
	}
	return obj
}

func (s *stage) set() *v1alpha1.StatefulCluster {
	var set v1alpha1.StatefulCluster
	if err := s.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "db"}, &set); err != nil {
		s.t.Fatal(err)
	}
	return &set
}

// edit changes the spec of the set, as a user.
func (s *stage) edit(change func(*v1alpha1.StatefulClusterSpec)) {
	set := s.set()
	change(&set.Spec)
	set.Generation++
	s.Put(set)
}

// members returns the pods that are not being deleted.
func (s *stage) members() (pods []*corev1.Pod) {
	for _, p := range kubelet.Pods(s.Cluster) {
		if !podstate.Terminating(p) {
			pods = append(pods, p)
		}
	}
	return pods
}

// pass is Reconciler.pass with simulated writes. It reports whether anything was written, and when
// the next pass is due.
func (s *stage) pass() (acted bool, wait time.Duration) {
	if s.at < s.since {
		return false, 0 // its own writes are not in its cache yet
	}
	var cached v1alpha1.StatefulCluster
	if s.shown.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "db"}, &cached) != nil {
		return false, 0
	}
	f := facts.Derive(s.observe(&cached, engine.View{Reader: s.shown}))
	c := considered{f, rules.Decide(f)}
	if (&Reconciler{reader: s.r}).wantsLive(c) {
		f = facts.Derive(s.observe(s.set(), engine.View{Reader: s.Cluster, Live: true}))
		c = considered{f, rules.Decide(f)}
		if s.race != nil {
			s.race()
		}
	}
	s.invariants.seen = f.World
	before := s.Writes()
	outcomes, alive := s.Apply(c.plan.Steps)
	done := status.Results{Outcomes: outcomes, Refused: f.Refused}
	if alive {
		done, alive = s.report(c, outcomes)
	}
	if !alive {
		s.restart()
		s.look()
	}
	s.since = s.Writes()
	for _, r := range done.Refused {
		c.plan.RequeueAt(r.Until)
	}
	return s.Writes() > before, c.plan.Wait
}

func (s *stage) observe(set *v1alpha1.StatefulCluster, from engine.View) *facts.World {
	w, err := s.r.Observe(context.Background(), set, from)
	if err != nil {
		s.t.Fatal(err)
	}
	old := len(facts.UnusedIDs(w))
	for n := 0; old < len(w.Fresh); n++ {
		if id := idNumber(n); !s.used[id] && !slices.Contains(w.Fresh[:old], id) {
			w.Fresh[old] = id
			old++
		}
	}
	return w
}

func idNumber(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	if n < len(letters) {
		return letters[n : n+1]
	}
	return idNumber(n/len(letters)-1) + idNumber(n%len(letters))
}

func (s *stage) report(c considered, outcomes []action.Outcome) (done status.Results, alive bool) {
	known := s.r.Of(c.facts.Set)
	_ = known.Learn(c.facts, c.plan.GivenUp, outcomes) // an error means a retry, and passes are run anyway
	done = status.Results{Outcomes: outcomes, Refused: maps.Clone(known.Refused)}
	base := c.facts.Set
	for _, o := range outcomes {
		if o.Verb == action.PatchStatus && o.Err == nil {
			base = o.Answer.(*v1alpha1.StatefulCluster)
		}
	}
	status := status.Summarize(c.facts, &c.plan, done)
	if apiequality.Semantic.DeepEqual(base.Status, status) {
		return done, true
	}
	set := base.DeepCopy()
	set.Status = status
	lines := len(s.Story)
	_, alive = s.Apply(action.Steps{{{{Verb: action.PatchStatus, Object: set, From: base, Reason: "Observed"}}}})
	if alive {
		s.Story = s.Story[:lines] // only the status at rest is added to the story
	}
	return done, alive
}

// settle runs the operator and kubelets in turn until nothing changes. It waits up to patience for
// retries of refused writes.
func (s *stage) settle(patience time.Duration) {
	for range 400 {
		s.look()
		acted, wait := s.pass()
		moves := kubelet.Moves(s.Cluster)
		for _, move := range moves {
			move()
		}
		if acted || len(moves) > 0 {
			s.Now = s.Now.Add(time.Second)
			continue
		}
		if wait == 0 || wait > patience {
			return
		}
		s.Now = s.Now.Add(wait)
	}
	s.Fatal(s.t, "the set does not come to rest")
}

// tell adds the status at rest to the story.
func (s *stage) tell() {
	st := s.set().Status
	s.Say("= %d members, %d ready, %d updated, %d lost", st.Replicas, st.ReadyReplicas, st.UpdatedReplicas, st.LostReplicas)
	for _, kind := range []string{v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded} {
		s.Say("= %s", fixture.Says(st, kind)+" ("+kind+")")
	}
}

// ends checks the end of a story: all wanted objects exist and are healthy, there are no others,
// and the operator makes no writes.
func (s *stage) ends() {
	set := s.set()
	w := s.observe(set, engine.View{Reader: s.Cluster, Live: true})
	good := 0
	for _, m := range w.Members {
		if podstate.Terminating(m.Pod) {
			continue
		}
		if podstate.Ready(m.Pod) && m.Pod.Spec.Containers[0].Image == set.Spec.Template.Spec.Containers[0].Image &&
			facts.RevisionOf(m.Pod) == facts.SpecRevision(w).Name && m.Pod.Annotations[v1alpha1.AnnotationInPlace] == "" && len(facts.MissingClaims(w, m)) == 0 {
			good++
			continue
		}
		s.Breaks("%s does not match the spec", m.Name())
	}
	if good != int(*set.Spec.Replicas) {
		s.Breaks("%d members match the spec, want %d", good, *set.Spec.Replicas)
	}
	for _, c := range w.Loose {
		if c.Labels[v1alpha1.LabelRetained] == "" {
			s.Breaks("claim %s has no pod and no reason", c.Name)
		}
	}
	if available, progressing := fixture.Says(set.Status, v1alpha1.ConditionAvailable), fixture.Says(set.Status, v1alpha1.ConditionProgressing); !strings.HasPrefix(available, "True") ||
		!strings.HasPrefix(progressing, "False Complete") || len(set.Status.Updating) > 0 {
		s.Breaks("conditions are %s, %s; status.updating is %v", available, progressing, set.Status.Updating)
	}
	before := s.Writes()
	s.restart() // a new process has nothing to do either
	s.look()
	s.pass()
	if s.Writes() != before {
		s.Breaks("SC-34 the operator makes writes at rest")
	}
	var budget policyv1.PodDisruptionBudget
	if s.Get(context.Background(), client.ObjectKeyFromObject(set), &budget) != nil {
		s.Breaks("the disruption budget is missing")
	}
}

// scramble runs random moves in random order for a while.
func (s *stage) scramble(chance *rand.Rand, steps int) {
	for range steps {
		switch n := chance.Intn(100); {
		case n < 40:
			if moves := kubelet.Moves(s.Cluster); len(moves) > 0 {
				moves[chance.Intn(len(moves))]()
			}
		case n < 70:
			s.pass()
		case n < 90:
			s.look()
		case n < 99:
			s.Now = s.Now.Add(time.Duration(chance.Intn(2000)) * time.Millisecond)
		default:
			s.Say("! the operator restarts")
			s.restart()
			s.look()
		}
		s.Check(s.t)
	}
}
