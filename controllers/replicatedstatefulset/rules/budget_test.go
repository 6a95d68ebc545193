package rules_test

import (
	"slices"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestBudgets tests the values of the two budgets of a set whose budgets are empty.
func TestBudgets(t *testing.T) {
	const notPrimary, ofPrimary = ", NotIn [primary]", ", In [primary]"
	seeded := fixture.EpochOne
	custom := func(b v1alpha1.BudgetPolicy) *v1alpha1.ReplicatedStatefulSet {
		set := fixture.SetOf(5, 1)
		set.Spec.PodDisruptionBudget = &b
		return set
	}
	five := func() []fixture.Thing {
		return []fixture.Thing{seeded, fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary(), fixture.Pod(3).Secondary(), fixture.Pod(4).Secondary()}
	}
	for _, r := range []struct {
		name         string
		world        *facts.World
		all, primary string
	}{
		{"RS-67 one of two secondaries may be evicted", fixture.WorldOf(fixture.SetOf(3, 1), seeded, fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary()), "minAvailable 1" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-67 the only secondary may be evicted", fixture.WorldOf(fixture.SetOf(2, 1), seeded, fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()), "minAvailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-67 no eviction while no member is primary", fixture.WorldOf(fixture.SetOf(3, 1), seeded, fixture.Pod(0).Secondary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary()), "maxUnavailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-67 no eviction while the label of the primary is wrong", fixture.WorldOf(fixture.SetOf(2, 1), seeded, fixture.Pod(0).Primary().Labelled("secondary"), fixture.Pod(1).Secondary()), "maxUnavailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-67 no eviction while the pod of the primary is terminating", fixture.WorldOf(fixture.SetOf(2, 1), seeded, fixture.Pod(0).Primary().Deleted(), fixture.Pod(1).Secondary()), "maxUnavailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-67 no eviction while the Node of the primary is unreachable", fixture.WorldOf(fixture.SetOf(2, 1), seeded, fixture.Pod(0).Primary().Labelled("primary").OnNode(fixture.Off), fixture.Pod(1).Secondary()), "maxUnavailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-70 evictions without a primary after evictionTimeout", fixture.WorldOf(fixture.SetOf(2, 1), seeded, fixture.Pod(0).Idle().Cordoned(), fixture.Pod(1).Secondary(), fixture.TimedOut(time.Hour)), "minAvailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
		{"evictions in a set that was never seeded", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle(), fixture.Pod(1).Idle(), fixture.Pod(2).Idle()), "minAvailable 1" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-68 one of three primaries may be evicted", fixture.WorldOf(fixture.SetOf(3, 3), seeded, fixture.Pod(0).Primary(), fixture.Pod(1).Primary(), fixture.Pod(2).Primary()), "maxUnavailable 1", "none"},
		{"RS-68 the only member may be evicted", fixture.WorldOf(fixture.SetOf(1, 1), seeded, fixture.Pod(0).Primary()), "maxUnavailable 1", "none"},
		{"RS-68 one member may be evicted without secondaries", fixture.WorldOf(fixture.SetOf(3, 1, "secondary", "promote", "demote"), seeded, fixture.Pod(0).Primary(), fixture.Pod(1).Idle(), fixture.Pod(2).Idle()), "maxUnavailable 1", "none"},
		{"RS-66 one member may be evicted with evictionPolicy Allow", fixture.WorldOf(fixture.Allowing(fixture.SetOf(3, 1)), seeded, fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary()), "maxUnavailable 1", "none"},
		{"RS-69 maxUnavailable of the spec", fixture.WorldOf(custom(v1alpha1.BudgetPolicy{MaxUnavailable: ptr.To[int32](2)}), five()...), "minAvailable 2" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-69 minAvailable of the spec", fixture.WorldOf(custom(v1alpha1.BudgetPolicy{MinAvailable: ptr.To[int32](4)}), five()...), "minAvailable 4" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-69 minAvailable of the spec with evictionPolicy Allow", fixture.WorldOf(fixture.Allowing(custom(v1alpha1.BudgetPolicy{MinAvailable: ptr.To[int32](3)})), five()...), "minAvailable 3", "none"},
		{"RS-69 no budget when it is disabled", fixture.WorldOf(custom(v1alpha1.BudgetPolicy{Disabled: true}), five()...), "none", "none"},
		{"minAvailable during a scale-down", fixture.WorldOf(fixture.SetOf(5, 1), append(five(), fixture.Replicas(3))...), "minAvailable 3" + notPrimary, "minAvailable 1" + ofPrimary},
		{"minAvailable of a stopped set", fixture.WorldOf(fixture.SetOf(3, 1), seeded, fixture.Replicas(0), fixture.With(func(w *facts.World) { w.Set.Status.RestoreReplicas = 3 })), "minAvailable 2" + notPrimary, "minAvailable 0" + ofPrimary},
		{"RS-70 the primary may be evicted after evictionTimeout", fixture.WorldOf(fixture.SetOf(2, 1), seeded, fixture.Pod(0).Primary().Cordoned(), fixture.Pod(1).Pending(), fixture.TimedOut(time.Hour)), "minAvailable 0" + notPrimary, "minAvailable 0" + ofPrimary},
		{"RS-70 no eviction of the primary before evictionTimeout", fixture.WorldOf(fixture.SetOf(2, 1), seeded, fixture.Pod(0).Primary().Cordoned(), fixture.Pod(1).Pending(), fixture.TimedOut(59*time.Minute)), "minAvailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
		{"RS-70 no eviction of a primary whose Node is not cordoned", fixture.WorldOf(fixture.SetOf(2, 1), seeded, fixture.Pod(0).Primary(), fixture.Pod(1).Pending(), fixture.TimedOut(time.Hour)), "minAvailable 0" + notPrimary, "minAvailable 1" + ofPrimary},
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
			if all, primary := fixture.BudgetSays(made["rss-db"]), fixture.BudgetSays(made["rss-db.primary"]); all != r.all || primary != r.primary {
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
		return fixture.WorldOf(set, fixture.EpochOne, fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary())
	}
	for _, r := range []struct {
		name         string
		world        *facts.World
		all, primary policyv1.UnhealthyPodEvictionPolicyType
	}{
		{"W11 evict an unready secondary", runs(fixture.SetOf(3, 1)), always, ""},
		{"W11 no eviction of an unready member without a claim", runs(fixture.Unclaimed(fixture.SetOf(3, 1))), "", ""},
		{"W11 no eviction of an unready member while a primary is missing", fixture.WorldOf(fixture.SetOf(3, 1), fixture.EpochOne, fixture.Pod(0).Secondary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary()), healthy, ""},
		{"W11 no eviction of an unready member when the budget selects the primary", runs(fixture.Allowing(fixture.SetOf(3, 1))), healthy, ""},
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
	none := fixture.With(func(w *facts.World) { w.Budget, w.PrimaryBudget = nil, nil })
	for name, r := range map[string]struct {
		world *facts.World
		says  string
	}{
		"RS-67 the budget of a running set":         {fixture.WorldOf(fixture.SetOf(2, 1), none, fixture.EpochOne, fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()), "maxUnavailable 0, NotIn [primary]"},
		"RS-67 the budget of a set with a handover": {fixture.WorldOf(fixture.SetOf(2, 1), none, fixture.EpochOne, fixture.Pod(0).Primary().Cordoned().Sequence("9"), fixture.Pod(1).Secondary().Later("9")), "maxUnavailable 0, NotIn [primary]"},
		"the budget of a set that was never seeded": {fixture.WorldOf(fixture.SetOf(2, 1), none, fixture.Pod(0).Idle(), fixture.Pod(1).Idle()), "minAvailable 0, NotIn [primary]"},
	} {
		t.Run(name, func(t *testing.T) {
			p, says := rules.Decide(r.world), "nothing"
			for _, chain := range slices.Concat(p.Steps...) {
				if b, ok := chain[0].Object.(*policyv1.PodDisruptionBudget); ok && b.Name == "rss-db" {
					says = fixture.BudgetSays(b)
				}
			}
			if says != r.says {
				t.Errorf("the budget is %q, want %q", says, r.says)
			}
		})
	}
}

// TestBudgetIsOpened tests that the budget of the other members is opened when nothing is in
// progress.
func TestBudgetIsOpened(t *testing.T) {
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"open at rest", fixture.ShutWorld(fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()), "minAvailable 0, NotIn [primary]"},
		{"closed while a command is running", fixture.ShutWorld(fixture.Pod(0).Primary(), fixture.Pod(1).Secondary().WithRuns("secondary", time.Second)), "none"},
		{"closed while no member is primary", fixture.ShutWorld(fixture.Pod(0).Secondary(), fixture.Pod(1).Secondary()), "none"},
		{"closed while a primary is missing and a command runs on an unreachable Node", fixture.ShutWorld(fixture.Pod(0).Secondary().WithRuns("demote", time.Second).OnNode(fixture.Off), fixture.Pod(1).Secondary().Cordoned()), "none"},
		{"RS-70 open after evictionTimeout", fixture.ShutWorld(fixture.Pod(0).Secondary().WithRuns("demote", time.Second).OnNode(fixture.Off), fixture.Pod(1).Secondary().Cordoned(), fixture.TimedOut(time.Hour)), "minAvailable 0, NotIn [primary]"},
		{"closed before a handover begins", fixture.ShutWorld(fixture.Pod(0).Primary().Cordoned().Sequence("9"), fixture.Pod(1).Secondary().Later("9")), "maxUnavailable 0, NotIn [primary]"},
	} {
		t.Run(r.name, func(t *testing.T) {
			p, got := rules.Decide(r.world), "none"
			for _, chain := range slices.Concat(p.Steps...) {
				if b, ok := chain[0].Object.(*policyv1.PodDisruptionBudget); ok {
					got = fixture.BudgetSays(b)
				}
			}
			if got != r.want {
				t.Errorf("the budget is %q, want %q", got, r.want)
			}
		})
	}
}
