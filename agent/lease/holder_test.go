package lease

import (
	"fmt"
	"testing"
	"time"
)

const (
	self  = "a_1"
	other = "b_2"
	s     = time.Second
)

// holding has a Lease of 30 s, so S is 20 s, and a renewal is due every 10 s. All scripts start at 100 s.
const (
	duration = 30 * s
	t0       = 100 * s
)

// script is a Holder with its clock.
type script struct {
	t *testing.T
	h *Holder
}

func newScript(t *testing.T) *script { return &script{t, NewHolder(self, duration)} }

// next compares the next step at a time after t0.
func (c *script) next(at time.Duration, want Operation) Step {
	c.t.Helper()
	step := c.h.Next(t0 + at)
	if step.Operation != want {
		c.t.Fatalf("at %s the next step is %+v, want operation %d", at, step, want)
	}
	return step
}

// waits compares until when the Holder waits.
func (c *script) waits(at, until time.Duration) {
	c.t.Helper()
	if step := c.next(at, Wait); step.At != t0+until {
		c.t.Fatalf("at %s it waits until %s, want %s", at, step.At-t0, until)
	}
}

func (c *script) sent(at time.Duration, operation Operation) {
	c.t.Helper()
	c.next(at, operation)
	c.h.Sent(operation, t0+at)
}

func (c *script) fails(at time.Duration)    { c.h.Answered(Failed, Lease{}, t0+at) }
func (c *script) outdated(at time.Duration) { c.h.Answered(Outdated, Lease{}, t0+at) }
func (c *script) succeeds(at time.Duration, l Lease) {
	c.h.Answered(Succeeded, l, t0+at)
}

func (c *script) changed(at time.Duration, version, holder string) {
	c.h.Changed(version, holder, t0+at)
}

func lease(version int, holder string) Lease {
	return Lease{Version: fmt.Sprint(version), Holder: holder, Epoch: 4}
}

func named(version int) Lease {
	l := lease(version, self)
	l.Successor = other
	return l
}

// reads reads a Lease at once.
func (c *script) reads(at time.Duration, l Lease) {
	c.t.Helper()
	c.sent(at, Get)
	c.succeeds(at, l)
}

// newRunning returns a Holder whose program was started at 0 with version 2.
func newRunning(t *testing.T) *script {
	t.Helper()
	c := newScript(t)
	c.reads(0, lease(1, self))
	c.sent(0, Renew)
	c.succeeds(0, lease(2, self))
	c.next(0, Start)
	c.h.Started()
	return c
}

// Rule endsItself.
func TestTheProgramEndsWhenNoRenewalSucceeds(t *testing.T) {
	c := newRunning(t)
	c.sent(10*s, Renew)
	c.fails(12 * s)
	c.waits(12*s, 13*s)
	c.sent(13*s, Renew)
	c.waits(13*s, 20*s)
	c.next(20*s-1, Wait)
	if step := c.next(20*s, Fence); step.Reason != reasonExpired {
		t.Errorf("the reason is %q", step.Reason)
	}
	// A response that arrives after the deadline does not change this.
	c.succeeds(21*s, lease(3, self))
	c.next(21*s, Fence)
}

// Rule endsBefore.
func TestTheDeadlineIsBeforeTheTakeover(t *testing.T) {
	for _, d := range []time.Duration{10 * s, 15 * s, 30 * s, 600 * s} {
		h := NewHolder(self, d)
		h.Sent(Renew, t0)
		h.Answered(Succeeded, lease(1, self), t0+s)
		if got := h.Deadline() - t0; got != d*2/3 {
			t.Errorf("with %s, the deadline is after %s, want %s", d, got, d*2/3)
		}
	}
}

// Rule agesFromSend.
func TestTheAgeIsMeasuredFromTheMomentBeforeTheRequest(t *testing.T) {
	c := newRunning(t)
	c.sent(10*s, Renew)
	c.succeeds(15*s, lease(3, self))
	c.waits(15*s, 20*s) // the next renewal
	c.sent(20*s, Renew)
	c.next(30*s-1, Wait)
	c.next(30*s, Fence)
}

// Rule renewsFirst.
func TestAReadDoesNotStartTheProgram(t *testing.T) {
	c := newScript(t)
	c.reads(0, lease(1, self))
	c.sent(0, Renew)
	c.next(1*s, Wait)
	c.fails(1 * s)
	c.waits(1*s, 1*s+minWaitPause)
	c.sent(2*s, Renew)
	c.succeeds(2*s, lease(2, self))
	c.next(2*s, Start)
}

// Rule startsWithFresh.
func TestALateResponseDoesNotStartTheProgram(t *testing.T) {
	for _, row := range []struct {
		after time.Duration
		want  Operation
	}{{20*s - 1, Start}, {20 * s, Renew}, {25 * s, Renew}} {
		c := newScript(t)
		c.reads(0, lease(1, self))
		c.sent(0, Renew)
		c.succeeds(row.after, lease(2, self))
		c.next(row.after, row.want)
	}
}

