package replicatedstatefulset

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

func TestWhoIsAMember(t *testing.T) {
	s := newStage(t, fixture.SetOf(11, 1))
	s.settle(10 * time.Second)
	stranger := func(name, namespace, app string) {
		s.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{v1alpha1.LabelApp: app, v1alpha1.LabelManaged: v1alpha1.True}}})
	}
	stranger("rss-db-0", "another", "db")
	stranger("rss-db2-0", "ns", "db2")
	stranger("rss-db-01", "ns", "db")
	stranger("rss-db-x", "ns", "db")
	var want []string
	for i := range 11 {
		want = append(want, spec.MemberName(fixture.SetOf(1, 1), i))
	}
	look := func() (names []string) {
		for _, m := range s.observe(s.Set(), engine.View{Reader: s.Cluster, Live: true}).Members {
			names = append(names, m.Name())
		}
		return names
	}
	if got := look(); !slices.Equal(got, want) {
		t.Errorf("RS-49, RS-62: the members are %q, want the members of this set by ordinal", got)
	}
	if got := s.Set().Status.Members.Ready; !slices.Equal(got, want) {
		t.Errorf("RS-49: status.members.ready is %q, want all members by ordinal", got)
	}
	strip(0)(s) // the primary
	strip(10)(s)
	if got := look(); !slices.Equal(got, want) {
		t.Errorf("the members are %q, want also those without labels", got)
	}
}

func TestCommandsStayInTheContainerOfThePod(t *testing.T) {
	s := newStage(t, fixture.SetOf(1, 1))
	s.settle(10 * time.Second)
	s.change(func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Pod.Containers[0].Name = "other" })
	if m := s.observe(s.Set(), engine.View{Reader: s.Cluster, Live: true}).Members[0]; m.CommandsIn != "main" {
		t.Errorf("commands for a pod of the former template run in %q, want main", m.CommandsIn)
	}
}

// noting is a reader that counts the Gets of each type.
type noting struct {
	client.Reader
	asked map[string]int
}

func (n noting) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	n.asked[fmt.Sprintf("%T", into)]++
	return n.Reader.Get(ctx, key, into, opts...)
}

// lookLive returns the live world and the types that were read live.
func (s *stage) lookLive() (*facts.World, map[string]int) {
	n := noting{s.Cluster, map[string]int{}}
	return s.observe(s.Set(), engine.View{Reader: n, Live: true}), n.asked
}

func TestWhatStopsNoMemberIsReadLiveWhereTheCacheHasNone(t *testing.T) {
	s := newStage(t, fixture.SetOf(3, 1))
	s.settle(10 * time.Second)
	w, asked := s.lookLive()
	if asked["*v1.StatefulSet"] != 1 || asked["*v1.PodDisruptionBudget"] != 2 || asked["*v1.Service"] != 0 {
		t.Errorf("the live reads are %v, want the StatefulSet and the budgets only", asked)
	}
	allowed := newStage(t, fixture.Allowing(fixture.SetOf(3, 1)))
	allowed.settle(10 * time.Second)
	if _, asked = allowed.lookLive(); asked["*v1.PodDisruptionBudget"] != 0 {
		t.Errorf("the live reads are %v, want no budget with evictionPolicy Allow", asked)
	}
	gone := w.Services["db-primary"]
	s.DeleteNow(gone)
	s.Look()
	s.Put(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: gone.Name, Namespace: gone.Namespace}}) // belongs to another object
	if w, _ = s.lookLive(); w.Services[gone.Name] == nil || w.Ours(w.Services[gone.Name]) {
		t.Errorf("a Service that is missing in the cache is %v, want a foreign one", w.Services[gone.Name])
	}
}

// TestBudgetsAreReadLiveBeforeAHandover tests that a budget that must be closed before a handover
// is read live, because the cache may show an open budget as closed.
func TestBudgetsAreReadLiveBeforeAHandover(t *testing.T) {
	s := newStage(t, fixture.SetOf(3, 1))
	s.settle(10 * time.Second)
	w, _ := s.lookLive()
	s.Put(rules.ClosedBudget(w.Budget)) // and the cache does not see it
	if w, _ = s.lookLive(); fixture.BudgetSays(w.Budget) != "maxUnavailable 0, NotIn [primary]" {
		t.Errorf("RS-67 the live budget is %q, want the closed one that is not in the cache", fixture.BudgetSays(w.Budget))
	}
}

// TestANodeThatTheCacheMissesIsReadLive tests that a stale cache fences no member: a Node that the
// cache misses, or shows as out of service, is read from the API server first.
func TestANodeThatTheCacheMissesIsReadLive(t *testing.T) {
	s := newStage(t, fixture.SetOf(3, 1))
	s.settle(20 * time.Second)
	missing, tainted := s.Snapshot(simulate.CutAsCached), s.Snapshot(simulate.CutAsCached)
	for key, obj := range missing.All {
		if key.Kind == "Node" {
			delete(missing.All, key)
			n := objects.Clone(obj.(*corev1.Node))
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
			n.Status.Conditions = nil
			tainted.All[key] = n
		}
	}
	for name, behind := range map[string]*objects.Objects{"misses all Nodes": missing, "shows all Nodes as powered off": tainted} {
		s.Reader.Nodes = behind
		for range 3 {
			w := s.observe(s.Set(), engine.View{Reader: s.Cluster, Live: true})
			for _, m := range w.Members {
				if m.Node.Missing || m.Node.OutOfService || !m.Node.Ready || facts.Derive(w).IsPoweredOff(m) {
					t.Errorf("RS-34: the cache %s, and %s counts as on an unreachable Node: %+v", name, m.Name(), m.Node)
				}
			}
			s.Now = s.Now.Add(spec.FenceAfter)
		}
	}
}
