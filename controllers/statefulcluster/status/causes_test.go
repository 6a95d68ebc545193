package status_test

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes/causestest"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
)

// kept returns a world in which a sample has kept the third member from running for that long, as
// observe reads it; nil if the sample is not about a member.
func kept(s *causestest.Sample, age time.Duration) *facts.World {
	things := []fixture.Thing{fixture.A(), fixture.B()}
	switch {
	case s.Fails:
		return nil
	case s.Refused != "":
		return fixture.Seen(fixture.Set("db"), append(things, fixture.Refused(facts.ReasonMissing, `create pod db-f1: `+s.Refused, time.Minute))...)
	}
	third := fixture.Pod("c").On("n3")
	w := fixture.Seen(fixture.Set("db"), append(things, third)...)
	m := w.Members[2]
	since := fixture.Noon.Add(-age)
	if s.Pod != nil {
		s.Pod(m.Pod, since)
	} else {
		m.Pod.Status.Conditions[0].LastTransitionTime.Time = since
	}
	if s.Deleted { // an update waits for its deletion
		w.Set.Status.Updating = []v1alpha1.UpdatingMember{{Name: m.Name(), UID: m.Pod.UID, Revision: "now"}}
	}
	w.Causes = s.Read(fixture.Noon, observe.CausesOf(w))
	return w
}

// W7: the reason why a member does not run is in condition Degraded after a minute, with a command
// that helps, and in Stalled if it needs manual intervention.
func TestW7EachCauseIsToldOf(t *testing.T) {
	for i := range causestest.All {
		s := &causestest.All[i]
		w := kept(s, 70*time.Second)
		if w == nil {
			continue
		}
		set := w.Set.DeepCopy()
		set.Status = fixture.Told(w)
		s.Check(t, v1alpha1.ConditionDegraded, set, set.Status.Conditions)
	}
}
