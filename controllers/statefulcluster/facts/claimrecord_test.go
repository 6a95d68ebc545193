package facts_test

import (
	"slices"
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// W5: anyone who may create claims can copy the labels of a member.
func TestW5AClaimThatIsNotOnRecordIsNoMember(t *testing.T) {
	recorded := fixture.LooseClaimOf("y").OnRecord()
	fixture.Check(t, []fixture.Row{
		{Name: "W5 a claim that is not in status.claims gives no returning member", World: fixture.Seen(fixture.Set("db").KeepsEvicted().Replicas(4), fixture.A(), fixture.B(), fixture.C(), recorded, fixture.LooseClaimOf("x")),
			Want: []string{"patch status of statefulcluster db: Update"}},
		{Name: "W5 a claim gives a returning member if the set has no record of claims", World: fixture.Seen(fixture.Set("db").KeepsEvicted(), fixture.A(), fixture.B(), fixture.LooseClaimOf("x")),
			Want: []string{"patch status of statefulcluster db: Update"}},
	})
	w := fixture.Seen(fixture.Set("db").KeepsEvicted().Replicas(4), fixture.A(), fixture.B(), fixture.C(), recorded, fixture.LooseClaimOf("x"))
	if got := facts.ReturningVanished(facts.Derive(w)); !slices.Equal(got, []string{"db-y"}) {
		t.Errorf("W5 returning members are %v, want db-y", got)
	}
	if lost := fixture.Told(fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), recorded, fixture.LooseClaimOf("x"))).Lost; len(lost) != 1 || lost[0].Name != "db-y" {
		t.Errorf("W5 status.lost is %v, want db-y", lost)
	}
}
