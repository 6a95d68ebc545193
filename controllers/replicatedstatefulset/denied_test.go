package replicatedstatefulset

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// isSent waits until a command such as "rss-db-1 promote" is sent.
func isSent(what string) func(*stage) {
	return until(func(s *stage) bool { return s.command(what) != nil })
}

func (s *stage) command(what string) *simulate.Command {
	for _, uid := range sortedKeys(s.db.Running) {
		if c := s.db.Running[uid]; c.Pod.Name+" "+c.Name == what {
			return c
		}
	}
	return nil
}

// saysZero ends the command with 0, and delays its effect until effect is called.
func saysZero(what string) func(*stage) {
	return func(s *stage) { s.db.End(s.command(what), simulate.Premature) }
}

// effect applies all delayed effects of commands.
func effect(s *stage) {
	for _, late := range s.db.Late {
		late()
		s.check()
	}
	s.db.Late = nil
}

func primaries(n int) func(*stage) {
	return until(func(s *stage) bool { return len(s.db.Acting()) >= n })
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
			s.db.Kill(s.db.Container(s.pod(1))) // and its kubelet reports it later
			s.db.Begin(s.pod(1))
		}, saysZero("rss-db-1 promote"), primaries(1), effect}},
		"the effect of a promotion is delayed during a scale-down to 0": {1, []func(*stage){write, crash(0), isSent("rss-db-1 promote"), saysZero("rss-db-1 promote"), scaleTo(0), denial, scaleTo(3), primaries(1), effect}},
		"the effect of a seed is delayed when all members are primary":  {3, []func(*stage){isSent("rss-db-0 seed"), saysZero("rss-db-0 seed"), primaries(2), write, write, effect}},
	} {
		t.Run(name, func(t *testing.T) {
			set := fixture.SetOf(3, 1)
			if scenario.primaries == 3 {
				set = fixture.SetOf(3, 3, "secondary", "promote", "demote")
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
		s.Look()
		s.pass()
		for _, m := range s.db.Moves() {
			m()
		}
	}
}

// TestAStartThatDoesNothing tests RS-14: a member that cannot come up does not block another one
// with the same data.
func TestAStartThatDoesNothing(t *testing.T) {
	s := newStage(t, fixture.SetOf(3, 1))
	for tries := 0; len(s.db.Acting()) == 0; {
		s.Look()
		s.pass()
		if c := s.command("rss-db-0 seed"); c != nil {
			s.db.End(c, simulate.Premature)
			s.db.Late = nil
			if tries++; tries > 2 {
				t.Fatal("the seed is retried more than twice")
			}
		}
		for _, m := range append(s.Machines(), s.db.Moves()...) {
			m()
		}
		s.Now = s.Now.Add(100 * time.Millisecond)
	}
	if by := s.db.Acting()[0].Pod; by == "rss-db-0" {
		t.Errorf("%s is primary, although its seed did nothing", by)
	}
}

func TestAnOutageRightAfterAPromotion(t *testing.T) {
	for _, answer := range []simulate.End{simulate.Ends, simulate.Unanswered} {
		s := newStage(t, fixture.SetOf(3, 1))
		s.settle(20 * time.Second)
		for _, step := range []func(*stage){write, crash(0), isSent("rss-db-1 promote")} {
			step(s)
		}
		s.db.End(s.command("rss-db-1 promote"), answer)
		promoted := s.db.Acting()[0]
		for range 120 {
			s.inVain()
			s.Now = s.Now.Add(500 * time.Millisecond)
		}
		s.settle(time.Minute)
		if all := s.db.Acting(); len(all) != 1 || all[0] != promoted {
			s.Fatal(t, "another member is primary after the outage")
		}
	}
}
