package rules_test

import (
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestASurgeInOrder(t *testing.T) {
	ordered := func() *fixture.SetFixture { return fixture.Set("db").Surge(1).OrderedReady() }
	fixture.Check(t, []fixture.Row{
		{Name: "a surge with OrderedReady does not wait for unready members with the old revision",
			World: fixture.Seen(ordered(), fixture.OldA(), fixture.OldB(), fixture.Pod("c").Aged(time.Minute).On("n3").Starting().Of("old"), fixture.OldImage()), Want: fixture.Creates("f1"), Wait: 9 * time.Minute},
		{Name: "a surge with OrderedReady waits for the new member", World: fixture.Seen(ordered().Replicas(4), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.Pod("d").Aged(time.Minute).On("n4").Starting(), fixture.OldImage()), Wait: 9 * time.Minute},
	})
}

func TestCreateMissing(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{Name: "SC-25 Parallel creates all missing members in one pass", World: fixture.Seen(fixture.Set("db")), Want: fixture.Creates("f1", "f2", "f3")},
		{Name: "SC-6 two members with new names are created when replicas changes from 3 to 5", World: fixture.Seen(fixture.Set("db").Replicas(5), fixture.A(), fixture.B(), fixture.C()), Want: fixture.Creates("f1", "f2")},
		{Name: "SC-5 OrderedReady creates one member at a time", World: fixture.Seen(fixture.Set("db").OrderedReady()), Want: fixture.Creates("f1")},
		{Name: "SC-5 OrderedReady waits until the first member is Ready",
			World: fixture.Seen(fixture.Set("db").OrderedReady(), fixture.Pod("a").Aged(time.Minute).On("n1").Starting()), Wait: 9 * time.Minute},
		{Name: "SC-5 OrderedReady creates the next member when the first is Ready", World: fixture.Seen(fixture.Set("db").OrderedReady(), fixture.A()), Want: fixture.Creates("f1")},
		{Name: "OrderedReady waits for a returning member",
			World: fixture.Seen(fixture.Set("db").OrderedReady(), fixture.Pod("a").On("n1").Going(), fixture.Updating("a", "uid-of-a", "now"), fixture.B())},
		{Name: "SC-8 names and claims of retired members are not reused",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.LooseClaimOf("c").Retained(v1alpha1.RetainedScaled)), Want: fixture.Creates("f1")},
		{Name: "a returning member keeps its slot",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").Going(), fixture.Updating("a", "uid-of-a", "now"), fixture.B(), fixture.C())},
		{Name: "a lost member that is held keeps its slot",
			World: fixture.Seen(fixture.Set("db").Replicas(4), fixture.A().NodeGone(), fixture.B().NodeGone(), fixture.C(), fixture.Pod("d").Aged(time.Minute).InPlaceOf("x", 1).On("n1").Starting()),
			Held:  []string{"db-a", "db-b"}, Wait: 9 * time.Minute},
		{Name: "a deleted member with a successor is not replaced again",
			World: fixture.Seen(fixture.Set("db"), fixture.A().Going(), fixture.B().InPlaceOf("a", 1), fixture.C()), Want: fixture.Creates("f1")},
		{Name: "a retired member has no successor",
			World: fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").Ready().ClaimsRetained().Going(), fixture.B(), fixture.C()), Want: fixture.Creates("f1")},
		{Name: "SC-18 a refused create of a missing member waits for its retry", World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Refused(facts.ReasonMissing, "quota", time.Minute)), Wait: time.Minute},
		{Name: "SC-18 the create of a missing member waits if the create of a replacement was refused", World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Refused(facts.ReasonReplaced, "quota", time.Minute)), Wait: time.Minute},
		{Name: "no more members are created than unused names exist", World: fixture.Seen(fixture.Set("db"), fixture.FreshIDsAre("f7")), Want: fixture.Creates("f7")},
	})
}

// A new template and fewer replicas in one write. Other rules act in the same pass as the one that
// records the revision. Surplus members do not count as spare, so no remaining member is updated
// for them.
func TestScaleDownWithANewTemplate(t *testing.T) {
	w := fixture.Seen(fixture.Set("db").Replicas(2), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.Pod("d").On("n4").Of("old").Ready(), fixture.OldImage(),
		specNotRecorded)
	p := fixture.PlanOf(w)
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
