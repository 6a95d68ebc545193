package statefulcluster

import (
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

func TestCreateMissing(t *testing.T) {
	check(t, []row{
		{name: "SC-25 Parallel creates all missing members in one pass", world: seen(set("db")), want: creates("f1", "f2", "f3")},
		{name: "SC-6 three become five by two new names", world: seen(set("db").replicas(5), a(), b(), c()), want: creates("f1", "f2")},
		{name: "SC-5 OrderedReady creates one", world: seen(set("db").orderedReady()), want: creates("f1")},
		{name: "SC-5 OrderedReady waits until it is Ready",
			world: seen(set("db").orderedReady(), pod("a").aged(time.Minute).on("n1").starting()), wait: 9 * time.Minute},
		{name: "SC-5 OrderedReady creates the next one then", world: seen(set("db").orderedReady(), a()), want: creates("f1")},
		{name: "OrderedReady waits for a member that is to come back",
			world: seen(set("db").orderedReady(), pod("a").on("n1").going(), updating("a", "uid-of-a", "now"), b())},
		{name: "SC-8 names and claims of the retired are not taken up again",
			world: seen(set("db"), a(), b(), looseClaimOf("c").retained(v1alpha1.RetainedScaled)), want: creates("f1")},
		{name: "a member that is to come back keeps its slot",
			world: seen(set("db"), pod("a").on("n1").going(), updating("a", "uid-of-a", "now"), b(), c())},
		{name: "a member that is held keeps its slot",
			world: seen(set("db").replicas(4), a().nodeGone(), b().nodeGone(), c(), pod("d").aged(time.Minute).inPlaceOf("x", 1).on("n1").starting()),
			held:  []string{"db-a", "db-b"}, wait: 9 * time.Minute},
		{name: "a deleted member that has its successor gets no second one",
			world: seen(set("db"), a().going(), b().inPlaceOf("a", 1), c()), want: creates("f1")},
		{name: "a member that a scale-down deleted gets none",
			world: seen(set("db"), pod("a").on("n1").ready().claimsRetained().going(), b(), c()), want: creates("f1")},
		{name: "SC-18 a create that was refused waits", world: seen(set("db"), a(), b(), refused(reasonMissing, "quota", time.Minute)), wait: time.Minute},
		{name: "SC-18 and so does one for any other reason", world: seen(set("db"), a(), b(), refused(reasonReplaced, "quota", time.Minute)), wait: time.Minute},
		{name: "no more is created than there are names for", world: seen(set("db"), freshIDsAre("f7")), want: creates("f7")},
	})
}

// Of two members, x and y, the one that comes first in scale-down order is retired.
func TestScaleDownOrder(t *testing.T) {
	x, y := func() *podFixture { return pod("x").on("n1") }, func() *podFixture { return pod("y").on("n2") }
	two := func(things ...thing) *world {
		return seen(set("db").replicas(1), append(things, revisionOfImage("old", "zero"))...)
	}
	long := 50 * time.Minute
	check(t, []row{
		{name: "SC-7 marked by the user, before one that is lost",
			world: two(x().ready().deleteFirst(), y().ready().nodeGone()), want: retires("x")},
		{name: "lost, before one that is not scheduled",
			world: seen(set("db").replicas(2), pod("x").aged(0), y().ready().nodeGone(), pod("z").on("n3").ready()), want: retires("y")},
		{name: "not scheduled, before one that is not Ready", world: two(pod("x").aged(0), pod("y").aged(time.Minute).on("n2").starting()), want: retires("x"), wait: 9 * time.Minute},
		{name: "W2 never Ready, before a younger one that came back on its claims and is not scheduled",
			world: two(pod("x").aged(time.Second).annotated(v1alpha1.AnnotationUpdated, string(v1alpha1.UpdatingEviction)), pod("y").aged(time.Minute).on("n2").starting()),
			want:  retires("y"), wait: 9 * time.Minute},
		{name: "not Ready, before one of an older revision", world: two(x().ready().of("old"), y().unreadyFor(0)), want: retires("y"), wait: 5 * time.Minute},
		{name: "of an older revision, before one on a crowded node",
			world: seen(set("db").replicas(2), revisionOfImage("old", "zero"), x().ready().of("old"), y().ready(), pod("z").on("n2").ready()), want: retires("x")},
		{name: "on the most crowded node, before a younger one",
			world: seen(set("db").replicas(2), pod("w").on("n1").readyFor(long), pod("x").on("n1").readyFor(long), pod("y").aged(long).on("n2").ready()), want: retires("w")},
		{name: "the youngest", world: two(x().ready(), pod("y").aged(long).on("n2").ready()), want: retires("y")},
		{name: "by name when nothing else tells them apart", world: two(x().ready(), y().ready()), want: retires("x")},
		{name: "a mark that is not true is no mark", world: two(x().ready(), pod("y").annotated(v1alpha1.AnnotationDeleteFirst, "false").on("n2").ready()), want: retires("x")},
		{name: "each one that goes makes its node less crowded",
			world: seen(set("db").replicas(2), pod("u").on("n1").ready(), pod("v").on("n1").ready(), pod("w").on("n2").ready(), pod("x").on("n2").ready()),
			want:  retires("u", "w")},
	})
}

func TestScaleDown(t *testing.T) {
	back := refused(reasonReturned, "quota", time.Minute)
	five := func(s *setFixture) *world {
		return seen(s, a(), b(), c(), pod("d").on("n4").ready(), pod("e").on("n5").ready())
	}
	check(t, []row{
		{name: "SC-7 five become three in one pass", world: five(set("db").replicas(3)), want: retires("a", "b")},
		{name: "SC-7 OrderedReady retires one a pass", world: five(set("db").replicas(3).orderedReady()), want: retires("a")},
		{name: "W2 a member that is being recreated stays, and one that was never Ready goes",
			world: seen(set("db"), a(), b(), looseClaimOf("c"), updating("c", "uid-of-c", "now"), pod("d").aged(time.Minute).on("n4").starting()), want: retires("d"), wait: 9 * time.Minute},
		{name: "SC-4 to none", world: seen(set("db").replicas(0), a(), b()), want: retires("a", "b")},
		{name: "claims that are labelled already are not labelled again",
			world: seen(set("db").replicas(0), pod("a").on("n1").ready().claimsRetained()),
			want:  []string{"delete pod db-a: Retired, claims db-data-a"}},
		{name: "none is retired for a lost one that waits while the API server refuses a new template",
			world: seen(set("db").surge(1), a().of("before"), b().of("before"), c().of("before"), pod("x").on("n4").ready().of("old").takenByTaint(),
				revisionOfImage("before", "half").numbered(2), revisionOfImage("old", "zero"), refused(reasonRevision, "no", time.Minute),
				specNotRecorded),
			wait: time.Minute},
		{name: "a lost member is retired, not replaced", world: seen(set("db").replicas(2), a().nodeGone(), b(), c()), want: retires("a")},
		{name: "a member that is being deleted does not count", world: seen(set("db").replicas(2), a().going(), b(), c())},
		{name: "a lost member that the control plane takes already leaves by itself",
			world: seen(set("db").replicas(2), a().takenByTaint(), b(), c())},
		{name: "a foreign hand and the operator do not both take one: the user's delete is the scale-down",
			world: seen(set("db").replicas(2), a().going(), b(), c(), pod("d").on("n4").ready()), want: retires("b")},
		{name: "a member that is about to come back is given up first, its claims labelled before",
			world: seen(set("db").replicas(1), a(), updating("x", "uid-of-x", "now"), looseClaimOf("x"), back),
			want:  []string{"patch persistentvolumeclaim db-data-x: Retention, labeled enge.me/retained=Scaled", "patch status of statefulcluster db: Update"}},
		{name: "and given up when nothing else is left",
			world: seen(set("db").replicas(0), updating("x", "uid-of-x", "now"), looseClaimOf("x"), back),
			want:  []string{"patch persistentvolumeclaim db-data-x: Retention, labeled enge.me/retained=Scaled", "patch status of statefulcluster db: Update"}},
		{name: "two are given up by one write of the status",
			world: seen(set("db").replicas(0), updating("x", "uid-of-x", "now"), updating("y", "uid-of-y", "now"), looseClaimOf("x"), looseClaimOf("y"), back),
			want: []string{"patch persistentvolumeclaim db-data-x: Retention, labeled enge.me/retained=Scaled",
				"patch persistentvolumeclaim db-data-y: Retention, labeled enge.me/retained=Scaled", "patch status of statefulcluster db: Update"}},
		{name: "its claims are labelled while its old pod still ends, else they would count as lost",
			world: seen(set("db").replicas(0), pod("x").on("n1").going(), updating("x", "uid-of-x", "now")),
			want:  []string{"patch persistentvolumeclaim db-data-x: Retention, labeled enge.me/retained=Scaled", "patch status of statefulcluster db: Update"}},
	})
	p := planOf(seen(set("db").replicas(1), updating("x", "uid-of-x", "now"), updating("y", "uid-of-y", "now"), looseClaimOf("x"), looseClaimOf("y"), back))
	if len(p.updating) != 1 || p.updating[0].Name != "db-x" {
		t.Errorf("after one was given up status.updating will say %v, want db-x", p.updating)
	}
}

func TestScaleDownKeepsTheHealthy(t *testing.T) {
	check(t, []row{
		{name: "a pod that hangs on a dead node since long makes no healthy member surplus",
			world: seen(set("db"), pod("x").on("n9").ready().takenByTaint(), a(), b(), c())},
		{name: "nor does a retired pod that hangs there",
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
		t.Errorf("of four members two should go, and it does\n%s", strings.Join(p.Steps.Strings(), "\n"))
	}
}
