package rules_test

import (
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

const (
	joined  = v1alpha1.MembershipJoined
	leaving = v1alpha1.MembershipLeaving
	left    = v1alpha1.MembershipLeft
)

// TestRS149Leave tests which member runs leave in a scale-down, and when it is removed.
func TestRS149Leave(t *testing.T) {
	three := fixture.Memberships(joined, joined, joined)
	world := func(things ...fixture.Thing) *facts.World { // a scale-down from three members to two
		return fixture.WorldOf(fixture.LeavingSet(3, 1), append(things, fixture.Replicas(2))...)
	}
	all := func(things ...fixture.Thing) *facts.World { // all members are primary
		return fixture.WorldOf(fixture.LeavingSet(3, 3, "secondary", "promote", "demote"), append(things, fixture.Replicas(2))...)
	}
	primary, secondary := fixture.Pod(0).Primary().Sequence, fixture.Pod(1).Secondary().Sequence
	fixture.Check(t, []fixture.Row{
		{"a secondary reports its sequence before it leaves", world(primary("9"), secondary("9"), fixture.Pod(2).Secondary(), three), []string{"2 asked sequence"}},
		{"a secondary leaves before it is stopped", world(primary("9"), secondary("9"), fixture.Pod(2).Secondary().Sequence("9"), three), []string{"2: Leave, with 0"}},
		{"a secondary that has left is stopped", world(primary("9"), secondary("9"), unlabelled(fixture.Pod(2).Secondary().Sequence("9")), fixture.Memberships(joined, joined, left)), []string{"2: Stop, with 0"}},
		{"a stopped member that has left is removed", world(primary("9"), secondary("9"), fixture.Pod(2).Idle(), fixture.Memberships(joined, joined, left)), []string{"patch statefulset rss-db: Scale, from 3 to 2"}},
		{"a member that never joined is removed", world(primary("9"), secondary("9"), fixture.Pod(2).Pending(), fixture.Memberships(joined, joined)), []string{"patch statefulset rss-db: Scale, from 3 to 2"}},
		{"an idle member leaves", world(primary("9"), secondary("9"), fixture.Pod(2).Idle(), three), []string{"2: Leave, with 0"}},
		{"leave is repeated if its outcome is unknown", world(primary("9"), secondary("9"), fixture.Pod(2).Idle(), fixture.Memberships(joined, joined, leaving)), []string{"2: Leave, with 0"}},
		{"no second leave while one runs", world(primary("9"), secondary("9"), fixture.Pod(2).Secondary().WithRuns("leave", time.Second), fixture.Memberships(joined, joined, leaving)), nil},
		{"a member whose container does not run is not removed", world(primary("9"), secondary("9"), fixture.Pod(2).Pending(), three), nil},
		{"a member on an unreachable node is not removed", world(primary("9"), secondary("9"), fixture.Pod(2).Secondary().OnNode(fixture.Off), three), nil},
		{"a member whose pod is being deleted is not removed", world(primary("9"), secondary("9"), fixture.Pod(2).Secondary().Deleted(), three), nil},
		{"a member whose pod does not exist is not removed", world(primary("9"), secondary("9"), three), nil},
		{"leave waits for a primary, which is chosen", world(fixture.Pod(0).Secondary().Sequence("9"), secondary("9"), fixture.Pod(2).Secondary().Sequence("9"), three), []string{"0: Promote, alone"}},
		{"leave waits for a primary, which is seeded", world(fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Idle().Sequence("9"), three), []string{"0: Seed, alone"}},
		{"no seed while a member that must leave may have newer data", world(fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Crashed(), three), nil},
		{"a primary that is spare is stopped at once", fixture.WorldOf(fixture.LeavingSet(3, 1), primary("9"), secondary("9"), fixture.Pod(2).Primary(), three, fixture.Replicas(2)), []string{"2: Stop, with 0 2"}},
		{"no promotion while leave runs", world(fixture.Pod(0).Crashed(), secondary("9"), unlabelled(fixture.Pod(2).WithRuns("leave", time.Second)), fixture.Memberships(joined, joined, leaving)), nil},
		{"a pod that its StatefulSet does not create is created, and leaves", fixture.WorldOf(fixture.LeavingSet(2, 1), primary("9"), secondary("9"), three), []string{"patch statefulset rss-db: Scale, from 2 to 3"}},
		{"a primary hands over its role and leaves afterwards", world(fixture.Pod(0).Secondary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"),
			fixture.Pod(2).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), three), []string{"2: Demote, with 2"}},
		{"a spare primary leaves before it is stopped", all(primary("9"), fixture.Pod(1).Primary(), fixture.Pod(2).Primary(), three), []string{"2: Leave, with 0 1 2"}},
		{"a spare primary in which leave failed is not stopped", all(primary("9"), fixture.Pod(1).Primary(), unlabelled(fixture.Pod(2).Primary()), failedToLeave(3, time.Second)), nil},
		{"no primary leaves while no member that stays is primary", all(fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Pending(), fixture.Pod(2).Primary(), three), []string{"0: Primary, with 2"}},
		{"a spare primary that has left is stopped", all(primary("9"), fixture.Pod(1).Primary(), unlabelled(fixture.Pod(2).Primary()), fixture.Memberships(joined, joined, left)), []string{"2: Stop, with 0 1 2"}},
		{"no leave when the set is stopped", fixture.WorldOf(fixture.LeavingSet(3, 1), primary("9"), secondary("9"), fixture.Pod(2).Secondary().Sequence("9"), three, fixture.Replicas(0)), []string{"2: Stop, with 0"}},
		{"no leave when the object is deleted", fixture.WorldOf(fixture.LeavingSet(3, 1), primary("9"), secondary("9"), fixture.Pod(2).Secondary().Sequence("9"), three, fixture.With(func(w *facts.World) {
			w.Set.DeletionTimestamp = new(fixture.MetaTime(time.Second))
		})), []string{"2: Stop, with 0"}},
		{"no leave without the command", fixture.WorldOf(fixture.SetOf(3, 1), primary("9"), secondary("9"), fixture.Pod(2).Secondary().Sequence("9"), fixture.Replicas(2)), []string{"2: Stop, with 0"}},
		{"members that run are recorded", fixture.WorldOf(fixture.LeavingSet(2, 1), primary("9"), secondary("9")), []string{"patch status of replicatedstatefulset db: Learned"}},
		{"a failed leave is not retried at once", world(primary("9"), secondary("9"), unlabelled(fixture.Pod(2).Secondary().Sequence("9")), failedToLeave(3, time.Second)), nil},
		{"a failed leave is retried", world(primary("9"), secondary("9"), unlabelled(fixture.Pod(2).Secondary().Sequence("9")), failedToLeave(1, time.Minute)), []string{"2: Leave, with 0"}},
	})
}

