package lease

import (
	"math"
	"time"
)

// Lease is the part of a Lease that the protocol uses.
type Lease struct {
	Version   string // resourceVersion
	Holder    string // an identity, or ""
	Successor string // the identity to which the holder hands over, or ""
	Epoch     int64  // leaseTransitions
}

// Operation is the operation of a Step.
type Operation int

// The operations.
const (
	Wait Operation = iota // until an event, or the time of the step
	Get
	Renew
	HandOver
	Start  // start the program
	Fence  // end the container at once
	Finish // exit with the exit code of the program
	Arm    // show the epoch of the Lease
	Hide   // show no epoch
	Disarm // show no epoch, and stop the watchdog
)

// Step is the next operation of the agent.
type Step struct {
	Operation Operation
	At        time.Duration // when Wait ends at the latest
	Timeout   time.Duration // of a request
	Reason    string        // for Fence
}

// Outcome is the outcome of a request.
type Outcome int

// The outcomes.
const (
	Succeeded Outcome = iota
	Outdated          // a conflict, or the outcome is unknown: the Lease must be read before the next write
	Failed
	Missing // the operator's Lease does not exist: a failure, and the Lease must be read before the next write
)

type phase int

const (
	waiting phase = iota
	running
	ended
)

const (
	never = time.Duration(math.MaxInt64)

	minWaitPause  = 100 * time.Millisecond
	maxWaitPause  = 2 * time.Second
	minRetryPause = 200 * time.Millisecond
	// maxTimeout is the max time that a request waits for a connection that is dead.
	maxTimeout = 10 * time.Second
	// handOverLimit is the time in which the agent attempts a handover.
	handOverLimit = 2 * time.Second
	// askedPause is the min time between two reads for which commands have asked.
	askedPause = 500 * time.Millisecond

	reasonExpired  = "no renewal of the Lease has succeeded in time"
	reasonReplaced = "the Lease has another holder"
	reasonEpoch    = "the Lease was taken over since the program was started"
)

// Holder decides the steps of one agent. A member is running while it is armed. All times are the time since boot,
// including suspended time.
type Holder struct {
	identity string
	duration time.Duration
	member   bool // process 1 of a member, which runs no program

	phase    phase
	released bool
	expired  bool  // the deadline has passed before a response
	epoch    int64 // of the Lease when the program was started, or the member was armed or has sent a renewal
	hidden   bool  // an armed member shows no epoch

	// uncertain is the deadline of a waiting member whose renewal is committed or may be, or 0.
	uncertain time.Duration
	former    time.Duration // uncertain before the renewal in the network

	lease Lease // as last read or written
	// current is set if no change is known since the Lease was read or written.
	current bool
	// names is set if the watch has reported that the Lease names this pod.
	names  bool
	lookAt time.Duration // when the Lease must be read although no change is known
	asked  time.Duration // when the Lease must be read because a command has asked for that

	request Operation // in the network, or Wait
	sent    time.Duration
	seen    string // version of the last change that the watch has reported since then

	renewed   time.Duration // when the last renewal that succeeded was sent
	holds     bool          // a renewal of this process has succeeded, and no other holder was read since
	proven    int64         // the epoch of the Lease when that renewal succeeded
	notBefore time.Duration // pause after a failure
	failures  int
	endedAt   time.Duration
}

// NewHolder returns a Holder that waits.
func NewHolder(identity string, duration time.Duration) *Holder {
	return &Holder{identity: identity, duration: duration}
}

// Known returns the Lease as last read or written.
func (h *Holder) Known() Lease { return h.lease }

// IsWaiting reports whether the program was not started.
func (h *Holder) IsWaiting() bool { return h.phase == waiting }

// IsRunning reports whether the program was started and has not ended.
func (h *Holder) IsRunning() bool { return h.phase == running }

// IsReleased reports whether the program runs without the Lease.
func (h *Holder) IsReleased() bool { return h.released }

