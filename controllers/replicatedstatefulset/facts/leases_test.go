package facts_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

func TestALeaseExpires(t *testing.T) {
	const duration = fixture.LeaseSeconds * time.Second
	for _, r := range []struct {
		name string
		age  time.Duration
		away time.Duration // in which this process could not observe the cluster
		want bool
	}{
		{"before its duration", duration - time.Millisecond, 0, false},
		{"after its duration", duration, 0, true},
		{"while this process could not observe it", duration + 5*time.Second, 10 * time.Second, false},
	} {
		m := fixture.Pod(0).Leased(4).Holds(r.age)
		w := fixture.WorldOf(fixture.SetOf(1, 1), m)
		if r.away > 0 {
			w.Watch = leadership.Watch{Gaps: []leadership.Gap{{From: fixture.Ago(r.age - time.Second), To: fixture.Ago(r.age - time.Second - r.away)}}}
		}
		if got := w.LeaseHasExpired(m.Member); got != r.want {
			t.Errorf("%s: expired is %t", r.name, got)
		}
	}
}

func TestAFrozenContainer(t *testing.T) {
	fenced := func(age time.Duration) *fixture.PodFixture {
		return fixture.Pod(0).Leased(4).Crashed().But(func(w *facts.World) { w.Members[0].FencedSince = fixture.Ago(age) })
	}
	for _, r := range []struct {
		name string
		pod  *fixture.PodFixture
		want bool
	}{
		{"for a minute", fenced(time.Minute), true},
		{"for less", fenced(59 * time.Second), false},
		{"on an unreachable Node", fenced(time.Minute).OnNode(fixture.Off), false},
		{"that is terminating", fenced(time.Minute).Deleted(), false},
		{"that the kubelet reports as ended", fixture.Pod(0).Leased(4).Crashed(), false},
	} {
		w := fixture.WorldOf(fixture.SetOf(2, 1), r.pod)
		if got := w.IsFrozen(w.Members[0]); got != r.want {
			t.Errorf("%s: frozen is %t", r.name, got)
		}
	}
}

func TestWhenLeasesAreUsed(t *testing.T) {
	for name, r := range map[string]struct {
		things []fixture.Thing
		want   bool
	}{
		"no":                                    {[]fixture.Thing{fixture.Pod(0).Primary()}, false},
		"a pod has one":                         {[]fixture.Thing{fixture.Pod(0).Unleased()}, true},
		"a grant of a pod that is gone has one": {[]fixture.Thing{fixture.Pod(0).Primary().InEpoch(1), fixture.With(func(w *facts.World) { w.Members = nil })}, true},
	} {
		if got := fixture.WorldOf(fixture.SetOf(1, 1), r.things...).UsesLeases(); got != r.want {
			t.Errorf("%s: used is %t", name, got)
		}
	}
}
