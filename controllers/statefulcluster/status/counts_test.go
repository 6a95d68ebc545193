package status_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestCountsOfAnInvalidSpec(t *testing.T) {
	bad := fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) { s.Template.Spec.Containers = nil })
	bad.Status.Replicas, bad.Status.ReadyReplicas = 9, 9
	got := fixture.Told(fixture.Seen(bad, fixture.A(), fixture.B(), fixture.Starting("c"), fixture.Pod("d").On("n1").Ready().Going()))
	if got.Replicas != 3 || got.ReadyReplicas != 2 || got.AvailableReplicas != 2 {
		t.Errorf("%d members, %d Ready, %d available; want 3, 2 and 2", got.Replicas, got.ReadyReplicas, got.AvailableReplicas)
	}
	if says := fixture.Says(got, v1alpha1.ConditionDegraded); says != "True InvalidSpec: spec.template.spec.containers: Required value: a pod has at least one container" {
		t.Error(says)
	}
}

func TestCounts(t *testing.T) {
	at := func(current string, s *fixture.SetFixture) *fixture.SetFixture {
		s.Status.CurrentRevision = current
		return s
	}
	for _, r := range []struct {
		name  string
		world *facts.World
		// replicas ready available current updated lost, current revision
		want string
	}{
		{"SC-20 all members are available", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C()), "3 3 3 3 3 0 now"},
		{"the first pass of a new set", fixture.Seen(at("", fixture.Set("db")), fixture.With(func(w *facts.World) { w.Set.Status.CurrentRevision = "" })), "0 0 0 0 0 0 now"},
		{"one member is starting", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Starting("c")), "3 2 2 3 3 0 now"},
		{"one member is lost", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C().NodeGone()), "2 2 2 2 2 1 now"},
		{"one replacement is not Ready", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Starting("c").InPlaceOf("x", 1)), "3 2 2 3 3 1 now"},
		{"one member was deleted", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C().Going()), "2 2 2 2 2 1 now"},
		{"one terminating pod has a successor", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.Pod("x").On("n9").Going()), "3 3 3 3 3 0 now"},
		{"one of two members was updated", fixture.Seen(at("old", fixture.Set("db").Replicas(2)), fixture.A(), fixture.OldB(), fixture.OldImage()), "2 2 2 1 1 0 old"},
		{"one member is being patched", fixture.Seen(at("old", fixture.Set("db").Replicas(2)), fixture.A().Patching(`{}`), fixture.OldB(), fixture.OldImage()), "2 2 1 1 0 0 old"},
		{"the last member was updated", fixture.Seen(at("old", fixture.Set("db").Replicas(2)), fixture.A(), fixture.B(), fixture.OldImage()), "2 2 2 2 2 0 now"},
		{"the last member is returning", fixture.Seen(at("old", fixture.Set("db").Replicas(2)), fixture.A(), fixture.Pod("b").On("n2").Going(), fixture.Updating("b", "uid-of-b", "now"), fixture.OldImage()), "1 1 1 0 1 0 old"},
	} {
		s := fixture.Told(r.world)
		got := fmt.Sprint(s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.CurrentReplicas, s.UpdatedReplicas, s.LostReplicas, " ", s.CurrentRevision)
		if got = strings.Join(strings.Fields(got), " "); got != r.want {
			t.Errorf("%s: %s, want %s", r.name, got, r.want)
		}
		if s.UpdateRevision != "now" || s.ObservedGeneration != 7 || s.Selector != "app=db" {
			t.Errorf("%s: update revision %q, generation %d, selector %q", r.name, s.UpdateRevision, s.ObservedGeneration, s.Selector)
		}
	}
}

func TestDeletionIsNotCounted(t *testing.T) {
	s := fixture.Set("db")
	s.DeletionTimestamp = &metav1.Time{Time: fixture.Noon}
	s.Status.Replicas = 3
	if got := fixture.Told(fixture.Seen(s)); got.Replicas != 3 {
		t.Errorf("status.replicas of a set that is being deleted was updated: %d", got.Replicas)
	}
}
