package record

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Record is the persistent state of a set in its status. Its grants contain all containers that may
// be primary, and its commands all commands that may still run. An entry is written before the
// command is sent, and removed only on proof. So both lists may contain too many entries, and never
// too few.
type Record struct {
	// Epoch is the number of starts of a first primary. See EpochOf.
	Epoch int64
	// formerEpoch is another lower bound of the next epoch, for a restored set. See
	// Observed.formerEpoch.
	formerEpoch int64
	// Granted are the grants, at most one for a container.
	Granted []v1alpha1.Grant
	// Commands are the mutating commands that may still run, at most one for a pod.
	Commands []v1alpha1.RunningCommand
	// Failures are the recent failures of mutating commands, at most one for a pod name.
	Failures []v1alpha1.Failure
	// Versions are the highest known sequences of the members, at most one for a pod name.
	Versions []v1alpha1.Sequence
	// Maintenance are the states of the members of spec.maintenance.
	Maintenance []v1alpha1.MemberMaintenance
	// Memberships are the members that the application knows, at most one for a pod name. It is empty
	// without a command leave.
	Memberships []v1alpha1.Membership
	// Orders are the orders in the spec, with their results.
	Orders OrderBook
	// Events are the changes that Update made, for users. They are not stored.
	Events []Event
}

// Event is an event about a change of the record. Kind is its type, Normal or Warning.
type Event struct{ Kind, Reason, Text string }

// Update returns the stored record, updated by the facts of a pass. The order matters: an answer of
// a member proves nothing while a command with an unknown outcome may still run in it. So commands
// end first, then grants.
func Update(stored *v1alpha1.ReplicatedStatefulSetStatus, o *Observed) Record {
	r := recordOf(stored)
	r.formerEpoch = o.formerEpoch()
	r.endCommands(o)
	r.endGrants(o)
	r.grantPrimaries(o)
	r.updateMemberships(o)
	r.updateMaintenance(o)
	r.noteOrders(o)
	r.removeLapsed(o)
	r.noteVersions(o)
	return r
}

// recordOf returns the stored record. It shares no memory with the status.
func recordOf(status *v1alpha1.ReplicatedStatefulSetStatus) Record {
	s := status.DeepCopy()
	return Record{
		Epoch:       s.Epoch,
		Granted:     s.Grants,
		Commands:    s.Commands,
		Failures:    s.Failures,
		Versions:    s.Sequences,
		Maintenance: s.Maintenance,
		Memberships: s.Memberships,
		Orders:      s.Orders,
	}
}

// Into writes the record into a status.
func (r *Record) Into(s *v1alpha1.ReplicatedStatefulSetStatus) {
	s.Epoch, s.Grants, s.Commands, s.Failures, s.Sequences = r.Epoch, r.Granted, r.Commands, r.Failures, r.Versions
	s.Maintenance, s.Memberships, s.Orders = r.Maintenance, r.Memberships, r.Orders
}

// addEvent adds an event of type Normal.
func (r *Record) addEvent(reason, format string, args ...any) {
	r.Events = append(
		r.Events,
		Event{corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...)},
	)
}

// addWarning adds an event of type Warning.
func (r *Record) addWarning(reason, format string, args ...any) {
	r.Events = append(
		r.Events,
		Event{corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...)},
	)
}

// Primaries returns how many members may be primary.
func (r *Record) Primaries() int { return len(r.Granted) }

// HasGrants reports whether any member may be primary.
func (r *Record) HasGrants() bool { return len(r.Granted) > 0 }

// Grants reports whether a container of the member may be primary.
func (r *Record) Grants(m Identity) bool {
	return slices.ContainsFunc(r.Granted, func(g v1alpha1.Grant) bool { return g.UID == m.PodUID })
}

// GrantsRunning reports whether the running container of the member may be primary.
func (r *Record) GrantsRunning(m Identity) bool {
	return slices.ContainsFunc(r.Granted, func(g v1alpha1.Grant) bool {
		return g.UID == m.PodUID && g.ContainerID == m.Container
	})
}

// GrantedAt returns when the running container of the member got its grant. It returns nil if it
// has none.
func (r *Record) GrantedAt(m Identity) *metav1.MicroTime {
	for _, g := range r.Granted {
		if g.UID == m.PodUID && g.ContainerID == m.Container {
			return &g.Since
		}
	}
	return nil
}

// stateOf returns the state of a member. It is unknown while a command with an unknown outcome may
// run in it.
func (r *Record) stateOf(o *Observed, m *ObservedMember) State {
	return o.StateOf(m, CommandOf(r.Commands, m.PodUID))
}

// grantOf returns the grant with which a command may make a primary. It returns nil if there is none.
func (r *Record) grantOf(c *v1alpha1.RunningCommand) *v1alpha1.Grant {
	for i := range r.Granted {
		if g := &r.Granted[i]; g.UID == c.UID && g.ContainerID == c.ContainerID {
			return g
		}
	}
	return nil
}

// GrantsName reports whether a pod of that name may be primary.
func (r *Record) GrantsName(pod string) bool {
	return slices.ContainsFunc(r.Granted, func(g v1alpha1.Grant) bool { return g.Pod == pod })
}

// startsIn reports whether a start with an unknown outcome may make the grant's container primary.
func (r *Record) startsIn(g *v1alpha1.Grant) bool {
	return slices.ContainsFunc(r.Commands, func(c v1alpha1.RunningCommand) bool {
		return spec.StartsPrimary(c.Name) && c.Pod == g.Pod && c.ContainerID == g.ContainerID
	})
}

// EpochOf returns the epoch of the next command. A first primary begins a new epoch, higher than
// any before. The epoch is on record before it is sent.
func (r *Record) EpochOf(name string) int64 {
	if !spec.StartsPrimary(name) || r.HasGrants() {
		return r.Epoch
	}
	return max(r.Epoch, r.formerEpoch) + 1
}
