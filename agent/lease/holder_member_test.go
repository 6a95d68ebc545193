package lease

import (
	"testing"
	"time"
)

func newMemberScript(t *testing.T) *script { return &script{t, NewMember(self, duration)} }

// at returns a Lease with an epoch.
func at(version int, holder string, epoch int64) Lease {
	l := lease(version, holder)
	l.Epoch = epoch
	return l
}

// arms executes the step that arms the member.
func (c *script) arms(at time.Duration) {
	c.t.Helper()
	c.next(at, Arm)
	c.h.Armed()
}

// newArmed returns the Holder of a member that was armed at 0 with version 2 and epoch 4.
func newArmed(t *testing.T) *script {
	t.Helper()
	c := newMemberScript(t)
	c.reads(0, lease(1, self))
	c.sent(0, Renew)
	c.succeeds(0, lease(2, self))
	c.arms(0)
	return c
}

// fences compares the reason for which the container ends.
func (c *script) fences(at time.Duration, reason string) {
	c.t.Helper()
	if step := c.next(at, Fence); step.Reason != reason {
		c.t.Errorf("the reason is %q, want %q", step.Reason, reason)
	}
}

func TestAMemberIsArmedAfterARenewal(t *testing.T) {
	c := newMemberScript(t)
	c.reads(0, lease(1, ""))
	c.waits(0, 10*s)
	c.changed(1*s, "2", self)
	c.reads(1*s, lease(2, self))
	c.sent(1*s, Renew)
	c.next(1*s, Wait)
	c.fails(2 * s)
	c.waits(2*s, 2*s+minWaitPause)
	c.sent(3*s, Renew)
	c.succeeds(4*s, lease(3, self))
	c.arms(4 * s)
	if !c.h.IsRunning() || c.h.Deadline() != t0+23*s {
		t.Errorf("the deadline is %s", c.h.Deadline()-t0)
	}
	c.waits(4*s, 13*s)
	c.next(13*s, Renew)
}

func TestALateResponseDoesNotArmAMember(t *testing.T) {
	for after, want := range map[time.Duration]Operation{20*s - 1: Arm, 20 * s: Fence} {
		c := newMemberScript(t)
		c.reads(0, lease(1, self))
		c.sent(0, Renew)
		c.succeeds(after, lease(2, self))
		c.next(after, want)
	}
}

// A renewal proves the epoch that it has, and no later one.
func TestARenewalOfAnotherEpochDoesNotArmAMember(t *testing.T) {
	c := newMemberScript(t)
	c.reads(0, lease(1, self))
	c.sent(0, Renew)
	c.succeeds(0, lease(2, self))
	c.h.Sent(Get, t0)
	c.succeeds(1*s, at(3, self, 5))
	c.sent(1*s, Renew)
	c.succeeds(1*s, at(4, self, 5))
	c.arms(1 * s)
}

// refuses is an answer of the API server that the renewal is not executed.
func (c *script) refuses(at time.Duration, outcome Outcome) {
	c.h.Refused()
	c.h.Answered(outcome, Lease{}, t0+at)
}

// until compares the deadline of a waiting member. After never, there is none.
func (c *script) until(at time.Duration) {
	c.t.Helper()
	want := t0 + at
	if at == never {
		want = 0
	}
	if got := c.h.Uncertain(); got != want {
		c.t.Fatalf("the deadline is %s, want %s", got, want)
	}
}

// newLost returns the Holder of a member that has sent its first renewal at 0, and has no response.
func newLost(t *testing.T) *script {
	t.Helper()
	c := newMemberScript(t)
	c.reads(0, lease(1, self))
	c.until(never)
	c.sent(0, Renew)
	c.until(20 * s)
	c.fails(6 * s)
	c.until(20 * s)
	return c
}

