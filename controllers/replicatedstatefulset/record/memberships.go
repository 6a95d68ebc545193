package record

import (
	"cmp"
	"slices"
	"strings"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// MembershipOf returns the state of a member in the application. It is "" if the member is not
// known to have joined, or if there is no command leave.
func (r *Record) MembershipOf(pod string) v1alpha1.MembershipState {
	for _, m := range r.Memberships {
		if m.Pod == pod {
			return m.State
		}
	}
	return ""
}

// setMembership sets the state of a member in the application.
func (r *Record) setMembership(pod string, state v1alpha1.MembershipState) {
	others := slices.DeleteFunc(slices.Clone(r.Memberships), func(m v1alpha1.Membership) bool { return m.Pod == pod })
	r.Memberships = append(others, v1alpha1.Membership{Pod: pod, State: state})
	slices.SortFunc(r.Memberships, func(x, y v1alpha1.Membership) int {
		return cmp.Or(len(x.Pod)-len(y.Pod), strings.Compare(x.Pod, y.Pod))
	})
}

// NoteSent records that a command is about to be sent: a start makes the application accept the
// member, and leave may make it forget the member.
func (r *Record) NoteSent(set *v1alpha1.ReplicatedStatefulSet, command, pod string) {
	switch {
	case !spec.HasCommand(set, v1alpha1.CommandLeave):
	case command == v1alpha1.CommandLeave:
		r.setMembership(pod, v1alpha1.MembershipLeaving)
	case spec.Starts(command):
		r.setMembership(pod, v1alpha1.MembershipJoined)
	}
}

// updateMemberships records members that run and were started before there was a command leave. It
// removes members that have left and whose pods are gone.
func (r *Record) updateMemberships(o *Observed) {
	if o.Invalid {
		return
	}
	if !spec.HasCommand(o.Set, v1alpha1.CommandLeave) {
		r.Memberships = nil
		return
	}
	for i := range o.Members {
		m := &o.Members[i]
		switch r.stateOf(o, m) {
		case Primary, Secondary:
			if r.MembershipOf(m.Name) == "" {
				r.setMembership(m.Name, v1alpha1.MembershipJoined)
			}
		}
	}
	r.Memberships = slices.DeleteFunc(r.Memberships, func(m v1alpha1.Membership) bool {
		return m.State == v1alpha1.MembershipLeft && o.named(m.Pod) == nil
	})
}