// A renewal for an earlier turn does not start the program in a later one.
func TestARenewalOfAnEarlierTurnDoesNotStartTheProgram(t *testing.T) {
	c := newScript(t)
	c.reads(0, lease(1, self))
	c.sent(0, Renew)
	c.succeeds(0, lease(2, self))
	c.h.Sent(Get, t0)
	c.succeeds(1*s, lease(3, other))
	c.changed(2*s, "4", self)
	c.reads(2*s, lease(4, self))
	c.next(2*s, Renew)
}

// Rules renewalBound and handoverBound: a write needs a current version.
func TestAWriteFollowsARead(t *testing.T) {
	t.Run("renewal after a change", func(t *testing.T) {
		c := newRunning(t)
		c.changed(9*s, "3", self)
		c.reads(10*s, lease(3, self))
		c.next(10*s, Renew)
	})
	t.Run("renewal after a conflict", func(t *testing.T) {
		c := newRunning(t)
		c.sent(10*s, Renew)
		c.outdated(10 * s)
		c.reads(10*s, lease(3, self))
		c.next(10*s, Renew)
	})
	t.Run("a change during the renewal", func(t *testing.T) {
		c := newRunning(t)
		c.sent(10*s, Renew)
		c.changed(10*s, "3", self) // of the renewal
		c.changed(10*s, "4", self)
		c.succeeds(10*s, lease(3, self))
		c.next(10*s, Get)
	})
	t.Run("handover after a change", func(t *testing.T) {
		c := newRunning(t)
		c.changed(1*s, "3", self)
		c.h.Ended(t0 + 1*s)
		c.reads(1*s, named(3))
		c.next(1*s, HandOver)
	})
	t.Run("handover after a conflict", func(t *testing.T) {
		c := newRunning(t)
		c.changed(1*s, "3", self)
		c.reads(1*s, named(3))
		c.h.Ended(t0 + 1*s)
		c.sent(1*s, HandOver)
		c.outdated(1 * s)
		c.reads(1*s, named(4))
		c.next(1*s, HandOver)
	})
	t.Run("a waiting pod after a conflict", func(t *testing.T) {
		c := newScript(t)
		c.reads(0, lease(1, self))
		c.sent(0, Renew)
		c.outdated(0)
		c.reads(0, lease(2, other))
		c.waits(0, 10*s)
	})
}

// The watch reports the agent's own writes, before or after the response.
func TestOwnWritesAreNotRead(t *testing.T) {
	c := newRunning(t)
	c.changed(0, "2", self)
	c.waits(0, 10*s)
	c.sent(10*s, Renew)
	c.changed(10*s, "2", self)
	c.changed(10*s, "3", self)
	c.succeeds(10*s, lease(3, self))
	c.waits(10*s, 20*s)
	c.sent(20*s, Renew)
	c.changed(20*s, "3", self)
	c.succeeds(20*s, lease(4, self))
	c.changed(20*s, "4", self)
	c.waits(20*s, 30*s)
}

func TestAnotherHolderEndsTheProgram(t *testing.T) {
	c := newRunning(t)
	c.changed(1*s, "3", other)
	c.sent(1*s, Get)
	c.next(1*s, Wait)
	c.succeeds(1*s, lease(3, other))
	if step := c.next(1*s, Fence); step.Reason != reasonReplaced {
		t.Errorf("the reason is %q", step.Reason)
	}
}

// The pod was the holder, another took over, and the pod is the holder again.
func TestAnotherEpochEndsTheProgram(t *testing.T) {
	c := newRunning(t)
	c.changed(1*s, "3", self)
	l := lease(3, self)
	l.Epoch++
	c.reads(1*s, l)
	if step := c.next(1*s, Fence); step.Reason != reasonEpoch {
		t.Errorf("the reason is %q", step.Reason)
	}
}

// Rule handsOverAfter.
func TestTheHandoverIsAfterTheEnd(t *testing.T) {
	c := newRunning(t)
	c.changed(1*s, "3", self)
	c.reads(1*s, named(3))
	c.waits(1*s, 10*s)
	c.sent(10*s, Renew)
	c.succeeds(10*s, named(4))
	c.waits(10*s, 20*s)
	c.h.Ended(t0 + 11*s)
	c.sent(11*s, HandOver)
	c.next(11*s, Wait)
	c.succeeds(11*s, lease(5, other))
	c.next(11*s, Finish)
}

func TestNoHandover(t *testing.T) {
	toSelf := lease(3, self)
	toSelf.Successor = self
	toAnother := lease(3, other)
	toAnother.Successor = "c_3"
	for name, l := range map[string]Lease{
		"no successor":          lease(3, self),
		"the pod itself":        toSelf,
		"another is the holder": toAnother,
	} {
		t.Run(name, func(t *testing.T) {
			c := newRunning(t)
			c.changed(1*s, "3", self)
			c.h.Ended(t0 + 1*s)
			c.reads(1*s, l)
			c.next(1*s, Finish)
		})
	}
	t.Run("no change is known", func(t *testing.T) {
		c := newRunning(t)
		c.h.Ended(t0 + 1*s)
		c.next(1*s, Finish)
	})
}

