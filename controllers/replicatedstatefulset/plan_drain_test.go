package replicatedstatefulset

import (
	"math/rand"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// Steps of stories.

func cordon(node string) func(*stage) {
	return func(s *stage) {
		s.Say("# %s is cordoned", node)
		s.setUnschedulable(node, true)
	}
}

func uncordon(node string) func(*stage) {
	return func(s *stage) {
		s.Say("# %s is uncordoned", node)
		s.setUnschedulable(node, false)
	}
}

func (s *stage) setUnschedulable(name string, is bool) {
	n := objects.Clone(s.All[objects.Key{Kind: "Node", Name: name}].(*corev1.Node))
	n.Spec.Unschedulable = is
	s.Put(n)
}

func evictions(policy v1alpha1.EvictionPolicy) func(*stage) {
	return func(s *stage) {
		s.Say("# evictionPolicy is %s", policy)
		s.change(func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.EvictionPolicy = policy })
	}
}

func noBudget(s *stage) {
	s.Say("# the budget is disabled")
	s.change(func(set *v1alpha1.ReplicatedStatefulSet) {
		set.Spec.PodDisruptionBudget = &v1alpha1.BudgetPolicy{Disabled: true}
	})
}

// askToGo is an eviction without a cordon, which the webhooks record in the book.
func askToGo(ordinal int) func(*stage) {
	return func(s *stage) {
		p := s.pod(ordinal)
		if p == nil {
			return
		}
		s.Say("# an eviction of %s is requested", p.Name)
		s.Book = map[types.UID]facts.Entry{p.UID: {Namespace: p.Namespace, Pod: p.Name, At: s.Now}}
		s.Reader.Book.Entries = s.Book
	}
}

// evict is a single eviction request, as kubectl drain sends it.
func evict(ordinal int) func(*stage) {
	return func(s *stage) {
		p := s.pod(ordinal)
		if p == nil {
			return
		}
		if why := s.whyNotEvicted(p); why != "" {
			s.Say("# %s is not evicted: %s", p.Name, why)
			return
		}
		s.Say("# %s is evicted", p.Name)
		s.Delete(p)
	}
}

// whyNotEvicted returns the API server's error for an eviction. It returns "" if the eviction is
// allowed.
func (s *stage) whyNotEvicted(p *corev1.Pod) string {
	if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodPending {
		return ""
	}
	var matching []*policyv1.PodDisruptionBudget
	for _, obj := range s.All {
		if b, ok := obj.(*policyv1.PodDisruptionBudget); ok && selects(b, p) {
			matching = append(matching, b)
		}
	}
	switch len(matching) {
	case 0:
		return ""
	case 1:
		unready := !slices.ContainsFunc(p.Status.Conditions, isReady)
		if s.allowed(matching[0]) > 0 || unready && ptr.Deref(matching[0].Spec.UnhealthyPodEvictionPolicy, "") == policyv1.AlwaysAllow {
			return ""
		}
		return "429, by " + matching[0].Name
	}
	return "500, more than one budget selects it"
}

func selects(b *policyv1.PodDisruptionBudget, p *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(p.Labels))
}

// allowed returns the number of allowed disruptions of a budget, as the disruption controller
// computes it.
func (s *stage) allowed(b *policyv1.PodDisruptionBudget) int {
	healthy := 0
	for _, p := range s.Pods() {
		if selects(b, p) && p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, isReady) {
			healthy++
		}
	}
	if b.Spec.MinAvailable != nil {
		return healthy - b.Spec.MinAvailable.IntValue()
	}
	return healthy - (int(*s.StatefulSet().Spec.Replicas) - b.Spec.MaxUnavailable.IntValue())
}

func isReady(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

// TestNoInstantLetsAPrimaryBeEvicted tests RS-67: at no time during a handover does the API server
// evict a pod that acts as primary, or any other pod while none does. It requests evictions after
// each write, in random orders, while writes fail and the operator dies.
func TestNoInstantLetsAPrimaryBeEvicted(t *testing.T) {
	for _, set := range []*v1alpha1.ReplicatedStatefulSet{fixture.SetOf(3, 1), fixture.SetOf(4, 2), fixture.SetOf(3, 1, "demote", "promote", "seed")} {
		first, count := simtest.Orders(orders)
		for seed := first; seed < first+count; seed++ {
			s := newStage(t, set.DeepCopy())
			s.settle(30 * time.Second)
			write(s)
			s.watchEvictions()
			chance := rand.New(rand.NewSource(int64(seed)))
			s.Shuffle = chance
			s.meddle(chance)
			ask := cordon("n1")
			if seed%2 == 1 {
				ask = askToGo(0)
			}
			ask(s)
			for range 60 {
				s.Look()
				s.pass()
				s.any(chance, s.Machines())
				s.any(chance, s.db.Moves())
				if chance.Intn(20) == 0 {
					s.restart()
				}
				s.Now = s.Now.Add(time.Duration(chance.Intn(1000)) * time.Millisecond)
				s.check()
			}
			s.heal()
			ask(s)
			s.settle(2 * time.Minute)
			if p := s.pod(0); p.Labels[v1alpha1.LabelRole] == v1alpha1.RolePrimary || s.whyNotEvicted(p) != "" {
				s.Fatal(t, "the drain is blocked: "+s.whyNotEvicted(p))
			}
		}
	}
}

// watchEvictions requests evictions after each write.
func (s *stage) watchEvictions() {
	s.Changed = func(_ *action.Action, _, _ client.Object) {
		acting := s.db.Acting()
		for _, p := range s.Pods() {
			if s.whyNotEvicted(p) != "" || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodPending {
				continue
			}
			if c := s.db.Container(p); c != nil && c.Role == record.Primary {
				s.Breaks("%s acts as primary and may be evicted", p.Name)
			}
			if len(acting) < int(*s.Set().Spec.Primaries) {
				s.Breaks("%s may be evicted while a primary is missing", p.Name)
			}
		}
	}
}