// TestTheResponseToTheFirstRenewalIsLost tests that the operator may count the renewal of a waiting member.
func TestTheResponseToTheFirstRenewalIsLost(t *testing.T) {
	t.Run("silence", func(t *testing.T) {
		c := newLost(t)
		c.sent(7*s, Renew)
		c.until(20 * s)
		c.waits(8*s, 20*s)
		c.fails(13 * s)
		if step := c.next(18*s, Get); step.Timeout != 2*s {
			t.Errorf("the timeout is %s, want the time until the deadline", step.Timeout)
		}
		c.sent(18*s, Get)
		c.next(20*s-1, Wait)
		c.fences(20*s, reasonExpired)
		c.succeeds(21*s, lease(3, ""))
		c.fences(21*s, reasonExpired)
	})
	t.Run("a response after the deadline", func(t *testing.T) {
		c := newLost(t)
		c.sent(15*s, Get)
		c.succeeds(20*s, lease(3, ""))
		c.fences(20*s, reasonExpired)
	})
	t.Run("a conflict, and a read that names the pod", func(t *testing.T) {
		c := newLost(t)
		c.sent(7*s, Renew)
		c.refuses(8*s, Outdated)
		c.until(20 * s)
		c.reads(8*s, lease(2, self))
		c.until(20 * s)
		c.sent(9*s, Renew)
		c.until(20 * s)
		c.succeeds(9*s, lease(3, self))
		c.until(29 * s)
		c.arms(9 * s)
		c.until(never)
		if c.h.Deadline() != t0+29*s {
			t.Errorf("the deadline is %s", c.h.Deadline()-t0)
		}
		c.waits(9*s, 19*s)
	})
	t.Run("a read of another version that names the pod", func(t *testing.T) {
		c := newLost(t)
		c.changed(7*s, "3", self)
		c.reads(7*s, at(3, self, 5))
		c.sent(7*s, Renew)
		c.refuses(7*s, Outdated)
		c.until(20 * s)
	})
}

// TestAReadAfterALostResponse tests which reads end the deadline that a lost response has left.
func TestAReadAfterALostResponse(t *testing.T) {
	for name, l := range map[string]Lease{"released": lease(3, ""), "another holder": at(3, other, 5)} {
		t.Run(name, func(t *testing.T) {
			c := newLost(t)
			c.sent(7*s, Renew)
			c.refuses(7*s, Outdated)
			c.reads(7*s, l)
			c.until(never)
			c.waits(7*s, 17*s)
			c.next(100*s, Get)
		})
	}
	t.Run("a lower epoch proves nothing", func(t *testing.T) {
		c := newLost(t)
		c.changed(7*s, "3", "")
		c.reads(7*s, at(3, "", 3))
		c.until(20 * s)
	})
	t.Run("a lower epoch than the highest of the renewals", func(t *testing.T) {
		c := newLost(t)
		c.changed(7*s, "3", self)
		c.reads(7*s, at(3, self, 3))
		c.sent(7*s, Renew)
		c.fails(8 * s)
		c.changed(9*s, "4", "")
		c.reads(9*s, at(4, "", 3))
		c.until(20 * s)
	})
	t.Run("the next naming has its own deadline", func(t *testing.T) {
		c := newLost(t)
		c.changed(7*s, "3", "")
		c.reads(7*s, lease(3, ""))
		c.changed(8*s, "4", self)
		c.reads(8*s, at(4, self, 2))
		c.sent(9*s, Renew)
		c.until(29 * s)
		c.refuses(9*s, Outdated)
		c.until(never)
		c.reads(9*s, at(5, self, 2))
		c.sent(10*s, Renew)
		c.fails(10 * s)
		c.changed(11*s, "6", "")
		c.reads(11*s, at(6, "", 2))
		c.until(never)
	})
	t.Run("a StatefulSingleton has none", func(t *testing.T) {
		c := newScript(t)
		c.reads(0, lease(1, self))
		c.sent(0, Renew)
		c.until(never)
		c.fails(6 * s)
		c.next(100*s, Get)
	})
}

