package facts

// CostsMembers reports whether the state of the node may cause the loss or retirement of members.
func (n Node) CostsMembers() bool { return n.lostNow() || n.Cordoned }

// lostNow reports whether the node has a problem, no matter for how long.
func (n Node) lostNow() bool { return n.removed() || !n.NotReadySince.IsZero() }

// removed reports whether the node is gone or out of service.
func (n Node) removed() bool { return n.Gone || n.OutOfService }
