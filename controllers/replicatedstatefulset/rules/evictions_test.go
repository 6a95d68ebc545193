package rules_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// TestWhichPrimaryIsDrained checks who has to hand over its role because of its Node.
func TestWhichPrimaryIsDrained(t *testing.T) {
	allow := fixture.With(func(w *facts.World) { w.Set.Spec.EvictionPolicy = v1alpha1.EvictionAllow })
	for _, r := range []struct {
		name   string
		things []fixture.Thing
		want   string
	}{
		{"no Node is cordoned", []fixture.Thing{fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()}, ""},
		{"the Node of the primary is cordoned", []fixture.Thing{fixture.Pod(0).Primary().Cordoned(), fixture.Pod(1).Secondary()}, "rss-db-0"},
		{"the Node of a secondary is cordoned", []fixture.Thing{fixture.Pod(0).Primary(), fixture.Pod(1).Secondary().Cordoned()}, ""},
		{"the primary is already terminating", []fixture.Thing{fixture.Pod(0).Primary().Cordoned().Deleted(), fixture.Pod(1).Secondary()}, ""},
		{"evictions are allowed", []fixture.Thing{fixture.Pod(0).Primary().Cordoned(), fixture.Pod(1).Secondary(), allow}, ""},
		{"the set is being deleted", []fixture.Thing{fixture.Pod(0).Primary().Cordoned(), fixture.Pod(1).Secondary(), fixture.DeletedSince(time.Minute)}, ""},
	} {
		got := ""
		if m := rules.PrimaryToDrain(facts.Derive(fixture.WorldOf(fixture.SetOf(2, 1), r.things...))); m != nil {
			got = m.Name()
		}
		if got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}

func TestEvictionTimeout(t *testing.T) {
	draining := func(timeout v1alpha1.Duration, status metav1.ConditionStatus, since time.Duration) *facts.Facts {
		return facts.Derive(fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.With(func(w *facts.World) {
			w.Set.Spec.EvictionTimeout = timeout
			w.Set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDraining, Status: status, LastTransitionTime: fixture.MetaTime(since)}}
		})))
	}
	for _, r := range []struct {
		name string
		f    *facts.Facts
		want bool
	}{
		{"before the timeout", draining("60s", metav1.ConditionTrue, 59*time.Second), false},
		{"after the timeout", draining("60s", metav1.ConditionTrue, 60*time.Second), true},
		{"without a timeout", draining("", metav1.ConditionTrue, time.Hour), false},
		{"no eviction waits", draining("60s", metav1.ConditionFalse, time.Hour), false},
	} {
		if got := rules.EvictionTimeIsOver(r.f); got != r.want {
			t.Errorf("%s: %t", r.name, got)
		}
	}
}
