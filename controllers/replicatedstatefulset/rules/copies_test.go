package rules_test

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

func TestFailover(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"RS-34 promote the secondary with the highest sequence", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("3"), fixture.Pod(2).Secondary().Sequence("9")), []string{"2: Promote, alone"}},
		{"RS-34 among equal sequences, promote a member without a failed start", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("9").Failures(1, "promote", 1, false), fixture.Pod(2).Secondary().Sequence("9")), []string{"2: Promote, alone"}},
		{"RS-34 no promotion of a copy that is older than the recorded newest", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("3"), fixture.Pod(2).Secondary().Sequence("9"), fixture.RecordedSequence("rss-db-0", "10")), nil},
		{"RS-34 seed the member with the recorded newest copy when it returns", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("10"), fixture.Pod(1).Secondary().Sequence("3"), fixture.Pod(2).Secondary().Sequence("9"), fixture.RecordedSequence("rss-db-0", "10")), []string{"0: Seed, alone"}},
		{"RS-34 no seed of a member that returns with a lower sequence than recorded", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("2"), fixture.Pod(1).Secondary().Sequence("3"), fixture.Pod(2).Secondary().Sequence("9"), fixture.RecordedSequence("rss-db-0", "10")), nil},
		{"RS-34 among equal sequences, promote the lowest ordinal", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("9")), []string{"1: Promote, alone"}},
		{"RS-34 query status again if it was read before the loss", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("9"), fixture.With(func(w *facts.World) { w.LossAt = fixture.Ago(3 * time.Second) })), []string{"1 asked status"}},
		{"RS-34 query sequence again if it was read before the loss", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("9"), fixture.With(func(w *facts.World) {
			w.LossAt = fixture.Ago(3 * time.Second)
			r := w.Members[1].Said[v1alpha1.CommandStatus]
			r.Began = fixture.Ago(2 * time.Second)
			w.Members[1].Said[v1alpha1.CommandStatus] = r
		})), []string{"1 asked sequence"}},
		{"RS-34 wait for a secondary that crashed with the primary", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Pending(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Crashed(), fixture.Lost(15*time.Second)), nil},
		{"RS-34 wait for the new pod of a member that was deleted during the loss", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Born(5*time.Second).Pending(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Idle().Sequence("9"), fixture.Lost(15*time.Second)), nil},
		{"RS-34 wait for a member whose pod is terminating", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed().Deleted(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Idle().Sequence("9"), fixture.Lost(15*time.Second)), nil},
		{"RS-34 wait for a member whose pod is not created yet", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Idle().Sequence("9"), fixture.Lost(15*time.Second)), nil},
		{"RS-40 promote without waiting for a pod that was pending before the loss", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Born(time.Hour).Pending(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Idle().Sequence("9"), fixture.Lost(15*time.Second)), []string{"1: Promote, alone"}},
		{"RS-34 query the sequence of an idle member before a promotion", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Pending(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Idle()), []string{"2 asked sequence"}},
		{"RS-34 stop a failed member before a promotion", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Pending(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Status(1).Sequence("10")), []string{"2: Stop, alone"}},
		{"RS-34 seed an idle member that is newer than the secondary", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Idle().Sequence("10")), []string{"2: Seed, alone"}},
		{"RS-34 promote the secondary when the idle members are not newer", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Idle().Sequence("9")), []string{"1: Promote, alone"}},
		{"RS-34 promote without waiting for an idle member with an unreadable sequence", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Pending(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Idle().Sequence("x")), []string{"1: Promote, alone", "2 asked sequence"}},
		{"RS-40 promote without waiting for terminating, unreachable or waiting members", fixture.WorldOf(fixture.SetOf(4, 1), fixture.Pod(0).Crashed().Deleted(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Idle().OnNode(fixture.Off), fixture.Pod(3).Waiting()), []string{"1: Promote, alone"}},
		{"promote a secondary, not an idle member", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("10"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8")), []string{"1: Promote, alone"}},
		{"no promotion of the only secondary if it is older than the recorded newest", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Pending(), fixture.Pod(1).Secondary().Sequence("9"), fixture.RecordedSequence("rss-db-0", "11")), nil},
		{"remove the grant when the container has ended", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Crashed(), fixture.Pod(1).Secondary()),
			[]string{"learned: 0 is not primary: its container has ended"}},
		{"remove the grant when status reports stopped", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Idle(), fixture.Pod(1).Secondary()), []string{"learned: 0 is not primary: status reports that it has stopped"}},
		{"remove the grant when status reports secondary", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Secondary(), fixture.Pod(1).Secondary()), []string{"learned: 0 is not primary: status reports that it is secondary"}},
		{"keep the grant when status reports a failure", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Status(1), fixture.Pod(1).Secondary()), []string{"0: Stop, alone"}},
		{"keep the grant while status has not answered", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted(), fixture.Pod(1).Secondary()), []string{"0 asked status"}},
		{"keep the grant while the node is unreachable", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Idle().OnNode(fixture.Off), fixture.Pod(1).Secondary()), nil},
		{"keep the grant when only pod garbage collection ended the pod", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Deleted().But(func(w *facts.World) { w.Members[0].Pod.Status.Phase = "Failed" }), fixture.Pod(1).Secondary()), nil},
		{"remove the grant of a deleted pod on an out-of-service Node", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Deleted().OnNode(fixture.Out), fixture.Pod(1).Secondary()),
			[]string{"learned: 0 is not primary: its container has ended"}},
		{"delete a pod that may be primary on an out-of-service Node", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().OnNode(fixture.Out), fixture.Pod(1).Secondary()), []string{"delete pod 0: Fenced, its Node n1 is out of service"}},
		{"remove the grant when the Node has been missing for a minute", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Deleted().OnNode(nodestate.Facts{Missing: true, MissingSince: fixture.Ago(time.Minute)}), fixture.Pod(1).Secondary()),
			[]string{"learned: 0 is not primary: its container has ended"}},
		{"keep the grant while the Node has been missing for less than a minute", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Deleted().OnNode(nodestate.Facts{Missing: true, MissingSince: fixture.Ago(59 * time.Second)}), fixture.Pod(1).Secondary()), nil},
		{"query status of a restarted container before the grant is removed", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Restarted(time.Minute), fixture.Pod(1).Secondary()), []string{"0 asked status"}},
		{"record a member that is found running as primary", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Status(8), fixture.Pod(1).Secondary()), []string{"learned: 0 was found running as primary"}},
		{"RS-34 stop a terminating primary when a successor exists", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Deleted(), fixture.Pod(1).Secondary()), []string{"0: Stop, alone"}},
		{"RS-94 demote a terminating primary while its preStop hook runs", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Held(time.Second).Sequence("9"), fixture.Pod(1).Secondary().Later("9")), []string{"0: Demote, alone"}},
		{"RS-94 query the successor while it lacks data of the terminating primary", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Held(time.Second).Sequence("9"), fixture.Pod(1).Secondary().Sequence("8")), []string{"1 asked sequence"}},
		{"RS-94 stop a terminating primary when its preStop hook has ended", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Held(10*time.Second).Sequence("9"), fixture.Pod(1).Secondary().Sequence("8")), []string{"0: Stop, alone"}},
		{"RS-94 send nothing to a terminating primary whose demote failed", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Held(time.Second).Sequence("9").Failures(1, "demote", 1, false), fixture.Pod(1).Secondary().Later("9")), nil},
		{"RS-95 query the sequence of a terminating, demoted primary before a promotion", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Secondary().Held(5*time.Second), fixture.Pod(1).Secondary().Sequence("9")), []string{"0 asked sequence"}},
		{"RS-95 no promotion while the demoted primary is newer, and query the successor again", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Secondary().Held(5*time.Second).Sequence("10"), fixture.Pod(1).Secondary().Answered("sequence", podexec.Succeeded, 0, "9\n", 9*time.Second)), []string{"1 asked sequence"}},
		{"RS-95 promote a successor that has all data of the demoted primary", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Secondary().Held(5*time.Second).Sequence("10"), fixture.Pod(1).Secondary().Later("10")), []string{"1: Promote, alone"}},
		{"RS-95 promote a successor when the sequence of the demoted primary is unreadable", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Secondary().Held(5*time.Second).Sequence("x"), fixture.Pod(1).Secondary().Later("10")), []string{"0 asked sequence", "1: Promote, alone"}},
	})
}
