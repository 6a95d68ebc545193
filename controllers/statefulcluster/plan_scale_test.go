package statefulcluster

import (
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

func TestCreateMissing(t *testing.T) {
	check(t, []row{
		{name: "SC-25 Parallel creates all missing members in one pass", world: seen(set("db")), want: creates("f1", "f2", "f3")},
		{name: "SC-6 two members with new names are created when replicas changes from 3 to 5", world: seen(set("db").replicas(5), a(), b(), c()), want: creates("f1", "f2")},
		{name: "SC-5 OrderedReady creates one member at a time", world: seen(set("db").orderedReady()), want: creates("f1")},
		{name: "SC-5 OrderedReady waits until the first member is Ready",
			world: seen(set("db").orderedReady(), pod("a").aged(time.Minute).on("n1").starting()), wait: 9 * time.Minute},
		{name: "SC-5 OrderedReady creates the next member when the first is Ready", world: seen(set("db").orderedReady(), a()), want: creates("f1")},
		{name: "OrderedReady waits for a returning member",
			world: seen(set("db").orderedReady(), pod("a").on("n1").going(), updating("a", "uid-of-a", "now"), b())},
		{name: "SC-8 names and claims of retired members are not reused",
			world: seen(set("db"), a(), b(), looseClaimOf("c").retained(v1alpha1.RetainedScaled)), want: creates("f1")},
		{name: "a returning member keeps its slot",
			world: seen(set("db"), pod("a").on("n1").going(), updating("a", "uid-of-a", "now"), b(), c())},
		{name: "a lost member that is held keeps its slot",
			world: seen(set("db").replicas(4), a().nodeGone(), b().nodeGone(), c(), pod("d").aged(time.Minute).inPlaceOf("x", 1).on("n1").starting()),
			held:  []string{"db-a", "db-b"}, wait: 9 * time.Minute},
		{name: "a deleted member with a successor is not replaced again",
			world: seen(set("db"), a().going(), b().inPlaceOf("a", 1), c()), want: creates("f1")},
		{name: "a retired member has no successor",
			world: seen(set("db"), pod("a").on("n1").ready().claimsRetained().going(), b(), c()), want: creates("f1")},
		{name: "SC-18 a refused create of a missing member waits for its retry", world: seen(set("db"), a(), b(), refused(facts.ReasonMissing, "quota", time.Minute)), wait: time.Minute},
		{name: "SC-18 the create of a missing member waits if the create of a replacement was refused", world: seen(set("db"), a(), b(), refused(facts.ReasonReplaced, "quota", time.Minute)), wait: time.Minute},
		{name: "no more members are created than unused names exist", world: seen(set("db"), freshIDsAre("f7")), want: creates("f7")},
	})
}

// Of two members, x and y, the one that comes first in scale-down order is retired.
func TestScaleDownOrder(t *testing.T) {
	x, y := func() *podFixture { return pod("x").on("n1") }, func() *podFixture { return pod("y").on("n2") }
	two := func(things ...thing) *facts.World {
		return seen(set("db").replicas(1), append(things, revisionOfImage("old", "zero"))...)
	}
	long := 50 * time.Minute
	check(t, []row{
		{name: "SC-7 an annotated member is retired before a lost member",
			world: two(x().ready().deleteFirst(), y().ready().nodeGone()), want: retires("x")},
		{name: "a lost member is retired before an unscheduled member",
			world: seen(set("db").replicas(2), pod("x").aged(0), y().ready().nodeGone(), pod("z").on("n3").ready()), want: retires("y")},
		{name: "an unscheduled member is retired before an unready member", world: two(pod("x").aged(0), pod("y").aged(time.Minute).on("n2").starting()), want: retires("x"), wait: 9 * time.Minute},
		{name: "W2 a member that was never Ready is retired before a younger unscheduled member that returned on its claims",
			world: two(pod("x").aged(time.Second).annotated(v1alpha1.AnnotationUpdated, string(v1alpha1.UpdatingEviction)), pod("y").aged(time.Minute).on("n2").starting()),
			want:  retires("y"), wait: 9 * time.Minute},
		{name: "an unready member is retired before a member of an older revision", world: two(x().ready().of("old"), y().unreadyFor(0)), want: retires("y"), wait: 5 * time.Minute},
		{name: "a member of an older revision is retired before a member on a crowded node",
			world: seen(set("db").replicas(2), revisionOfImage("old", "zero"), x().ready().of("old"), y().ready(), pod("z").on("n2").ready()), want: retires("x")},
		{name: "a member on the most crowded node is retired before a younger member",
			world: seen(set("db").replicas(2), pod("w").on("n1").readyFor(long), pod("x").on("n1").readyFor(long), pod("y").aged(long).on("n2").ready()), want: retires("w")},
		{name: "the youngest member is retired", world: two(x().ready(), pod("y").aged(long).on("n2").ready()), want: retires("y")},
		{name: "the first member by name is retired if all else is equal", world: two(x().ready(), y().ready()), want: retires("x")},
		{name: "an annotation delete-first that is not true is ignored", world: two(x().ready(), pod("y").annotated(v1alpha1.AnnotationDeleteFirst, "false").on("n2").ready()), want: retires("x")},
		{name: "retired members do not count when nodes are compared",
			world: seen(set("db").replicas(2), pod("u").on("n1").ready(), pod("v").on("n1").ready(), pod("w").on("n2").ready(), pod("x").on("n2").ready()),
			want:  retires("u", "w")},
	})
}

func TestScaleDown(t *testing.T) {
	back := refused(facts.ReasonReturned, "quota", time.Minute)
	five := func(s *setFixture) *facts.World {
		return seen(s, a(), b(), c(), pod("d").on("n4").ready(), pod("e").on("n5").ready())
	}
	check(t, []row{
		{name: "SC-7 two members are retired in one pass when replicas changes from 5 to 3", world: five(set("db").replicas(3)), want: retires("a", "b")},
		{name: "SC-7 OrderedReady retires one member in a pass", world: five(set("db").replicas(3).orderedReady()), want: retires("a")},
		{name: "W2 a member that was never Ready is retired before a member that is being recreated",
			world: seen(set("db"), a(), b(), looseClaimOf("c"), updating("c", "uid-of-c", "now"), pod("d").aged(time.Minute).on("n4").starting()), want: retires("d"), wait: 9 * time.Minute},
		{name: "SC-4 all members are retired when replicas is 0", world: seen(set("db").replicas(0), a(), b()), want: retires("a", "b")},
		{name: "claims that are already labeled are not patched",
			world: seen(set("db").replicas(0), pod("a").on("n1").ready().claimsRetained()),
			want:  []string{"delete pod db-a: Retired, claims db-data-a"}},
		{name: "no member is retired while the revision of the spec is refused and a lost member waits",
			world: seen(set("db").surge(1), a().of("before"), b().of("before"), c().of("before"), pod("x").on("n4").ready().of("old").takenByTaint(),
				revisionOfImage("before", "half").numbered(2), revisionOfImage("old", "zero"), refused(facts.ReasonRevision, "no", time.Minute),
				specNotRecorded),
			wait: time.Minute},
		{name: "a lost member is retired instead of replaced in a scale-down", world: seen(set("db").replicas(2), a().nodeGone(), b(), c()), want: retires("a")},
		{name: "a terminating member is not surplus", world: seen(set("db").replicas(2), a().going(), b(), c())},
		{name: "no member is retired while the control plane evicts a lost surplus member",
			world: seen(set("db").replicas(2), a().takenByTaint(), b(), c())},
		{name: "a deletion by a user counts as part of the scale-down",
			world: seen(set("db").replicas(2), a().going(), b(), c(), pod("d").on("n4").ready()), want: retires("b")},
		{name: "a returning member is retired first, after its claims are labeled",
			world: seen(set("db").replicas(1), a(), updating("x", "uid-of-x", "now"), looseClaimOf("x"), back),
			want:  []string{"patch persistentvolumeclaim db-data-x: Retention, labeled enge.me/retained=Scaled", "patch status of statefulcluster db: Update"}},
		{name: "a returning member is retired when replicas is 0",
			world: seen(set("db").replicas(0), updating("x", "uid-of-x", "now"), looseClaimOf("x"), back),
			want:  []string{"patch persistentvolumeclaim db-data-x: Retention, labeled enge.me/retained=Scaled", "patch status of statefulcluster db: Update"}},
		{name: "two returning members are retired with one write of the status",
			world: seen(set("db").replicas(0), updating("x", "uid-of-x", "now"), updating("y", "uid-of-y", "now"), looseClaimOf("x"), looseClaimOf("y"), back),
			want: []string{"patch persistentvolumeclaim db-data-x: Retention, labeled enge.me/retained=Scaled",
				"patch persistentvolumeclaim db-data-y: Retention, labeled enge.me/retained=Scaled", "patch status of statefulcluster db: Update"}},
		{name: "claims of a retired returning member are labeled while its old pod is terminating",
			world: seen(set("db").replicas(0), pod("x").on("n1").going(), updating("x", "uid-of-x", "now")),
			want:  []string{"patch persistentvolumeclaim db-data-x: Retention, labeled enge.me/retained=Scaled", "patch status of statefulcluster db: Update"}},
	})
	p := planOf(seen(set("db").replicas(1), updating("x", "uid-of-x", "now"), updating("y", "uid-of-y", "now"), looseClaimOf("x"), looseClaimOf("y"), back))
	if len(p.Updating) != 1 || p.Updating[0].Name != "db-x" {
		t.Errorf("status.updating after a returning member was retired is %v, want db-x", p.Updating)
	}
}

func TestScaleDownKeepsTheHealthy(t *testing.T) {
	check(t, []row{
		{name: "no healthy member is surplus because of a pod that keeps terminating on a lost node",
			world: seen(set("db"), pod("x").on("n9").ready().takenByTaint(), a(), b(), c())},
		{name: "a missing member is created while a retired pod keeps terminating on a lost node",
			world: seen(set("db").replicas(3), pod("x").on("n9").ready().claimsRetained().takenByTaint(), a(), b()),
			want:  creates("f1")},
	})
}

// A new template and fewer replicas in one write. Other rules act in the same pass as the one that
// records the revision. Surplus members do not count as spare, so no remaining member is updated
// for them.
func TestScaleDownWithANewTemplate(t *testing.T) {
	w := seen(set("db").replicas(2), oldA(), oldB(), oldC(), pod("d").on("n4").of("old").ready(), oldImage(),
		specNotRecorded)
	p := planOf(w)
	var pods []string
	for _, line := range p.Steps.Strings() {
		if strings.Contains(line, " pod ") {
			pods = append(pods, line)
		}
	}
	if len(pods) != 2 || !strings.Contains(pods[0], "> delete pod") || !strings.Contains(pods[1], "> delete pod") {
		t.Errorf("want 2 of 4 members retired, steps are\n%s", strings.Join(p.Steps.Strings(), "\n"))
	}
}
