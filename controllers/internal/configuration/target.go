package configuration

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of events, when a StatefulSet is to carry something else. The kinds have
// them in their API.
const (
	EventFollowed   = "ConfigFollowed"
	EventRestart    = "ConfigRestart"
	EventKeyChanged = "ConfigKeyChanged"
	EventKeyLost    = "ConfigKeyLost"
)

// Reasons of conditions. The kinds have them in their API.
const (
	ReasonMissing    = "ConfigMissing"
	ReasonUnreadable = "ConfigUnreadable"
	ReasonChanged    = "ConfigChanged"
	ReasonTurn       = "ConfigRestartWaits"
)

// Times that those who follow configuration have in common.
const (
	// Window is how long edits of configuration are gathered, so that many make one
	// restart. It counts from the first that was seen.
	Window = 2 * time.Second
	// Retry is how long after a refused read the next one is tried: no event says that
	// it would succeed.
	Retry = 15 * time.Second
)

// Stamp is what a StatefulSet carries: the hash in its pod template and the record, both
// annotations; "" for none.
type Stamp struct{ Hash, Record string }

// View is what is known about the configuration of one StatefulSet.
type View struct {
	State
	// Carried is what the StatefulSet has now.
	Carried Stamp
	// Since is when the first change that is not restarted for was seen.
	Since time.Time
	// Held says why its pods must not be restarted now; "" if they may.
	Held string
	// Idle is true if it has no pod that could be restarted.
	Idle bool
	Slot Slot
}

// Record is the record that is carried; nil if there is none.
func (v *View) Record() *Record { return ParseRecord(v.Carried.Record) }

// Pending reports whether there is a change that pods are yet to be restarted for.
func (v *View) Pending() bool { return v.Changed(v.Record()) && v.Complete() }

// Target is what a StatefulSet has to carry, and why.
type Target struct {
	Stamp
	// Event is the reason of the event when this differs from what it carries.
	Event string
	// Wait is when to look again although no event will come; 0 is never.
	Wait time.Duration
	// Reason and Message are for the conditions; "" if all is well.
	Reason, Message string
}

// Restarts reports whether the target restarts the pods of who carries that.
func (t Target) Restarts(carried Stamp) bool { return t.Hash != carried.Hash }

// Unfollowed is what a StatefulSet carries that is not restarted for changes. The hash
// stays in the pod template: to take it away would restart the pods.
func Unfollowed(carried Stamp) Target { return Target{Stamp: Stamp{Hash: carried.Hash}} }

// Target says what a StatefulSet has to carry. It keeps what it has unless it is known
// that contents changed and that pods may be restarted.
func (v *View) Target(now time.Time) Target {
	r := v.Record()
	keep := Target{Stamp: v.Carried}
	switch {
	case v.Unreadable != "":
		keep.Reason, keep.Message, keep.Wait = ReasonUnreadable, v.Unreadable, Retry
		return keep
	case len(v.Missing) > 0 && r != nil:
		keep.Reason, keep.Message = ReasonMissing, strings.Join(v.Missing, "; ")
		return keep
	case v.Hash == "":
		return keep
	case r == nil:
		// It is followed from now on; what its pods started with is not known.
		keep.Record, keep.Event = v.State.Record().String(), EventFollowed
		if len(v.Missing) > 0 {
			keep.Reason, keep.Message = ReasonMissing, strings.Join(v.Missing, "; ")
		}
		return keep
	case !v.Changed(r):
		return v.adopt(keep, r)
	}
	return v.restart(keep, r, now)
}

// adopt renews a record whose key was lost, although contents are the same: the next
// change is then told by its contents again.
func (v *View) adopt(keep Target, r *Record) Target {
	if r.Key == v.Key && (!r.Incomplete || len(v.Missing) > 0) {
		return keep
	}
	renewed := v.State.Record()
	renewed.Restarted, renewed.Recreated, renewed.Cached = r.Restarted, r.Recreated, r.Cached
	keep.Record = renewed.String()
	if r.Key != v.Key {
		keep.Event = EventKeyChanged
	}
	return keep
}

// restart moves the hash, once the window is over and it is its turn.
func (v *View) restart(keep Target, r *Record, now time.Time) Target {
	keep.Reason = ReasonChanged
	due := v.Since.Add(Window)
	switch {
	case now.Before(due):
		keep.Wait = due.Sub(now)
		keep.Message = "referenced configuration changed; the pods are restarted when the edits are over"
		return keep
	case v.Held != "" && !v.Idle:
		keep.Message = "referenced configuration changed; the pods are not restarted yet, since " + v.Held
		return keep
	case !v.Slot.Granted && !v.Idle:
		keep.Reason, keep.Wait = ReasonTurn, SlotRetry
		keep.Message = "referenced configuration changed; the restart waits for its turn" + v.Slot.String()
		return keep
	}
	next := v.RecordAfter(r)
	next.Cached = r.Cached
	if next.Restarted = r.Restarted; !v.Idle {
		next.Restarted = &metav1.Time{Time: now}
	}
	target := Target{Stamp: Stamp{v.Hash, next.String()}, Event: EventRestart}
	if r.Key != v.Key {
		target.Event = EventKeyLost
	}
	return target
}
