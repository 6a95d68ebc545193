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
	for after, want := range map[time.Duration]Operation{20*s - 1: Arm, 20 * s: Renew} {
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