// TestARefusedFirstRenewal tests that a renewal that is certainly not committed sets no deadline.
func TestARefusedFirstRenewal(t *testing.T) {
	for outcome, want := range map[Outcome]Operation{Outdated: Get, Failed: Renew, Missing: Get} {
		c := newMemberScript(t)
		c.reads(0, lease(1, self))
		c.sent(0, Renew)
		c.refuses(1*s, outcome)
		c.until(never)
		c.next(2*s, want)
		c.next(100*s, Get)
	}
	t.Run("after a renewal of another epoch", func(t *testing.T) {
		c := newMemberScript(t)
		c.reads(0, lease(1, self))
		c.sent(0, Renew)
		c.succeeds(0, lease(2, self))
		c.h.Sent(Get, t0)
		c.succeeds(1*s, at(3, self, 5))
		c.sent(2*s, Renew)
		c.refuses(2*s, Outdated)
		c.until(20 * s)
	})
	t.Run("a refused read", func(t *testing.T) {
		c := newLost(t)
		c.sent(12*s, Get)
		c.refuses(12*s, Failed)
		c.until(20 * s)
	})
	t.Run("an armed member", func(t *testing.T) {
		c := newArmed(t)
		c.sent(10*s, Renew)
		c.until(never)
		c.refuses(10*s, Failed)
		c.until(never)
		c.fences(20*s, reasonExpired)
	})
}

func TestACommandAsksForARead(t *testing.T) {
	t.Run("waiting", func(t *testing.T) {
		c := newMemberScript(t)
		c.reads(0, lease(1, ""))
		c.waits(0, 10*s)
		c.h.Asked(t0 + 1*s)
		c.reads(1*s, lease(1, ""))
		c.waits(1*s, 11*s)
	})
	t.Run("armed", func(t *testing.T) {
		c := newArmed(t)
		c.h.Asked(t0 + 1*s)
		c.reads(1*s, lease(2, self))
		c.waits(1*s, 10*s)
	})
	t.Run("not again and again", func(t *testing.T) {
		c := newMemberScript(t)
		c.reads(0, lease(1, ""))
		c.h.Asked(t0 + 1*s)
		c.reads(1*s, lease(1, ""))
		c.h.Asked(t0 + 1*s + 1)
		c.h.Asked(t0 + 1*s + 2)
		c.waits(1*s+2, 1*s+askedPause)
		c.changed(1*s+3, "2", other)
		c.reads(1*s+askedPause, lease(2, other))
		c.waits(2*s, 11*s+askedPause)
	})
	t.Run("during a read, which can be too early", func(t *testing.T) {
		c := newMemberScript(t)
		c.sent(0, Get)
		c.h.Asked(t0 + 1*s)
		c.succeeds(2*s, lease(1, ""))
		c.reads(2*s, lease(1, ""))
		c.waits(2*s, 12*s)
	})
	t.Run("in the pause after a failure", func(t *testing.T) {
		c := newArmed(t)
		c.sent(10*s, Renew)
		c.fails(10 * s)
		c.waits(10*s, 11*s)
		c.h.Asked(t0 + 10*s + 1)
		c.next(10*s+1, Renew)
	})
}

func TestAMemberRenewsUntilTheDeadline(t *testing.T) {
	c := newArmed(t)
	c.sent(10*s, Renew)
	c.succeeds(15*s, lease(3, self))
	c.waits(15*s, 20*s) // the next renewal
	c.sent(20*s, Renew)
	c.fails(26 * s)
	c.waits(26*s, 27*s)
	c.sent(27*s, Renew)
	c.next(30*s-1, Wait)
	c.fences(30*s, reasonExpired)
}

