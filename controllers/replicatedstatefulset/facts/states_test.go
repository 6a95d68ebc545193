package facts_test

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// TestStatesOfAMember checks what follows from the answer of status, and from the last failure.
func TestStatesOfAMember(t *testing.T) {
	for _, r := range []struct {
		name                                     string
		pod                                      *fixture.PodFixture
		state                                    record.State
		first, degraded, resists, stops, reached bool
	}{
		{"an idle member", fixture.Pod(0).Idle(), record.Idle, true, false, false, false, true},
		{"a secondary", fixture.Pod(0).Secondary(), record.Secondary, true, false, false, false, true},
		{"a primary", fixture.Pod(0).Primary(), record.Primary, false, false, false, false, true},
		{"a degraded secondary", fixture.Pod(0).Status(int(record.OCFDegraded)), record.Secondary, true, true, false, false, true},
		{"a terminating secondary", fixture.Pod(0).Secondary().Deleted(), record.Secondary, false, false, false, false, true},
		{"a primary whose stop failed", fixture.Pod(0).Primary().Failures(1, v1alpha1.CommandStop, 1, false), record.Primary, false, false, true, false, true},
		{"a secondary whose stop failed", fixture.Pod(0).Secondary().Failures(1, v1alpha1.CommandStop, 1, false), record.Secondary, true, false, true, false, true},
		{"a secondary whose demote failed", fixture.Pod(0).Secondary().Failures(1, v1alpha1.CommandDemote, 1, false), record.Secondary, true, false, false, false, true},
		{"a member that has stopped after all", fixture.Pod(0).Idle().Failures(1, v1alpha1.CommandStop, 1, false), record.Idle, true, false, false, false, true},
		{"a member whose start failed", fixture.Pod(0).Idle().Failures(1, v1alpha1.CommandSecondary, 1, true), record.Idle, true, false, false, true, true},
		{"a primary on a lost Node", fixture.Pod(0).Primary().OnNode(fixture.Off), record.Unknown, false, false, false, false, false},
	} {
		m := facts.Derive(fixture.WorldOf(fixture.SetOf(1, 1), r.pod)).Members[0]
		if m.State != r.state || m.CouldBeFirst() != r.first || m.Degraded() != r.degraded {
			t.Errorf("%s: %s; could be the first primary %t, degraded %t", r.name, m.State, m.CouldBeFirst(), m.Degraded())
		}
		if m.RefusesToStepDown() != r.resists || m.NeedsStop() != r.stops || m.OutOfReach() == r.reached {
			t.Errorf("%s: resists %t, needs a stop %t, out of reach %t", r.name, m.RefusesToStepDown(), m.NeedsStop(), m.OutOfReach())
		}
	}
}
