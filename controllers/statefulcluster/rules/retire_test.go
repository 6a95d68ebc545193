package rules_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// specNotRecorded removes the revision of the spec, as if the template were new.
var specNotRecorded = fixture.With(func(w *facts.World) {
	w.Revisions = slices.DeleteFunc(w.Revisions, func(r *appsv1.ControllerRevision) bool { return r.Name == "now" })
})

func retires(ids ...string) (lines []string) {
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf("patch persistentvolumeclaim db-data-%s: Retention, labeled enge.me/retained=Scaled > "+
			"delete pod db-%s: Retired, claims db-data-%s", id, id, id))
	}
	return lines
}

// Of two members, x and y, the one that comes first in scale-down order is retired.
func TestScaleDownOrder(t *testing.T) {
	x, y := func() *fixture.PodFixture { return fixture.Pod("x").On("n1") }, func() *fixture.PodFixture { return fixture.Pod("y").On("n2") }
	two := func(things ...fixture.Thing) *facts.World {
		return fixture.Seen(fixture.Set("db").Replicas(1), append(things, fixture.RevisionOfImage("old", "zero"))...)
	}
	long := 50 * time.Minute
	fixture.Check(t, []fixture.Row{
		{Name: "SC-7 an annotated member is retired before a lost member",
			World: two(x().Ready().DeleteFirst(), y().Ready().NodeGone()), Want: retires("x")},
		{Name: "a lost member is retired before an unscheduled member",
			World: fixture.Seen(fixture.Set("db").Replicas(2), fixture.Pod("x").Aged(0), y().Ready().NodeGone(), fixture.Pod("z").On("n3").Ready()), Want: retires("y")},
		{Name: "an unscheduled member is retired before an unready member", World: two(fixture.Pod("x").Aged(0), fixture.Pod("y").Aged(time.Minute).On("n2").Starting()), Want: retires("x"), Wait: 9 * time.Minute},
		{Name: "W2 a member that was never Ready is retired before a younger unscheduled member that returned on its claims",
			World: two(fixture.Pod("x").Aged(time.Second).Annotated(v1alpha1.AnnotationUpdated, string(v1alpha1.UpdatingEviction)), fixture.Pod("y").Aged(time.Minute).On("n2").Starting()),
			Want:  retires("y"), Wait: 9 * time.Minute},
		{Name: "an unready member is retired before a member of an older revision", World: two(x().Ready().Of("old"), y().UnreadyFor(0)), Want: retires("y"), Wait: 5 * time.Minute},
		{Name: "a member of an older revision is retired before a member on a crowded node",
			World: fixture.Seen(fixture.Set("db").Replicas(2), fixture.RevisionOfImage("old", "zero"), x().Ready().Of("old"), y().Ready(), fixture.Pod("z").On("n2").Ready()), Want: retires("x")},
		{Name: "a member on the most crowded node is retired before a younger member",
			World: fixture.Seen(fixture.Set("db").Replicas(2), fixture.Pod("w").On("n1").ReadyFor(long), fixture.Pod("x").On("n1").ReadyFor(long), fixture.Pod("y").Aged(long).On("n2").Ready()), Want: retires("w")},
		{Name: "the youngest member is retired", World: two(x().Ready(), fixture.Pod("y").Aged(long).On("n2").Ready()), Want: retires("y")},
		{Name: "the first member by name is retired if all else is equal", World: two(x().Ready(), y().Ready()), Want: retires("x")},
		{Name: "an annotation delete-first that is not true is ignored", World: two(x().Ready(), fixture.Pod("y").Annotated(v1alpha1.AnnotationDeleteFirst, "false").On("n2").Ready()), Want: retires("x")},
		{Name: "retired members do not count when nodes are compared",
			World: fixture.Seen(fixture.Set("db").Replicas(2), fixture.Pod("u").On("n1").Ready(), fixture.Pod("v").On("n1").Ready(), fixture.Pod("w").On("n2").Ready(), fixture.Pod("x").On("n2").Ready()),
			Want:  retires("u", "w")},
	})
}

