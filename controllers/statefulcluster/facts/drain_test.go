package facts_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// An update does not recreate pods on cordoned nodes on which they could not start again.
func TestUpdatesOfMembersThatLeave(t *testing.T) {
	old := fixture.RevisionWith("old", func(d *children.RevisionData) { d.Template.Spec.Containers[0].Command = []string{"old"} })
	fixture.Check(t, []fixture.Row{
		{Name: "SC-43 a member on a cordoned node is not recreated for an update",
			World: fixture.Seen(fixture.Replacing(), fixture.LeavingA().Of("old"), fixture.B(), fixture.C(), old, fixture.Starting("d"), fixture.Budgeted(4)), Wait: 9 * time.Minute},
		{Name: "SC-43 an unready member on a cordoned node is recreated for an update",
			World: fixture.Seen(fixture.Replacing(), fixture.Pod("a").On("n1").UnreadyFor(0).NodeCordoned().Of("old"), fixture.B(), fixture.C(), old, fixture.Starting("d"), fixture.Budgeted(4)), Want: fixture.Recreates("a"), Wait: 5 * time.Minute},
		{Name: "SC-43 a member on a cordoned node is updated in place",
			World: fixture.Seen(fixture.Replacing(), fixture.LeavingA().Of("old"), fixture.B(), fixture.C(), fixture.RevisionOfImage("old", "zero"), fixture.Starting("d"), fixture.Budgeted(4)), Want: fixture.UpdatesInPlace("a"), Wait: 9 * time.Minute},
	})
}
