package statefulcluster

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
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
			row{name: fmt.Sprintf("SC-13 a nanosecond before its deadline of %v a member is not lost: %s", d.deadline, d.reason),
				world: seen(set("db"), d.member(d.deadline-time.Nanosecond), b(), c()),
				wait:  time.Nanosecond},
			row{name: fmt.Sprintf("SC-9 SC-14 SC-36 at its deadline it is replaced under another name: %s", d.reason),
				world: seen(set("db"), d.member(d.deadline), b(), c()),
				want:  []string{replaces("a", "f1", d.reason)}},
		)
	}
	check(t, rows)
}

func TestLostAtOnce(t *testing.T) {
	lost := func(p *podFixture) *world { return seen(set("db"), p, b(), c()) }
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
		{name: "a pod that failed and still says it is Ready is lost too",
			world: with(func(w *world) { w.fresh = nil }).to(lost(a().failed())),
			want:  []string{deletesLost("a", v1alpha1.LossFailed)}},
		{name: "a member that has run and whose claim is gone is lost: an empty claim would not be its data",
			world: lost(a().withoutClaims()),
			want: []string{"delete pod db-a: ClaimGone, the member is lost and will not come back, it has no claims > " +
				createsInPlaceOf("a", "f1")}},
		{name: "a Ready member whose claim is gone is lost, though the cache does not hold its containers",
			world: lost(pod("a").on("n1").ready().withoutContainers().withoutClaims()),
			want: []string{"delete pod db-a: ClaimGone, the member is lost and will not come back, it has no claims > " +
				createsInPlaceOf("a", "f1")}},
		{name: "a recreated pod whose claim is gone is lost before it ever runs",
			world: lost(pod("a").recreated().withoutClaims()),
			want: []string{"delete pod db-a: ClaimGone, the member is lost and will not come back, it has no claims > " +
				createsInPlaceOf("a", "f1")}},
		{name: "a member that is not scheduled yet is not lost, however long the scheduler sleeps",
			world: lost(pod("a").aged(24 * time.Hour))},
		{name: "SC-13 the start deadline of a pod that named its node itself counts from its creation",
			world: lost(pod("a").aged(10 * time.Second).on("n1").neverBound()), wait: 590 * time.Second},
		{name: "SC-13 and ends",
			world: lost(pod("a").aged(10 * time.Minute).on("n1").neverBound()), want: []string{replaces("a", "f1", v1alpha1.LossStartup)}},
		{name: "SC-12 a pod that hangs on a lost node does not hold up its replacement",
			world: seen(set("db"), a().going().nodeNotReadyFor(time.Minute), b(), c()),
			want:  []string{createsInPlaceOf("a", "f1")}},
		{name: "SC-11 a member that a user deleted is replaced while its pod ends",
			world: lost(a().going()),
			want:  []string{createsInPlaceOf("a", "f1")}},
		{name: "SC-39 a member that a user force-deleted is replaced under another name",
			world: seen(set("db"), b(), c(), looseClaimOf("a")),
			want:  creates("f1")},
		{name: "SC-10 all are replaced at once when all are lost and maxConcurrent is 100%",
			world: seen(set("db").maxConcurrent("100%").replacesInOutage(), a().nodeGone(), b().nodeGone(), c().nodeGone()),
			want: []string{replaces("a", "f1", v1alpha1.LossNodeGone), replaces("b", "f2", v1alpha1.LossNodeGone),
				replaces("c", "f3", v1alpha1.LossNodeGone)}},
		{name: "the longest lost is replaced first",
			world: seen(set("db"), a().nodeNotReadyFor(40*time.Second), b().nodeNotReadyFor(50*time.Second), c()),
			want:  []string{replaces("b", "f1", v1alpha1.LossNodeNotReady)}, held: []string{"db-a"}},
	})
}

// to applies the change to a world and returns it.
func (f with) to(w *world) *world { f(w); return w }

