package replicatedstatefulset

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestStartsThatStatusDenies tests that a start counts only when status confirms it, because exec
// may return 0 for a process that still runs.
func TestStartsThatStatusDenies(t *testing.T) {
	promoted := func() *podFixture { return pod(0).granted().ends("promote", podexec.Succeeded, 0) }
	follows := func() *podFixture { return pod(0).ends("secondary", podexec.Succeeded, 0) }
	check(t, []row{
		{"no promotion while an unconfirmed promotion reports secondary", worldOf(setOf(2, 1), promoted().statusSince(0, 500*time.Millisecond), pod(1).secondary().sequence("9"), lost(15*time.Second)), nil},
		{"no promotion while an unconfirmed promotion reports idle", worldOf(setOf(2, 1), promoted().statusSince(7, 500*time.Millisecond), pod(1).secondary().sequence("9"), lost(15*time.Second)), nil},
		{"no promotion while an unconfirmed promotion reports a failure", worldOf(setOf(2, 1), promoted().statusSince(1, 500*time.Millisecond), pod(1).secondary().sequence("9"), lost(15*time.Second)), nil},
		{"query status of an unconfirmed promotion each second", worldOf(setOf(2, 1), promoted().statusSince(0, 2*time.Second), pod(1).secondary().sequence("9"), lost(15*time.Second)), []string{"0 asked status"}},
		{"delete the pod of a promotion that status never confirmed", worldOf(setOf(2, 1), promoted().age(spec.SettleWithin+time.Second).statusSince(7, 500*time.Millisecond), pod(1).secondary().sequence("9"), lost(time.Minute)),
			[]string{"patch status of replicatedstatefulset db: Unseen, promote of 0 failed: it exited with 0, but status did not confirm it > delete pod 0: Unseen, promote exited with 0, but status did not confirm it within 30s"}},
		{"delete the pod without recording the same failure twice", worldOf(setOf(2, 1), promoted().failures(1, "promote", 0, true).age(spec.SettleWithin+time.Second).statusSince(7, 500*time.Millisecond), pod(1).secondary().sequence("9"), lost(time.Minute)),
			[]string{"delete pod 0: Unseen, promote exited with 0, but status did not confirm it within 30s"}},
		{"query status at the deadline before the pod is deleted", worldOf(setOf(2, 1), promoted().age(spec.SettleWithin+10*time.Second).statusSince(7, 12*time.Second), pod(1).secondary().sequence("9"), lost(time.Minute)),
			[]string{"0 asked status"}},
		{"keep the pod while status is unanswered within the deadline", worldOf(setOf(2, 1), promoted().took(19*time.Second, 5*time.Second), pod(1).secondary().sequence("9"), lost(time.Minute)),
			[]string{"0 asked status"}},
		{"keep the pod while status could not be sent", worldOf(setOf(2, 1), promoted().age(time.Minute).unsent("status", 3*time.Second, 6), pod(1).secondary().sequence("9"), lost(time.Minute)), nil},
		{"keep the pod after one missing status response", worldOf(setOf(2, 1), promoted().age(45*time.Second).silent(1), pod(1).secondary().sequence("9"), lost(time.Minute)), []string{"0 asked status"}},
		{"delete the pod after many missing status responses", worldOf(setOf(2, 1), promoted().took(19*time.Second, spec.SettleWithin+9*time.Second).silent(spec.UnresponsiveAfter), pod(1).secondary().sequence("9"), lost(time.Minute)),
			[]string{"patch status of replicatedstatefulset db: Unseen, promote of 0 failed: it exited with 0, but status did not confirm it > delete pod 0: Unseen, promote exited with 0, but status does not respond"}},
		{"keep the pod when status could not be sent after missing responses", worldOf(setOf(2, 1), promoted().age(45*time.Second).silent(spec.UnresponsiveAfter).unsent("status", 3*time.Second, 9), pod(1).secondary().sequence("9"), lost(time.Minute)), nil},
		{"delete the pod when the API server refuses status for two minutes", worldOf(setOf(2, 1), pod(0).granted().began("promote", 2*time.Minute).silent(spec.UnresponsiveAfter).refused("status"), pod(1).secondary().sequence("9"), lost(time.Minute)),
			[]string{"delete pod 0: Unseen, the outcome of promote is unknown, and status does not show it"}},
		{"keep the pod when the API server refuses status for a minute", worldOf(setOf(2, 1), pod(0).granted().began("promote", time.Minute).silent(spec.UnresponsiveAfter).refused("status"), pod(1).secondary().sequence("9"), lost(time.Minute)), nil},
		{"record no failure for the next pod when the template is outdated", worldOf(setOf(2, 1), promoted().outdated().age(spec.SettleWithin+time.Second).statusSince(7, 500*time.Millisecond), pod(1).secondary().sequence("9"), lost(time.Minute)),
			[]string{"delete pod 0: Unseen, promote exited with 0, but status did not confirm it within 30s"}},
		{"a new process uses the failure that the previous one recorded", worldOf(setOf(2, 1), pod(0).granted().began("promote", 15*time.Second).failures(1, "promote", 0, true).statusSince(7, 500*time.Millisecond), pod(1).secondary().sequence("9"), lost(time.Minute)),
			[]string{"delete pod 0: Unseen, promote exited with 0, but status did not confirm it within 30s"}},
		{"wait for a terminating pod with an unconfirmed promotion", worldOf(setOf(2, 1), promoted().age(40*time.Second).statusSince(7, 500*time.Millisecond).deleted(), pod(1).secondary().sequence("9"), lost(time.Minute)), nil},
		{"record a failed promotion when the container has ended", worldOf(setOf(2, 1), promoted().age(40*time.Second).deleted().ended(), pod(1).secondary().sequence("9"), lost(time.Minute)),
			[]string{"learned: promote of 0 failed: it exited with 0, but status did not confirm it; 0 is not primary: its container has ended"}},
		{"wait when the next container may have received the promotion", worldOf(setOf(2, 1), promoted().crashed(), pod(1).secondary().sequence("9"), lost(time.Minute)), nil},
		{"seed another member with the same sequence after a failure of the former pod", worldOf(setOf(2, 1), pod(0).idle().sequence("9").failures(1, "seed", 0, false).but(ofAFormerPod), pod(1).idle().sequence("9")), []string{"1: Seed, alone"}},
		{"update continues after a failed promotion of a running secondary", worldOf(setOf(3, 1), pod(0).failures(2, "promote", 0, false).but(ofAFormerPod).secondary().sequence("9").outdated(), pod(1).primary().sequence("9").outdated(), pod(2).secondary().sequence("9").outdated()),
			[]string{"2: Stop, with 1"}},
		{"stop a member that failed in the new pod", worldOf(setOf(2, 1), pod(0).born(5*time.Minute).failures(2, "seed", 0, false).but(ofAFormerPod).status(1), pod(1).primary()), []string{"0: Stop, with 1"}},
		{"retry the seed after the spec was edited", worldOf(setOf(2, 1), pod(0).idle().sequence("9").failures(1, "seed", 0, false).but(ofAFormerPod), pod(1).idle().sequence("9"), with(func(w *facts.World) { w.Set.Generation++ })), []string{"0: Seed, alone"}},
		{"no action when the member runs as primary after failures", worldOf(setOf(2, 1), pod(0).failures(3, "seed", 0, false).but(ofAFormerPod).primary(), pod(1).secondary()), nil},
		{"no retry of an unconfirmed start as secondary", worldOf(setOf(2, 1), follows().statusSince(7, 500*time.Millisecond).sequence("9"), pod(1).primary()), nil},
		{"record a failed start as secondary that status never confirmed", worldOf(setOf(2, 1), follows().age(spec.SettleWithin+time.Second).statusSince(7, 500*time.Millisecond), pod(1).primary()),
			[]string{"learned: secondary of 0 failed: it exited with 0, but status did not confirm it"}},
		{"stop a secondary after its failed start before a retry", worldOf(setOf(2, 1), pod(0).failures(1, "secondary", 0, true).status(7), pod(1).primary()), []string{"0: Stop, with 1"}},
		{"no stop of a secondary that runs after failures", worldOf(setOf(2, 1), pod(0).failures(2, "secondary", 0, true).secondary(), pod(1).primary()), nil},
	})
}

