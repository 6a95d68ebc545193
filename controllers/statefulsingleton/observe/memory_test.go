package observe_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
)

func TestTheMemoryOfGatesIsOfThisObjectsPods(t *testing.T) {
	var m observe.Remembered
	look := func(at time.Duration, members ...*fixture.MemberFixture) time.Time {
		w := fixture.WorldOf(fixture.Singleton("db"), members...)
		w.Now = fixture.Noon.Add(at)
		m.Recall(w)
		return members[0].AtGateSince
	}
	if got := look(0, fixture.Waiting("a").Silent()); !got.IsZero() {
		t.Errorf("a gate that does not run has start time %s", got)
	}
	for _, at := range []time.Duration{time.Second, 2 * time.Second} {
		if got := look(at, fixture.Waiting("a")); !got.Equal(fixture.Noon.Add(time.Second)) {
			t.Errorf("after %s the start time of the gate is %s", at, got)
		}
	}
	look(3*time.Second, fixture.Waiting("b"))
	if got := look(4*time.Second, fixture.Waiting("a")); !got.Equal(fixture.Noon.Add(4 * time.Second)) {
		t.Errorf("the start time of a recreated gate is %s", got)
	}
}
