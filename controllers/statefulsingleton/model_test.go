package statefulsingleton_test

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/test/modelcheck"
)

// A full check of the protocol in doc.go as a model. docs/decisions/0006 describes its
// scope. model_state_test.go contains the state. model_cluster_test.go, model_node_test.go
// and model_operator_test.go each contain a list of moves. model_checker_test.go contains
// the search.

// worlds are models with different faults. A single world with all faults would be too
// large.
var worlds = []model{
	{name: "three pods, two operators", pods: 3, nodes: 1, objects: 1, operators: 2, faults: forced},
	{name: "programs crash, kubelets reject pods, grants are copied", pods: 2, nodes: 1, objects: 1, operators: 2,
		faults: forced | crashes | refusals | copies},
	{name: "pods without the gate, two operators", pods: 2, nodes: 1, objects: 1, operators: 2,
		faults: forced | crashes | refusals | ungated},
	{name: "three pods without the gate", pods: 3, nodes: 1, objects: 1, operators: 1, faults: forced | ungated},
	{name: "the object is deleted and recreated", pods: 2, nodes: 1, objects: 1, operators: 2, faults: forced | relabels | deletions},
	{name: "the object is deleted and recreated, pods without the gate", pods: 2, nodes: 1, objects: 1, operators: 1,
		faults: forced | crashes | ungated | relabels | deletions},
	{name: "a node fails", pods: 2, nodes: 1, objects: 1, operators: 1, faults: forced | crashes | refusals | outages | lateTaint},
	{name: "one of two nodes fails", pods: 2, nodes: 2, objects: 1, operators: 1, faults: forced | outages},
	{name: "a node fails, two operators", pods: 2, nodes: 1, objects: 1, operators: 2, faults: outages},
	{name: "a node fails, pods without the gate", pods: 2, nodes: 1, objects: 1, operators: 1, faults: outages | ungated},
	{name: "no guard against changes of labels", pods: 2, nodes: 1, objects: 1, operators: 2, faults: forced | crashes | unguarded},
	{name: "agents", pods: 2, nodes: 1, objects: 1, operators: 1, faults: leases | mixed | successors | forced | crashes},
	{name: "agents, and a user deletes the Lease", pods: 2, nodes: 1, objects: 1, operators: 1, faults: leases | mixed | successors | lostLeases | crashes},
	{name: "agents, and kubelets reject pods", pods: 2, nodes: 1, objects: 1, operators: 1, faults: leases | mixed | successors | refusals | forced},
	{name: "agents, the object is recreated", pods: 2, nodes: 1, objects: 1, operators: 1, faults: leases | mixed | deletions},
	{name: "agents, a node fails", pods: 2, nodes: 1, objects: 1, operators: 1, faults: leases | outages},
	{name: "overlapping selectors", pods: 2, nodes: 1, objects: 2, operators: 2, faults: forced | skew},
}

// largeWorlds are searched by `make mutants`, because each takes some minutes.
var largeWorlds = []model{
	{name: "agents, two operators", pods: 2, nodes: 1, objects: 1, operators: 2, faults: leases},
	{name: "agents and gates, two operators", pods: 2, nodes: 1, objects: 1, operators: 2, faults: leases | mixed},
	{name: "three agents", pods: 3, nodes: 1, objects: 1, operators: 1, faults: leases | successors},
	{name: "agents with successors, two operators", pods: 2, nodes: 1, objects: 1, operators: 2, faults: leases | successors},
}

func TestModelHolds(t *testing.T) {
	for _, m := range modelcheck.Worlds(worlds, largeWorlds) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			x, at := m.explore(true)
			if at >= 0 {
				t.Fatalf("two programs run at the same time:\n%s", x.story(at))
			}
			t.Logf("%d states", len(x.states))
			if m.objects == 2 {
				return // no pod starts until one of the two is gone
			}
			if at = x.deadEnd(); at >= 0 {
				t.Fatalf("a pod waits forever:\n%s", x.story(at))
			}
		})
	}
}
