package facts_test

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// V1 The API server may refuse a pod of the revision recorded for a returning member.
func TestACorrectedTemplateBringsAMemberBack(t *testing.T) {
	bad := fixture.RevisionWith("bad", func(d *children.RevisionData) { d.Template.Spec.RuntimeClassName = new("none") }).Numbered(50)
	entry := fixture.Updating("a", "uid-of-old-a", "bad")
	partition := func(n int32) *fixture.SetFixture {
		return fixture.Set("db").Rolling(v1alpha1.RollingUpdate{Partition: n})
	}
	rows := []struct {
		name              string
		world             *facts.World
		revision, because string
	}{
		{"V1 a member returns with the corrected template", fixture.Seen(fixture.Set("db"), bad, fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), entry), "now", "Update"},
		{"V1 an evicted member returns with the corrected template, with Update as its reason",
			fixture.Seen(fixture.Set("db"), bad, fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), fixture.EvictedEntry("a"), entryOf("bad")), "now", "Update"},
		{"V1 a member returns with its own template if the partition keeps it",
			fixture.Seen(partition(1), bad, fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), entry), "bad", "Update"},
		{"V1 a member returns with the corrected template if other members fill the partition",
			fixture.Seen(partition(1), bad, fixture.LooseClaimOf("a"), fixture.B().Of("bad"), fixture.C(), entry), "now", "Update"},
		{"V1 a member returns with its own template under OnDelete", fixture.Seen(fixture.Set("db").OnDelete(), bad, fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), entry), "bad", "Update"},
	}
	for _, r := range rows {
		pod := fixture.FirstWritten(r.world)
		if got := pod.GetLabels()[spec.LabelRevision]; got != r.revision {
			t.Errorf("%s: the pod has revision %s, want %s", r.name, got, r.revision)
		}
		if got := pod.GetAnnotations()[v1alpha1.AnnotationUpdated]; got != r.because {
			t.Errorf("%s: the reason of the return is %q, want %q", r.name, got, r.because)
		}
	}
}

// entryOf sets the revision of the entry in status.updating.
func entryOf(revision string) fixture.Thing {
	return fixture.With(func(w *facts.World) { w.Set.Status.Updating[0].Revision = revision })
}