// Deadline returns when the program must have ended if no further renewal succeeds.
func (h *Holder) Deadline() time.Duration { return h.renewed + h.endAfter() }

// endAfter returns S. It is less than the duration, after which the operator takes the Lease over.
func (h *Holder) endAfter() time.Duration { return h.duration * 2 / 3 }

// renewEvery is also the interval in which a waiting agent reads the Lease if the watch reports nothing.
func (h *Holder) renewEvery() time.Duration { return h.duration / 3 }

func (h *Holder) isHolder() bool { return h.lease.Holder == h.identity }

// isFresh reports whether the last renewal is recent enough to start the program.
func (h *Holder) isFresh(now time.Duration) bool { return h.holds && now < h.Deadline() }

// Next returns the next step.
func (h *Holder) Next(now time.Duration) Step {
	switch {
	case h.released:
		return h.nextReleased()
	case h.phase != ended && h.fenced(now) != "":
		return Step{Operation: Fence, Reason: h.fenced(now)}
	case h.follow() != Wait:
		return Step{Operation: h.follow()}
	case h.request != Wait:
		return h.wait(never)
	case h.phase == waiting:
		return h.nextWaiting(now)
	case h.phase == running:
		return h.nextRunning(now)
	}
	return h.nextEnded(now)
}

func (h *Holder) nextReleased() Step {
	switch h.phase {
	case waiting:
		return Step{Operation: Start}
	case running:
		return Step{Operation: Wait, At: never}
	}
	return Step{Operation: Finish}
}

// endsAt returns when the container ends if no further renewal succeeds.
func (h *Holder) endsAt() time.Duration {
	switch {
	case h.phase == running:
		return h.Deadline()
	case h.uncertain > 0:
		return h.uncertain
	}
	return never
}

// fenced returns why the container must end at once, or "".
func (h *Holder) fenced(now time.Duration) string {
	switch {
	case h.expired, now >= h.endsAt():
		return reasonExpired
	case h.phase == waiting:
		return ""
	case h.member:
		return h.fencedMember()
	case !h.isHolder():
		return reasonReplaced
	case h.lease.Epoch != h.epoch:
		return reasonEpoch
	}
	return ""
}

// wait returns a step that waits, but not longer than the program may run.
func (h *Holder) wait(until time.Duration) Step {
	return Step{Operation: Wait, At: min(until, h.endsAt())}
}

func (h *Holder) nextWaiting(now time.Duration) Step {
	concerns := h.isHolder() || h.names
	mustRead := !h.current && concerns
	switch {
	case h.mayHold() && h.isFresh(now):
		return h.begin()
	case now < h.notBefore:
		return h.wait(h.notBefore)
	case mustRead, now >= h.lookAt:
		return h.send(Get, now)
	case h.mayHold():
		return h.send(Renew, now)
	}
	return h.wait(h.lookAt)
}

func (h *Holder) nextRunning(now time.Duration) Step {
	due := h.renewed + h.renewEvery()
	if h.hidden {
		due = now
	}
	switch {
	case now < h.notBefore:
		return h.wait(h.notBefore)
	case !h.current:
		return h.send(Get, now)
	case now >= due:
		return h.send(Renew, now)
	case now >= h.lookAt:
		return h.send(Get, now)
	}
	return h.wait(min(due, h.lookAt))
}

// nextEnded hands over if a successor is named. Otherwise the operator observes the end of the container.
func (h *Holder) nextEnded(now time.Duration) Step {
	switch {
	case now >= h.handOverBy():
		return Step{Operation: Finish}
	case now < h.notBefore:
		return h.wait(min(h.notBefore, h.handOverBy()))
	case !h.current:
		return h.send(Get, now)
	case !h.isHolder(), h.lease.Successor == "", h.lease.Successor == h.identity:
		return Step{Operation: Finish}
	}
	return h.send(HandOver, now)
}

