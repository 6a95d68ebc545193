package statefulcluster

import "time"

// All durations of the kind are in this file. A test checks the relations between them.
const (
	// steadyTime is how long a member that restarted once since its update must be Ready before the
	// update continues. After more restarts it is settlingTime.
	steadyTime = 2 * time.Minute
	// settlingTime is how long a member must be Ready to prove that its revision works. It is also
	// the age from which on the loss of a member does not count as a repetition. The kubelet
	// restarts a container that ran that long without a backoff.
	settlingTime = 10 * time.Minute
	// attentionTime is how long a member without a deadline for replacement may be not Ready before
	// condition Degraded names it.
	attentionTime = 10 * time.Minute

	// Successive replacements in one slot that do not settle down are delayed: by firstBackoff for
	// the second, and twice as long for each one after it.
	firstBackoff = 30 * time.Second
	maxBackoff   = time.Hour
	// endedBackoff is the min age of a pod that ended before it is recreated under its name.
	endedBackoff = 30 * time.Second

	// nodeGoneTime is how long a Node object must be missing, or belong to another machine, before
	// its members are lost: the same time that pod garbage collection waits.
	nodeGoneTime = 40 * time.Second
	// outageGrace is how long the operator waits for members that went down in an outage, once one
	// is Ready again.
	outageGrace = 5 * time.Minute
	// secondLook is the min time between the first observation that a claim was set aside and its
	// deletion.
	secondLook = 10 * time.Second

	// A refused write is retried after firstRefusal, and the delay doubles with each further
	// refusal.
	firstRefusal = time.Second
	maxRefusal   = 5 * time.Minute
	// maxDoublings bounds how often a backoff is doubled, so that it cannot overflow.
	maxDoublings = 10

	// statusInterval is the min time between two status writes that only change counts.
	statusInterval = 500 * time.Millisecond
	// foreignInterval is the interval of live reads for objects that are in the way and that no
	// watch shows.
	foreignInterval = time.Minute
)

// The defaults of spec.replacement, in seconds.
const (
	defaultNodeLostSeconds = 30
	defaultUnreadySeconds  = 300
	defaultStartupSeconds  = 600
	defaultPendingSeconds  = 300
)

// doubled returns a backoff that was doubled that many times, at most most.
func doubled(first time.Duration, times int, most time.Duration) time.Duration {
	return min(first<<min(max(times, 0), maxDoublings), most)
}
