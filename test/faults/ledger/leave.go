package main

import (
	"context"
	"errors"
)

// forget removes a member from the followers of a primary. Its copy no longer counts for entries.
func (n *node) forget(_ context.Context, member string) (view, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.role != primary {
		return view{}, errNotPrimary
	}
	delete(n.progress, member)
	n.changed.Broadcast()
	return view{Pod: member}, nil
}

// leave ends the following, if a server runs, and makes the primary forget this member. The member
// joins again by a new start.
func (v *supervisor) leave(o order) outcome {
	if s, _, _ := v.now(); s != nil {
		if out := v.order(s, o); out.Code != 0 {
			return out
		}
	}
	err := errors.New("leave needs the name of a primary")
	for _, peer := range v.others(o.Peers) {
		if err = ask(context.Background(), peer, "POST", "/forget", v.name, &view{}); err == nil {
			return outcome{}
		}
	}
	return outcome{Code: exitFailed, Error: err.Error()}
}
