package facts_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// TestListsOfMembers checks which members are in which list.
func TestListsOfMembers(t *testing.T) {
	f := facts.Derive(fixture.WorldOf(fixture.SetOf(5, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Idle(),
		fixture.Pod(3).Primary().Deleted(), fixture.Pod(4)))
	for _, r := range []struct{ list, got, want string }{
		{"primaries", facts.NamesOf(f.Primaries()), "rss-db-0"},
		{"secondaries", facts.NamesOf(f.Candidates(record.Secondary)), "rss-db-1"},
		{"idle members", facts.NamesOf(f.Candidates(record.Idle)), "rss-db-2"},
		{"members that have not answered", facts.NamesOf(f.WithoutStatus()), "rss-db-4"},
	} {
		if r.got != r.want {
			t.Errorf("%s: %q, want %q", r.list, r.got, r.want)
		}
	}
	if m := f.Named("rss-db-3"); m == nil || m != f.ByUID("u3") || f.Named("rss-db-9") != nil || f.ByUID("u9") != nil {
		t.Errorf("found %v by its name", m)
	}
}

func TestTheLastChangeOfAllMembers(t *testing.T) {
	f := facts.Derive(fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Changed("promote", time.Hour), fixture.Pod(1).Secondary().Changed("secondary", time.Minute)))
	if got := fixture.Noon.Sub(f.ChangedAt()); got != time.Minute {
		t.Errorf("the last command ended %s ago", got)
	}
}

func TestPrimariesThatServeNoClients(t *testing.T) {
	for _, r := range []struct {
		name    string
		primary *fixture.PodFixture
		want    string
	}{
		{"a Ready primary", fixture.Pod(0).Primary(), ""},
		{"a primary that is not Ready", fixture.Pod(0).Primary().Unready(time.Minute), "rss-db-0 is primary, but its pod is not Ready"},
		{"a primary on a lost Node is reported elsewhere", fixture.Pod(0).Primary().Unready(time.Minute).OnNode(fixture.Off), ""},
	} {
		f := facts.Derive(fixture.WorldOf(fixture.SetOf(2, 1), r.primary, fixture.Pod(1).Secondary().Unready(time.Minute)))
		if got := f.WhyUnserved(); got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}
