package spec_test

import (
	"slices"
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestEpochOfQuestions tests RS-87: a query gets the current epoch.
func TestEpochOfQuestions(t *testing.T) {
	p := rules.Decide(fixture.WorldOf(fixture.FencedSet(1, 1), fixture.EpochWas(7), fixture.Pod(0)))
	chain := fixture.LastOf(&p)
	if c := chain[0].Command; c == nil || !slices.Equal(c.Argv, []string{"/status", "--epoch=7"}) {
		t.Errorf("the query is %+v in %q", c, fixture.Gist(&p))
	}
}

func TestWithEpoch(t *testing.T) {
	said := []string{"/x", "$(RSS_EPOCH)", "RSS_EPOCH=$(RSS_EPOCH)/$(RSS_EPOCH)", "$$(RSS_EPOCH)", "$(OTHER)", "$RSS_EPOCH"}
	want := []string{"/x", "12", "RSS_EPOCH=12/12", "$(RSS_EPOCH)", "$(OTHER)", "$RSS_EPOCH"}
	before := slices.Clone(said)
	if got := spec.WithEpoch(said, 12); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if !slices.Equal(said, before) {
		t.Error("the spec was modified")
	}
}
