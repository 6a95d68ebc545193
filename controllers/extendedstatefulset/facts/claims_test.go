package facts_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

func TestNamesOfWantedClaims(t *testing.T) {
	for _, r := range []struct {
		name  string
		scene *fixture.Scene
		want  []string
	}{
		{"without zones", fixture.Of(fixture.Volumes()), []string{"data-db-0", "data-db-1", "data-db-2"}},
		{"with zones", fixture.Of(fixture.Zoned(1, "a", "b")), []string{"data-db-z0-0", "data-db-z1-0"}},
		{"without claims", fixture.Of(fixture.Plain()), nil},
	} {
		var got []string
		for _, name := range facts.ClaimNames(r.scene.W) {
			got = append(got, name)
		}
		if !slices.Equal(got, r.want) {
			t.Errorf("%s: %v, want %v", r.name, got, r.want)
		}
	}
}

// TestWithheldOrdinals checks which ordinals have claims of other owners, and up to which ordinal a
// StatefulSet may grow.
func TestWithheldOrdinals(t *testing.T) {
	foreign := func(w *facts.World) {
		w.ForeignClaims = map[string]*corev1.PersistentVolumeClaim{"data-db-1": {ObjectMeta: metav1.ObjectMeta{Name: "data-db-1"}}}
	}
	claimant := func(w *facts.World) { w.Claimants = map[string]string{"data-db": "other"} }
	deleted := "StatefulSet other is deleted, because its claims have the same names as those of db"
	scene := func(change ...func(*facts.World)) *facts.World {
		s := fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 1})
		for _, c := range change {
			s.But(c)
		}
		return s.W
	}
	for _, r := range []struct {
		name  string
		w     *facts.World
		why   [3]string
		reach int32
	}{
		{"all claims are free", scene(), [3]string{}, 3},
		{"a claim belongs to another owner", scene(foreign), [3]string{1: "the owner of claim data-db-1 consents"}, 1},
		{"another StatefulSet has the same claims", scene(claimant), [3]string{deleted, deleted, deleted}, 1},
		{"claims that exist are not those of another StatefulSet", scene(claimant, fixture.DeletedClaim(-1)), [3]string{}, 3},
	} {
		z := r.w.Zones[0]
		for o, want := range r.why {
			if got := facts.Withheld(r.w, z, int32(o)); got != want {
				t.Errorf("%s: ordinal %d: %q, want %q", r.name, o, got, want)
			}
			if taken := facts.ClaimTaken(r.w, "data", children.Place{Zone: z, Ordinal: int32(o)}); taken != (want != "") {
				t.Errorf("%s: the claim of ordinal %d belongs to another: %t", r.name, o, taken)
			}
		}
		if got := facts.Assignable(r.w, z, children.Span{Start: 0, Replicas: 1}); got != r.reach {
			t.Errorf("%s: up to ordinal %d, want %d", r.name, got, r.reach)
		}
		if got := facts.Unconsented(r.w); got != r.why[0] {
			t.Errorf("%s: pods are not replaced because %q", r.name, got)
		}
	}
}

func TestDeletedClaims(t *testing.T) {
	w := fixture.Of(fixture.Volumes()).But(fixture.DeletedClaim(1)).W
	for o, want := range []string{"", "data-db-1", ""} {
		if got := facts.DeletedClaimOf(w, w.Zones[0], int32(o)); got != want {
			t.Errorf("ordinal %d: %q, want %q", o, got, want)
		}
	}
}
