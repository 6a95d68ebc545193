package rules_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// ownerless removes the owner reference of the first member.
var ownerless = fixture.With(func(w *facts.World) { w.Members[0].Pod.OwnerReferences = nil })

func TestAdopt(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{Name: "W5 the owner reference of a member is restored", World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), ownerless),
			Want: []string{"patch pod db-a: Adopted, its owner reference was missing"}},
		{Name: "W5 a member that is being recreated waits while an orphan has its name",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Updating("c", "uid-of-c", "now"), fixture.Orphan("c"))},
		{Name: "W5 other slots are filled while an orphan has the name of a returning member", World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.Updating("c", "uid-of-c", "now"), fixture.Orphan("c")), Want: fixture.Creates("f1")},
		{Name: "W5 a terminating pod is not adopted", World: fixture.Seen(fixture.Set("db"), fixture.A().Going(), fixture.B(), fixture.C(), ownerless), Want: []string{fixture.CreatesInPlaceOf("a", "f1")}},
		{Name: "W5 a refused adoption is retried later", World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), ownerless, fixture.Refused(facts.ReasonAdopted, "no", time.Minute)), Wait: time.Minute},
		{Name: "W5 an orphan with claims is not replaced", World: fixture.Seen(fixture.Set("db"), fixture.B(), fixture.C(), fixture.Orphan("a"))},
		{Name: "W5 other missing members are created despite an orphan with claims", World: fixture.Seen(fixture.Set("db"), fixture.C(), fixture.Orphan("a")), Want: fixture.Creates("f1")},
		{Name: "W5 no member is retired because of an orphan with claims", World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.Orphan("x"))},
		{Name: "W5 an orphan without claims blocks no replacement", World: fixture.Seen(fixture.Set("db"), fixture.B(), fixture.C(), fixture.Stray("a")), Want: append(fixture.Creates("f1"), losesLabels("a"))},
	})
}
