package record_test

import (
	"slices"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestStartsThatStatusDenies tests that a start counts only when status confirms it, because exec
// may return 0 for a process that still runs.
func TestStartsThatStatusDenies(t *testing.T) {
	promoted := func() *fixture.PodFixture { return fixture.Pod(0).WithGranted().Ends("promote", podexec.Succeeded, 0) }
	follows := func() *fixture.PodFixture { return fixture.Pod(0).Ends("secondary", podexec.Succeeded, 0) }
	fixture.Check(t, []fixture.Row{
		{"no promotion while an unconfirmed promotion reports secondary", fixture.WorldOf(fixture.SetOf(2, 1), promoted().StatusSince(0, 500*time.Millisecond), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(15*time.Second)), nil},
		{"no promotion while an unconfirmed promotion reports idle", fixture.WorldOf(fixture.SetOf(2, 1), promoted().StatusSince(7, 500*time.Millisecond), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(15*time.Second)), nil},
		{"no promotion while an unconfirmed promotion reports a failure", fixture.WorldOf(fixture.SetOf(2, 1), promoted().StatusSince(1, 500*time.Millisecond), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(15*time.Second)), nil},
		{"query status of an unconfirmed promotion each second", fixture.WorldOf(fixture.SetOf(2, 1), promoted().StatusSince(0, 2*time.Second), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(15*time.Second)), []string{"0 asked status"}},
		{"delete the pod of a promotion that status never confirmed", fixture.WorldOf(fixture.SetOf(2, 1), promoted().Age(spec.SettleWithin+time.Second).StatusSince(7, 500*time.Millisecond), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)),
			[]string{"patch status of replicatedstatefulset db: Unseen, promote of 0 failed: it exited with 0, but status did not confirm it > delete pod 0: Unseen, promote exited with 0, but status did not confirm it within 30s"}},
		{"delete the pod without recording the same failure twice", fixture.WorldOf(fixture.SetOf(2, 1), promoted().Failures(1, "promote", 0, true).Age(spec.SettleWithin+time.Second).StatusSince(7, 500*time.Millisecond), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)),
			[]string{"delete pod 0: Unseen, promote exited with 0, but status did not confirm it within 30s"}},
		{"query status at the deadline before the pod is deleted", fixture.WorldOf(fixture.SetOf(2, 1), promoted().Age(spec.SettleWithin+10*time.Second).StatusSince(7, 12*time.Second), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)),
			[]string{"0 asked status"}},
		{"keep the pod while status is unanswered within the deadline", fixture.WorldOf(fixture.SetOf(2, 1), promoted().Took(19*time.Second, 5*time.Second), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)),
			[]string{"0 asked status"}},
		{"keep the pod while status could not be sent", fixture.WorldOf(fixture.SetOf(2, 1), promoted().Age(time.Minute).Unsent("status", 3*time.Second, 6), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)), nil},
		{"keep the pod after one missing status response", fixture.WorldOf(fixture.SetOf(2, 1), promoted().Age(45*time.Second).WithSilent(1), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)), []string{"0 asked status"}},
		{"delete the pod after many missing status responses", fixture.WorldOf(fixture.SetOf(2, 1), promoted().Took(19*time.Second, spec.SettleWithin+9*time.Second).WithSilent(spec.UnresponsiveAfter), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)),
			[]string{"patch status of replicatedstatefulset db: Unseen, promote of 0 failed: it exited with 0, but status did not confirm it > delete pod 0: Unseen, promote exited with 0, but status does not respond"}},
		{"keep the pod when status could not be sent after missing responses", fixture.WorldOf(fixture.SetOf(2, 1), promoted().Age(45*time.Second).WithSilent(spec.UnresponsiveAfter).Unsent("status", 3*time.Second, 9), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)), nil},
		{"delete the pod when the API server refuses status for two minutes", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", 2*time.Minute).WithSilent(spec.UnresponsiveAfter).Refused("status"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)),
			[]string{"delete pod 0: Unseen, the outcome of promote is unknown, and status does not show it"}},
		{"keep the pod when the API server refuses status for a minute", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", time.Minute).WithSilent(spec.UnresponsiveAfter).Refused("status"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)), nil},
		{"record no failure for the next pod when the template is outdated", fixture.WorldOf(fixture.SetOf(2, 1), promoted().Outdated().Age(spec.SettleWithin+time.Second).StatusSince(7, 500*time.Millisecond), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)),
			[]string{"delete pod 0: Unseen, promote exited with 0, but status did not confirm it within 30s"}},
		{"a new process uses the failure that the previous one recorded", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", 15*time.Second).Failures(1, "promote", 0, true).StatusSince(7, 500*time.Millisecond), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)),
			[]string{"delete pod 0: Unseen, promote exited with 0, but status did not confirm it within 30s"}},
		{"wait for a terminating pod with an unconfirmed promotion", fixture.WorldOf(fixture.SetOf(2, 1), promoted().Age(40*time.Second).StatusSince(7, 500*time.Millisecond).Deleted(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)), nil},
		{"record a failed promotion when the container has ended", fixture.WorldOf(fixture.SetOf(2, 1), promoted().Age(40*time.Second).Deleted().Ended(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)),
			[]string{"learned: promote of 0 failed: it exited with 0, but status did not confirm it; 0 is not primary: its container has ended"}},
		{"wait when the next container may have received the promotion", fixture.WorldOf(fixture.SetOf(2, 1), promoted().Crashed(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Lost(time.Minute)), nil},
		{"seed another member with the same sequence after a failure of the former pod", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("9").Failures(1, "seed", 0, false).But(ofAFormerPod), fixture.Pod(1).Idle().Sequence("9")), []string{"1: Seed, alone"}},
		{"update continues after a failed promotion of a running secondary", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Failures(2, "promote", 0, false).But(ofAFormerPod).Secondary().Sequence("9").Outdated(), fixture.Pod(1).Primary().Sequence("9").Outdated(), fixture.Pod(2).Secondary().Sequence("9").Outdated()),
			[]string{"2: Stop, with 1"}},
		{"stop a member that failed in the new pod", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Born(5*time.Minute).Failures(2, "seed", 0, false).But(ofAFormerPod).Status(1), fixture.Pod(1).Primary()), []string{"0: Stop, with 1"}},
		{"retry the seed after the spec was edited", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("9").Failures(1, "seed", 0, false).But(ofAFormerPod), fixture.Pod(1).Idle().Sequence("9"), fixture.With(func(w *facts.World) { w.Set.Generation++ })), []string{"0: Seed, alone"}},
		{"no action when the member runs as primary after failures", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Failures(3, "seed", 0, false).But(ofAFormerPod).Primary(), fixture.Pod(1).Secondary()), nil},
		{"no retry of an unconfirmed start as secondary", fixture.WorldOf(fixture.SetOf(2, 1), follows().StatusSince(7, 500*time.Millisecond).Sequence("9"), fixture.Pod(1).Primary()), nil},
		{"record a failed start as secondary that status never confirmed", fixture.WorldOf(fixture.SetOf(2, 1), follows().Age(spec.SettleWithin+time.Second).StatusSince(7, 500*time.Millisecond), fixture.Pod(1).Primary()),
			[]string{"learned: secondary of 0 failed: it exited with 0, but status did not confirm it"}},
		{"stop a secondary after its failed start before a retry", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Failures(1, "secondary", 0, true).Status(7), fixture.Pod(1).Primary()), []string{"0: Stop, with 1"}},
		{"no stop of a secondary that runs after failures", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Failures(2, "secondary", 0, true).Secondary(), fixture.Pod(1).Primary()), nil},
	})
}

