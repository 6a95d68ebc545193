package spec_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	given := []string{"/x", "$(RSS_EPOCH)", "RSS_EPOCH=$(RSS_EPOCH)/$(RSS_EPOCH)", "$$(RSS_EPOCH)", "$(OTHER)", "$RSS_EPOCH", "$(RSS_CREATED).$(RSS_EPOCH)", "$$(RSS_CREATED)"}
	want := []string{"/x", "12", "RSS_EPOCH=12/12", "$(RSS_EPOCH)", "$(OTHER)", "$RSS_EPOCH", "1800000000.12", "$(RSS_CREATED)"}
	before := slices.Clone(given)
	if got := spec.WithEpoch(given, metav1.Unix(1800000000, 0), 12); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if !slices.Equal(given, before) {
		t.Error("the spec was modified")
	}
}
