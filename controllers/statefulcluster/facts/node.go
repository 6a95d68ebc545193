package facts

import "time"

// Node is the state of a member's Node. The zero value is for a member that was never scheduled.
type Node struct {
	Gone          bool // no Node has the name, or a different machine has it now
	GoneSince     time.Time
	OutOfService  bool
	NotReadySince time.Time // zero while Ready
	Cordoned      bool      // unschedulable for new pods
}

// CostsMembers reports whether the state of the node may cause the loss or retirement of members.
func (n Node) CostsMembers() bool { return n.isBad() || n.Cordoned }

// isBad reports whether the node is gone, out of service or not Ready, no matter for how long.
func (n Node) isBad() bool { return n.removed() || !n.NotReadySince.IsZero() }

// removed reports whether the node is gone or out of service.
func (n Node) removed() bool { return n.Gone || n.OutOfService }