func TestDeadlinesThatNeverCome(t *testing.T) {
	zero := new(int32)
	never := set("db").change(func(s *v1alpha1.StatefulClusterSpec) {
		s.Replacement.UnreadySeconds, s.Replacement.StartupSeconds, s.Replacement.PendingSeconds = zero, zero, zero
	})
	check(t, []row{
		{name: "unreadySeconds 0 is never", world: seen(never, pod("a").on("n1").unreadyFor(24*time.Hour), b(), c())},
		{name: "startupSeconds 0 is never", world: seen(never, pod("a").aged(24*time.Hour).on("n1").starting(), b(), c())},
		{name: "W6 a member whose claims a quota refuses is not replaced", world: seen(set("db"), pod("a").unschedulableFor(24*time.Hour).withoutClaims(), b(), c(),
			refused(reasonClaim, "exceeded quota", time.Minute)), wait: time.Minute},
		{name: "W6 pendingSeconds counts from the creation of the claims", world: seen(set("db"), claimedFor("a", 299*time.Second), b(), c()), wait: time.Second},
		{name: "W6 a member whose claims have been there for pendingSeconds is replaced", world: seen(set("db"), claimedFor("a", 300*time.Second), b(), c()),
			want: []string{replaces("a", "f1", v1alpha1.LossPending)}},
		{name: "pendingSeconds 0 is never", world: seen(never, pod("a").unschedulableFor(24*time.Hour), b(), c())},
		{name: "a Node that is not Ready counts all the same",
			world: seen(never, a().nodeNotReadyFor(time.Minute), b(), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{name: "an unready member on a Node that blinks waits for the Node's deadline, not its own",
			world: seen(set("db"), pod("a").on("n1").unreadyFor(50*time.Minute).nodeNotReadyFor(10*time.Second), b(), c()),
			wait:  20 * time.Second},
	})
}

func TestBackoff(t *testing.T) {
	// b and c are healthy; a fills the slot of x, as the nth successive replacement.
	nth := func(n int, age time.Duration) *world {
		return seen(set("db"), pod("a").inPlaceOf("x", n).aged(age).on("n1").starting(), b(), c())
	}
	const startup = 600 * time.Second
	again := []string{replaces("a", "f1", v1alpha1.LossStartup)}
	check(t, []row{
		{name: "the first replacement in a slot is given up like any member", world: nth(1, startup), want: again},
		{name: "the second is waited for 30 seconds longer", world: nth(2, startup+30*time.Second-1), wait: 1},
		{name: "the second, when they are over", world: nth(2, startup+30*time.Second), want: again},
		{name: "the third is waited for a minute longer", world: nth(3, startup+time.Minute-1), wait: 1},
		{name: "the third, when it is over", world: nth(3, startup+time.Minute), want: again},
		{name: "the ninth is waited for an hour longer", world: nth(9, startup+time.Hour-1), wait: 1},
		{name: "no one is waited for longer than an hour", world: nth(10000, startup+time.Hour), want: again},
		{name: "a slot that saw a Ready member starts from nothing",
			world: seen(set("db"), pod("a").inPlaceOf("x", 5).on("n1").unreadyFor(300*time.Second), b(), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossUnready)}},
		{name: "a lost Node too is answered later when replacements fail one after another",
			world: seen(set("db"), pod("a").inPlaceOf("x", 3).aged(50*time.Second).on("n1").starting().nodeGone(), b(), c()),
			wait:  10 * time.Second},
		{name: "a count that cannot be read is none",
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
		{"the first", a().nodeGone(), "1"},
		{"after one that was never Ready", pod("a").inPlaceOf("x", 4).on("n1").starting().nodeGone(), "5"},
		{"after one that was Ready", a().inPlaceOf("x", 4).nodeGone(), "1"},
	} {
		t.Run(r.name, func(t *testing.T) {
			chain := planOf(seen(set("db"), r.old, b(), c())).Steps[0][0]
			if got := chain[1].Object.GetAnnotations()[v1alpha1.AnnotationReplacements]; got != r.want {
				t.Errorf("%s: counted as %q, want %q", chain[1], got, r.want)
			}
		})
	}
}

func TestMaxConcurrent(t *testing.T) {
	eight := func(concurrent string, things ...thing) *world {
		for i := range 8 - len(things) {
			things = append(things, pod(fmt.Sprintf("w%d", i)).on("n9").ready())
		}
		return seen(set("db").replicas(8).maxConcurrent(concurrent), things...)
	}
	gone := func(id string) *podFixture { return pod(id).on("n1").ready().nodeGone() }
	check(t, []row{
		{name: "SC-38 half of the set is lost: a quarter is replaced, the rest is held",
			world: eight("25%", gone("a"), gone("b"), gone("c"), gone("d")),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone), replaces("b", "f2", v1alpha1.LossNodeGone)},
			held:  []string{"db-c", "db-d"}},
		{name: "a percentage is rounded down",
			world: eight("49%", gone("a"), gone("b"), gone("c"), gone("d")),
			want: []string{replaces("a", "f1", v1alpha1.LossNodeGone), replaces("b", "f2", v1alpha1.LossNodeGone),
				replaces("c", "f3", v1alpha1.LossNodeGone)},
			held: []string{"db-d"}},
		{name: "but one is always replaced", world: eight("1%", gone("a"), gone("b")),
			want: []string{replaces("a", "f1", v1alpha1.LossNodeGone)}, held: []string{"db-b"}},
		{name: "a slot is taken until the replacement is Ready",
			world: eight("25%", pod("x").aged(time.Minute).inPlaceOf("y", 1).on("n2").starting(), gone("a"), gone("b")),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone)}, held: []string{"db-b"}, wait: 9 * time.Minute},
		{name: "a replacement that is lost before it was Ready keeps its slot for the next one",
			world: eight("25%", pod("x").inPlaceOf("y", 1).on("n2").starting().nodeGone(), gone("a"), gone("b")),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone), replaces("x", "f2", v1alpha1.LossNodeGone)}, held: []string{"db-b"}},
		{name: "a replacement that was Ready has given its slot back",
			world: eight("25%", pod("x").inPlaceOf("y", 1).on("n2").ready(), gone("a"), gone("b")),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone), replaces("b", "f2", v1alpha1.LossNodeGone)}},
		{name: "a lost member without its replacement yet holds its slot: the create may have been refused",
			world: eight("1", gone("a").going(), gone("b")),
			want:  []string{createsInPlaceOf("a", "f1")}, held: []string{"db-b"}},
		{name: "OrderedReady deletes no further lost member before the replacement of the first is Ready",
			world: seen(set("db").orderedReady(), a().nodeGone().going(), b().nodeGone(), c()),
			want:  []string{createsInPlaceOf("a", "f1")}, held: []string{"db-b"}},
		{name: "OrderedReady records the loss first and creates one at a time",
			world: seen(set("db").orderedReady(), a().nodeGone(), b(), c()),
			want:  []string{deletesLost("a", v1alpha1.LossNodeGone)}},
		{name: "members that the control plane takes from a lost node wait for their turn too",
			world: seen(set("db").replicas(4).maxConcurrent("1"), a().takenByTaint(), b().takenByTaint(), c(), pod("d").on("n3").ready()),
			want:  []string{createsInPlaceOf("a", "f1")}, held: []string{"db-b"}},
		{name: "one that was succeeded is departed",
			world: seen(set("db"), a().takenByTaint(), b().inPlaceOf("a", 1), c(), pod("d").on("n1").ready())},
		{name: "one whose successor came back without saying so is departed too: the set is full without it",
			world: seen(set("db"), pod("x").on("n1").ready().takenByTaint(), a().recreated(), b(), c())},
		{name: "one that hangs on takes no slot of others once the set is full",
			world: seen(set("db"), pod("x").on("n1").ready().nodeNotReadyFor(time.Hour).going(), a().nodeGone(), b(), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeGone)}},
		{name: "an empty slot counts: no other is replaced before it is filled",
			world: seen(set("db").replicas(4).maxConcurrent("1"), a().nodeGone(), b().nodeGone(), c()),
			want:  creates("f1"), held: []string{"db-a", "db-b"}},
		{name: "while creates of replacements are refused no member is given up",
			world: seen(set("db"), refused(reasonReplaced, "quota", time.Minute), a().nodeGone(), b().nodeGone(), c()),
			held:  []string{"db-a", "db-b"}, wait: time.Minute},
	})
}

