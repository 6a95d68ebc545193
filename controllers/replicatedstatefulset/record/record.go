package record

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Record is the persistent state of a set in its status. It contains the members that may be
// primary and the commands that may still run. An entry is written before it becomes true and
// removed only on proof, so the record is always a superset of the truth.
type Record struct {
	Epoch int64
	// formerEpoch is the epoch that the next epoch must exceed.
	formerEpoch int64
	Granted     []v1alpha1.Grant
	Commands    []v1alpha1.RunningCommand
	Failures    []v1alpha1.Failure
	Versions    []v1alpha1.Sequence
	// Maintenance are the states of the members of spec.maintenance.
	Maintenance []v1alpha1.MemberMaintenance
	// Orders are the orders in the spec, with their results.
	Orders OrderBook
	// Events are the observations of this pass, for users.
	Events []Event
}

// Event is an observation that is reported as an event. Kind and Reason are the type and reason
// of the event.
type Event struct{ Kind, Reason, Text string }

// Update advances a stored record by what a pass has read. The order matters: an answer of a member
// proves nothing while a command with an unknown outcome may still run in it.
func Update(stored *v1alpha1.ReplicatedStatefulSetStatus, o *Observed) Record {
	r := recordOf(stored)
	r.formerEpoch = o.formerEpoch()
	r.endCommands(o)
	r.endGrants(o)
	r.grantPrimaries(o)
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
		Orders:      s.Orders,
	}
}

// Into writes the record into a status.
func (r *Record) Into(s *v1alpha1.ReplicatedStatefulSetStatus) {
	s.Epoch, s.Grants, s.Commands, s.Failures, s.Sequences = r.Epoch, r.Granted, r.Commands, r.Failures, r.Versions
	s.Maintenance, s.Orders = r.Maintenance, r.Orders
}

func (r *Record) addEvent(reason, format string, args ...any) {
	r.Events = append(
		r.Events,
		Event{corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...)},
	)
}

func (r *Record) addWarning(reason, format string, args ...any) {
	r.Events = append(
		r.Events,
		Event{corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...)},
	)
}

// Primaries returns how many members may be primary.
func (r *Record) Primaries() int { return len(r.Granted) }

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