// handOverBy returns the time after which the agent writes nothing any more.
func (h *Holder) handOverBy() time.Duration { return min(h.endedAt+handOverLimit, h.Deadline()) }

func (h *Holder) send(operation Operation, now time.Duration) Step {
	timeout := min(h.duration/5, maxTimeout, h.endsAt()-now)
	if h.phase == ended {
		timeout = min(timeout, h.handOverBy()-now)
	}
	return Step{Operation: operation, Timeout: timeout}
}

// Sent records that a request will be sent. It must be called before.
func (h *Holder) Sent(operation Operation, now time.Duration) {
	h.request, h.sent, h.seen = operation, now, ""
	if h.isUnarmedRenewal() {
		h.attempt(now)
	}
}

// Answered records the outcome of the request. The Lease is ignored unless the request succeeded.
func (h *Holder) Answered(outcome Outcome, lease Lease, now time.Duration) {
	operation := h.request
	if now >= h.endsAt() {
		h.expired = true
	}
	switch outcome {
	case Outdated:
		h.current = false
		h.lookAt = now
	case Failed, Missing:
		h.current = h.current && outcome != Missing
		h.notBefore = now + h.pause()
		h.failures++
	case Succeeded:
		h.failures, h.notBefore = 0, 0
		// The watch can report the version of the request, or an older one that it follows. Otherwise it has
		// reported a later change.
		h.current = h.seen == "" || h.seen == lease.Version || h.seen == h.lease.Version
		h.lease, h.names = lease, h.names && !h.current
		h.lookLater(now)
		if operation == Renew {
			h.renewed, h.holds, h.proven = h.sent, true, lease.Epoch
		}
		h.holds = h.holds && h.isHolder() && h.isProven()
		h.settle()
	}
	h.request = Wait
}

// lookLater postpones the next read. The holder needs none, because its renewals detect changes. A read for which a
// command has asked since the last request is not postponed.
func (h *Holder) lookLater(now time.Duration) {
	h.lookAt = never
	if h.phase == waiting {
		h.lookAt = now + h.renewEvery()
	}
	if h.asked > h.sent {
		h.Unwatched(h.asked)
	}
}

func (h *Holder) pause() time.Duration {
	switch h.phase {
	case waiting:
		return min(minWaitPause<<min(h.failures, 10), maxWaitPause)
	case running:
		return max(h.duration/30, minRetryPause)
	}
	return minRetryPause
}

// Changed records a change that the watch has reported. Because it may be an old one, the Lease is read. A waiting
// agent reads it only if it is the holder.
func (h *Holder) Changed(version, holder string, now time.Duration) {
	if h.request != Wait {
		h.seen = version
	}
	isNew := version != h.lease.Version
	if isNew && h.request == Wait {
		h.current = false
	}
	h.names = holder == h.identity && isNew
	if h.phase == waiting && !h.names {
		h.lookLater(now)
	}
}

// Unwatched records that the watch has ended, and when the Lease must be read before the next watch.
func (h *Holder) Unwatched(at time.Duration) { h.lookAt = min(h.lookAt, at) }

// Asked records that a command has asked process 1 to read the Lease, because the watch can be dead. It is read at
// once, also in the pause after a failure, but not again and again.
func (h *Holder) Asked(now time.Duration) {
	if now < h.asked {
		return // it will be read then
	}
	h.asked = max(now, h.asked+askedPause)
	h.Unwatched(h.asked)
	h.notBefore = min(h.notBefore, h.asked)
}

// Started records the start of the program.
func (h *Holder) Started() { h.phase, h.epoch, h.lookAt = running, h.lease.Epoch, never }

// Ended records that nothing of the program remains.
func (h *Holder) Ended(now time.Duration) {
	h.phase, h.endedAt, h.notBefore = ended, now, 0
}

// Release records that the program runs without the Lease from now on.
func (h *Holder) Release() { h.released = true }