func TestUnreadinessOfMany(t *testing.T) {
	check(t, []row{
		{name: "more unready at once than maxConcurrent: none is replaced for it",
			world:       seen(set("db"), pod("a").on("n1").unreadyFor(50*time.Minute), pod("b").on("n2").unreadyFor(50*time.Minute), c()),
			manyUnready: 2},
		{name: "as many as maxConcurrent are replaced",
			world: seen(set("db").maxConcurrent("2"), pod("a").on("n1").unreadyFor(50*time.Minute), pod("b").on("n2").unreadyFor(50*time.Minute), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossUnready), replaces("b", "f2", v1alpha1.LossUnready)}},
		{name: "many unready members do not hide a lost node",
			world: seen(set("db").replacesInOutage(), pod("a").on("n1").unreadyFor(50*time.Minute), pod("b").on("n2").unreadyFor(50*time.Minute), c().nodeGone()),
			want:  []string{replaces("c", "f1", v1alpha1.LossNodeGone)}, manyUnready: 2},
		{name: "members on lost nodes are not among the unready",
			world: seen(set("db").maxConcurrent("2").replacesInOutage(), pod("a").on("n1").unreadyFor(50*time.Minute), b().nodeGone(), pod("c").on("n3").unreadyFor(50*time.Minute)),
			want:  []string{replaces("b", "f1", v1alpha1.LossNodeGone), replaces("a", "f2", v1alpha1.LossUnready)},
			held:  []string{"db-c"}},
		{name: "new members that start together are not too many, and no deadline is forgotten",
			world: seen(set("db").replicas(5), a(), b(), c(), pod("d").aged(time.Minute).on("n1").starting(), pod("e").aged(2*time.Minute).on("n1").starting()),
			wait:  8 * time.Minute},
	})
}

