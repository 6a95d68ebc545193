package facts_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

func TestW9AnUnresponsiveMemberBlocksAFailover(t *testing.T) {
	const gone = "delete pod 1: Unresponsive, status has not responded since 2026-03-01T11:56:00Z, and a primary is missing"
	heard := func() *fixture.PodFixture { return fixture.Pod(2).Secondary().Sequence("9") }
	fixture.Check(t, []fixture.Row{
		{"W9 wait forever by default", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Quiet(4*time.Minute), heard(), fixture.Lost(5*time.Minute)), nil},
		{"W9 recreate the unresponsive pod after the timeout", fixture.WorldOf(fixture.Recreating(fixture.SetOf(3, 1), "2m"), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Quiet(4*time.Minute), heard(), fixture.Lost(5*time.Minute)), []string{gone}},
		{"W9 recreate a pod that never answered after the timeout", fixture.WorldOf(fixture.Recreating(fixture.SetOf(3, 1), "2m"), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Hangs(4*time.Minute), heard(), fixture.Lost(5*time.Minute)), []string{gone}},
		{"W9 promote a secondary when the terminating pod has ended", fixture.WorldOf(fixture.Recreating(fixture.SetOf(3, 1), "2m"), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Ended().Deleted(), heard(), fixture.Lost(5*time.Minute)), []string{"2: Promote, alone", "patch pod 1: Release"}},
		{"W9 promote a secondary when the new pod is pending", fixture.WorldOf(fixture.Recreating(fixture.SetOf(3, 1), "2m"), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Pending().Born(time.Second), heard(), fixture.Lost(5*time.Minute)), []string{"2: Promote, alone"}},
		{"W9 wait while the primary has been lost for less than the timeout", fixture.WorldOf(fixture.Recreating(fixture.SetOf(3, 1), "2m"), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Quiet(4*time.Minute), heard(), fixture.Lost(119*time.Second)), nil},
		{"W9 wait while status has not answered for less than the timeout", fixture.WorldOf(fixture.Recreating(fixture.SetOf(3, 1), "5m"), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Quiet(4*time.Minute), heard(), fixture.Lost(9*time.Minute)), nil},
		{"W9 the minimum timeout is a minute", fixture.WorldOf(fixture.Recreating(fixture.SetOf(3, 1), "1s"), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Quiet(4*time.Minute), heard(), fixture.Lost(59*time.Second)), nil},
		{"W9 wait without a majority of the copies", fixture.WorldOf(fixture.Recreating(fixture.SetOf(3, 1), "2m"), fixture.Pod(0).Pending(), fixture.Pod(1).Quiet(4*time.Minute), heard(), fixture.Lost(5*time.Minute)), nil},
		{"W9 query the sequences of the other members first", fixture.WorldOf(fixture.Recreating(fixture.SetOf(3, 1), "2m"), fixture.Pod(0).Idle(), fixture.Pod(1).Quiet(4*time.Minute), heard(), fixture.Lost(5*time.Minute)), []string{"0 asked sequence"}},
		{"W9 wait when the unresponsive member has no claim", fixture.WorldOf(fixture.Unclaimed(fixture.Recreating(fixture.SetOf(3, 1), "2m")), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Quiet(4*time.Minute), heard(), fixture.Lost(5*time.Minute)), nil},
		{"W9 no recreation while a primary runs", fixture.WorldOf(fixture.Recreating(fixture.SetOf(3, 1), "2m"), fixture.Pod(0).Primary(), fixture.Pod(1).Quiet(4*time.Minute), heard(), fixture.Lost(5*time.Minute)), nil},
		{"W9 no recreation of a member that may be primary", fixture.WorldOf(fixture.Recreating(fixture.SetOf(3, 1), "2m"), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Hangs(4*time.Minute).WithGranted(), heard(), fixture.Lost(5*time.Minute)), nil},
		{"W9 promote a secondary when the unresponsive member is on an unreachable Node", fixture.WorldOf(fixture.Recreating(fixture.SetOf(3, 1), "2m"), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Quiet(4*time.Minute).OnNode(fixture.Off), heard(), fixture.Lost(5*time.Minute)), []string{"2: Promote, alone"}},
	})
}
