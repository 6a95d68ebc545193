package facts_test

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// V9 Pods of a bad template may become Ready and crash later. c is the member that crashes; a
// member of "now" was Ready once.
func TestACrashLoopThatBeganWithTheRevision(t *testing.T) {
	crashes := func() *fixture.PodFixture { return fixture.Pod("c").On("n3").UnreadyFor(50 * time.Minute).Restarted(5) }
	short := func(id string) *fixture.PodFixture {
		return fixture.Pod(id).On("n1").ReadyFor(spec.SettlingTime - time.Minute)
	}
	rolling := func(things ...fixture.Thing) *facts.World {
		return fixture.Seen(fixture.Set("db"), append(things, fixture.OldCommand(), fixture.NowUnproven)...)
	}
	fixture.Check(t, []fixture.Row{
		{Name: "V9 a crashing member is not replaced if no member was Ready for long enough with its revision",
			World: rolling(fixture.OldA(), fixture.OldB(), crashes().Recreated()), Failing: []string{"db-c"}},
		{Name: "V9 the only member of a set is not replaced while it crashes",
			World: fixture.Seen(fixture.Set("db").Replicas(1), fixture.NowUnproven, crashes()), Failing: []string{"db-c"}},
		{Name: "V9 a crashing member is not replaced if another member was Ready with its revision for a short time only",
			World: fixture.Seen(fixture.Set("db"), fixture.NowUnproven, short("a"), short("b"), crashes()), Failing: []string{"db-c"}, Wait: time.Minute},
		{Name: "V9 a crashing member is replaced if its revision works elsewhere, because its data or node may be bad",
			World: fixture.Seen(fixture.Set("db"), fixture.NowUnproven, fixture.Pod("a").On("n1").ReadyFor(spec.SettlingTime), short("b"), crashes()),
			Want:  []string{fixture.Replaces("c", "f1", v1alpha1.LossUnready), "patch controllerrevision now: RevisionReady"}},
		{Name: "V9 an unready member that did not crash is replaced",
			World: fixture.Seen(fixture.Set("db"), fixture.NowUnproven, short("a"), short("b"), fixture.Pod("c").On("n3").UnreadyFor(50*time.Minute)),
			Want:  []string{fixture.Replaces("c", "f1", v1alpha1.LossUnready)}, Wait: time.Minute},
		{Name: "V9 a member that crashed only before its in-place update is replaced",
			World: fixture.Seen(fixture.Set("db"), fixture.NowUnproven, short("a"), short("b"), crashes().Annotated(v1alpha1.AnnotationRestarts, "5")),
			Want:  []string{fixture.Replaces("c", "f1", v1alpha1.LossUnready)}, Wait: time.Minute},
		{Name: "V9 an invalid note about restarts is ignored",
			World:   fixture.Seen(fixture.Set("db"), fixture.NowUnproven, short("a"), short("b"), crashes().Annotated(v1alpha1.AnnotationRestarts, "many")),
			Failing: []string{"db-c"}, Wait: time.Minute},
		{Name: "V9 a crashing member is replaced if its revision ever worked",
			World: fixture.Seen(fixture.Set("db").Replicas(1).ReplacesInOutage(), crashes()), Want: []string{fixture.Replaces("c", "f1", v1alpha1.LossUnready)}},
		{Name: "V9 a crashing member on a lost Node is replaced",
			World: rolling(fixture.OldA(), fixture.OldB(), crashes().NodeGone()), Want: []string{fixture.Replaces("c", "f1", v1alpha1.LossNodeGone)}},

		{Name: "V9 the update continues when a member is Ready",
			World: rolling(fixture.OldA(), fixture.OldB(), fixture.Pod("c").On("n3").ReadyFor(time.Second)), Want: fixture.Recreates("a"), Wait: spec.SettlingTime - time.Second},
		{Name: "V9 the update waits when the updated member has crashed",
			World: rolling(fixture.OldA(), fixture.OldB(), fixture.Pod("c").On("n3").ReadyFor(time.Second).Restarted(1)), Wait: spec.SteadyTime - time.Second},
		{Name: "V9 the update continues when a member that crashed once has been Ready for a while",
			World: rolling(fixture.OldA(), fixture.OldB(), fixture.Pod("c").On("n3").ReadyFor(spec.SteadyTime).Restarted(1)), Want: fixture.Recreates("a"), Wait: spec.SettlingTime - spec.SteadyTime},
		{Name: "V9 the update waits longer when the updated member has crashed twice",
			World: rolling(fixture.OldA(), fixture.OldB(), fixture.Pod("c").On("n3").ReadyFor(spec.SteadyTime).Restarted(2)), Wait: spec.SettlingTime - spec.SteadyTime},
		{Name: "V9 the update continues when the revision is proven, despite crashes",
			World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.Pod("c").On("n3").ReadyFor(time.Second).Restarted(2), fixture.OldCommand()), Want: fixture.Recreates("a")},
		{Name: "V9 restarts of members with an old revision do not block the update",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").ReadyFor(time.Second).Restarted(7).Of("old"), fixture.OldB(), fixture.C(), fixture.OldCommand()), Want: fixture.Recreates("a")},
		{Name: "V9 unready members are updated despite crashes, because they may need the update",
			World: rolling(fixture.Pod("a").On("n1").UnreadyFor(time.Second).Of("old"), fixture.OldB(), fixture.Pod("c").On("n3").ReadyFor(time.Second).Restarted(1)),
			Want:  fixture.Recreates("a"), Wait: spec.SteadyTime - time.Second},
		{Name: "V9 a surge update retires no member for a new one that crashed",
			World: fixture.Seen(fixture.Set("db").Surge(1), fixture.NowUnproven, fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldCommand(), fixture.Pod("d").On("n3").ReadyFor(time.Second).Restarted(1)), Wait: spec.SteadyTime - time.Second},
	})
}
