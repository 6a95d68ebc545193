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
	// Cordoned is the word of an administrator that the Node gets no new pods, as kubectl
	// cordon and drain say it: by spec.unschedulable, and the taint that follows from it. So
	// it is the word of an autoscaler that it is about to empty the Node.
	Cordoned bool
	// Missing is true if there is no Node of that name, and MissingSince is since when
	// this process knows.
	Missing      bool
	MissingSince time.Time
}

// cordons are the taints of a Node that is about to be emptied: of a cordon, of Karpenter, and
// of the cluster autoscaler.
var cordons = []string{corev1.TaintNodeUnschedulable, "karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler"}

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

// Reader reads Nodes, and remembers since when those are missing that are. The zero
// value is ready for use.
type Reader struct {
	mu      sync.Mutex
	missing map[string]time.Time
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
		return Facts{Missing: true, MissingSince: r.lost(name, now)}, nil
	case err != nil:
		return Facts{}, fmt.Errorf("get node %s: %w", name, err)
	}
	r.found(name)
	return Of(&n), nil
}

// lost is when a Node was first found missing.
func (r *Reader) lost(name string, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missing == nil {
		r.missing = map[string]time.Time{}
	}
	if r.missing[name].IsZero() {
		r.missing[name] = now
	}
	return r.missing[name]
}

// found ends the absence of a Node.
func (r *Reader) found(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.missing, name)
}
