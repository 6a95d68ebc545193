package rules_test

import (
	"slices"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestNamesAreRecordedFirst(t *testing.T) {
	names := "patch status of statefulcluster db: Names"
	first := func(lines ...string) []string { return append([]string{names}, lines...) }
	fixture.Check(t, []fixture.Row{
		{Name: "V2 the name of a new member is recorded before its pod is created",
			World: fixture.Seen(fixture.Set("db"), fixture.OffRecord, fixture.A(), fixture.B()), Want: first(fixture.Creates("f1")...)},
		{Name: "V2 the names of several members are recorded in one write",
			World: fixture.Seen(fixture.Set("db"), fixture.OffRecord), Want: first(fixture.Creates("f1", "f2", "f3")...)},
		{Name: "V2 recorded names are used without another write",
			World: fixture.Seen(fixture.Set("db"), fixture.Creating("f1", "f2", "f3")), Want: fixture.Creates("f1", "f2", "f3")},
		{Name: "V2 additional names are recorded first if too few are recorded",
			World: fixture.Seen(fixture.Set("db"), fixture.Creating("f1")), Want: first(fixture.Creates("f1", "f2", "f3")...)},
		{Name: "V2 the name of a replacement is recorded before the lost pod is deleted",
			World: fixture.Seen(fixture.Set("db"), fixture.OffRecord, fixture.A().NodeGone(), fixture.B(), fixture.C()), Want: first(fixture.Replaces("a", "f1", v1alpha1.LossNodeGone))},
		{Name: "V2 OrderedReady records one name",
			World: fixture.Seen(fixture.Set("db").OrderedReady(), fixture.OffRecord), Want: first(fixture.Creates("f1")...)},
		{Name: "V2 a refused write of names is retried later",
			World: fixture.Seen(fixture.Set("db"), fixture.OffRecord, fixture.A(), fixture.B(), fixture.Refused(facts.ReasonNames, "too large", time.Minute)), Wait: time.Minute},
	})
}

// A new member never gets a name that a member has or had.
func TestNamesOnRecordThatAreTaken(t *testing.T) {
	w := fixture.Seen(fixture.Set("db"), fixture.Creating("a", "l", "u", "x", "f1"), fixture.A(), fixture.LooseClaimOf("l"), fixture.Updating("u", "uid-of-u", "now"), fixture.With(func(w *facts.World) {
		w.Set.Status.Lost = []v1alpha1.LostMember{{Name: "db-x"}}
	}))
	if got := facts.UnusedIDs(w); !slices.Equal(got, []string{"f1"}) {
		t.Errorf("V2 unused names are %q, want f1", got)
	}
}
