package rules_test

import (
	"fmt"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestLostAtOnce(t *testing.T) {
	lost := func(p *fixture.PodFixture) *facts.World {
		return fixture.Seen(fixture.Set("db"), p, fixture.B(), fixture.C())
	}
	fixture.Check(t, []fixture.Row{
		{Name: "a member whose Node is gone is lost at once",
			World: lost(fixture.A().NodeGone()),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeGone)}},
		{Name: "SC-37 a member on a Node out of service is lost at once",
			World: lost(fixture.A().NodeOutOfService()),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeOutOfService)}},
		{Name: "a pod that failed is lost at once",
			World: lost(fixture.Pod("a").On("n1").Failed()),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossFailed)}},
		{Name: "a failed pod with condition Ready is lost",
			World: fixture.With(func(w *facts.World) { w.Fresh = nil }).To(lost(fixture.A().Failed())),
			Want:  []string{fixture.DeletesLost("a", v1alpha1.LossFailed)}},
		{Name: "a member that has run and lost its claim is lost, because an empty claim has no data",
			World: lost(fixture.A().WithoutClaims()),
			Want: []string{"delete pod db-a: ClaimGone, the member is lost and will not come back, it has no claims > " +
				fixture.CreatesInPlaceOf("a", "f1")}},
		{Name: "a Ready member that lost its claim is lost if the cache does not hold its containers",
			World: lost(fixture.Pod("a").On("n1").Ready().WithoutContainers().WithoutClaims()),
			Want: []string{"delete pod db-a: ClaimGone, the member is lost and will not come back, it has no claims > " +
				fixture.CreatesInPlaceOf("a", "f1")}},
		{Name: "a recreated pod that lost its claim is lost before it runs",
			World: lost(fixture.Pod("a").Recreated().WithoutClaims()),
			Want: []string{"delete pod db-a: ClaimGone, the member is lost and will not come back, it has no claims > " +
				fixture.CreatesInPlaceOf("a", "f1")}},
		{Name: "a pod that the scheduler has not processed is never lost",
			World: lost(fixture.Pod("a").Aged(24 * time.Hour))},
		{Name: "SC-13 startupSeconds of a pod whose template sets nodeName starts at its creation",
			World: lost(fixture.Pod("a").Aged(10 * time.Second).On("n1").NeverBound()), Wait: 590 * time.Second},
		{Name: "SC-13 a pod whose template sets nodeName is lost after startupSeconds",
			World: lost(fixture.Pod("a").Aged(10 * time.Minute).On("n1").NeverBound()), Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossStartup)}},
		{Name: "SC-12 a pod that keeps terminating on a lost node does not block its replacement",
			World: fixture.Seen(fixture.Set("db"), fixture.A().Going().NodeNotReadyFor(time.Minute), fixture.B(), fixture.C()),
			Want:  []string{fixture.CreatesInPlaceOf("a", "f1")}},
		{Name: "SC-11 a member that a user deleted is replaced while its pod is terminating",
			World: lost(fixture.A().Going()),
			Want:  []string{fixture.CreatesInPlaceOf("a", "f1")}},
		{Name: "SC-39 a member that a user force-deleted is replaced under another name",
			World: fixture.Seen(fixture.Set("db"), fixture.B(), fixture.C(), fixture.LooseClaimOf("a")),
			Want:  fixture.Creates("f1")},
		{Name: "SC-10 all are replaced at once when all are lost and maxConcurrent is 100%",
			World: fixture.Seen(fixture.Set("db").MaxConcurrent("100%").ReplacesInOutage(), fixture.A().NodeGone(), fixture.B().NodeGone(), fixture.C().NodeGone()),
			Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeGone), fixture.Replaces("b", "f2", v1alpha1.LossNodeGone),
				fixture.Replaces("c", "f3", v1alpha1.LossNodeGone)}},
		{Name: "the member that was lost first is replaced first",
			World: fixture.Seen(fixture.Set("db"), fixture.A().NodeNotReadyFor(40*time.Second), fixture.B().NodeNotReadyFor(50*time.Second), fixture.C()),
			Want:  []string{fixture.Replaces("b", "f1", v1alpha1.LossNodeNotReady)}, Held: []string{"db-a"}},
	})
}

