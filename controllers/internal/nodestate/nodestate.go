// Package nodestate reads the state of Nodes that is relevant for their pods.
package nodestate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Facts are the relevant facts of a Node. The zero value is for a pod without a Node.
type Facts struct {
	// Ready is the status of condition Ready.
	Ready bool
	// NotReadySince is when the Node became not ready; zero while Ready.
	NotReadySince time.Time
	// OutOfService is true if an administrator has confirmed, by the taint
	// node.kubernetes.io/out-of-service (KEP-2268), that the machine is off.
	OutOfService bool
	// Cordoned is true if the Node gets no new pods and is about to be drained. An administrator or an
	// autoscaler has set spec.unschedulable (as kubectl cordon and drain do) or one of the taints in
	// cordons.
	Cordoned bool
	// Missing is true if no Node of that name exists. MissingSince is when this process detected it.
	Missing      bool
	MissingSince time.Time
}

// cordons are the taints of cordoned Nodes: the one derived from spec.unschedulable, the one of the
// Cluster Autoscaler, and those of Karpenter since 1.0 and before 1.0. The last three are set without
// spec.unschedulable.
var cordons = []string{corev1.TaintNodeUnschedulable, "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"}

// Of returns the facts of a Node.
func Of(n *corev1.Node) Facts {
	var facts Facts
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type != corev1.NodeReady:
		case c.Status == corev1.ConditionTrue:
			facts.Ready = true
		default:
			facts.NotReadySince = c.LastTransitionTime.Time
		}
	}
	facts.Cordoned = n.Spec.Unschedulable
	for _, t := range n.Spec.Taints {
		facts.OutOfService = facts.OutOfService || t.Key == corev1.TaintNodeOutOfService
		facts.Cordoned = facts.Cordoned || slices.Contains(cordons, t.Key)
	}
	return facts
}

// Reader reads Nodes. It records since when Nodes are missing, and which machines had their names. The
// zero value is ready to use.
type Reader struct {
	mu       sync.Mutex
	missing  map[string]absence
	swept    time.Time // when old absences were last dropped
	machines map[string]machine
}

// absence is the record of a missing Node.
type absence struct {
	since time.Time // when this process first found it missing
	asked time.Time // when a caller last asked about it
	read  time.Time // when the API server last reported it missing; zero if it was only missing in the cache
}

// machine identifies the machine of a Node object, and since when it has the Node's name. Deletion and
// recreation of the Node object for the same machine does not change since.
type machine struct {
	id, uuid string
	since    time.Time
}

// known reports whether the machine can be identified.
func (m machine) known() bool { return m.id != "" || m.uuid != "" }

// is reports whether two Node objects are of the same machine.
func (m machine) is(other machine) bool {
	return (m.id != "" && m.id == other.id) || (m.uuid != "" && m.uuid == other.uuid)
}

// Undecided is how long a Node can be missing without consequences: no pod counts as fenced, and none is
// deleted, for an absence that is shorter. Until then a repeated read of the API server is unnecessary.
const Undecided = 30 * time.Second

// recent is how long an answer of the API server that a Node is missing is used again.
const recent = 5 * time.Second

// Read reads a Node from the cache. If the Node is missing or out of service there, Read reads it from
// the API server, because other pods are started in these cases. For a Node that has been missing for
// less than Undecided, an answer of the last few seconds is used again. name may be "".
func (r *Reader) Read(ctx context.Context, cache, live client.Reader, name string, now time.Time) (Facts, error) {
	return r.read(ctx, cache, live, name, now, Undecided)
}

// Glance reads a Node like Read, for a pod for which a missing Node has no consequences. It uses an
// answer of the last few seconds again, no matter how long the Node has been missing.
func (r *Reader) Glance(ctx context.Context, cache, live client.Reader, name string, now time.Time) (Facts, error) {
	return r.read(ctx, cache, live, name, now, math.MaxInt64)
}

