package record

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Observed are the facts by which the record is updated. Package facts, which imports this one,
// copies them from its World.
type Observed struct {
	Set *v1alpha1.ReplicatedStatefulSet
	Now time.Time
	// Watch returns the time in which this process could observe the cluster.
	Watch leadership.Watch
	// Invalid is true if the spec cannot be served.
	Invalid bool
	// Wanted is the wanted number of members, and WantedPrimaries that of primaries.
	Wanted, WantedPrimaries int
	Members                 []ObservedMember
	// Leases are those of the members, by the name of the pod. It is nil if they were not read.
	Leases map[string]Lease
}

// ObservedMember is one member as a pass has read it.
type ObservedMember struct {
	Identity
	// Stopped is true if the pod has ended, or its machine counts as off and the pod cannot start
	// again.
	Stopped bool
	// Terminating is true if the pod is being deleted, NodeUnreachable if its Node is not ready,
	// and Down if the container in which commands run does not run.
	Terminating, NodeUnreachable, Down bool
	// UpToDate is true if the pod has the current template. Leased is true if the member has a Lease.
	UpToDate, Leased bool
	// StartedAt is when the running container started.
	StartedAt time.Time
	// Containers are the statuses of all containers of the pod. Newest is the ID of the newest
	// container in which commands run, running or not. It is "" if there is none.
	Containers []corev1.ContainerStatus
	Newest     string
	// Command is the command that this process runs in the pod. It is "" if there is none.
	Command string
	// Results are the last results of commands in the pod, by name.
	Results map[string]podexec.Result
	// Status and Sequence are the current answers of these commands: they began in the running
	// container after the last mutating command had ended. They are nil if there are none.
	Status, Sequence *podexec.Result
}

// Identity names a pod and its running container. The container is "" if none runs.
type Identity struct {
	Name      string
	PodUID    types.UID
	Container string
}

// deleting reports whether the object is being deleted.
func (o *Observed) deleting() bool { return o.Set.DeletionTimestamp != nil }

// byUID returns the member with the pod. It returns nil if there is none.
func (o *Observed) byUID(uid types.UID) *ObservedMember {
	i := slices.IndexFunc(o.Members, func(m ObservedMember) bool { return m.PodUID == uid })
	if i < 0 {
		return nil
	}
	return &o.Members[i]
}

// named returns the member with a pod of that name. It returns nil if there is none.
func (o *Observed) named(name string) *ObservedMember {
	i := slices.IndexFunc(o.Members, func(m ObservedMember) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &o.Members[i]
}

// containerEnded reports whether a container has ended, as reported by the kubelet, or counts as
// ended because an administrator declared the machine off.
func (o *Observed) containerEnded(pod types.UID, id string) bool {
	m := o.byUID(pod)
	if m == nil || m.Stopped {
		return true
	}
	for i := range m.Containers {
		s := &m.Containers[i]
		last := s.LastTerminationState.Terminated
		switch {
		case last != nil && last.ContainerID == id:
			return true
		case s.ContainerID == id:
			return s.State.Terminated != nil
		}
	}
	// The kubelet reports the newest container that it created, so an older one has ended.
	return m.Newest != ""
}

// replacementOf returns the member with the pod name in which a container other than id runs. It
// returns nil if there is none.
func (o *Observed) replacementOf(pod, id string) *ObservedMember {
	m := o.named(pod)
	if m == nil || m.Container == "" || m.Container == id {
		return nil
	}
	if o.containerEnded(m.PodUID, m.Container) {
		return nil
	}
	return m
}

// StateOf returns the state of a member in which the command with an unknown outcome may run. The
// command is nil if there is none.
func (o *Observed) StateOf(m *ObservedMember, command *v1alpha1.RunningCommand) State {
	if m.Down {
		return Pending
	}
	if m.Status == nil || command != nil || m.NodeUnreachable {
		return Unknown
	}
	return stateBy(o.Set, *m.Status)
}

// formerEpoch returns the epoch that the next epoch must exceed, whatever the record contains. The
// former epochs of a restored set are unknown. They were counted from 1, or from the Unix time of
// an earlier restore, so the current Unix time is higher. It returns 0 if no command uses the
// epoch.
func (o *Observed) formerEpoch() int64 {
	if o.Set.Status.Epoch > 0 || !spec.WasRestored(o.Set) || !spec.UsesEpoch(o.Set) {
		return 0
	}
	return o.Now.Unix()
}

// Lease is the Lease of a member.
type Lease struct {
	// Epoch is the number of times that it was assigned.
	Epoch int64
	// Holder is the holderIdentity of a pod. It is "" if it names none.
	Holder string
	// Renewed is true if process 1 has renewed it since it was assigned.
	Renewed bool
}

// holds reports whether the Lease names the pod of a grant.
func (l Lease) holds(g *v1alpha1.Grant) bool { return l.Holder == fencing.IdentityOf(g.Pod, g.UID) }

// LeaseEpoch returns the epoch of the Lease with which a member gets a grant. It is 0 if the member has no Lease, or
// if the Leases were not read.
func (o *Observed) LeaseEpoch(m Identity) int64 {
	member := o.byUID(m.PodUID)
	if o.Leases == nil || member == nil || !member.Leased {
		return 0
	}
	return o.Leases[m.Name].Epoch + 1
}

// isRevoked reports whether a grant has ended with its Lease: the Lease has its epoch and does not name the pod, or
// it has a higher epoch. Then no start with this grant can begin any more.
func (o *Observed) isRevoked(g *v1alpha1.Grant) bool {
	l, exists := o.Leases[g.Pod]
	switch {
	case !exists, g.LeaseEpoch == 0, l.Epoch < g.LeaseEpoch:
		return false
	case l.Epoch > g.LeaseEpoch:
		return true
	}
	return !l.holds(g)
}

// isRenewed reports whether process 1 has renewed the Lease with the epoch of the grant.
func (o *Observed) isRenewed(g *v1alpha1.Grant) bool {
	l := o.Leases[g.Pod]
	return l.Renewed && g.LeaseEpoch > 0 && l.Epoch == g.LeaseEpoch && l.holds(g)
}