func TestATemplateIsToBlame(t *testing.T) {
	hour := 50 * time.Minute
	check(t, []row{
		{name: "SC-41 a member of a revision of which none was ever Ready is not replaced for unreadiness",
			world:   seen(set("db"), nowNeverReady, pod("a").on("n1").starting(), b().of("old"), c().of("old"), revisionOfImage("old", "zero")).withoutUpdates(),
			failing: []string{"db-a"}},
		{name: "nor for not being scheduled",
			world:   seen(set("db"), nowNeverReady, pod("a").unschedulableFor(hour), b().of("old"), c().of("old"), revisionOfImage("old", "zero")).withoutUpdates(),
			failing: []string{"db-a"}},
		{name: "nor for having been Ready once: its revision was, so it is the member",
			world: seen(set("db"), pod("a").on("n1").unreadyFor(hour), b(), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossUnready)}},
		{name: "nor is a member that was recreated by an update and not Ready since",
			world:   seen(set("db"), pod("a").recreated().on("n1").starting(), b(), c()),
			failing: []string{"db-a"}},
		{name: "a recreated member that was Ready again is a member like any",
			world: seen(set("db"), pod("a").recreated().on("n1").unreadyFor(hour), b(), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossUnready)}},
		{name: "nor is a member in the middle of an update in place",
			world:   seen(set("db"), pod("a").patching(`{}`).on("n1").unreadyFor(hour), b(), c()),
			failing: []string{"db-a"}},
		{name: "it is said only when the deadline has passed",
			world: seen(set("db"), pod("a").recreated().aged(time.Minute).on("n1").starting(), b(), c()),
			wait:  9 * time.Minute},
		{name: "a lost node counts whatever the template does",
			world: seen(set("db"), pod("a").recreated().on("n1").starting().nodeNotReadyFor(time.Minute), b(), c()),
			want:  []string{replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{name: "a revision that is no more was Ready as far as is known not",
			world:   seen(set("db").onDelete(), pod("a").labelled(labelRevision, "forgotten").on("n1").unreadyFor(hour), b(), c()),
			failing: []string{"db-a"}},
	})
}

// withoutUpdates disables updates, so that a row shows only the effect of a loss.
func (w *world) withoutUpdates() *world {
	w.set.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategy
	return w
}
