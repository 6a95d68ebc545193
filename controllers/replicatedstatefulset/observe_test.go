package replicatedstatefulset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

func TestWhoIsAMember(t *testing.T) {
	s := newStage(t, setOf(11, 1))
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
		want = append(want, spec.MemberName(anySet, i))
	}
	look := func() (names []string) {
		for _, m := range s.observe(s.set(), engine.View{Reader: s.Cluster, Live: true}).Members {
			names = append(names, m.Name())
		}
		return names
	}
	if got := look(); !slices.Equal(got, want) {
		t.Errorf("RS-49, RS-62: the members are %q, want the members of this set by ordinal", got)
	}
	if got := s.set().Status.Members.Ready; !slices.Equal(got, want) {
		t.Errorf("RS-49: status.members.ready is %q, want all members by ordinal", got)
	}
	strip(0)(s) // the primary
	strip(10)(s)
	if got := look(); !slices.Equal(got, want) {
		t.Errorf("the members are %q, want also those without labels", got)
	}
}

func TestCommandsStayInTheContainerOfThePod(t *testing.T) {
	s := newStage(t, setOf(1, 1))
	s.settle(10 * time.Second)
	s.change(func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Pod.Containers[0].Name = "other" })
	if m := s.observe(s.set(), engine.View{Reader: s.Cluster, Live: true}).Members[0]; m.CommandsIn != "main" {
		t.Errorf("commands for a pod of the former template run in %q, want main", m.CommandsIn)
	}
}

// TestWhatIsAskedInVainIsAskedLessOften tests that consecutive unanswered commands are counted, and
// that a sequence that is not a number counts as unanswered.
func TestWhatIsAskedInVainIsAskedLessOften(t *testing.T) {
	for _, r := range []struct {
		name, command string
		outcome       podexec.Outcome
		out           string
		want          int
	}{
		{"a status query without a response", "status", podexec.Unknown, "", 3},
		{"a status query with a response", "status", podexec.Failed, "", 0},
		{"a sequence with a number", "sequence", podexec.Succeeded, "7\n", 0},
		{"a sequence without a number", "sequence", podexec.Succeeded, "seven", 3},
		{"a sequence that failed", "sequence", podexec.Failed, "", 3},
	} {
		t.Run(r.name, func(t *testing.T) {
			m := pod(0)
			remembered := &observe.Seen{Said: map[string]podexec.Result{}, Counted: map[string]time.Time{}, Tries: map[string]int{}}
			for i := range 3 {
				m.answered(r.command, r.outcome, 1, r.out, time.Duration(9-i)*time.Second)
				remembered.Look(m.Member, nil, noon)
				remembered.Look(m.Member, nil, noon) // the same result counts once
			}
			if got := m.Tries[r.command]; got != r.want {
				t.Errorf("tries is %d, want %d", got, r.want)
			}
			if _, said := m.Said[r.command]; said != (r.outcome != podexec.Unknown) {
				t.Errorf("a response is remembered: %t", said)
			}
		})
	}
}

