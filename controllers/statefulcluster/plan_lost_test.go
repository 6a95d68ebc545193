package statefulcluster

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

func a() *podFixture { return pod("a").on("n1").ready() }
func b() *podFixture { return pod("b").on("n2").ready() }
func c() *podFixture { return pod("c").on("n3").ready() }

// claimedFor returns a member that has been unschedulable for a day, with claims that were created
// that long ago.
func claimedFor(id string, d time.Duration) *podFixture {
	return pod(id).unschedulableFor(24 * time.Hour).claimsAre(func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = ago(d) })
}

// deadlines are the losses that have a deadline.
var deadlines = []struct {
	reason   v1alpha1.LossReason
	deadline time.Duration
	member   func(age time.Duration) *podFixture
}{
	{v1alpha1.LossNodeNotReady, 30 * time.Second, func(d time.Duration) *podFixture { return a().nodeNotReadyFor(d) }},
	{v1alpha1.LossUnready, 300 * time.Second, func(d time.Duration) *podFixture { return pod("a").on("n1").unreadyFor(d) }},
	{v1alpha1.LossStartup, 600 * time.Second, func(d time.Duration) *podFixture { return pod("a").aged(d).on("n1").starting() }},
	{v1alpha1.LossPending, 300 * time.Second, func(d time.Duration) *podFixture { return pod("a").unschedulableFor(d) }},
}

func TestDeadlines(t *testing.T) {
	var rows []row
	for _, d := range deadlines {
		rows = append(rows,
			row{name: fmt.Sprintf("SC-13 a member is not lost one nanosecond before its deadline of %v: %s", d.deadline, d.reason),
				world: seen(set("db"), d.member(d.deadline-time.Nanosecond), b(), c()),
				wait:  time.Nanosecond},
			row{name: fmt.Sprintf("SC-9 SC-14 SC-36 a member is replaced under another name at its deadline: %s", d.reason),
				world: seen(set("db"), d.member(d.deadline), b(), c()),
				want:  []string{replaces("a", "f1", d.reason)}},
		)
	}
	check(t, rows)
}

func TestLostAtOnce(t *testing.T) {
	lost := func(p *podFixture) *facts.World { return seen(set("db"), p, b(), c()) }
	check(t, []row{
		{name: "a member whose Node is gone is lost at once",
			world: lost(a().nodeGone()),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone)}},
		{name: "SC-37 a member on a Node out of service is lost at once",
			world: lost(a().nodeOutOfService()),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeOutOfService)}},
		{name: "a pod that failed is lost at once",
			world: lost(pod("a").on("n1").failed()),
			want:  []string{replaces("a", "f1", v1alpha1.LossFailed)}},
		{name: "a failed pod with condition Ready is lost",
			world: with(func(w *facts.World) { w.Fresh = nil }).to(lost(a().failed())),
			want:  []string{deletesLost("a", v1alpha1.LossFailed)}},
		{name: "a member that has run and lost its claim is lost, because an empty claim has no data",
			world: lost(a().withoutClaims()),
			want: []string{"delete pod db-a: ClaimGone, the member is lost and will not come back, it has no claims > " +
				createsInPlaceOf("a", "f1")}},
		{name: "a Ready member that lost its claim is lost if the cache does not hold its containers",
			world: lost(pod("a").on("n1").ready().withoutContainers().withoutClaims()),
			want: []string{"delete pod db-a: ClaimGone, the member is lost and will not come back, it has no claims > " +
				createsInPlaceOf("a", "f1")}},
		{name: "a recreated pod that lost its claim is lost before it runs",
			world: lost(pod("a").recreated().withoutClaims()),
			want: []string{"delete pod db-a: ClaimGone, the member is lost and will not come back, it has no claims > " +
				createsInPlaceOf("a", "f1")}},
		{name: "a pod that the scheduler has not processed is never lost",
			world: lost(pod("a").aged(24 * time.Hour))},
		{name: "SC-13 startupSeconds of a pod whose template sets nodeName starts at its creation",
			world: lost(pod("a").aged(10 * time.Second).on("n1").neverBound()), wait: 590 * time.Second},
		{name: "SC-13 a pod whose template sets nodeName is lost after startupSeconds",
			world: lost(pod("a").aged(10 * time.Minute).on("n1").neverBound()), want: []string{replaces("a", "f1", v1alpha1.LossStartup)}},
		{name: "SC-12 a pod that keeps terminating on a lost node does not block its replacement",
			world: seen(set("db"), a().going().nodeNotReadyFor(time.Minute), b(), c()),
			want:  []string{createsInPlaceOf("a", "f1")}},
		{name: "SC-11 a member that a user deleted is replaced while its pod is terminating",
			world: lost(a().going()),
			want:  []string{createsInPlaceOf("a", "f1")}},
		{name: "SC-39 a member that a user force-deleted is replaced under another name",
			world: seen(set("db"), b(), c(), looseClaimOf("a")),
			want:  creates("f1")},
		{name: "SC-10 all are replaced at once when all are lost and maxConcurrent is 100%",
			world: seen(set("db").maxConcurrent("100%").replacesInOutage(), a().nodeGone(), b().nodeGone(), c().nodeGone()),
			want: []string{replaces("a", "f1", v1alpha1.LossNodeGone), replaces("b", "f2", v1alpha1.LossNodeGone),
				replaces("c", "f3", v1alpha1.LossNodeGone)}},
		{name: "the member that was lost first is replaced first",
			world: seen(set("db"), a().nodeNotReadyFor(40*time.Second), b().nodeNotReadyFor(50*time.Second), c()),
			want:  []string{replaces("b", "f1", v1alpha1.LossNodeNotReady)}, held: []string{"db-a"}},
	})
}

