package spec

import "time"

// All durations of the kind are in this file. A test checks the relations between them.
const (
	// SteadyTime is how long a member that restarted once since its update must be Ready before the
	// update continues. After more restarts the update waits until its revision is proven.
	SteadyTime = 2 * time.Minute
	// SettlingTime is how long a member must be Ready to prove that its revision works. It is also
	// the age from which on the loss of a member does not count as a repetition. The kubelet
	// restarts a container that ran that long without a backoff.
	SettlingTime = 10 * time.Minute
	// AttentionTime is how long a member without a deadline for replacement may be not Ready before
	// condition Degraded names it.
	AttentionTime = 10 * time.Minute

	// Successive replacements in one slot that do not settle down are delayed: by FirstBackoff for
	// the second, and twice as long for each one after it.
	FirstBackoff = 30 * time.Second
	MaxBackoff   = time.Hour
	// EndedBackoff is the min age of a pod that ended before it is recreated under its name.
	EndedBackoff = 30 * time.Second

	// NodeGoneTime is how long a Node object must be missing, or belong to another machine, before
	// its members are lost: the same time that pod garbage collection waits.
	NodeGoneTime = 40 * time.Second
	// OutageGrace is how long the operator waits for members that went down in an outage, once one
	// is Ready again.
	OutageGrace = 5 * time.Minute
	// SecondLook is the min time between the first observation that a claim was set aside and its
	// deletion.
	SecondLook = 10 * time.Second

	// A refused write is retried after FirstRefusal, and the delay doubles with each further
	// refusal.
	FirstRefusal = time.Second
	MaxRefusal   = 5 * time.Minute
	// MaxDoublings bounds how often a backoff is doubled, so that it cannot overflow.
	MaxDoublings = 10

	// StatusInterval is the min time between two status writes that only change counts.
	StatusInterval = 500 * time.Millisecond
	// ForeignInterval is the interval of live reads for objects that are in the way and that no
	// watch shows.
	ForeignInterval = time.Minute
)

// The defaults of spec.replacement, in seconds.
const (
	DefaultNodeLostSeconds = 30
	DefaultUnreadySeconds  = 300
	DefaultStartupSeconds  = 600
	DefaultPendingSeconds  = 300
)

// Doubled returns a backoff that was doubled that many times, up to limit.
func Doubled(first time.Duration, times int, limit time.Duration) time.Duration {
	return min(first<<min(max(times, 0), MaxDoublings), limit)
}