// failedToLeave records that leave has failed in the third member.
func failedToLeave(failures int32, age time.Duration) fixture.Thing {
	return fixture.With(func(w *facts.World) {
		fixture.Memberships(joined, joined, leaving).Into(w)
		last := &w.Set.Status.Memberships[2]
		last.Failures, last.ExitCode, last.LastFailure = failures, 3, new(fixture.MetaTime(age))
	})
}

// TestRS149WhyMembersStay tests the message of Progressing while a member is not removed.
func TestRS149WhyMembersStay(t *testing.T) {
	three := fixture.Memberships(joined, joined, joined)
	for want, last := range map[string][]fixture.Thing{
		"leave must run in rss-db-2, and its container does not run":           {fixture.Pod(2).Pending(), three},
		"leave must run in rss-db-2, and its Node is unreachable":              {fixture.Pod(2).Secondary().OnNode(fixture.Off), three},
		"leave must run in rss-db-2, whose pod does not exist yet":             {three},
		"leave of rss-db-2 failed with exit code 3; it will be retried. To re": {unlabelled(fixture.Pod(2).Secondary().Sequence("9")), failedToLeave(3, time.Second)},
	} {
		p := rules.Decide(fixture.WorldOf(fixture.LeavingSet(3, 1), append(last, fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Replicas(2))...))
		if !strings.HasPrefix(p.Waiting.Message, want) {
			t.Errorf("Progressing is %q, want %q", p.Waiting.Message, want)
		}
	}
}

// TestRS150CancelledScaleDown tests that a member that may have left, and is wanted again, is
// restarted.
func TestRS150CancelledScaleDown(t *testing.T) {
	world := func(things ...fixture.Thing) *facts.World {
		return fixture.WorldOf(fixture.LeavingSet(3, 1), things...)
	}
	primary, secondary := fixture.Pod(0).Primary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9")
	fixture.Check(t, []fixture.Row{
		{"a member that has left is stopped", world(primary, secondary, unlabelled(fixture.Pod(2).Secondary()), fixture.Memberships(joined, joined, left)), []string{"2: Stop, with 0"}},
		{"a member in which leave failed is stopped", world(primary, secondary, unlabelled(fixture.Pod(2).Secondary()), fixture.Memberships(joined, joined, leaving)), []string{"2: Stop, with 0"}},
		{"a stopped member that has left is started", world(primary, secondary, fixture.Pod(2).Idle().Sequence("9"), fixture.Memberships(joined, joined, left)), []string{"2: Secondary, with 0"}},
		{"a running member that has left is not promoted", world(fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("3"), unlabelled(fixture.Pod(2).Secondary().Sequence("9")), fixture.Memberships(joined, joined, left)), []string{"2: Stop, alone"}},
		{"the only primary is not stopped", world(fixture.Pod(0).Primary().Sequence("9"), secondary, fixture.Pod(2).Secondary().Sequence("9"), fixture.Memberships(leaving, joined, joined)), nil},
		{"no stop while leave runs", world(primary, secondary, fixture.Pod(2).Secondary().WithRuns("leave", time.Second), fixture.Memberships(joined, joined, leaving)), nil},
	})
}

// unlabelled removes the labels of a member's role, which a member that has left does not have.
func unlabelled(p *fixture.PodFixture) *fixture.PodFixture {
	p.Labels = map[string]string{v1alpha1.LabelActive: v1alpha1.False, v1alpha1.LabelRole: v1alpha1.RoleNone}
	return p
}

// TestRS149StartsAreRecorded tests that a start and a leave are recorded in the write that precedes
// the command.
func TestRS149StartsAreRecorded(t *testing.T) {
	for name, r := range map[string]struct {
		world *facts.World
		want  v1alpha1.MembershipState
	}{
		"a start": {fixture.WorldOf(fixture.LeavingSet(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Idle().Sequence("9"), fixture.Memberships(joined, joined)), joined},
		"a leave": {fixture.WorldOf(fixture.LeavingSet(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Idle(), fixture.Memberships(joined, joined, joined), fixture.Replicas(2)), leaving},
	} {
		p := rules.Decide(r.world)
		var found v1alpha1.MembershipState
		for _, step := range p.Steps {
			for _, chain := range step {
				for _, a := range chain {
					if set, ok := a.Object.(*v1alpha1.ReplicatedStatefulSet); ok {
						for _, m := range set.Status.Memberships {
							if strings.HasSuffix(m.Pod, "-2") {
								found = m.State
							}
						}
					}
				}
			}
		}
		if found != r.want {
			t.Errorf("%s: the record has %q, want %q: %v", name, found, r.want, p.Steps.Strings())
		}
	}
}
