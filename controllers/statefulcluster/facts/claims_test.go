package facts_test

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestClaimTemplatesChangedPastAdmission(t *testing.T) {
	w := fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.RevisionWith("later", func(d *children.RevisionData) {
		d.VolumeClaimTemplates = append(d.VolumeClaimTemplates, fixture.VolumeClaimTemplate("logs", "1Gi"))
	}).Numbered(200))
	want := `spec.volumeClaimTemplates: Forbidden: claim template "logs" is missing; claim templates cannot be removed or renamed after creation`
	if got := facts.ChangedClaims(w); got != want {
		t.Errorf("changedClaims is %q, want %q", got, want)
	}
	if got := facts.ChangedClaims(fixture.Seen(fixture.Set("db"))); got != "" {
		t.Errorf("changedClaims for unchanged templates is %q", got)
	}
	if got := facts.ChangedClaims(fixture.Seen(fixture.Set("db"), fixture.With(func(w *facts.World) { w.Revisions = nil }))); got != "" {
		t.Errorf("changedClaims without revisions is %q", got)
	}
}