func TestMaxConcurrent(t *testing.T) {
	eight := func(concurrent string, things ...fixture.Thing) *facts.World {
		for i := range 8 - len(things) {
			things = append(things, fixture.Pod(fmt.Sprintf("w%d", i)).On("n9").Ready())
		}
		return fixture.Seen(fixture.Set("db").Replicas(8).MaxConcurrent(concurrent), things...)
	}
	gone := func(id string) *fixture.PodFixture { return fixture.Pod(id).On("n1").Ready().NodeGone() }
	fixture.Check(t, []fixture.Row{
		{Name: "SC-38 a quarter is replaced and the rest is held when half of the set is lost",
			World: eight("25%", gone("a"), gone("b"), gone("c"), gone("d")),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeGone), fixture.Replaces("b", "f2", v1alpha1.LossNodeGone)},
			Held:  []string{"db-c", "db-d"}},
		{Name: "maxConcurrent as a percentage is rounded down",
			World: eight("49%", gone("a"), gone("b"), gone("c"), gone("d")),
			Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeGone), fixture.Replaces("b", "f2", v1alpha1.LossNodeGone),
				fixture.Replaces("c", "f3", v1alpha1.LossNodeGone)},
			Held: []string{"db-d"}},
		{Name: "one member is replaced even if maxConcurrent is rounded down to 0", World: eight("1%", gone("a"), gone("b")),
			Want: []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeGone)}, Held: []string{"db-b"}},
		{Name: "a slot is in use until the replacement is Ready",
			World: eight("25%", fixture.Pod("x").Aged(time.Minute).InPlaceOf("y", 1).On("n2").Starting(), gone("a"), gone("b")),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeGone)}, Held: []string{"db-b"}, Wait: 9 * time.Minute},
		{Name: "a replacement that is lost before it was Ready keeps its slot for its successor",
			World: eight("25%", fixture.Pod("x").InPlaceOf("y", 1).On("n2").Starting().NodeGone(), gone("a"), gone("b")),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeGone), fixture.Replaces("x", "f2", v1alpha1.LossNodeGone)}, Held: []string{"db-b"}},
		{Name: "a replacement that was Ready releases its slot",
			World: eight("25%", fixture.Pod("x").InPlaceOf("y", 1).On("n2").Ready(), gone("a"), gone("b")),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeGone), fixture.Replaces("b", "f2", v1alpha1.LossNodeGone)}},
		{Name: "a lost member without a replacement uses a slot, because the create may have been refused",
			World: eight("1", gone("a").Going(), gone("b")),
			Want:  []string{fixture.CreatesInPlaceOf("a", "f1")}, Held: []string{"db-b"}},
		{Name: "OrderedReady deletes no other lost member before the replacement of the first is Ready",
			World: fixture.Seen(fixture.Set("db").OrderedReady(), fixture.A().NodeGone().Going(), fixture.B().NodeGone(), fixture.C()),
			Want:  []string{fixture.CreatesInPlaceOf("a", "f1")}, Held: []string{"db-b"}},
		{Name: "OrderedReady records the loss first and creates one at a time",
			World: fixture.Seen(fixture.Set("db").OrderedReady(), fixture.A().NodeGone(), fixture.B(), fixture.C()),
			Want:  []string{fixture.DeletesLost("a", v1alpha1.LossNodeGone)}},
		{Name: "members that the control plane evicted from a lost node are limited by maxConcurrent",
			World: fixture.Seen(fixture.Set("db").Replicas(4).MaxConcurrent("1"), fixture.A().TakenByTaint(), fixture.B().TakenByTaint(), fixture.C(), fixture.Pod("d").On("n3").Ready()),
			Want:  []string{fixture.CreatesInPlaceOf("a", "f1")}, Held: []string{"db-b"}},
		{Name: "an evicted member with a successor is not replaced again",
			World: fixture.Seen(fixture.Set("db"), fixture.A().TakenByTaint(), fixture.B().InPlaceOf("a", 1), fixture.C(), fixture.Pod("d").On("n1").Ready())},
		{Name: "an evicted member is not replaced if the set is complete without it",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("x").On("n1").Ready().TakenByTaint(), fixture.A().Recreated(), fixture.B(), fixture.C())},
		{Name: "a terminating surplus pod uses no slot when the set is complete",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("x").On("n1").Ready().NodeNotReadyFor(time.Hour).Going(), fixture.A().NodeGone(), fixture.B(), fixture.C()),
			Want:  []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeGone)}},
		{Name: "an empty slot counts towards maxConcurrent and is filled first",
			World: fixture.Seen(fixture.Set("db").Replicas(4).MaxConcurrent("1"), fixture.A().NodeGone(), fixture.B().NodeGone(), fixture.C()),
			Want:  fixture.Creates("f1"), Held: []string{"db-a", "db-b"}},
		{Name: "no lost member is deleted while creates of replacements are refused",
			World: fixture.Seen(fixture.Set("db"), fixture.Refused(facts.ReasonReplaced, "quota", time.Minute), fixture.A().NodeGone(), fixture.B().NodeGone(), fixture.C()),
			Held:  []string{"db-a", "db-b"}, Wait: time.Minute},
	})
}