// ofAFormerPod makes the failure that of another pod of the same name.
func ofAFormerPod(w *facts.World) { w.Set.Status.Failures[0].UID = "gone" }

// TestV12StopsThatStatusDenies tests that a stop or demote counts only when status confirms it, as
// a start does. Otherwise one that ends with 0 and does nothing would be sent forever.
func TestV12StopsThatStatusDenies(t *testing.T) {
	stopped := func(code int, age, asked time.Duration) *fixture.PodFixture {
		return fixture.Pod(1).WithGranted().Ends("stop", podexec.Succeeded, 0).Age(age).StatusSince(code, asked)
	}
	demoted := func(code int, age, asked time.Duration) *fixture.PodFixture {
		return fixture.Pod(1).WithGranted().Ends("demote", podexec.Succeeded, 0).Age(age).StatusSince(code, asked)
	}
	other := func() *fixture.PodFixture { return fixture.Pod(0).Primary().Sequence("9") }
	fixture.Check(t, []fixture.Row{
		{"V12 no retry of a stop while the program may still stop", fixture.WorldOf(fixture.SetOf(2, 1), other(), stopped(8, 5*time.Second, 500*time.Millisecond)), nil},
		{"V12 query status each second after a stop", fixture.WorldOf(fixture.SetOf(2, 1), other(), stopped(8, 5*time.Second, 2*time.Second)), []string{"1 asked status"}},
		{"V12 record a failed stop that status never confirmed", fixture.WorldOf(fixture.SetOf(2, 1), other(), stopped(8, spec.SettleWithin+time.Second, 500*time.Millisecond)),
			[]string{"learned: stop of 1 failed: it exited with 0, but status did not confirm it"}},
		{"V12 record a failed stop when status reports a failure", fixture.WorldOf(fixture.SetOf(2, 1), other(), stopped(1, spec.SettleWithin+time.Second, 500*time.Millisecond)),
			[]string{"learned: stop of 1 failed: it exited with 0, but status did not confirm it"}},
		{"V12 query status again before a stop is recorded as failed", fixture.WorldOf(fixture.SetOf(2, 1), other(), stopped(8, spec.SettleWithin+5*time.Second, 6*time.Second)), []string{"1 asked status"}},
		{"V12 record the success of a stop that status confirms", fixture.WorldOf(fixture.SetOf(2, 1), other(), stopped(7, 5*time.Second, 500*time.Millisecond)),
			[]string{"learned: stop of 1 succeeded; 1 is not primary: status reports that it has stopped"}},
		{"V12 record the success of a stop whose container ended", fixture.WorldOf(fixture.SetOf(2, 1), other(), fixture.Pod(1).WithGranted().Ends("stop", podexec.Succeeded, 0).Crashed()),
			[]string{"learned: stop of 1 succeeded; 1 is not primary: its container has ended"}},
		{"V12 record a failed demote that status never confirmed", fixture.WorldOf(fixture.SetOf(2, 1), other(), demoted(8, spec.SettleWithin+time.Second, 500*time.Millisecond)),
			[]string{"learned: demote of 1 failed: it exited with 0, but status did not confirm it"}},
		{"V12 stop the primary after a failed demote", fixture.WorldOf(fixture.SetOf(2, 1), other(), fixture.Pod(1).Failures(1, "demote", 0, false).Primary()), []string{"1: Stop, with 0 1"}},
		{"V12 no second stop within the backoff", fixture.WorldOf(fixture.SetOf(2, 1), other(), fixture.Pod(1).Failures(1, "stop", 0, false).Lately(500*time.Millisecond).Primary()), nil},
		{"V12 delete the pod after two failed stops", fixture.WorldOf(fixture.SetOf(2, 1), other(), fixture.Pod(1).Failures(2, "stop", 0, false).Primary()),
			[]string{"delete pod 1: Failed, 2 starts or stops failed"}},
		{"V12 delete the pod of a failed member after a failed stop", fixture.WorldOf(fixture.SetOf(2, 1), other(), fixture.Pod(1).Status(1).Failures(1, "stop", 0, false)),
			[]string{"delete pod 1: Failed, stop failed: it exited with 0, but status did not confirm it"}},
	})
}

