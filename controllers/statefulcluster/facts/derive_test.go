package facts_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// TestMembersAreSorted checks into which list each member is sorted.
func TestMembersAreSorted(t *testing.T) {
	names := func(members []*facts.Member) string {
		var all []string
		for _, m := range members {
			all = append(all, m.Name())
		}
		return strings.Join(all, " ")
	}
	for _, r := range []struct {
		name                            string
		w                               *facts.World
		alive, lost, departed, returned string
	}{
		{"members that run", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B()), "db-a db-b", "", "", ""},
		{"a member whose Node is gone is lost", fixture.Seen(fixture.Set("db"), fixture.A().NodeGone(), fixture.B()), "db-b", "db-a", "", ""},
		{"a member that a user deleted has departed", fixture.Seen(fixture.Set("db"), fixture.A().Going(), fixture.B()), "db-b", "", "db-a", ""},
		{"a member that is being updated returns", fixture.Seen(fixture.Set("db"), fixture.A().Going(), fixture.B(), fixture.Updating("a", "uid-of-a", "now")), "db-b", "", "", "db-a"},
		{"a returning member on a lost Node is lost", fixture.Seen(fixture.Set("db"), fixture.A().Going().NodeNotReadyFor(time.Hour), fixture.B(), fixture.Updating("a", "uid-of-a", "now")), "db-b", "db-a", "", ""},
		{"a member that is evicted from a lost Node is lost while slots are empty", fixture.Seen(fixture.Set("db"), fixture.A().TakenByTaint(), fixture.B()), "db-b", "db-a", "", ""},
		{"a member that is evicted from a lost Node has departed when all slots are occupied", fixture.Seen(fixture.Set("db").Replicas(1), fixture.A().TakenByTaint(), fixture.B()), "db-b", "", "db-a", ""},
	} {
		f := facts.Derive(r.w)
		var lost []*facts.Member
		for _, l := range f.Lost {
			lost = append(lost, l.Member)
		}
		returned := ""
		for _, e := range f.Returning {
			returned += e.Name
		}
		if got := []string{names(f.Alive), names(lost), names(f.Departed), returned}; strings.Join(got, "|") != strings.Join([]string{r.alive, r.lost, r.departed, r.returned}, "|") {
			t.Errorf("%s: alive, lost, departed and returning are %q", r.name, got)
		}
	}
}

// TestNoFactsOfASetThatIsNotServed checks that nothing follows from the members of an invalid set.
func TestNoFactsOfASetThatIsNotServed(t *testing.T) {
	w := fixture.Seen(fixture.Set("db"), fixture.A().NodeGone())
	w.Set.DeletionTimestamp = &metav1.Time{Time: fixture.Noon}
	w.Invalid = "spec.replicas: Invalid value"
	if f := facts.Derive(w); len(f.Lost) > 0 || len(f.Alive) > 0 {
		t.Errorf("%d members are lost, %d alive", len(f.Lost), len(f.Alive))
	}
}
