// Package nodestate reads the state of Nodes that is relevant for their pods.
package nodestate

import (
	"context"
	"fmt"
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
	missing  map[string]time.Time
	machines map[string]machine
}

// machine identifies the machine of a Node object, and since when it has the Node's name. Deletion and
// recreation of the Node object for the same machine does not change since.
type machine struct {
	id, uuid string
	since    time.Time
}

func (m machine) known() bool { return m.id != "" || m.uuid != "" }

func (m machine) is(other machine) bool {
	return (m.id != "" && m.id == other.id) || (m.uuid != "" && m.uuid == other.uuid)
}

// Read reads a Node from the cache. If the Node is missing or out of service there, Read reads it from
// the API server, because other pods are started in these cases. name may be "".
func (r *Reader) Read(ctx context.Context, cache, live client.Reader, name string, now time.Time) (Facts, error) {
	if name == "" {
		return Facts{}, nil
	}
	var n corev1.Node
	err := cache.Get(ctx, types.NamespacedName{Name: name}, &n)
	offline := err == nil && Of(&n).OutOfService
	if apierrors.IsNotFound(err) || offline {
		n = corev1.Node{}
		err = live.Get(ctx, types.NamespacedName{Name: name}, &n)
	}
	switch {
	case apierrors.IsNotFound(err):
		return Facts{Missing: true, MissingSince: r.Absent(name, now)}, nil
	case err != nil:
		return Facts{}, fmt.Errorf("get node %s: %w", name, err)
	}
	r.Present(&n)
	return Of(&n), nil
}

// machineMemory is how long the machine of a missing Node is remembered.
const machineMemory = 10 * time.Minute

// Absent records that the Node is missing. It returns when this process first found it missing.
func (r *Reader) Absent(name string, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missing == nil {
		r.missing = map[string]time.Time{}
	}
	if r.missing[name].IsZero() {
		r.missing[name] = now
	}
	if now.Sub(r.missing[name]) > machineMemory {
		delete(r.machines, name)
	}
	return r.missing[name]
}

// Present records that the Node exists. It returns since when the machine has this name: the creation
// time of the Node, or of an earlier Node object of the same machine.
func (r *Reader) Present(n *corev1.Node) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
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
