// Package nodestate asks Nodes what matters for the pods on them.
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

// Facts are what matters of a Node. The zero value is that of a pod without a Node.
type Facts struct {
	// Ready is true while the kubelet says so.
	Ready bool
	// NotReadySince is since when it does not; zero while Ready.
	NotReadySince time.Time
	// OutOfService is the word of an administrator that the machine is off, by the taint
	// node.kubernetes.io/out-of-service (KEP-2268).
	OutOfService bool
	// Cordoned is the word of an administrator, or of what scales nodes, that the Node gets no
	// new pods and is about to be drained: spec.unschedulable, as kubectl cordon and drain
	// set it, or one of cordons.
	Cordoned bool
	// Missing is true if there is no Node of that name, and MissingSince is since when
	// this process knows.
	Missing      bool
	MissingSince time.Time
}

// cordons are the taints that say so: the one that follows from spec.unschedulable, that of
// the Cluster Autoscaler, and those of Karpenter since 1.0 and before it. None of the last
// three sets spec.unschedulable.
var cordons = []string{corev1.TaintNodeUnschedulable, "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"}

// Of asks a Node.
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

// Reader reads Nodes, and remembers since when those are missing that are, and which
// machines had their names. The zero value is ready for use.
type Reader struct {
	mu       sync.Mutex
	missing  map[string]time.Time
	machines map[string]machine
}

// machine is what a Node object stands for, and since when it has the name. A Node object
// that is deleted and created again for the same machine does not change since.
type machine struct {
	id, uuid string
	since    time.Time
}

func (m machine) known() bool { return m.id != "" || m.uuid != "" }

func (m machine) is(other machine) bool {
	return (m.id != "" && m.id == other.id) || (m.uuid != "" && m.uuid == other.uuid)
}

// Read reads a Node from the cache, and from the API server if it seems to be gone or
// out of service: that makes other pods start. name may be "".
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

// machineMemory is how long the machine of a Node that is missing is remembered.
const machineMemory = 10 * time.Minute

// Absent notes that there is no Node of that name, and returns since when that is known.
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

// Present notes that a Node is there, and returns since when its machine has the name: the
// creation of the Node, or of the Node object of the same machine before it.
func (r *Reader) Present(n *corev1.Node) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.missing, n.Name)
	now := machine{n.Status.NodeInfo.MachineID, n.Status.NodeInfo.SystemUUID, n.CreationTimestamp.Time}
	if !now.known() {
		return now.since // its kubelet has not written to it yet
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
