package configuration

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of events for changes of a StatefulSet's stamp. The kinds define them in their API.
const (
	EventFollowed   = "ConfigFollowed"
	EventRestart    = "ConfigRestart"
	EventKeyChanged = "ConfigKeyChanged"
	EventKeyLost    = "ConfigKeyLost"
)

// Reasons of conditions. The kinds define them in their API.
const (
	ReasonMissing    = "ConfigMissing"
	ReasonUnreadable = "ConfigUnreadable"
	ReasonChanged    = "ConfigChanged"
	ReasonTurn       = "ConfigRestartWaits"
)

// Durations that are common to all kinds that follow configuration.
const (
	// Window is how long edits are batched into one restart. It starts with the first detected edit.
	Window = 2 * time.Second
	// Retry is the delay after a failed read. No event announces that a read would succeed.
	Retry = 15 * time.Second
)

// Stamp contains the annotations of a StatefulSet: the hash in its pod template, and the record. Both
// are "" if missing.
type Stamp struct{ Hash, Record string }

// View is the input of the decision for one StatefulSet.
type View struct {
	State
	// Carried is the current stamp of the StatefulSet.
	Carried Stamp
	// Since is when the first change that still needs a restart was detected.
	Since time.Time
	// Held is the reason why its pods must not be restarted now; "" if they may.
	Held string
	// Idle is true if it has no pods to restart.
	Idle bool
	Slot Slot
}

// Record returns the current record of the StatefulSet; nil if there is none.
func (v *View) Record() *Record { return ParseRecord(v.Carried.Record) }

// Pending reports whether a change still needs a restart of pods.
func (v *View) Pending() bool { return v.Changed(v.Record()) && v.Complete() }

// Target is the wanted stamp of a StatefulSet, and the reason.
type Target struct {
	Stamp
	// Event is the reason of the event if the stamp changes.
	Event string
	// Wait is the requeue delay; 0 means no requeue.
	Wait time.Duration
	// Reason and Message are for the conditions; "" if there is no problem.
	Reason, Message string
}

// Restarts reports whether the target restarts the pods of a StatefulSet with the given stamp.
func (t Target) Restarts(carried Stamp) bool { return t.Hash != carried.Hash }

// Unfollowed returns the target of a StatefulSet that is not restarted for changes. It keeps the hash
// in the pod template, because removing it would restart the pods.
func Unfollowed(carried Stamp) Target { return Target{Stamp: Stamp{Hash: carried.Hash}} }

// Target returns the wanted stamp of a StatefulSet. It keeps the current stamp unless the contents are
// known to have changed and pods may be restarted.
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
		// The configuration is followed from now on. The contents with which the pods started are
		// unknown.
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

// adopt updates the record for unchanged contents if the key was lost, or if missing parts were added.
// Later changes can then be detected by contents again.
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

// restart changes the hash after the window has elapsed and a slot was granted.
func (v *View) restart(keep Target, r *Record, now time.Time) Target {
	keep.Reason = ReasonChanged
	due := v.Since.Add(Window)
	switch {
	case now.Before(due):
		keep.Wait = due.Sub(now)
		keep.Message = "referenced configuration changed; the pods will be restarted when there are no more edits"
		return keep
	case v.Held != "" && !v.Idle:
		keep.Message = "referenced configuration changed; the restart of the pods is blocked: " + v.Held
		return keep
	case !v.Slot.Granted && !v.Idle:
		keep.Reason, keep.Wait = ReasonTurn, SlotRetry
		keep.Message = "referenced configuration changed; the restart is pending" + v.Slot.String()
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