// Neither a renewal nor a release saves the container after the deadline.
func TestAResponseAfterTheDeadlineEndsAMember(t *testing.T) {
	for name, l := range map[string]Lease{
		"renewed": lease(3, self), "released": lease(3, ""), "a higher epoch": at(3, self, 5), "another holder": at(3, other, 5),
	} {
		for _, operation := range []Operation{Get, Renew} {
			t.Run(name, func(t *testing.T) {
				c := newArmed(t)
				c.h.Sent(operation, t0+19*s)
				c.succeeds(20*s, l)
				c.fences(20*s, reasonExpired)
			})
		}
	}
}

func TestAReleasedMemberIsDisarmed(t *testing.T) {
	for name, l := range map[string]Lease{
		"no holder": lease(3, ""), "another holder": lease(3, other), "a higher epoch": at(3, "", 5), "no holder, and a successor": named(3),
	} {
		t.Run(name, func(t *testing.T) {
			if l.Holder == self {
				l.Holder = ""
			}
			c := newArmed(t)
			c.changed(1*s, "3", l.Holder)
			c.reads(1*s, l)
			c.next(1*s, Disarm)
			c.h.Disarmed(t0 + 1*s)
			if !c.h.IsWaiting() {
				t.Error("the member does not wait")
			}
			c.waits(1*s, 11*s)
			c.next(100*s, Get) // the deadline has no effect any more
		})
	}
}

func TestAConflictIsReadByAMember(t *testing.T) {
	c := newArmed(t)
	c.sent(10*s, Renew)
	c.outdated(11 * s)
	c.reads(11*s, lease(3, ""))
	c.next(11*s, Disarm)
}

// A member that was disarmed needs another renewal.
func TestADisarmedMemberIsArmedAgain(t *testing.T) {
	c := newArmed(t)
	c.changed(1*s, "3", "")
	c.reads(1*s, lease(3, ""))
	c.next(1*s, Disarm)
	c.h.Disarmed(t0 + 1*s)
	c.changed(2*s, "4", self)
	c.reads(2*s, at(4, self, 5))
	c.sent(2*s, Renew)
	c.succeeds(2*s, at(5, self, 5))
	c.arms(2 * s)
	c.waits(2*s, 12*s)
}

// TestAHigherEpoch tests that the former epoch is hidden at once, and that the deadline remains until a renewal.
func TestAHigherEpoch(t *testing.T) {
	raised := func(t *testing.T) *script {
		t.Helper()
		c := newArmed(t)
		c.changed(1*s, "3", self)
		c.reads(1*s, at(3, self, 6))
		c.next(1*s, Hide)
		c.h.Hidden()
		return c
	}
	t.Run("is shown after a renewal", func(t *testing.T) {
		c := raised(t)
		c.sent(1*s, Renew)
		c.next(1*s, Wait)
		c.succeeds(2*s, at(4, self, 6))
		c.arms(2 * s)
		c.waits(2*s, 11*s)
	})
	t.Run("is not shown without a renewal", func(t *testing.T) {
		c := raised(t)
		c.sent(1*s, Renew)
		c.fails(2 * s)
		c.waits(2*s, 3*s)
		c.sent(3*s, Renew)
		c.outdated(3 * s)
		c.reads(3*s, at(4, self, 6))
		c.sent(4*s, Renew)
		c.next(20*s-1, Wait)
		c.fences(20*s, reasonExpired)
	})
	t.Run("is released", func(t *testing.T) {
		c := raised(t)
		c.sent(1*s, Renew)
		c.outdated(1 * s)
		c.reads(1*s, at(4, "", 6))
		c.next(1*s, Disarm)
		c.h.Disarmed(t0 + 1*s)
		c.changed(2*s, "5", self)
		c.reads(2*s, at(5, self, 7))
		c.next(2*s, Renew)
	})
	t.Run("is raised again", func(t *testing.T) {
		c := raised(t)
		c.changed(1*s, "4", self)
		c.reads(1*s, at(4, self, 7))
		c.next(1*s, Hide)
		c.h.Hidden()
		c.next(1*s, Renew)
	})
	t.Run("is lower again", func(t *testing.T) {
		c := raised(t)
		c.changed(1*s, "4", self)
		c.reads(1*s, at(4, self, 5))
		c.fences(1*s, reasonLower)
	})
	t.Run("in the response to a renewal", func(t *testing.T) {
		c := newArmed(t)
		c.sent(10*s, Renew)
		c.succeeds(10*s, at(3, self, 5))
		c.next(10*s, Hide)
		c.h.Hidden()
		c.arms(10 * s)
	})
	t.Run("with a change that is not read", func(t *testing.T) {
		c := raised(t)
		c.changed(1*s, "4", "")
		c.next(1*s, Get)
	})
}

