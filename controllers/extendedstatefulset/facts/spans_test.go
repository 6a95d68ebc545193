package facts_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

func TestFreeOrdinals(t *testing.T) {
	all := facts.Spans{1: {Start: 0, Replicas: 2}, 2: {Start: 4, Replicas: 1}}
	if got := slices.Collect(all.Free(7, false)); !slices.Equal(got, []int32{2, 3, 5, 6}) {
		t.Errorf("free ordinals are %v", got)
	}
	if got := slices.Collect(all.Free(7, true)); !slices.Equal(got, []int32{6, 5, 3, 2}) {
		t.Errorf("free ordinals, highest first, are %v", got)
	}
	if o, some := all.FirstFree(7); o != 2 || !some {
		t.Errorf("the first free ordinal is %d, %t", o, some)
	}
	if _, some := all.FirstFree(2); some {
		t.Error("an ordinal above replicas is free")
	}
	for ordinal, want := range map[int32]int64{0: 1, 1: 1, 2: 0, 4: 2, 5: 0} {
		if got := all.Owner(ordinal); got != want {
			t.Errorf("ordinal %d belongs to version %d, want %d", ordinal, got, want)
		}
	}
}

func TestSpansOfAZone(t *testing.T) {
	s := fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 2}).Has(2, children.Span{Start: 2, Replicas: 1})
	s.W.Children[1].Set.DeletionTimestamp = &metav1.Time{Time: fixture.Noon}
	got := s.W.SpansOf(s.W.Zones[0])
	if len(got) != 1 || got[1] != (children.Span{Start: 0, Replicas: 2}) {
		t.Errorf("%v; the ordinals of a terminating StatefulSet have no owner", got)
	}
	if other := s.W.SpansOf(children.Zone{Index: 7}); len(other) > 0 {
		t.Errorf("%v in another zone", other)
	}
}

// TestAbsentOrdinals checks for which ordinals a handover waits.
func TestAbsentOrdinals(t *testing.T) {
	split := func(unready ...int32) *fixture.Scene {
		return fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}, unready...).Upgrading(v1alpha1.PhasePromoting, v1alpha1.HandoverPerOrdinal)
	}
	for _, r := range []struct {
		name  string
		scene *fixture.Scene
		but   int32
		back  bool
		want  string
	}{
		{"all ordinals serve", split().Has(2, children.Span{Start: 2, Replicas: 1}), -1, false, ""},
		{"a pod is not Ready", split(1).Has(2, children.Span{Start: 2, Replicas: 1}), -1, false, "db-v1-1 is available"},
		{"the pod that is not Ready is the next one", split(1).Has(2, children.Span{Start: 2, Replicas: 1}), 1, false, ""},
		{"an ordinal has no owner", split().Has(2, children.Span{Start: 2}), -1, false, "ordinal 2 has moved to another version"},
		{"a rollback does not wait for a pod that had its time", split(1).Has(2, children.Span{Start: 2, Replicas: 1}).After(24 * time.Hour), -1, true, ""},
		{"an upgrade waits for a pod that had its time", split(1).Has(2, children.Span{Start: 2, Replicas: 1}).After(24 * time.Hour), -1, false, "db-v1-1 is available"},
	} {
		z := r.scene.W.Zones[0]
		if got := r.scene.W.Unavailable(z, r.scene.W.SpansOf(z), r.but, r.back); got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}
