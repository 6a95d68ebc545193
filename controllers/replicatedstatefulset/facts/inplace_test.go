package facts_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

func TestANoteNamesAllRevisionsThatAPodMayHave(t *testing.T) {
	p := rules.Decide(fixture.InPlaceWorld(fixture.Pod(1).Secondary().Of("old", "3", "3").Noted("between", time.Minute, "new", "old")))
	if got := fixture.Gist(&p); len(got) != 1 || !strings.Contains(got[0], "InPlace") {
		t.Fatalf("the plan is %q", got)
	}
	note, readable := facts.InPlaceNoteOf(p.Steps[0][0][0].Object.(*corev1.Pod))
	if !readable || note.Revision != "new" || !slices.Equal(note.Earlier, []string{"old", "between"}) || !note.Since.Time.Equal(fixture.Noon) {
		t.Errorf("the note is %+v", note)
	}
}
