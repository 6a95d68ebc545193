package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
)

// rollout is the plan of a rollout of three members with a scale-down and claims.
func rollout() []Step {
	return []Step{
		{Batch: 1, Action: RecreatePod, Name: "shop-2"},
		{Batch: 2, Action: RecreatePod, Name: "shop-1"},
		{Batch: 3, Action: Handover, Name: "shop-0", To: "shop-1", Role: "primary"},
		{Batch: 4, Action: RecreatePod, Name: "shop-0"},
		{Batch: 5, Action: CreatePod, Name: "shop-3"},
		{Batch: 5, Action: CreateClaim, Name: "data-shop-3"},
		{Batch: 6, Action: DeleteClaim, Name: "data-shop-9"},
	}
}

// mutations are ways to make a plan of at least two steps wrong.
var mutations = map[string]func([]Step) []Step{
	"a step is missing":          func(s []Step) []Step { return s[1:] },
	"the last step is missing":   func(s []Step) []Step { return s[:len(s)-1] },
	"a step is repeated":         func(s []Step) []Step { return append(s, s[0]) },
	"another pod":                func(s []Step) []Step { s[1].Name = "shop-7"; return s },
	"another action":             func(s []Step) []Step { s[1].Action = UpdatePod; return s },
	"another order":              func(s []Step) []Step { s[0].Batch, s[1].Batch = s[1].Batch, s[0].Batch; return s },
	"another successor":          func(s []Step) []Step { s[2].To = "shop-2"; return s },
	"a handover at another time": func(s []Step) []Step { s[2].Batch = 9; return s },
	"a claim is kept":            func(s []Step) []Step { return slices.Delete(s, 6, 7) },
	"another claim":              func(s []Step) []Step { s[5].Name = "data-shop-4"; return s },
}

func TestDifferences(t *testing.T) {
	if d := Differences(rollout(), rollout(), false, ""); len(d) > 0 {
		t.Errorf("equal plans differ: %q", d)
	}
	claimsFirst := rollout()
	slices.Reverse(claimsFirst[4:])
	if d := Differences(rollout(), claimsFirst, false, ""); len(d) > 0 {
		t.Errorf("claims have an order: %q", d)
	}
	for name, mutate := range mutations {
		if d := Differences(mutate(rollout()), rollout(), false, ""); len(d) == 0 {
			t.Errorf("%s: no difference", name)
		}
	}
	other := rollout()
	other[4].Name, other[5].Name = "shop-x", "data-shop-x"
	if d := Differences(rollout(), other, true, ""); len(d) > 0 {
		t.Errorf("random names differ: %q", d)
	}
	if d := Differences(rollout(), other, false, ""); len(d) != 4 {
		t.Errorf("names do not differ: %q", d)
	}
	if d := Differences(nil, rollout()[:1], false, ""); len(d) != 1 || !strings.Contains(d[0], "planned 0 times, happened 1 times") {
		t.Errorf("an unplanned step: %q", d)
	}
}

// TestDifferencesOfADrain tests that the pods of the drained Node have no order, and others have.
func TestDifferencesOfADrain(t *testing.T) {
	planned := []Step{
		{Batch: 1, Action: DeletePod, Name: "shop-a", Node: "n1"}, {Batch: 2, Action: CreatePod, Name: "shop-new1"},
		{Batch: 3, Action: DeletePod, Name: "shop-b", Node: "n1"}, {Batch: 4, Action: CreatePod, Name: "shop-new2"},
		{Batch: 5, Action: Handover, Name: "shop-b", To: "shop-c", Role: "primary"},
		{Batch: 6, Action: RecreatePod, Name: "shop-c", Node: "n2"},
	}
	happened := slices.Clone(planned)
	happened[0], happened[2] = happened[2], happened[0]
	if d := Differences(planned, happened, true, "n1"); len(d) > 0 {
		t.Errorf("evictions have an order: %q", d)
	}
	if d := Differences(planned, happened, true, ""); len(d) == 0 {
		t.Error("deletions have no order")
	}
	happened[4], happened[5] = happened[5], happened[4]
	if d := Differences(planned, happened, true, "n1"); len(d) == 0 {
		t.Error("a handover before the recreation of a pod of another Node has no order")
	}
}

// TestAnObserverRecordsWhatAPlanContains passes the changes of one simulated cluster to an observer.
func TestAnObserverRecordsWhatAPlanContains(t *testing.T) {
	begin := live(t, shop("db:1", 3))
	p := planOf(t, begin, Put(shop("db:2", 3)))
	c := simulation.New(noon)
	for _, object := range begin.Objects {
		c.Put(object)
	}
	o := Observe(toy{}, key, begin.Objects, noon)
	c.Changed = func(_ *action.Action, was, is client.Object) {
		o.See(either(was, is), is == nil, c.Now)
	}
	Put(shop("db:2", 3)).Do(c)
	simulation.Run(c, toy{}.Start(c, key), time.Minute)
	happened, summary := o.Steps()
	if d := Differences(p.Steps, happened, false, ""); len(d) > 0 {
		t.Errorf("%q\n%s", d, lines(happened))
	}
	if summary != p.Summary {
		t.Errorf("summary %+v, want %+v", summary, p.Summary)
	}
}
