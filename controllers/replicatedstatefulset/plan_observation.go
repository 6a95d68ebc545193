package replicatedstatefulset

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// observation is the part of what a pass has read by which the record is updated.
type observation struct {
	set *v1alpha1.ReplicatedStatefulSet
	now time.Time
	// watch returns the time in which this process could observe the cluster.
	watch leadership.Watch
	// invalid is true if the spec cannot be served.
	invalid bool
	// wanted is the wanted number of members, and target that of primaries.
	wanted, target int
	members        []observedMember
}

// observedMember is one member as a pass has read it.
type observedMember struct {
	identity
	// stopped is true if the pod has ended, or its machine counts as off and the pod cannot start
	// again.
	stopped bool
	// terminating is true if the pod is being deleted, lost if its Node is not ready, and down if
	// the container in which commands run does not run.
	terminating, lost, down bool
	// upToDate is true if the pod has the current template.
	upToDate bool
	// startedAt is when the running container started.
	startedAt time.Time
	// containers are the containers of the pod. newest is the ID of the newest one in which commands
	// run. It is "" if there is none.
	containers []corev1.ContainerStatus
	newest     string
	// command is the command that this process runs in the pod. It is "" if there is none.
	command string
	// results are the last results of commands in the pod, by name.
	results map[string]podexec.Result
	// status and sequence are current answers of these commands. They are nil if there are none.
	status, sequence *podexec.Result
}

// identity names a pod and its running container. The container is "" if none runs.
type identity struct {
	name      string
	podUID    types.UID
	container string
}

func (o *observation) deleting() bool { return o.set.DeletionTimestamp != nil }

// byUID returns the member with the pod. It returns nil if there is none.
func (o *observation) byUID(uid types.UID) *observedMember {
	i := slices.IndexFunc(o.members, func(m observedMember) bool { return m.podUID == uid })
	if i < 0 {
		return nil
	}
	return &o.members[i]
}

// named returns the member with a pod of that name. It returns nil if there is none.
func (o *observation) named(name string) *observedMember {
	i := slices.IndexFunc(o.members, func(m observedMember) bool { return m.name == name })
	if i < 0 {
		return nil
	}
	return &o.members[i]
}

// containerGone reports whether a container has ended, as reported by the kubelet, or counts as
// ended because an administrator declared the machine off.
func (o *observation) containerGone(pod types.UID, id string) bool {
	m := o.byUID(pod)
	if m == nil || m.stopped {
		return true
	}
	for i := range m.containers {
		s := &m.containers[i]
		last := s.LastTerminationState.Terminated
		switch {
		case last != nil && last.ContainerID == id:
			return true
		case s.ContainerID == id:
			return s.State.Terminated != nil
		}
	}
	// The kubelet reports the newest container that it created, so an older one has ended.
	return m.newest != ""
}

// nextContainer returns the member with the pod name in which a container other than id runs. It
// returns nil if there is none.
func (o *observation) nextContainer(pod, id string) *observedMember {
	m := o.named(pod)
	if m == nil || m.container == "" || m.container == id {
		return nil
	}
	if o.containerGone(m.podUID, m.container) {
		return nil
	}
	return m
}

// stateOf returns the state of a member in which the command with an unknown outcome may run. The
// command is nil if there is none.
func (o *observation) stateOf(m *observedMember, command *v1alpha1.RunningCommand) state {
	if m.down {
		return pending
	}
	if m.status == nil || command != nil || m.lost {
		return unknown
	}
	return stateBy(o.set, *m.status)
}

// formerEpoch returns the epoch that the next epoch must exceed, whatever the record contains. The
// former epochs of a restored set are unknown. They were counted from 1, or from the Unix time of
// an earlier restore, so the current Unix time is higher. It returns 0 if no command uses the
// epoch.
func (o *observation) formerEpoch() int64 {
	if o.set.Status.Epoch > 0 || !wasRestored(o.set) || !usesEpoch(o.set) {
		return 0
	}
	return o.now.Unix()
}

// newGrant returns a grant for the running container of a member.
func newGrant(to identity, epoch int64, now time.Time) v1alpha1.Grant {
	return v1alpha1.Grant{
		Pod:         to.name,
		UID:         to.podUID,
		ContainerID: to.container,
		Epoch:       epoch,
		Since:       metav1.NewMicroTime(now),
	}
}