// to applies the change to a world and returns it.
func (f with) to(w *facts.World) *facts.World { f(w); return w }

func TestDeadlinesThatNeverCome(t *testing.T) {
	zero := new(int32)
	never := set("db").change(func(s *v1alpha1.StatefulClusterSpec) {
		s.Replacement.UnreadySeconds, s.Replacement.StartupSeconds, s.Replacement.PendingSeconds = zero, zero, zero
	})
	check(t, []row{
		{name: "unreadySeconds 0 disables the deadline", world: seen(never, pod("a").on("n1").unreadyFor(24*time.Hour), b(), c())},
		{name: "startupSeconds 0 disables the deadline", world: seen(never, pod("a").aged(24*time.Hour).on("n1").starting(), b(), c())},
		{name: "W6 a member whose claims a quota refuses is not replaced", world: seen(set("db"), pod("a").unschedulableFor(24*time.Hour).withoutClaims(), b(), c(),
			refused(facts.ReasonClaim, "exceeded quota", time.Minute)), wait: time.Minute},
		{name: "W6 pendingSeconds counts from the creation of the claims", world: seen(set("db"), claimedFor("a", 299*time.Second), b(), c()), wait: time.Second},
		{name: "W6 a pending member is replaced pendingSeconds after the creation of its claims", world: seen(set("db"), claimedFor("a", 300*time.Second), b(), c()),
			want: []string{replaces("a", "f1", v1alpha1.LossPending)}},
		{name: "pendingSeconds 0 disables the deadline", world: seen(never, pod("a").unschedulableFor(24*time.Hour), b(), c())},
		{name: "a Node that is not Ready makes its member lost with deadlines of 0",
			world: seen(never, a().nodeNotReadyFor(time.Minute), b(), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{name: "an unready member on a Node that was just lost waits for the deadline of the Node",
			world: seen(set("db"), pod("a").on("n1").unreadyFor(50*time.Minute).nodeNotReadyFor(10*time.Second), b(), c()),
			wait:  20 * time.Second},
	})
}

func TestBackoff(t *testing.T) {
	// b and c are healthy; a fills the slot of x, as the nth successive replacement.
	nth := func(n int, age time.Duration) *facts.World {
		return seen(set("db"), pod("a").inPlaceOf("x", n).aged(age).on("n1").starting(), b(), c())
	}
	const startup = 600 * time.Second
	again := []string{replaces("a", "f1", v1alpha1.LossStartup)}
	check(t, []row{
		{name: "the first replacement in a slot is replaced without backoff", world: nth(1, startup), want: again},
		{name: "the second replacement in a slot is kept for up to 30 seconds longer", world: nth(2, startup+30*time.Second-1), wait: 1},
		{name: "the second replacement in a slot is replaced after 30 more seconds", world: nth(2, startup+30*time.Second), want: again},
		{name: "the third replacement in a slot is kept for up to a minute longer", world: nth(3, startup+time.Minute-1), wait: 1},
		{name: "the third replacement in a slot is replaced after one more minute", world: nth(3, startup+time.Minute), want: again},
		{name: "the ninth replacement in a slot is kept for up to an hour longer", world: nth(9, startup+time.Hour-1), wait: 1},
		{name: "the backoff of replacements is at most one hour", world: nth(10000, startup+time.Hour), want: again},
		{name: "a slot with a member that was Ready has no backoff",
			world: seen(set("db"), pod("a").inPlaceOf("x", 5).on("n1").unreadyFor(300*time.Second), b(), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossUnready)}},
		{name: "a replacement on a lost Node waits for the backoff of its slot",
			world: seen(set("db"), pod("a").inPlaceOf("x", 3).aged(50*time.Second).on("n1").starting().nodeGone(), b(), c()),
			wait:  10 * time.Second},
		{name: "an invalid count of replacements is ignored",
			world: seen(set("db"), pod("a").inPlaceOf("x", 1).annotated(v1alpha1.AnnotationReplacements, "many").aged(startup).on("n1").starting(), b(), c()),
			want:  again},
	})
}

func TestReplacementsAreCounted(t *testing.T) {
	for _, r := range []struct {
		name string
		old  *podFixture
		want string
	}{
		{"the first replacement", a().nodeGone(), "1"},
		{"the successor of a replacement that was never Ready", pod("a").inPlaceOf("x", 4).on("n1").starting().nodeGone(), "5"},
		{"the successor of a replacement that was Ready", a().inPlaceOf("x", 4).nodeGone(), "1"},
	} {
		t.Run(r.name, func(t *testing.T) {
			chain := planOf(seen(set("db"), r.old, b(), c())).Steps[0][0]
			if got := chain[1].Object.GetAnnotations()[v1alpha1.AnnotationReplacements]; got != r.want {
				t.Errorf("%s: the replacement is number %q, want %q", chain[1], got, r.want)
			}
		})
	}
}

func TestMaxConcurrent(t *testing.T) {
	eight := func(concurrent string, things ...thing) *facts.World {
		for i := range 8 - len(things) {
			things = append(things, pod(fmt.Sprintf("w%d", i)).on("n9").ready())
		}
		return seen(set("db").replicas(8).maxConcurrent(concurrent), things...)
	}
	gone := func(id string) *podFixture { return pod(id).on("n1").ready().nodeGone() }
	check(t, []row{
		{name: "SC-38 a quarter is replaced and the rest is held when half of the set is lost",
			world: eight("25%", gone("a"), gone("b"), gone("c"), gone("d")),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone), replaces("b", "f2", v1alpha1.LossNodeGone)},
			held:  []string{"db-c", "db-d"}},
		{name: "maxConcurrent as a percentage is rounded down",
			world: eight("49%", gone("a"), gone("b"), gone("c"), gone("d")),
			want: []string{replaces("a", "f1", v1alpha1.LossNodeGone), replaces("b", "f2", v1alpha1.LossNodeGone),
				replaces("c", "f3", v1alpha1.LossNodeGone)},
			held: []string{"db-d"}},
		{name: "one member is replaced even if maxConcurrent is rounded down to 0", world: eight("1%", gone("a"), gone("b")),
			want: []string{replaces("a", "f1", v1alpha1.LossNodeGone)}, held: []string{"db-b"}},
		{name: "a slot is in use until the replacement is Ready",
			world: eight("25%", pod("x").aged(time.Minute).inPlaceOf("y", 1).on("n2").starting(), gone("a"), gone("b")),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone)}, held: []string{"db-b"}, wait: 9 * time.Minute},
		{name: "a replacement that is lost before it was Ready keeps its slot for its successor",
			world: eight("25%", pod("x").inPlaceOf("y", 1).on("n2").starting().nodeGone(), gone("a"), gone("b")),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone), replaces("x", "f2", v1alpha1.LossNodeGone)}, held: []string{"db-b"}},
		{name: "a replacement that was Ready releases its slot",
			world: eight("25%", pod("x").inPlaceOf("y", 1).on("n2").ready(), gone("a"), gone("b")),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone), replaces("b", "f2", v1alpha1.LossNodeGone)}},
		{name: "a lost member without a replacement uses a slot, because the create may have been refused",
			world: eight("1", gone("a").going(), gone("b")),
			want:  []string{createsInPlaceOf("a", "f1")}, held: []string{"db-b"}},
		{name: "OrderedReady deletes no other lost member before the replacement of the first is Ready",
			world: seen(set("db").orderedReady(), a().nodeGone().going(), b().nodeGone(), c()),
			want:  []string{createsInPlaceOf("a", "f1")}, held: []string{"db-b"}},
		{name: "OrderedReady records the loss first and creates one at a time",
			world: seen(set("db").orderedReady(), a().nodeGone(), b(), c()),
			want:  []string{deletesLost("a", v1alpha1.LossNodeGone)}},
		{name: "members that the control plane evicted from a lost node are limited by maxConcurrent",
			world: seen(set("db").replicas(4).maxConcurrent("1"), a().takenByTaint(), b().takenByTaint(), c(), pod("d").on("n3").ready()),
			want:  []string{createsInPlaceOf("a", "f1")}, held: []string{"db-b"}},
		{name: "an evicted member with a successor is not replaced again",
			world: seen(set("db"), a().takenByTaint(), b().inPlaceOf("a", 1), c(), pod("d").on("n1").ready())},
		{name: "an evicted member is not replaced if the set is complete without it",
			world: seen(set("db"), pod("x").on("n1").ready().takenByTaint(), a().recreated(), b(), c())},
		{name: "a terminating surplus pod uses no slot when the set is complete",
			world: seen(set("db"), pod("x").on("n1").ready().nodeNotReadyFor(time.Hour).going(), a().nodeGone(), b(), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone)}},
		{name: "an empty slot counts towards maxConcurrent and is filled first",
			world: seen(set("db").replicas(4).maxConcurrent("1"), a().nodeGone(), b().nodeGone(), c()),
			want:  creates("f1"), held: []string{"db-a", "db-b"}},
		{name: "no lost member is deleted while creates of replacements are refused",
			world: seen(set("db"), refused(facts.ReasonReplaced, "quota", time.Minute), a().nodeGone(), b().nodeGone(), c()),
			held:  []string{"db-a", "db-b"}, wait: time.Minute},
	})
}

