package facts_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

func TestW15ReplacedPodsAreForgotten(t *testing.T) {
	at := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: fixture.Noon.Add(-time.Duration(minutes) * time.Minute)}
	}
	is := func(since *metav1.Time) func(*v1.ReplacedPod) {
		return func(r *v1.ReplacedPod) { r.MissingSince = since }
	}
	other := fixture.Granted("b", 2).Unknown("web", "two", 9)
	for _, r := range []struct {
		name string
		w    *facts.World
		want []*metav1.Time
	}{
		{"W15 a pod that exists is not missing", fixture.WorldOf(fixture.Replaced(is(nil)), other, fixture.Waiting("a").Unknown("web", "one", 5)), []*metav1.Time{nil}},
		{"W15 a replaced pod that was deleted is missing from now on", fixture.WorldOf(fixture.Replaced(is(nil)), other), []*metav1.Time{{Time: fixture.Noon}}},
		{"W15 a replaced pod that was recreated is not missing", fixture.WorldOf(fixture.Replaced(is(at(30))), other, fixture.Waiting("a").Unknown("web", "one", 5)), []*metav1.Time{nil}},
		{"W15 a missing pod stays recorded for an hour", fixture.WorldOf(fixture.Replaced(is(at(59))), other), []*metav1.Time{at(59)}},
		{"W15 a pod that has been missing for an hour is removed from the record", fixture.WorldOf(fixture.Replaced(is(at(60))), other), nil},
		{"W15 a pod that was recreated after an hour is removed from the record", fixture.WorldOf(fixture.Replaced(is(at(66))), other, fixture.Waiting("a").Unknown("web", "one", 5)), nil},
		{"W15 the record is cleared with onTimeout Wait", fixture.WorldOf(fixture.Replaced(is(nil)).With(func(s *v1.StatefulSingleton) { s.Spec.OnTimeout = v1.TimeoutWaits }), other, fixture.Waiting("a").Unknown("web", "one", 5)), nil},
	} {
		kept := status.Summarize(facts.Derive(r.w)).Replaced
		if len(kept) != len(r.want) {
			t.Errorf("%s: %+v", r.name, kept)
			continue
		}
		for i, since := range r.want {
			if !kept[i].MissingSince.Equal(since) {
				t.Errorf("%s: missing since %s, want %s", r.name, kept[i].MissingSince, since)
			}
		}
	}
}
