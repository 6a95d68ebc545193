package rules_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

func TestCommandsWhoseEndWasNotSeen(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"query status after a start that ended with 0", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Ends("seed", podexec.Succeeded, 0), fixture.Pod(1).Idle()), []string{"0 asked status"}},
		{"record the success of a start once status confirms it", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Ends("seed", podexec.Succeeded, 0).WithGranted().StatusSince(8, 5*time.Second), fixture.Pod(1).Idle().Sequence("3")),
			[]string{"learned: seed of 0 succeeded", "patch pod 0: Role, primary"}},
		{"record the success of a stop at once", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Ends("stop", podexec.Succeeded, 0).StatusSince(7, 500*time.Millisecond)), []string{"learned: stop of 1 succeeded"}},
		{"record a failed start at once", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Ends("seed", podexec.Failed, 1), fixture.Pod(1).Idle()), []string{"0 asked status", "learned: seed of 0 failed with exit code 1"}},
		{"a start with a lost response stays unresolved when status returns 7", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", 12*time.Second).Idle(), fixture.Pod(1).Secondary().Sequence("9")), []string{"0 asked status"}},
		{"a start with a lost response stays unresolved when status returns 0", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", 12*time.Second).Secondary(), fixture.Pod(1).Secondary().Sequence("9")), []string{"0 asked status"}},
		{"a start with a lost response is resolved when status returns 8", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Began("promote", 12*time.Second).Primary(), fixture.Pod(1).Secondary()), []string{"learned: promote of 0 took effect: status reports primary", "patch pod 0: Role, primary"}},
		{"query status again if it was read before the start was sent", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Began("promote", 8*time.Second).Primary(), fixture.Pod(1).Secondary()), []string{"0 asked status"}},
		{"query status once more after the timeout of the start", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", 21*time.Second).Secondary(), fixture.Pod(1).Secondary()), []string{"0 asked status"}},
		{"delete the pod when status does not confirm the start after the timeout", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", 21*time.Second).StatusSince(0, 500*time.Millisecond), fixture.Pod(1).Secondary()),
			[]string{"delete pod 0: Unseen, the outcome of promote is unknown, and status does not show it"}},
		{"keep the pod with an unresolved start on an unreachable node", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", 21*time.Second).Secondary().OnNode(fixture.Off), fixture.Pod(1).Secondary()), nil},
		{"keep the pod with an unresolved start while status could not be sent", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", 61*time.Second).Unsent("status", 3*time.Second, 6), fixture.Pod(1).Secondary().Sequence("9")), nil},
		{"delete a foreign pod with an unresolved start right after the timeout", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", 21*time.Second).Secondary().Strange(), fixture.Pod(1).Secondary()),
			[]string{"delete pod 0: Unseen, the outcome of promote is unknown, and status does not show it"}},
		{"keep the pod while the start is running", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().WithRuns("promote", 21*time.Second).Secondary(), fixture.Pod(1).Secondary()), nil},
		{"a start as secondary is resolved when status reports secondary", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Began("secondary", 12*time.Second).Secondary()),
			[]string{"learned: secondary of 1 took effect: status reports secondary", "patch pod 1: Role, secondary"}},
		{"a stop is resolved when status reports idle", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Began("stop", 12*time.Second).Idle()), []string{"learned: stop of 1 took effect: status reports idle"}},
		{"promote while a start as secondary is in progress", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).WithRuns("secondary", time.Second)), []string{"1: Promote, alone"}},
		{"start a secondary while a start on an unreachable node is unresolved", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Began("secondary", time.Hour).OnNode(fixture.Off)), []string{"1: Secondary, with 0"}},
		{"a start for an ended container stays unresolved, because it may reach the next container", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", 12*time.Second).Crashed(), fixture.Pod(1).Secondary().Sequence("9")), nil},
		{"a start for an ended container is resolved after the timeout for strays", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Began("promote", 16*time.Second).Crashed(), fixture.Pod(1).Secondary()), []string{"learned: promote of 0 ended with its container"}},
		{"delete a pod whose next container may have received the start", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", 20*time.Second).Restarted(10*time.Second).Idle(), fixture.Pod(1).Secondary().Sequence("9")),
			[]string{"0 asked status", "delete pod 0: Stray, command promote for the previous container may have reached it"}},
	})
}