func TestUnreadinessOfMany(t *testing.T) {
	check(t, []row{
		{name: "no unready member is replaced if more members than maxConcurrent are unready",
			world:       seen(set("db"), pod("a").on("n1").unreadyFor(50*time.Minute), pod("b").on("n2").unreadyFor(50*time.Minute), c()),
			manyUnready: 2},
		{name: "unready members are replaced if they are no more than maxConcurrent",
			world: seen(set("db").maxConcurrent("2"), pod("a").on("n1").unreadyFor(50*time.Minute), pod("b").on("n2").unreadyFor(50*time.Minute), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossUnready), replaces("b", "f2", v1alpha1.LossUnready)}},
		{name: "a member on a lost node is replaced while many members are unready",
			world: seen(set("db").replacesInOutage(), pod("a").on("n1").unreadyFor(50*time.Minute), pod("b").on("n2").unreadyFor(50*time.Minute), c().nodeGone()),
			want:  []string{replaces("c", "f1", v1alpha1.LossNodeGone)}, manyUnready: 2},
		{name: "members on lost nodes do not count as unready",
			world: seen(set("db").maxConcurrent("2").replacesInOutage(), pod("a").on("n1").unreadyFor(50*time.Minute), b().nodeGone(), pod("c").on("n3").unreadyFor(50*time.Minute)),
			want:  []string{replaces("b", "f1", v1alpha1.LossNodeGone), replaces("a", "f2", v1alpha1.LossUnready)},
			held:  []string{"db-c"}},
		{name: "members that are starting do not count as unready, and the next deadline is requeued",
			world: seen(set("db").replicas(5), a(), b(), c(), pod("d").aged(time.Minute).on("n1").starting(), pod("e").aged(2*time.Minute).on("n1").starting()),
			wait:  8 * time.Minute},
	})
}