// TestAMemberIsUnresponsiveWhenItWasAsked tests that only commands that were sent to the running
// container make a member unresponsive. An outage does not.
func TestAMemberIsUnresponsiveWhenItWasAsked(t *testing.T) {
	m := pod(0)
	remembered := &observe.Seen{Said: map[string]podexec.Result{}, Counted: map[string]time.Time{}, Tries: map[string]int{}}
	for i := range spec.UnresponsiveAfter {
		if m.Unresponsive() {
			t.Fatalf("unresponsive after %d of %d queries", i, spec.UnresponsiveAfter)
		}
		m.unsent("status", time.Duration(50-i)*time.Second, 0)
		remembered.Look(m.Member, nil, noon)
		m.answered("status", podexec.Unknown, 0, "", time.Duration(40-i)*time.Second)
		remembered.Look(m.Member, nil, noon)
	}
	if !m.Unresponsive() {
		t.Error("the member is not unresponsive after all queries")
	}
	m.restarted(time.Second)
	if remembered.Look(m.Member, nil, noon); m.Unresponsive() {
		t.Error("the member is unresponsive because of queries to another container")
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
	return s.observe(s.set(), engine.View{Reader: n, Live: true}), n.asked
}

func TestWhatStopsNoMemberIsReadLiveWhereTheCacheHasNone(t *testing.T) {
	s := newStage(t, setOf(3, 1))
	s.settle(10 * time.Second)
	w, asked := s.lookLive()
	if asked["*v1.StatefulSet"] != 1 || asked["*v1.PodDisruptionBudget"] != 2 || asked["*v1.Service"] != 0 {
		t.Errorf("the live reads are %v, want the StatefulSet and the budgets only", asked)
	}
	allowed := newStage(t, allowing(setOf(3, 1)))
	allowed.settle(10 * time.Second)
	if _, asked = allowed.lookLive(); asked["*v1.PodDisruptionBudget"] != 0 {
		t.Errorf("the live reads are %v, want no budget with evictionPolicy Allow", asked)
	}
	gone := w.Services["db-primary"]
	s.DeleteNow(gone)
	s.look()
	s.Put(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: gone.Name, Namespace: gone.Namespace}}) // belongs to another object
	if w, _ = s.lookLive(); w.Services[gone.Name] == nil || w.Ours(w.Services[gone.Name]) {
		t.Errorf("a Service that is missing in the cache is %v, want a foreign one", w.Services[gone.Name])
	}
}

// TestBudgetsAreReadLiveBeforeAHandover tests that a budget that must be closed before a handover
// is read live, because the cache may show an open budget as closed.
func TestBudgetsAreReadLiveBeforeAHandover(t *testing.T) {
	s := newStage(t, setOf(3, 1))
	s.settle(10 * time.Second)
	w, _ := s.lookLive()
	s.Put(rules.ClosedBudget(w.Budget)) // and the cache does not see it
	if w, _ = s.lookLive(); budgetSays(w.Budget) != "maxUnavailable 0, NotIn [primary]" {
		t.Errorf("RS-67 the live budget is %q, want the closed one that is not in the cache", budgetSays(w.Budget))
	}
}

// TestRS62ASetHasItsOwnKey tests that sets of the same name in two namespaces have different keys,
// so that a hanging set does not affect the other.
func TestRS62ASetHasItsOwnKey(t *testing.T) {
	child := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "rss-db-0", Namespace: "ns", Labels: map[string]string{v1alpha1.LabelApp: "db"}}}
	twin := child.DeepCopy()
	twin.Namespace = "another"
	a, b := observe.RequestFor(child), observe.RequestFor(twin)
	if len(a) != 1 || len(b) != 1 || a[0] == b[0] || !strings.HasPrefix(a[0].String(), "ns/") {
		t.Errorf("the index keys are %v and %v, want one for each namespace", a, b)
	}
	if got := observe.RequestFor(&corev1.Pod{}); got != nil {
		t.Errorf("a pod without an owner enqueues %v", got)
	}
}

// TestANodeThatTheCacheMissesIsReadLive tests that a stale cache fences no member: a Node that the
// cache misses, or shows as out of service, is read from the API server first.
func TestANodeThatTheCacheMissesIsReadLive(t *testing.T) {
	s := newStage(t, setOf(3, 1))
	s.settle(20 * time.Second)
	missing, tainted := s.Snapshot(cutAsCached), s.Snapshot(cutAsCached)
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
		s.r.Nodes = behind
		for range 3 {
			w := s.observe(s.set(), engine.View{Reader: s.Cluster, Live: true})
			for _, m := range w.Members {
				if m.Node.Missing || m.Node.OutOfService || !m.Node.Ready || facts.Derive(w).IsPoweredOff(m) {
					t.Errorf("RS-34: the cache %s, and %s counts as on an unreachable Node: %+v", name, m.Name(), m.Node)
				}
			}
			s.Now = s.Now.Add(spec.FenceAfter)
		}
	}
}
