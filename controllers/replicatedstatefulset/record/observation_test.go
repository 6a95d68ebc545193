package record_test

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

func TestRecords(t *testing.T) {
	t.Run("the sequence of an idle member is not recorded while a primary runs", func(t *testing.T) {
		w := fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Sequence("3"), fixture.Pod(1).Idle().Sequence("9"))
		if s := facts.Derive(w).Record.Versions; len(s) != 1 || s[0].Pod != "rss-db-0" || s[0].Sequence != "3" {
			t.Errorf("the recorded sequences are %+v, want only that of the primary", s)
		}
	})
	t.Run("seed-from removes higher recorded sequences", func(t *testing.T) {
		p := rules.Decide(fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("5"), fixture.RecordedSequence("rss-db-0", "2"), fixture.RecordedSequence("rss-db-2", "10"),
			fixture.Annotated(v1alpha1.AnnotationSeedFrom, "rss-db-0")))
		chain := p.Steps[0][0]
		set, ok := chain[0].Object.(*v1alpha1.ReplicatedStatefulSet)
		if !ok || len(set.Status.Sequences) != 1 || set.Status.Sequences[0].Pod != "rss-db-0" || set.Status.Sequences[0].Sequence != "3" {
			t.Errorf("the record of %q has the sequences %+v, want only those up to 3", fixture.Gist(&p), set.Status.Sequences)
		}
	})
}
