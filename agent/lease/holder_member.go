package lease

import "time"

const (
	reasonLower      = "the Lease has a lower epoch than before"
	reasonUnshowable = "the epoch of the Lease is not from 1 to 999999999"
)

// NewMember returns a Holder of process 1 of a member, which is armed while the Lease names its pod. A member is
// disarmed when the Lease does not name it any more: the operator releases a Lease only if the member is not primary.
func NewMember(identity string, duration time.Duration) *Holder {
	h := NewHolder(identity, duration)
	h.member = true
	return h
}

// IsUnshowable reports whether the Lease names a member with an epoch that it cannot show.
func (h *Holder) IsUnshowable() bool {
	return h.member && h.isHolder() && !isShowable(h.lease.Epoch)
}

// mayHold reports whether the Lease names the pod, and can be renewed.
func (h *Holder) mayHold() bool { return h.isHolder() && !h.IsUnshowable() }

// isProven reports whether the last renewal that succeeded has the epoch of the Lease. The epoch of a program is
// compared elsewhere.
func (h *Holder) isProven() bool { return !h.member || h.proven == h.lease.Epoch }

// begin returns the step that follows the first renewal.
func (h *Holder) begin() Step {
	if h.member {
		return Step{Operation: Arm}
	}
	return Step{Operation: Start}
}

// fencedMember returns why the container of an armed member must end before the deadline, or "".
func (h *Holder) fencedMember() string {
	switch {
	case h.lease.Epoch < h.epoch:
		return reasonLower
	case h.IsUnshowable():
		return reasonUnshowable
	}
	return ""
}

// follow returns the operation by which an armed member follows a change of its Lease, or Wait. With a higher epoch,
// it shows none until a renewal has succeeded. The deadline remains meanwhile.
func (h *Holder) follow() Operation {
	switch {
	case !h.member, h.phase != running:
		return Wait
	case !h.isHolder():
		return Disarm
	case h.lease.Epoch > h.epoch:
		return Hide
	case h.hidden && h.holds:
		return Arm
	}
	return Wait
}

// isUnarmedRenewal reports whether the request is a renewal of a waiting member. The operator can see it although its
// response is lost. It then expects that the container ends when no further renewal succeeds.
func (h *Holder) isUnarmedRenewal() bool {
	isWaiting := h.member && h.phase == waiting
	return isWaiting && h.request == Renew
}

// attempt records that a waiting member will send a renewal. Its deadline remains if an earlier renewal has set it.
func (h *Holder) attempt(now time.Duration) {
	h.former = h.uncertain
	if h.uncertain == 0 {
		h.uncertain, h.epoch = now+h.endAfter(), 0
	}
	h.epoch = max(h.epoch, h.lease.Epoch)
}

// Refused records that the API server has not executed the request and will not. It must be called before Answered.
func (h *Holder) Refused() {
	if h.isUnarmedRenewal() {
		h.uncertain = h.former
	}
}

// settle changes the deadline of a waiting member after a request that succeeded. A Lease that does not name the pod
// has another version, so no earlier renewal can be committed any more. As in the case of an armed member, one with a
// lower epoch proves nothing.
func (h *Holder) settle() {
	isReleased := !h.isHolder() && h.lease.Epoch >= h.epoch
	switch {
	case h.isUnarmedRenewal():
		h.uncertain = h.Deadline()
	case isReleased:
		h.uncertain = 0
	}
}

// Uncertain returns when the container of a waiting member ends if no renewal succeeds, or 0 if it does not.
func (h *Holder) Uncertain() time.Duration { return h.uncertain }

// Armed records that the watchdog is armed, and that the epoch is shown.
func (h *Holder) Armed() {
	h.Started()
	h.hidden, h.uncertain = false, 0
}

// Hidden records that no epoch is shown. From now on, a Lease with a lower epoch than this one ends the container.
func (h *Holder) Hidden() { h.epoch, h.hidden = h.lease.Epoch, true }

// Disarmed records that no epoch is shown, and that the watchdog is disarmed.
func (h *Holder) Disarmed(now time.Duration) {
	h.phase = waiting
	h.lookLater(now)
}
