package record_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

// TestGuardsOfTheRecord tests the guards of the record.
func TestGuardsOfTheRecord(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"query status when another container runs in the pod of a grant", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Beside("agent"), fixture.Pod(1).Secondary().Sequence("9")),
			[]string{"0 asked status"}},
		{"keep the grant although another container in the pod reports stopped", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Beside("agent").Idle(), fixture.Pod(1).Secondary().Sequence("9")), nil},
		{"keep the grant while the container has no reported state", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Waiting(), fixture.Pod(1).Secondary().Sequence("9")), nil},
		{"no seed while another start is unresolved", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Began("seed", 12*time.Second).Crashed()), nil},
		{"keep a recent grant of an ended container, because the start may reach the next one", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).GrantedFor(14*time.Second).Crashed(), fixture.Pod(1).Secondary().Sequence("9")), nil},
		{"remove an old grant of an ended container", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).GrantedFor(16*time.Second).Crashed(), fixture.Pod(1).Secondary().Sequence("9")), []string{"learned: 0 is not primary: its container has ended"}},
		{"record a primary that runs in the next container", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Restarted(time.Minute).Status(8), fixture.Pod(1).Secondary()),
			[]string{"learned: 0 was found running as primary"}},
		{"stop a member that failed in the next container, because it may be primary", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Restarted(time.Minute).Status(1), fixture.Pod(1).Secondary()), []string{"0: Stop, alone"}},
		{"query status again if it was read before the last command", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Idle().Changed("promote", 5*time.Second), fixture.Pod(1).Secondary().Sequence("9")), []string{"0 asked status"}},
	})
}
