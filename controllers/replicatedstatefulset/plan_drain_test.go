package replicatedstatefulset

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

var cordonedNode = nodestate.Facts{Ready: true, Cordoned: true}

func (f *podFixture) cordoned() *podFixture { return f.onNode(cordonedNode) }

// wasToGo records a requested eviction of that age.
func (f *podFixture) wasToGo(age time.Duration) *podFixture {
	f.EvictionAt = ago(age)
	return f
}

// later adds a sequence that was read after those of the others.
func (f *podFixture) later(out string) *podFixture {
	return f.answered("sequence", podexec.Succeeded, 0, out+"\n", 3*time.Second)
}

func allowing(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	set.Spec.EvictionPolicy = v1alpha1.EvictionAllow
	return set
}

// epochOne makes the set one that was seeded.
var epochOne = with(func(w *facts.World) { w.Set.Status.Epoch = 1 })

// timedOut makes condition Draining True for that long, with an evictionTimeout of one hour.
func timedOut(age time.Duration) thing {
	return with(func(w *facts.World) {
		w.Set.Spec.EvictionTimeout = "1h"
		w.Set.Status.Conditions = append(w.Set.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionDraining, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNoSuccessor, LastTransitionTime: metav1.NewTime(ago(age)),
		})
	})
}

// TestDecideDrain tests that a primary on a cordoned Node hands its role over, at rest only, and
// not to a member that is behind or should leave its Node too.
func TestDecideDrain(t *testing.T) {
	leaving := func() *podFixture {
		return pod(0).primary().cordoned().sequence("9")
	}
	evicted := func() *podFixture {
		return pod(0).primary().wasToGo(time.Minute).sequence("9")
	}
	ready := func(n int) *podFixture {
		return pod(n).secondary().later("9")
	}
	check(t, []row{
		{"RS-64 hand over to a member whose Node is not cordoned", worldOf(setOf(3, 1), leaving(), ready(1).cordoned(), ready(2)), []string{"0: Demote, with 0"}},
		{"RS-64 no change for a secondary on a cordoned Node", worldOf(setOf(3, 1), pod(0).primary().sequence("9"), ready(1).cordoned(), ready(2)), nil},
		{"RS-65 no handover while all other Nodes are cordoned too", worldOf(setOf(3, 1), leaving(), ready(1).cordoned(), ready(2).cordoned()), nil},
		{"RS-65 no handover while the successor lags; query it again", worldOf(setOf(3, 1), leaving(), pod(1).secondary().sequence("8"), ready(2).cordoned()), []string{"1 asked sequence"}},
		{"RS-65 no handover to a degraded member", worldOf(setOf(2, 1), leaving(), pod(1).status(190).later("9")), nil},
		{"RS-65 no handover while a member is missing", worldOf(setOf(3, 1), leaving(), ready(1), pod(2).pending()), nil},
		{"RS-65 no handover while an update is in progress", worldOf(setOf(3, 1), leaving(), ready(1), ready(2).outdated()), []string{"2: Stop, with 0"}},
		{"RS-65 hand over to the member that a user requested", worldOf(setOf(3, 1), leaving(), ready(1), ready(2), annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-2")), []string{"0: Demote, with 0"}},
		{"RS-65 no handover while paused", worldOf(setOf(3, 1), leaving(), ready(1), ready(2), with(func(w *facts.World) { w.Set.Spec.Paused = true })), nil},
		{"RS-65 no handover after demote failed", worldOf(setOf(3, 1), leaving().failures(1, "demote", 1, false), ready(1), ready(2)), nil},
		{"RS-65 no handover within a minute after one that was undone", worldOf(setOf(3, 1), leaving().changed("demote", 50*time.Second), ready(1), ready(2)), nil},
		{"retry a handover a minute after one that was undone", worldOf(setOf(3, 1), leaving().changed("demote", 70*time.Second), ready(1), ready(2)), []string{"0: Demote, with 0"}},
		{"RS-66 no handover with evictionPolicy Allow", worldOf(allowing(setOf(3, 1)), leaving(), ready(1), ready(2)), nil},
		{"RS-66 no handover when all members are primary", worldOf(setOf(2, 2), pod(0).primary().cordoned(), pod(1).primary()), nil},
		{"RS-66 no handover without secondaries", worldOf(setOf(2, 1, "secondary", "promote", "demote"), leaving(), pod(1).idle().sequence("9")), nil},
		{"RS-80 hand over after an eviction request", worldOf(setOf(3, 1), evicted(), ready(1).cordoned(), ready(2)), []string{"0: Demote, with 0"}},
		{"RS-80 hand over after an eviction request with a time in the future", worldOf(setOf(2, 1), evicted().wasToGo(-time.Minute), ready(1)), []string{"0: Demote, with 0"}},
		{"RS-81 no handover after an expired eviction request", worldOf(setOf(2, 1), evicted().wasToGo(2*time.Minute), ready(1)), nil},
		{"RS-81 no handover to a member with an eviction request", worldOf(setOf(2, 1), evicted(), ready(1).wasToGo(0)), nil},
		{"RS-81 no handover after an eviction request while a member is missing", worldOf(setOf(3, 1), evicted(), ready(1), pod(2).pending()), nil},
		{"RS-81 no handover after an eviction request with evictionPolicy Allow", worldOf(allowing(setOf(2, 1)), evicted(), ready(1)), nil},
		{"RS-81 no change for a secondary with an eviction request", worldOf(setOf(2, 1), pod(0).primary().sequence("9"), ready(1).wasToGo(0)), nil},
		{"RS-80 among equal sequences, promote a member without an eviction request", worldOf(setOf(3, 1), ready(0).wasToGo(0), ready(1), ready(2)), []string{"1: Promote, alone"}},
		{"RS-64 among equal sequences, promote a member whose Node is not cordoned", worldOf(setOf(3, 1), ready(0).cordoned(), ready(1), ready(2)), []string{"1: Promote, alone"}},
		{"W11 among equal sequences, promote a Ready member although its Node is cordoned", worldOf(setOf(3, 1), ready(0).unready(time.Second), ready(1).unready(time.Second), ready(2).cordoned()), []string{"2: Promote, alone"}},
		{"W11 promote the newest copy although its pod is not Ready", worldOf(setOf(3, 1), ready(0).unready(time.Second), pod(1).secondary().sequence("8"), pod(2).secondary().sequence("8")), []string{"0: Promote, alone"}},
		{"W11 hand over to a member whose pod is Ready", worldOf(setOf(3, 1), leaving(), ready(1).unready(time.Second), ready(2)), []string{"0: Demote, with 0"}},
		{"W11 no handover while no other pod is Ready", worldOf(setOf(3, 1), leaving(), ready(1).unready(time.Second), ready(2).unready(time.Second)), nil},
		{"RS-64 promote the newest copy although its Node is cordoned", worldOf(setOf(3, 1), ready(0).cordoned(), pod(1).secondary().sequence("8"), pod(2).secondary().sequence("8")), []string{"0: Promote, alone"}},
		{"RS-64 promote an additional primary whose Node is not cordoned", worldOf(setOf(4, 2), pod(0).primary(), ready(1).cordoned(), ready(2), ready(3)), []string{"2: Promote, with 0"}},
	})
}

// TestDraining tests that the condition reports the primary on a cordoned Node, and the possible
// remedies.
func TestDraining(t *testing.T) {
	leaving := func() *podFixture {
		return pod(0).primary().cordoned().sequence("9")
	}
	notDraining := []string{v1alpha1.ReasonNotDraining, v1alpha1.ReasonWaitingForCommand}
	for _, r := range []struct {
		name         string
		world        *facts.World
		reason, says string
	}{
		{"no primary on a cordoned Node", worldOf(setOf(2, 1), pod(0).primary(), pod(1).secondary().cordoned()), v1alpha1.ReasonNotDraining, "no primary"},
		{"the successor lags", worldOf(setOf(2, 1), leaving(), pod(1).secondary().sequence("8")), v1alpha1.ReasonHandingOver, "waiting for rss-db-1 to catch up with rss-db-0"},
		{"demote is running", worldOf(setOf(2, 1), leaving().runs("demote", time.Second), pod(1).secondary(), with(func(w *facts.World) { w.Set.Status.Members.Primary = []string{"rss-db-0"} })), v1alpha1.ReasonHandingOver, "waiting for command demote"},
		{"all other Nodes are cordoned", worldOf(setOf(2, 1), leaving(), pod(1).secondary().cordoned().sequence("9")), v1alpha1.ReasonNoSuccessor, "rss-db-1 (Node n1 is cordoned); uncordon one of their Nodes, repair one of them, or add a member. To evict it anyway, and lose data that no other member has: kubectl -n ns patch rss db --type=merge -p '{\"spec\":{\"evictionPolicy\":\"Allow\"}}'"},
		{"W11 the successor has not been Ready for minutes", worldOf(setOf(2, 1), leaving(), pod(1).secondary().unready(2*time.Minute)), v1alpha1.ReasonNoSuccessor, "rss-db-1 (its pod is not Ready); uncordon one of their Nodes, repair one of them, or add a member"},
		{"W11 the successor has not been Ready for a second", worldOf(setOf(2, 1), leaving(), pod(1).secondary().unready(time.Second)), v1alpha1.ReasonNoSuccessor, "rss-db-1 (its pod is not Ready)"},
		{"W11 neither the primary nor the successor is Ready", worldOf(setOf(2, 1), leaving().unready(2*time.Minute), pod(1).secondary().unready(2*time.Minute)), v1alpha1.ReasonHandingOver, ""},
		{"a member is missing", worldOf(setOf(2, 1), leaving(), pod(1).pending()), v1alpha1.ReasonNoSuccessor, "missing: rss-db-1 (pending)"},
		{"paused", worldOf(setOf(2, 1), leaving(), pod(1).secondary(), with(func(w *facts.World) { w.Set.Spec.Paused = true })), v1alpha1.ReasonNoSuccessor, "spec.paused is true"},
		{"demote failed", worldOf(setOf(2, 1), leaving().failures(1, "demote", 1, false), pod(1).secondary()), v1alpha1.ReasonNoSuccessor, "demote failed with exit code 1; it will be retried"},
		{"the last handover was undone", worldOf(setOf(2, 1), leaving().changed("demote", 50*time.Second), pod(1).secondary()), v1alpha1.ReasonHandingOver, "next attempt at"},
		{"an update is in progress", worldOf(setOf(2, 1), leaving(), pod(1).secondary().outdated()), v1alpha1.ReasonHandingOver, "recreated from the current template"},
		{"a primary is missing", worldOf(setOf(2, 1), epochOne, pod(0).idle().cordoned(), pod(1).secondary()), v1alpha1.ReasonPrimaryMissing, "0 of 1 primaries run, and no member is evicted until all of them run; see Progressing and Degraded. Members that should leave their Nodes: rss-db-0. To evict one anyway: kubectl -n ns delete pod <pod>"},
		{"RS-67 a command of the handover is running", shutWorld(pod(0).secondary().cordoned(), pod(1).primary(), pod(2).secondary().runs("secondary", time.Second)), v1alpha1.ReasonWaitingForCommand, "No member is evicted until all commands have ended; missing: rss-db-2 (command secondary is in progress). Members that should leave their Nodes: rss-db-0"},
		{"RS-67 all commands of the handover have ended", shutWorld(pod(0).secondary().cordoned(), pod(1).primary(), pod(2).secondary()), v1alpha1.ReasonNotDraining, "no primary"},
		{"a primary is missing, and no Node is cordoned", worldOf(setOf(2, 1), epochOne, pod(0).idle(), pod(1).secondary()), v1alpha1.ReasonNotDraining, "no primary"},
		{"a Node is cordoned, and the set was never seeded", worldOf(setOf(2, 1), pod(0).idle().cordoned(), pod(1).idle()), v1alpha1.ReasonNotDraining, "no primary"},
		{"a primary is missing, and evictionTimeout has expired", worldOf(setOf(2, 1), epochOne, pod(0).idle().cordoned(), pod(1).secondary(), timedOut(time.Hour)), v1alpha1.ReasonEvictionAllowed, "members that should leave their Nodes may be evicted although a primary is missing, because spec.evictionTimeout has expired: rss-db-0"},
		{"RS-80 the eviction of the primary was requested", worldOf(setOf(2, 1), pod(0).primary().wasToGo(0).sequence("9"), pod(1).secondary().sequence("8")), v1alpha1.ReasonHandingOver,
			"rss-db-0 is primary and its eviction was requested; it is not evicted until another member has its role: waiting for rss-db-1 to catch up with rss-db-0"},
		{"RS-81 the evictions of all members were requested", worldOf(setOf(2, 1), pod(0).primary().wasToGo(0).sequence("9"), pod(1).secondary().wasToGo(0)), v1alpha1.ReasonNoSuccessor, "rss-db-1 (its eviction was requested)"},
		{"RS-81 the eviction request of the primary has expired", worldOf(setOf(2, 1), pod(0).primary().wasToGo(2*time.Minute), pod(1).secondary()), v1alpha1.ReasonNotDraining, "no primary"},
		{"evictionTimeout has not expired", worldOf(setOf(2, 1), leaving(), pod(1).pending(), timedOut(59*time.Minute)), v1alpha1.ReasonNoSuccessor, "it is not evicted until another member has its role"},
		{"evictionTimeout has expired", worldOf(setOf(2, 1), leaving(), pod(1).pending(), timedOut(time.Hour)), v1alpha1.ReasonEvictionAllowed, "it may be evicted, because spec.evictionTimeout has expired"},
	} {
		t.Run(r.name, func(t *testing.T) {
			p := rules.Decide(r.world)
			c := meta.FindStatusCondition(status.Summarize(&p).Conditions, v1alpha1.ConditionDraining)
			if c == nil || c.Reason != r.reason || !strings.Contains(c.Message, r.says) || (c.Status == metav1.ConditionFalse) != slices.Contains(notDraining, r.reason) {
				t.Errorf("the condition is %+v", c)
			}
		})
	}
}

// The budgets.

func budgetSays(b *policyv1.PodDisruptionBudget) string {
	if b == nil {
		return "none"
	}
	var parts []string
	if least := b.Spec.MinAvailable; least != nil {
		parts = append(parts, "minAvailable "+least.String())
	}
	if most := b.Spec.MaxUnavailable; most != nil {
		parts = append(parts, "maxUnavailable "+most.String())
	}
	for _, e := range b.Spec.Selector.MatchExpressions {
		parts = append(parts, fmt.Sprint(e.Operator, " ", e.Values))
	}
	return strings.Join(parts, ", ")
}

// TestBudgets tests the values of the two budgets of a set whose budgets are empty.
func TestBudgets(t *testing.T) {
	const notPrimary, ofPrimary = ", NotIn [primary]", ", In [primary]"
	seeded := epochOne
	custom := func(b v1alpha1.BudgetPolicy) *v1alpha1.ReplicatedStatefulSet {
		set := setOf(5, 1)
		set.Spec.PodDisruptionBudget = &b
		return set
	}
	five := func() []thing {
		return []thing{seeded, pod(0).primary(), pod(1).secondary(), pod(2).secondary(), pod(3).secondary(), pod(4).secondary()}
	}
	for _, r := range []struct {
		name         string
		world        *facts.World
		all, primary string
	}{
		{"RS-67 one of two secondaries may be evicted", worldOf(setOf(3, 1), seeded, pod(0).primary(), pod(1).secondary(), pod(2).secondary()), "minAvailable 1" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-67 the only secondary may be evicted", worldOf(setOf(2, 1), seeded, pod(0).primary(), pod(1).secondary()), "minAvailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-67 no eviction while no member is primary", worldOf(setOf(3, 1), seeded, pod(0).secondary(), pod(1).secondary(), pod(2).secondary()), "maxUnavailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-67 no eviction while the label of the primary is wrong", worldOf(setOf(2, 1), seeded, pod(0).primary().labelled("secondary"), pod(1).secondary()), "maxUnavailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-67 no eviction while the pod of the primary is terminating", worldOf(setOf(2, 1), seeded, pod(0).primary().deleted(), pod(1).secondary()), "maxUnavailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-67 no eviction while the Node of the primary is unreachable", worldOf(setOf(2, 1), seeded, pod(0).primary().labelled("primary").onNode(off), pod(1).secondary()), "maxUnavailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-70 evictions without a primary after evictionTimeout", worldOf(setOf(2, 1), seeded, pod(0).idle().cordoned(), pod(1).secondary(), timedOut(time.Hour)), "minAvailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
		{"evictions in a set that was never seeded", worldOf(setOf(3, 1), pod(0).idle(), pod(1).idle(), pod(2).idle()), "minAvailable 1" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-68 one of three primaries may be evicted", worldOf(setOf(3, 3), seeded, pod(0).primary(), pod(1).primary(), pod(2).primary()), "maxUnavailable 1", "none"},
		{"RS-68 the only member may be evicted", worldOf(setOf(1, 1), seeded, pod(0).primary()), "maxUnavailable 1", "none"},
		{"RS-68 one member may be evicted without secondaries", worldOf(setOf(3, 1, "secondary", "promote", "demote"), seeded, pod(0).primary(), pod(1).idle(), pod(2).idle()), "maxUnavailable 1", "none"},
		{"RS-66 one member may be evicted with evictionPolicy Allow", worldOf(allowing(setOf(3, 1)), seeded, pod(0).primary(), pod(1).secondary(), pod(2).secondary()), "maxUnavailable 1", "none"},
		{"RS-69 maxUnavailable of the spec", worldOf(custom(v1alpha1.BudgetPolicy{MaxUnavailable: ptr.To[int32](2)}), five()...), "minAvailable 2" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-69 minAvailable of the spec", worldOf(custom(v1alpha1.BudgetPolicy{MinAvailable: ptr.To[int32](4)}), five()...), "minAvailable 4" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-69 minAvailable of the spec with evictionPolicy Allow", worldOf(allowing(custom(v1alpha1.BudgetPolicy{MinAvailable: ptr.To[int32](3)})), five()...), "minAvailable 3", "none"},
		{"RS-69 no budget when it is disabled", worldOf(custom(v1alpha1.BudgetPolicy{Disabled: true}), five()...), "none", "none"},
		{"minAvailable during a scale-down", worldOf(setOf(5, 1), append(five(), replicas(3))...), "minAvailable 3" + notPrimary, "minAvailable 1" + ofPrimary},
		{"minAvailable of a stopped set", worldOf(setOf(3, 1), seeded, replicas(0), with(func(w *facts.World) { w.Set.Status.RestoreReplicas = 3 })), "minAvailable 2" + notPrimary, "minAvailable 0" + ofPrimary},
		{"RS-70 the primary may be evicted after evictionTimeout", worldOf(setOf(2, 1), seeded, pod(0).primary().cordoned(), pod(1).pending(), timedOut(time.Hour)), "minAvailable 0" + notPrimary, "minAvailable 0" + ofPrimary},
		{"RS-70 no eviction of the primary before evictionTimeout", worldOf(setOf(2, 1), seeded, pod(0).primary().cordoned(), pod(1).pending(), timedOut(59*time.Minute)), "minAvailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-70 no eviction of a primary whose Node is not cordoned", worldOf(setOf(2, 1), seeded, pod(0).primary(), pod(1).pending(), timedOut(time.Hour)), "minAvailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
	} {
		t.Run(r.name, func(t *testing.T) {
			set := r.world.Set
			r.world.Budget, r.world.PrimaryBudget = children.NewBudget(set, spec.BudgetName(set)), children.NewBudget(set, spec.PrimaryBudgetName(set))
			p, made := rules.Decide(r.world), map[string]*policyv1.PodDisruptionBudget{}
			for _, chain := range slices.Concat(p.Steps...) {
				if b, ok := chain[0].Object.(*policyv1.PodDisruptionBudget); ok && chain[0].Verb == action.Patch {
					made[b.Name] = b
				}
			}
			if all, primary := budgetSays(made["rss-db"]), budgetSays(made["rss-db.primary"]); all != r.all || primary != r.primary {
				t.Errorf("the budgets are %q and %q, want %q and %q", all, primary, r.all, r.primary)
			}
		})
	}
}

// TestW11PodsThatAreNotReady tests W11: whether an unready pod may be evicted regardless of the
// budget.
func TestW11PodsThatAreNotReady(t *testing.T) {
	always, healthy := policyv1.AlwaysAllow, policyv1.IfHealthyBudget
	runs := func(set *v1alpha1.ReplicatedStatefulSet) *facts.World {
		return worldOf(set, epochOne, pod(0).primary(), pod(1).secondary(), pod(2).secondary())
	}
	for _, r := range []struct {
		name         string
		world        *facts.World
		all, primary policyv1.UnhealthyPodEvictionPolicyType
	}{
		{"W11 evict an unready secondary", runs(setOf(3, 1)), always, ""},
		{"W11 no eviction of an unready member without a claim", runs(unclaimed(setOf(3, 1))), "", ""},
		{"W11 no eviction of an unready member while a primary is missing", worldOf(setOf(3, 1), epochOne, pod(0).secondary(), pod(1).secondary(), pod(2).secondary()), healthy, ""},
		{"W11 no eviction of an unready member when the budget selects the primary", runs(allowing(setOf(3, 1))), healthy, ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			set := r.world.Set
			r.world.Budget, r.world.PrimaryBudget = children.NewBudget(set, spec.BudgetName(set)), children.NewBudget(set, spec.PrimaryBudgetName(set))
			p, made := rules.Decide(r.world), map[string]policyv1.UnhealthyPodEvictionPolicyType{}
			for _, chain := range slices.Concat(p.Steps...) {
				if b, ok := chain[0].Object.(*policyv1.PodDisruptionBudget); ok && chain[0].Verb == action.Patch {
					made[b.Name] = ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, "")
				}
			}
			if all, primary := made["rss-db"], made["rss-db.primary"]; all != r.all || primary != r.primary {
				t.Errorf("the budgets are %q and %q, want %q and %q", all, primary, r.all, r.primary)
			}
		})
	}
}

// TestBudgetsAreMadeAnew tests that a recreated budget allows no eviction, because a handover may
// begin at the same time.
func TestBudgetsAreMadeAnew(t *testing.T) {
	none := with(func(w *facts.World) { w.Budget, w.PrimaryBudget = nil, nil })
	for name, r := range map[string]struct {
		world *facts.World
		says  string
	}{
		"RS-67 the budget of a running set":         {worldOf(setOf(2, 1), none, epochOne, pod(0).primary(), pod(1).secondary()), "maxUnavailable 0, NotIn [primary]"},
		"RS-67 the budget of a set with a handover": {worldOf(setOf(2, 1), none, epochOne, pod(0).primary().cordoned().sequence("9"), pod(1).secondary().later("9")), "maxUnavailable 0, NotIn [primary]"},
		"the budget of a set that was never seeded": {worldOf(setOf(2, 1), none, pod(0).idle(), pod(1).idle()), "minAvailable 0, NotIn [primary]"},
	} {
		t.Run(name, func(t *testing.T) {
			p, says := rules.Decide(r.world), "nothing"
			for _, chain := range slices.Concat(p.Steps...) {
				if b, ok := chain[0].Object.(*policyv1.PodDisruptionBudget); ok && b.Name == "rss-db" {
					says = budgetSays(b)
				}
			}
			if says != r.says {
				t.Errorf("the budget is %q, want %q", says, r.says)
			}
		})
	}
}

// labelled sets the role label of the pod, whatever its state.
func (f *podFixture) labelled(role string) *podFixture {
	f.labels = map[string]string{v1alpha1.LabelRole: role}
	return f
}

// shutWorld returns a world with a seeded set whose budget allows no eviction.
func shutWorld(things ...thing) *facts.World {
	members := int32(0)
	for _, t := range things {
		if _, ok := t.(*podFixture); ok {
			members++
		}
	}
	w := worldOf(setOf(members, 1), append(things, epochOne)...)
	w.Budget.Spec = rules.ClosedBudget(w.Budget).Spec
	return w
}

// TestBudgetIsOpened tests that the budget of the other members is opened when nothing is in
// progress.
func TestBudgetIsOpened(t *testing.T) {
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"open at rest", shutWorld(pod(0).primary(), pod(1).secondary()), "minAvailable 0, NotIn [primary]"},
		{"closed while a command is running", shutWorld(pod(0).primary(), pod(1).secondary().runs("secondary", time.Second)), "none"},
		{"closed while no member is primary", shutWorld(pod(0).secondary(), pod(1).secondary()), "none"},
		{"closed while a primary is missing and a command runs on an unreachable Node", shutWorld(pod(0).secondary().runs("demote", time.Second).onNode(off), pod(1).secondary().cordoned()), "none"},
		{"RS-70 open after evictionTimeout", shutWorld(pod(0).secondary().runs("demote", time.Second).onNode(off), pod(1).secondary().cordoned(), timedOut(time.Hour)), "minAvailable 0, NotIn [primary]"},
		{"closed before a handover begins", shutWorld(pod(0).primary().cordoned().sequence("9"), pod(1).secondary().later("9")), "maxUnavailable 0, NotIn [primary]"},
	} {
		t.Run(r.name, func(t *testing.T) {
			p, got := rules.Decide(r.world), "none"
			for _, chain := range slices.Concat(p.Steps...) {
				if b, ok := chain[0].Object.(*policyv1.PodDisruptionBudget); ok {
					got = budgetSays(b)
				}
			}
			if got != r.want {
				t.Errorf("the budget is %q, want %q", got, r.want)
			}
		})
	}
}

// handedOver returns the chain that begins the handover of the primary's role.
func handedOver(t *testing.T, w *facts.World) action.Chain {
	t.Helper()
	p := rules.Decide(w)
	for _, chain := range slices.Concat(p.Steps...) {
		if chain[len(chain)-1].Verb == action.Exec {
			return chain
		}
	}
	t.Fatalf("no role is handed over: %s", p.Steps.Strings())
	return nil
}

// TestHandoverWritesTheBudget tests that a handover writes the closed budget even if it is closed
// already. So the pending write of another operator that froze before it opened the budget fails.
// It is written once only; otherwise a label that cannot be written would cause a write in each
// pass.
func TestHandoverWritesTheBudget(t *testing.T) {
	leaving, ready := pod(0).primary().cordoned().sequence("9"), pod(1).secondary().later("9")
	byUs := with(func(w *facts.World) { w.ClosedAt = "before" })
	for _, r := range []struct {
		name     string
		world    *facts.World
		closedAt string
		writes   bool
	}{
		{"RS-67 an open budget is closed", worldOf(setOf(2, 1), leaving, ready), "", true},
		{"RS-67 a closed budget without a time is written", shutWorld(leaving, ready), "", true},
		{"RS-67 a budget that another process closed is written", shutWorld(leaving, ready), "before", true},
		{"RS-67 a budget that another process closed after this one is written", shutWorld(leaving, ready, byUs), "later", true},
		{"RS-67 a budget that this process closed is not written again", shutWorld(leaving, ready, byUs), "before", false},
	} {
		t.Run(r.name, func(t *testing.T) {
			r.world.Budget.Annotations = map[string]string{v1alpha1.AnnotationClosedAt: r.closedAt}
			chain := handedOver(t, r.world)
			b, writes := chain[0].Object.(*policyv1.PodDisruptionBudget)
			if writes != r.writes {
				t.Fatalf("the chain begins with %s", chain[0])
			}
			before := r.world.Budget
			if writes && (!chain[0].Unchanged || budgetSays(b) != "maxUnavailable 0, NotIn [primary]" || b.ResourceVersion != before.ResourceVersion ||
				b.Annotations[v1alpha1.AnnotationClosedAt] == before.Annotations[v1alpha1.AnnotationClosedAt]) {
				t.Errorf("written is %s: %+v", budgetSays(b), b.Annotations)
			}
		})
	}
}

// TestHandoverNeedsAClosedBudget tests that, if a policy of the cluster changes the closed budget,
// the label stays and no command is sent: the rest of the chain is not run.
func TestHandoverNeedsAClosedBudget(t *testing.T) {
	chain := handedOver(t, worldOf(setOf(2, 1), pod(0).primary().cordoned().sequence("9"), pod(1).secondary().later("9")))
	verify := chain[0].Verify
	if chain[0].Reason != facts.ReasonBudget || verify == nil {
		t.Fatalf("RS-67 the chain begins with %s, and does not verify the response", chain[0])
	}
	for _, r := range []struct {
		name string
		most *intstr.IntOrString
		ends bool
	}{
		{"RS-67 a closed budget", ptr.To(intstr.FromInt32(0)), false},
		{"RS-67 a budget that a policy opened", ptr.To(intstr.FromInt32(1)), true},
		{"RS-67 a budget without a number after a policy", nil, true},
	} {
		answer := chain[0].Object.DeepCopyObject().(*policyv1.PodDisruptionBudget)
		answer.Spec.MaxUnavailable = r.most
		if err := verify(answer); (err != nil) != r.ends {
			t.Errorf("%s: %v", r.name, err)
		}
	}
}

// TestHandoverBeginsWithATrueLabel tests that a primary with a wrong label gets the primary label
// first, because the chain of a handover begins with a primary that has clients.
func TestHandoverBeginsWithATrueLabel(t *testing.T) {
	p := rules.Decide(shutWorld(pod(0).primary().cordoned().sequence("9").labelled("secondary"), pod(1).secondary().later("9")))
	if lines := strings.Join(p.Steps.Strings(), "\n"); strings.Contains(lines, "exec") || !strings.Contains(lines, "patch pod rss-db-0: Role, primary") {
		t.Errorf("RS-67 the plan is\n%s", lines)
	}
}

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

func (s *stage) cordoned(name string) bool {
	n, ok := s.All[objects.Key{Kind: "Node", Name: name}].(*corev1.Node)
	return ok && n.Spec.Unschedulable
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
		s.book = map[types.UID]facts.Entry{p.UID: {Namespace: p.Namespace, Pod: p.Name, At: s.Now}}
		s.r.Book.Entries = s.book
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
	for _, p := range s.pods() {
		if selects(b, p) && p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, isReady) {
			healthy++
		}
	}
	if b.Spec.MinAvailable != nil {
		return healthy - b.Spec.MinAvailable.IntValue()
	}
	return healthy - (int(*s.statefulSet().Spec.Replicas) - b.Spec.MaxUnavailable.IntValue())
}

func isReady(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

// TestNoInstantLetsAPrimaryBeEvicted tests RS-67: at no time during a handover does the API server
// evict a pod that acts as primary, or any other pod while none does. It requests evictions after
// each write, in random orders, while writes fail and the operator dies.
func TestNoInstantLetsAPrimaryBeEvicted(t *testing.T) {
	for _, set := range []*v1alpha1.ReplicatedStatefulSet{setOf(3, 1), setOf(4, 2), setOf(3, 1, "demote", "promote", "seed")} {
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
				s.look()
				s.pass()
				s.any(chance, s.machines())
				s.any(chance, s.db.moves())
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
		acting := s.db.acting()
		for _, p := range s.pods() {
			if s.whyNotEvicted(p) != "" || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodPending {
				continue
			}
			if c := s.db.of(p); c != nil && c.role == record.Primary {
				s.Breaks("%s acts as primary and may be evicted", p.Name)
			}
			if len(acting) < int(*s.set().Spec.Primaries) {
				s.Breaks("%s may be evicted while a primary is missing", p.Name)
			}
		}
	}
}
