package statefulcluster

import "time"

// All durations of the kind, in one place. What must hold between them is a test.
const (
	// steadyTime is how long a member that restarted once since it was updated must
	// be Ready before the update goes on. After more restarts it is settlingTime.
	steadyTime = 2 * time.Minute
	// settlingTime is how long a member must be Ready to show that its revision works,
	// and how old one must be whose loss does not count as a repetition. The kubelet
	// restarts a container that ran that long without a back-off.
	settlingTime = 10 * time.Minute
	// attentionTime is how long a member that is never replaced for it may be not
	// Ready before condition Degraded names it.
	attentionTime = 10 * time.Minute

	// Successive replacements in one slot that do not settle wait longer and longer:
	// firstBackoff for the second, twice as long for each that follows.
	firstBackoff = 30 * time.Second
	maxBackoff   = time.Hour
	// endedBackoff is how old a pod that ended must be before it is recreated under
	// its name.
	endedBackoff = 30 * time.Second

	// nodeGoneTime is how long a Node object must be missing, or stand for another
	// machine, before its members are lost: as long as pod garbage collection waits.
	nodeGoneTime = 40 * time.Second
	// outageGrace is how long members that went down in an outage are waited for once
	// one is Ready again.
	outageGrace = 5 * time.Minute
	// secondLook is how long after a claim was first seen to be set aside it is deleted
	// at the earliest.
	secondLook = 10 * time.Second

	// Refused writes are tried again after firstRefusal, and after twice as long each
	// time that they are refused again.
	firstRefusal = time.Second
	maxRefusal   = 5 * time.Minute
	// mostDoublings bounds how often a back-off is doubled, so that it cannot overflow.
	mostDoublings = 10

	// statusInterval is the least time between two status writes that change nothing
	// but counts.
	statusInterval = 500 * time.Millisecond
	// foreignInterval is how often the API server is asked again for objects that are
	// in the way and that no watch shows.
	foreignInterval = time.Minute
)

// The defaults of spec.replacement, in seconds.
const (
	defaultNodeLostSeconds = 30
	defaultUnreadySeconds  = 300
	defaultStartupSeconds  = 600
	defaultPendingSeconds  = 300
)

// doubled is a back-off that was doubled that many times, and no more than most.
func doubled(first time.Duration, times int, most time.Duration) time.Duration {
	return min(first<<min(max(times, 0), mostDoublings), most)
}