func TestATemplateIsToBlame(t *testing.T) {
	hour := 50 * time.Minute
	check(t, []row{
		{name: "SC-41 an unready member is not replaced if no member of its revision was ever Ready",
			world:   withoutUpdates(seen(set("db"), nowNeverReady, pod("a").on("n1").starting(), b().of("old"), c().of("old"), revisionOfImage("old", "zero"))),
			failing: []string{"db-a"}},
		{name: "an unschedulable member is not replaced if no member of its revision was ever Ready",
			world:   withoutUpdates(seen(set("db"), nowNeverReady, pod("a").unschedulableFor(hour), b().of("old"), c().of("old"), revisionOfImage("old", "zero"))),
			failing: []string{"db-a"}},
		{name: "an unready member is replaced if a member of its revision was Ready",
			world: seen(set("db"), pod("a").on("n1").unreadyFor(hour), b(), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossUnready)}},
		{name: "a member that was not Ready since its update is not replaced",
			world:   seen(set("db"), pod("a").recreated().on("n1").starting(), b(), c()),
			failing: []string{"db-a"}},
		{name: "an unready member that was Ready since its update is replaced",
			world: seen(set("db"), pod("a").recreated().on("n1").unreadyFor(hour), b(), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossUnready)}},
		{name: "an unready member is not replaced during its in-place update",
			world:   seen(set("db"), pod("a").patching(`{}`).on("n1").unreadyFor(hour), b(), c()),
			failing: []string{"db-a"}},
		{name: "a failing template is not reported before the deadline",
			world: seen(set("db"), pod("a").recreated().aged(time.Minute).on("n1").starting(), b(), c()),
			wait:  9 * time.Minute},
		{name: "a member on a lost node is replaced even if its template fails",
			world: seen(set("db"), pod("a").recreated().on("n1").starting().nodeNotReadyFor(time.Minute), b(), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{name: "an unready member whose revision was deleted is not replaced",
			world:   seen(set("db").onDelete(), pod("a").labelled(spec.LabelRevision, "forgotten").on("n1").unreadyFor(hour), b(), c()),
			failing: []string{"db-a"}},
	})
}

// withoutUpdates disables updates, so that a row shows only the effect of a loss.
func withoutUpdates(w *facts.World) *facts.World {
	w.Set.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategy
	return w
}