// ofAFormerPod makes the failure that of another pod of the same name.
func ofAFormerPod(w *facts.World) { w.Set.Status.Failures[0].UID = "gone" }

// isSent waits until a command such as "rss-db-1 promote" is sent.
func isSent(what string) func(*stage) {
	return until(func(s *stage) bool { return s.db.command(what) != nil })
}

func (t *fakeDB) command(what string) *fakeCommand {
	for _, uid := range sortedKeys(t.running) {
		if c := t.running[uid]; c.Pod.Name+" "+c.Name == what {
			return c
		}
	}
	return nil
}

// saysZero ends the command with 0, and delays its effect until effect is called.
func saysZero(what string) func(*stage) {
	return func(s *stage) { s.db.end(s.db.command(what), "returns 0") }
}

// effect applies all delayed effects of commands.
func effect(s *stage) {
	for _, late := range s.db.late {
		late()
		s.check()
	}
	s.db.late = nil
}

func primaries(n int) func(*stage) {
	return until(func(s *stage) bool { return len(s.db.acting()) >= n })
}

// TestStartsThatTakeEffectWhenTheyHaveSaid0 tests late effects of starts. The invariant of the fake
// database fails it if two primaries act, or an acknowledged entry is lost.
func TestStartsThatTakeEffectWhenTheyHaveSaid0(t *testing.T) {
	for name, scenario := range map[string]struct {
		primaries int
		steps     []func(*stage)
	}{
		"the effect of a promotion is delayed":                         {1, []func(*stage){write, crash(0), isSent("rss-db-1 promote"), saysZero("rss-db-1 promote"), primaries(1), effect}},
		"the effect of a promotion is delayed by a quarter of an hour": {1, []func(*stage){write, crash(0), isSent("rss-db-1 promote"), saysZero("rss-db-1 promote"), quarter, effect}},
		"the next container receives the delayed promotion": {1, []func(*stage){write, crash(0), isSent("rss-db-1 promote"), func(s *stage) {
			s.db.kill(s.db.of(s.pod(1))) // and its kubelet reports it later
			s.db.start(s.pod(1))
		}, saysZero("rss-db-1 promote"), primaries(1), effect}},
		"the effect of a promotion is delayed during a scale-down to 0": {1, []func(*stage){write, crash(0), isSent("rss-db-1 promote"), saysZero("rss-db-1 promote"), scaleTo(0), denial, scaleTo(3), primaries(1), effect}},
		"the effect of a seed is delayed when all members are primary":  {3, []func(*stage){isSent("rss-db-0 seed"), saysZero("rss-db-0 seed"), primaries(2), write, write, effect}},
	} {
		t.Run(name, func(t *testing.T) {
			set := setOf(3, 1)
			if scenario.primaries == 3 {
				set = setOf(3, 3, "secondary", "promote", "demote")
			}
			s := newStage(t, set)
			if scenario.primaries == 1 {
				s.settle(20 * time.Second)
			}
			for _, step := range scenario.steps {
				step(s)
			}
			s.settle(time.Minute)
		})
	}
}

