package statefulcluster

import (
	"context"
	"math/rand"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/simulate"
)

// stage is a simulated cluster with an operator whose passes are run one by one. Ids are a, b, c,
// ..., so that stories are readable.
type stage struct {
	t *testing.T
	*simulate.Simulation
	simtest.Verdict
	invariants *invariants
	// race, if set, is called between a live read and the writes that follow it.
	race func()
}

func newStage(t *testing.T, set *fixture.SetFixture) *stage {
	c := simulation.New(fixture.Noon)
	s := &stage{t: t, Verdict: simtest.VerdictOf(c)}
	s.invariants = newInvariants(s)
	c.Changed = s.invariants.changed
	s.Simulation = simulate.New(c, client.ObjectKeyFromObject(set), simulate.Hooks{Cut: cutAsCached, ID: idNumber, Decided: s.decided})
	for _, n := range []string{"n1", "n2", "n3", "n4"} {
		kubelet.Turn(s.Cluster, n, true)
	}
	set.UID = ""
	s.Put(&set.StatefulCluster)
	s.Look()
	return s
}

// decided is called between the reads and the writes of a pass.
func (s *stage) decided(f *facts.Facts) {
	if f.Live && s.race != nil {
		s.race()
	}
	s.invariants.seen = f.World
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

func (s *stage) observe(set *v1alpha1.StatefulCluster, from engine.View) *facts.World {
	w, err := s.Reader.Observe(context.Background(), set, from)
	if err != nil {
		s.t.Fatal(err)
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

// settle runs the operator and kubelets in turn until nothing changes. It waits up to patience for
// retries of refused writes.
func (s *stage) settle(patience time.Duration) {
	if !simulation.Run(s.Cluster, s.Simulation, patience) {
		s.Fatal(s.t, "the set does not come to rest")
	}
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
	s.Restart() // a new process has nothing to do either
	s.Pass()
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
			s.Pass()
		case n < 90:
			s.Look()
		case n < 99:
			s.Now = s.Now.Add(time.Duration(chance.Intn(2000)) * time.Millisecond)
		default:
			s.Say("! the operator restarts")
			s.Restart()
		}
		s.Check(s.t)
	}
}
