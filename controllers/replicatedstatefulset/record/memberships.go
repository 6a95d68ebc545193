package record

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// MembershipOf returns the membership of a member in the application. Its state is "" if there is no
// entry: the member was never started, or there is no command leave.
func (r *Record) MembershipOf(pod string) v1alpha1.Membership {
	for _, m := range r.Memberships {
		if m.Pod == pod {
			return m
		}
	}
	return v1alpha1.Membership{Pod: pod}
}

// setMembership replaces the membership of a member.
func (r *Record) setMembership(m v1alpha1.Membership) {
	r.removeMembership(m.Pod)
	r.Memberships = append(r.Memberships, m)
	slices.SortFunc(r.Memberships, func(x, y v1alpha1.Membership) int {
		return cmp.Or(len(x.Pod)-len(y.Pod), strings.Compare(x.Pod, y.Pod))
	})
}

func (r *Record) removeMembership(pod string) {
	r.Memberships = slices.DeleteFunc(slices.Clone(r.Memberships), func(m v1alpha1.Membership) bool { return m.Pod == pod })
}

// NoteSent records that a command is about to be sent: a start makes the application accept the
// member, and leave may make it forget the member.
func (r *Record) NoteSent(set *v1alpha1.ReplicatedStatefulSet, command, pod string) {
	switch {
	case command == v1alpha1.CommandLeave:
		m := r.MembershipOf(pod)
		m.State = v1alpha1.MembershipLeaving
		r.setMembership(m)
	case spec.Starts(command) && spec.HasCommand(set, v1alpha1.CommandLeave):
		r.setMembership(v1alpha1.Membership{Pod: pod, State: v1alpha1.MembershipJoined})
	case spec.Starts(command):
		r.removeMembership(pod)
	}
}

// noteLeave records the result of leave. A failure is not one of a start or stop, and its exit code
// has no meaning.
func (r *Record) noteLeave(o *Observed, pod string, code int) {
	m := r.MembershipOf(pod)
	if code == 0 {
		r.addEvent(v1alpha1.EventMemberLeft, "leave of %s succeeded", pod)
		r.setMembership(v1alpha1.Membership{Pod: pod, State: v1alpha1.MembershipLeft})
		return
	}
	r.addWarning(v1alpha1.EventMemberFailed, "leave of %s %s", pod, HowFailed(code))
	m.State = v1alpha1.MembershipLeaving
	m.Failures, m.ExitCode, m.LastFailure = m.Failures+1, int32(code), new(metav1.NewTime(o.Now))
	r.setMembership(m)
}

// updateMemberships records members that were started before there was a command leave. It removes
// entries that have no effect any more.
func (r *Record) updateMemberships(o *Observed) {
	if o.Invalid {
		return
	}
	leaves := spec.HasCommand(o.Set, v1alpha1.CommandLeave)
	if leaves {
		r.addJoined(o)
	}
	r.Memberships = slices.DeleteFunc(r.Memberships, func(m v1alpha1.Membership) bool {
		gone := o.named(m.Pod) == nil
		switch m.State {
		case v1alpha1.MembershipLeft:
			return gone
		case v1alpha1.MembershipLeaving:
			return gone && !leaves // otherwise it must be stopped before it can join again
		}
		return !leaves
	})
}

// addJoined records the members that run. If the command leave is new, it records all members, because
// those that do not run now may have run before.
func (r *Record) addJoined(o *Observed) {
	isNew := len(r.Memberships) == 0 && r.Epoch > 0
	for i := range o.Members {
		m := &o.Members[i]
		state := r.stateOf(o, m)
		if runs := state == Primary || state == Secondary; !runs && !isNew {
			continue
		}
		if r.MembershipOf(m.Name).State == "" {
			r.setMembership(v1alpha1.Membership{Pod: m.Name, State: v1alpha1.MembershipJoined})
		}
	}
}