func TestALowerEpochEndsAMember(t *testing.T) {
	for name, l := range map[string]Lease{"it is the holder": at(3, self, 3), "no holder": at(3, "", 3), "another holder": at(3, other, 0)} {
		t.Run(name, func(t *testing.T) {
			c := newArmed(t)
			c.changed(1*s, "3", l.Holder)
			c.reads(1*s, l)
			c.fences(1*s, reasonLower)
		})
	}
	t.Run("not while it waits", func(t *testing.T) {
		c := newMemberScript(t)
		c.reads(0, at(1, "", 5))
		c.changed(1*s, "2", self)
		c.reads(1*s, at(2, self, 4))
		c.next(1*s, Renew)
	})
}

// A missing Lease is read until it exists, because a renewal is bound to the former one.
func TestAMissingLease(t *testing.T) {
	t.Run("armed", func(t *testing.T) {
		c := newArmed(t)
		c.sent(10*s, Renew)
		c.h.Answered(Missing, Lease{}, t0+10*s)
		c.waits(10*s, 11*s)
		c.sent(11*s, Get)
		c.h.Answered(Missing, Lease{}, t0+11*s)
		c.waits(11*s, 12*s)
		c.next(20*s-1, Get)
		c.fences(20*s, reasonExpired)
	})
	t.Run("armed, and created again", func(t *testing.T) {
		c := newArmed(t)
		c.sent(10*s, Renew)
		c.h.Answered(Missing, Lease{}, t0+10*s)
		c.reads(11*s, lease(9, self))
		c.sent(11*s, Renew)
		c.succeeds(11*s, lease(10, self))
		c.waits(11*s, 21*s)
	})
	t.Run("waiting", func(t *testing.T) {
		c := newMemberScript(t)
		c.sent(0, Get)
		c.h.Answered(Missing, Lease{}, t0)
		c.waits(0, minWaitPause)
		c.next(minWaitPause, Get)
	})
}

func TestAnEpochThatCannotBeShown(t *testing.T) {
	for _, epoch := range []int64{0, 1000000000} {
		c := newMemberScript(t)
		c.reads(0, at(1, self, epoch))
		if !c.h.IsUnshowable() {
			t.Errorf("epoch %d is showable", epoch)
		}
		c.waits(0, 10*s)
		c.changed(1*s, "2", self)
		c.reads(1*s, at(2, self, 5))
		c.next(1*s, Renew)
	}
	t.Run("armed", func(t *testing.T) {
		c := newArmed(t)
		c.changed(1*s, "3", self)
		c.reads(1*s, at(3, self, 1000000000))
		c.fences(1*s, reasonUnshowable)
	})
	t.Run("of another holder", func(t *testing.T) {
		c := newArmed(t)
		c.changed(1*s, "3", other)
		c.reads(1*s, at(3, other, 1000000000))
		c.next(1*s, Disarm)
	})
	t.Run("of a StatefulSingleton", func(t *testing.T) {
		c := newScript(t)
		c.reads(0, at(1, self, 0))
		c.next(0, Renew)
	})
}

// The agent of a member never names another holder.
func TestAMemberIgnoresASuccessor(t *testing.T) {
	c := newArmed(t)
	c.changed(1*s, "3", self)
	c.reads(1*s, named(3))
	c.waits(1*s, 10*s)
}