func TestTheHandoverHasALimit(t *testing.T) {
	for name, row := range map[string]struct{ ended, limit time.Duration }{
		"2 s":              {5 * s, 7 * s},
		"the own deadline": {19 * s, 20 * s},
	} {
		t.Run(name, func(t *testing.T) {
			c := newRunning(t)
			c.changed(1*s, "3", self)
			c.reads(1*s, named(3))
			c.h.Ended(t0 + row.ended)
			if step := c.next(row.ended, HandOver); step.Timeout != row.limit-row.ended {
				t.Errorf("the timeout is %s, want %s", step.Timeout, row.limit-row.ended)
			}
			c.sent(row.ended, HandOver)
			c.fails(row.ended)
			c.waits(row.ended, row.ended+minRetryPause)
			c.next(row.limit-1, HandOver)
			c.next(row.limit, Finish)
		})
	}
}

// A request that was canceled at the end of the program can have been executed.
func TestACanceledRenewalIsReadBeforeTheHandover(t *testing.T) {
	c := newRunning(t)
	c.changed(1*s, "3", self)
	c.reads(1*s, named(3))
	c.sent(10*s, Renew)
	c.h.Ended(t0 + 10*s)
	c.next(10*s, Wait)
	c.outdated(10 * s)
	c.reads(10*s, named(4))
	c.next(10*s, HandOver)
}

func TestTimeoutsOfRequests(t *testing.T) {
	c := newRunning(t)
	if step := c.next(10*s, Renew); step.Timeout != 6*s {
		t.Errorf("the timeout is %s, want a fifth of the duration", step.Timeout)
	}
	if step := c.next(17*s, Renew); step.Timeout != 3*s {
		t.Errorf("the timeout is %s, want the time until the deadline", step.Timeout)
	}
}

func TestPauses(t *testing.T) {
	c := newScript(t)
	at := time.Duration(0)
	for _, want := range []time.Duration{100, 200, 400, 800, 1600, 2000, 2000} {
		c.sent(at, Get)
		c.fails(at)
		c.waits(at, at+want*time.Millisecond)
		at += want * time.Millisecond
	}
	short := NewHolder(self, 0)
	short.phase = running
	if got := short.pause(); got != minRetryPause {
		t.Errorf("the pause is %s, want %s", got, minRetryPause)
	}
	c = newRunning(t)
	c.sent(10*s, Renew)
	c.fails(10 * s)
	c.waits(10*s, 11*s)
}

func TestAWaitingPodReadsTheLease(t *testing.T) {
	t.Run("when the watch reports that it is the holder", func(t *testing.T) {
		c := newScript(t)
		c.reads(0, lease(1, other))
		c.waits(0, 10*s)
		c.changed(1*s, "2", self)
		c.sent(1*s, Get)
		c.fails(1 * s)
		c.waits(1*s, 1*s+minWaitPause)
		c.reads(2*s, lease(2, self))
		c.next(2*s, Renew)
	})
	t.Run("when the watch has reported that during a request", func(t *testing.T) {
		c := newScript(t)
		c.reads(0, lease(1, other))
		c.sent(10*s, Get)
		c.changed(10*s, "2", self)
		c.succeeds(10*s, lease(1, other))
		c.next(10*s, Get)
	})
	t.Run("not when the watch reports another holder", func(t *testing.T) {
		c := newScript(t)
		c.reads(0, lease(1, other))
		c.changed(5*s, "2", other)
		c.waits(5*s, 15*s)
	})
	t.Run("when the watch reports nothing", func(t *testing.T) {
		c := newScript(t)
		c.reads(0, lease(1, other))
		c.reads(10*s, lease(1, other))
		c.waits(10*s, 20*s)
	})
	t.Run("when the watch has ended", func(t *testing.T) {
		c := newScript(t)
		c.reads(0, lease(1, other))
		c.h.Unwatched(t0 + 3*s)
		c.waits(0, 3*s)
		c.next(3*s, Get)
	})
}

func TestARunningPodReadsTheLeaseWhenTheWatchHasEnded(t *testing.T) {
	c := newRunning(t)
	c.h.Unwatched(t0 + 3*s)
	c.waits(0, 3*s)
	c.reads(3*s, lease(2, self))
	c.waits(3*s, 10*s)
}

func TestAReleasedPod(t *testing.T) {
	t.Run("waiting", func(t *testing.T) {
		c := newScript(t)
		c.reads(0, lease(1, other))
		c.h.Release()
		c.next(0, Start)
		c.h.Started()
		c.next(100*s, Wait)
	})
	t.Run("running", func(t *testing.T) {
		c := newRunning(t)
		c.changed(1*s, "3", self)
		c.reads(1*s, named(3))
		c.h.Release()
		if step := c.next(100*s, Wait); step.At != never {
			t.Errorf("it waits until %s", step.At)
		}
		c.h.Ended(t0 + 100*s)
		c.next(100*s, Finish)
	})
}