// TestV12LabelsDoNotChangeToAndFro tests V12: the labels of a member that was ordered to stop, and
// does not, stay unchanged.
func TestV12LabelsDoNotChangeToAndFro(t *testing.T) {
	none := map[string]string{v1alpha1.LabelRole: v1alpha1.RoleNone, v1alpha1.LabelActive: v1alpha1.False}
	for _, r := range []struct {
		name  string
		world func(*fixture.PodFixture) *facts.World
		want  []string
	}{
		{"labels stay while the member is a surplus primary", func(f *fixture.PodFixture) *facts.World {
			return fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), f)
		}, nil},
		{"labels stay while the member should be removed", func(f *fixture.PodFixture) *facts.World {
			return fixture.WorldOf(fixture.SetOf(2, 2, "secondary"), fixture.Pod(0).Primary(), f, fixture.Replicas(1))
		}, nil},
		{"labels change when the member may stay primary", func(f *fixture.PodFixture) *facts.World {
			return fixture.WorldOf(fixture.SetOf(2, 2), fixture.Pod(0).Primary(), f)
		}, []string{"1 primary"}},
	} {
		t.Run("V12 "+r.name, func(t *testing.T) {
			f := fixture.Pod(1).Failures(1, "stop", 0, false).Lately(500 * time.Millisecond).Primary()
			f.Labels = none
			p := rules.Decide(r.world(f))
			if got := fixture.LabelsOf(&p); !slices.Equal(got, r.want) {
				t.Errorf("the labels are %q, want %q", got, r.want)
			}
		})
	}
}