func TestScaleDown(t *testing.T) {
	back := fixture.Refused(facts.ReasonReturned, "quota", time.Minute)
	five := func(s *fixture.SetFixture) *facts.World {
		return fixture.Seen(s, fixture.A(), fixture.B(), fixture.C(), fixture.Pod("d").On("n4").Ready(), fixture.Pod("e").On("n5").Ready())
	}
	fixture.Check(t, []fixture.Row{
		{Name: "SC-7 two members are retired in one pass when replicas changes from 5 to 3", World: five(fixture.Set("db").Replicas(3)), Want: retires("a", "b")},
		{Name: "SC-7 OrderedReady retires one member in a pass", World: five(fixture.Set("db").Replicas(3).OrderedReady()), Want: retires("a")},
		{Name: "W2 a member that was never Ready is retired before a member that is being recreated",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.LooseClaimOf("c"), fixture.Updating("c", "uid-of-c", "now"), fixture.Pod("d").Aged(time.Minute).On("n4").Starting()), Want: retires("d"), Wait: 9 * time.Minute},
		{Name: "SC-4 all members are retired when replicas is 0", World: fixture.Seen(fixture.Set("db").Replicas(0), fixture.A(), fixture.B()), Want: retires("a", "b")},
		{Name: "claims that are already labeled are not patched",
			World: fixture.Seen(fixture.Set("db").Replicas(0), fixture.Pod("a").On("n1").Ready().ClaimsRetained()),
			Want:  []string{"delete pod db-a: Retired, claims db-data-a"}},
		{Name: "no member is retired while the revision of the spec is refused and a lost member waits",
			World: fixture.Seen(fixture.Set("db").Surge(1), fixture.A().Of("before"), fixture.B().Of("before"), fixture.C().Of("before"), fixture.Pod("x").On("n4").Ready().Of("old").TakenByTaint(),
				fixture.RevisionOfImage("before", "half").Numbered(2), fixture.RevisionOfImage("old", "zero"), fixture.Refused(facts.ReasonRevision, "no", time.Minute),
				specNotRecorded),
			Wait: time.Minute},
		{Name: "a lost member is retired instead of replaced in a scale-down", World: fixture.Seen(fixture.Set("db").Replicas(2), fixture.A().NodeGone(), fixture.B(), fixture.C()), Want: retires("a")},
		{Name: "a terminating member is not surplus", World: fixture.Seen(fixture.Set("db").Replicas(2), fixture.A().Going(), fixture.B(), fixture.C())},
		{Name: "no member is retired while the control plane evicts a lost surplus member",
			World: fixture.Seen(fixture.Set("db").Replicas(2), fixture.A().TakenByTaint(), fixture.B(), fixture.C())},
		{Name: "a deletion by a user counts as part of the scale-down",
			World: fixture.Seen(fixture.Set("db").Replicas(2), fixture.A().Going(), fixture.B(), fixture.C(), fixture.Pod("d").On("n4").Ready()), Want: retires("b")},
		{Name: "a returning member is retired first, after its claims are labeled",
			World: fixture.Seen(fixture.Set("db").Replicas(1), fixture.A(), fixture.Updating("x", "uid-of-x", "now"), fixture.LooseClaimOf("x"), back),
			Want:  []string{"patch persistentvolumeclaim db-data-x: Retention, labeled enge.me/retained=Scaled", "patch status of statefulcluster db: Update"}},
		{Name: "a returning member is retired when replicas is 0",
			World: fixture.Seen(fixture.Set("db").Replicas(0), fixture.Updating("x", "uid-of-x", "now"), fixture.LooseClaimOf("x"), back),
			Want:  []string{"patch persistentvolumeclaim db-data-x: Retention, labeled enge.me/retained=Scaled", "patch status of statefulcluster db: Update"}},
		{Name: "two returning members are retired with one write of the status",
			World: fixture.Seen(fixture.Set("db").Replicas(0), fixture.Updating("x", "uid-of-x", "now"), fixture.Updating("y", "uid-of-y", "now"), fixture.LooseClaimOf("x"), fixture.LooseClaimOf("y"), back),
			Want: []string{"patch persistentvolumeclaim db-data-x: Retention, labeled enge.me/retained=Scaled",
				"patch persistentvolumeclaim db-data-y: Retention, labeled enge.me/retained=Scaled", "patch status of statefulcluster db: Update"}},
		{Name: "claims of a retired returning member are labeled while its old pod is terminating",
			World: fixture.Seen(fixture.Set("db").Replicas(0), fixture.Pod("x").On("n1").Going(), fixture.Updating("x", "uid-of-x", "now")),
			Want:  []string{"patch persistentvolumeclaim db-data-x: Retention, labeled enge.me/retained=Scaled", "patch status of statefulcluster db: Update"}},
	})
	p := fixture.PlanOf(fixture.Seen(fixture.Set("db").Replicas(1), fixture.Updating("x", "uid-of-x", "now"), fixture.Updating("y", "uid-of-y", "now"), fixture.LooseClaimOf("x"), fixture.LooseClaimOf("y"), back))
	if len(p.Updating) != 1 || p.Updating[0].Name != "db-x" {
		t.Errorf("status.updating after a returning member was retired is %v, want db-x", p.Updating)
	}
}

func TestScaleDownKeepsTheHealthy(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{Name: "no healthy member is surplus because of a pod that keeps terminating on a lost node",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("x").On("n9").Ready().TakenByTaint(), fixture.A(), fixture.B(), fixture.C())},
		{Name: "a missing member is created while a retired pod keeps terminating on a lost node",
			World: fixture.Seen(fixture.Set("db").Replicas(3), fixture.Pod("x").On("n9").Ready().ClaimsRetained().TakenByTaint(), fixture.A(), fixture.B()),
			Want:  fixture.Creates("f1")},
	})
}