// read reads a Node. It uses a recent answer again if the Node has been missing for less than undecided.
func (r *Reader) read(ctx context.Context, cache, live client.Reader, name string, now time.Time, undecided time.Duration) (Facts, error) {
	if name == "" {
		return Facts{}, nil
	}
	var n corev1.Node
	err := cache.Get(ctx, types.NamespacedName{Name: name}, &n)
	if apierrors.IsNotFound(err) {
		if since, ok := r.recall(name, now, undecided); ok {
			return Facts{Missing: true, MissingSince: since}, nil
		}
	}
	offline := err == nil && Of(&n).OutOfService
	if apierrors.IsNotFound(err) || offline {
		n = corev1.Node{}
		err = live.Get(ctx, types.NamespacedName{Name: name}, &n)
	}
	switch {
	case apierrors.IsNotFound(err):
		return Facts{Missing: true, MissingSince: r.absent(name, now, now)}, nil
	case err != nil:
		return Facts{}, fmt.Errorf("get node %s: %w", name, err)
	}
	r.Present(&n, now)
	return Of(&n), nil
}

// recall returns since when a Node is missing, if a recent answer of the API server can be used again.
// ok is false if the API server must be asked.
func (r *Reader) recall(name string, now time.Time, undecided time.Duration) (since time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.missing[name]
	if now.Before(was.read) || now.Sub(was.read) >= recent || now.Sub(was.since) >= undecided {
		return time.Time{}, false
	}
	was.asked = now
	r.missing[name] = was
	return was.since, true
}

// machineMemory is how long the machine of a missing Node is remembered.
const machineMemory = 10 * time.Minute

// Absent records that the Node is missing in a cache. It returns when this process first found it
// missing.
func (r *Reader) Absent(name string, now time.Time) time.Time {
	return r.absent(name, now, time.Time{})
}

// absent records that the Node is missing. read is when the API server was asked, or zero.
func (r *Reader) absent(name string, now, read time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	if r.missing == nil {
		r.missing = map[string]absence{}
	}
	was, recorded := r.missing[name]
	if !recorded {
		was.since = now
	}
	was.asked, was.read = now, read
	r.missing[name] = was
	if now.Sub(was.since) > machineMemory {
		delete(r.machines, name)
	}
	return was.since
}

const (
	// absenceMemory is how long an absence is remembered after the last question about it.
	absenceMemory = time.Hour
	// manyAbsences is twice the number of Nodes that Kubernetes supports. Whoever may bind pods can
	// name any number of Nodes that do not exist. If there are more absences, each is remembered for
	// crowdedMemory only. Absences that decide something are asked about at least once a minute.
	manyAbsences  = 10_000
	crowdedMemory = 5 * time.Minute
	// sweepInterval is how often absences are dropped.
	sweepInterval = time.Minute
)

// sweep drops the absences that nobody has asked about lately. A dropped Node counts as missing from
// the next question on.
func (r *Reader) sweep(now time.Time) {
	if now.Sub(r.swept) < sweepInterval {
		return
	}
	r.swept = now
	memory := absenceMemory
	if len(r.missing) > manyAbsences {
		memory = crowdedMemory
	}
	kept := map[string]absence{} // a map never shrinks
	for name, was := range r.missing {
		if now.Sub(was.asked) < memory {
			kept[name] = was
		}
	}
	r.missing = kept
}

// Present records that the Node exists. It returns since when the machine has this name: the creation
// time of the Node, or of an earlier Node object of the same machine.
func (r *Reader) Present(n *corev1.Node, at time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(at)
	delete(r.missing, n.Name)
	now := machine{n.Status.NodeInfo.MachineID, n.Status.NodeInfo.SystemUUID, n.CreationTimestamp.Time}
	if !now.known() {
		return now.since // the kubelet has not written the Node's status yet
	}
	if was := r.machines[n.Name]; was.is(now) && was.since.Before(now.since) {
		now.since = was.since
	}
	if r.machines == nil {
		r.machines = map[string]machine{}
	}
	r.machines[n.Name] = now
	return now.since
}