// denial runs only operator passes until a start counts as denied.
func denial(s *stage) {
	for end := s.Now.Add(spec.SettleWithin + 2*time.Second); s.Now.Before(end); s.Now = s.Now.Add(100 * time.Millisecond) {
		s.look()
		s.pass()
		for _, m := range s.db.moves() {
			m()
		}
	}
}

// TestAStartThatDoesNothing tests RS-14: a member that cannot come up does not block another one
// with the same data.
func TestAStartThatDoesNothing(t *testing.T) {
	s := newStage(t, setOf(3, 1))
	for tries := 0; len(s.db.acting()) == 0; {
		s.look()
		s.pass()
		if c := s.db.command("rss-db-0 seed"); c != nil {
			s.db.end(c, "returns 0")
			s.db.late = nil
			if tries++; tries > 2 {
				t.Fatal("the seed is retried more than twice")
			}
		}
		for _, m := range append(s.machines(), s.db.moves()...) {
			m()
		}
		s.Now = s.Now.Add(100 * time.Millisecond)
	}
	if by := s.db.acting()[0].pod; by == "rss-db-0" {
		t.Errorf("%s is primary, although its seed did nothing", by)
	}
}

func TestAnOutageRightAfterAPromotion(t *testing.T) {
	for _, answer := range []string{"", "answer lost"} {
		s := newStage(t, setOf(3, 1))
		s.settle(20 * time.Second)
		for _, step := range []func(*stage){write, crash(0), isSent("rss-db-1 promote")} {
			step(s)
		}
		s.db.end(s.db.command("rss-db-1 promote"), answer)
		promoted := s.db.acting()[0]
		for range 120 {
			s.inVain()
			s.Now = s.Now.Add(500 * time.Millisecond)
		}
		s.settle(time.Minute)
		if all := s.db.acting(); len(all) != 1 || all[0] != promoted {
			s.Fatal(t, "another member is primary after the outage")
		}
	}
}
