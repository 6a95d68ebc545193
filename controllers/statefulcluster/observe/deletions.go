package observe

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// Only the pod watch shows whether a user deleted a pod that is gone: the delete event has the last
// state of the pod, with the condition DisruptionTarget. Each process of the operator watches pods,
// also while it waits for the lease.

// Deletions has the deletions of member pods by users, as far as this process observed them. Disruptions
// are not among them. The zero value is ready for use.
type Deletions struct {
	mu sync.Mutex
	// deleted are the names of the deleted pods, by namespace.
	deleted memory.Recent[string, string, struct{}]
	// Terminating are the pods that had not ended when their deletion was first seen.
	Terminating map[types.NamespacedName]bool
}

// MaxDeletions is the max number of deletions that are kept for each namespace: the newest. A user may
// delete all pods of the largest set at the same time. If more pods are deleted before the next pass of
// a set, its deletions are unknown, as after a restart of the operator.
const MaxDeletions = spec.MaxReplicas

// Gone records that a pod was deleted. isMember is true if a set controlled it. A pod that had ended
// before its deletion is not recorded: its kubelet ended it, or pod garbage collection removed it. In a
// deletion the pod ends too, so its state at the time when the deletion was first seen counts.
func (d *Deletions) Gone(pod *corev1.Pod, isMember bool, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := client.ObjectKeyFromObject(pod)
	endedFirst := podstate.Ended(pod) && !d.Terminating[key]
	delete(d.Terminating, key)
	if endedFirst || podstate.Disrupted(pod) || !isMember {
		d.deleted.Remove(key.Namespace, key.Name)
		return
	}
	d.deleted.Put(key.Namespace, key.Name, struct{}{}, MaxDeletions, now)
}

// OfCachedSet reports whether a set in the cache controls the pod. Anyone who may create pods can copy
// labels, and can create any number of pods with a reference to a set that does not exist.
func (r *Reader) OfCachedSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return false
	}
	var set v1alpha1.StatefulCluster
	err := r.Cache.Get(context.Background(), types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, &set, client.UnsafeDisableDeepCopy)
	return err == nil && children.Controls(&set, pod)
}

// PodHandler returns the event handler for pods, which records their deletions.
func (r *Reader) PodHandler() toolscache.ResourceEventHandler {
	return r.Deletions.handler(r.Now, r.OfCachedSet)
}

// noteTerminating records that a pod is being deleted, if it has not ended. The record is removed when the pod
// is gone, so there are never more records than pods in the cache.
func (d *Deletions) noteTerminating(pod *corev1.Pod) {
	if !podstate.Terminating(pod) || podstate.Ended(pod) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Terminating == nil {
		d.Terminating = map[types.NamespacedName]bool{}
	}
	d.Terminating[client.ObjectKeyFromObject(pod)] = true
}

// forget removes a pod whose delete event the watch missed. It is unknown how it ended.
func (d *Deletions) forget(pod *corev1.Pod) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.Terminating, client.ObjectKeyFromObject(pod))
}

// Created records that a pod exists, so an earlier pod of its name does not matter any more.
func (d *Deletions) Created(pod *corev1.Pod) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deleted.Remove(pod.Namespace, pod.Name)
	delete(d.Terminating, client.ObjectKeyFromObject(pod))
}

// Observed reports whether the pod of that name was deleted, and this process observed it.
func (d *Deletions) Observed(key types.NamespacedName) bool {
	_, observed := d.deleted.Get(key.Namespace, key.Name)
	return observed
}

// handler returns the event handler for pods. isMember reports whether a set controls a pod. Deletions
// that the watch missed while it was interrupted are not recorded.
func (d *Deletions) handler(now func() time.Time, isMember func(*corev1.Pod) bool) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if pod, ok := obj.(*corev1.Pod); ok {
				d.Created(pod)
				d.noteTerminating(pod)
			}
		},
		UpdateFunc: func(_, obj any) {
			if pod, ok := obj.(*corev1.Pod); ok {
				d.noteTerminating(pod)
			}
		},
		DeleteFunc: func(obj any) {
			switch obj := obj.(type) {
			case *corev1.Pod:
				d.Gone(obj, isMember(obj), now())
			case toolscache.DeletedFinalStateUnknown:
				if pod, ok := obj.Obj.(*corev1.Pod); ok {
					d.forget(pod)
				}
			}
		},
	}
}

// readDeletions sets w.Deleted and w.Ending for the pods that are gone.
func (r *Reader) readDeletions(ctx context.Context, w *facts.World, from engine.View) error {
	w.Deleted = map[string]bool{}
	for _, name := range facts.MissingPods(w, facts.PodsOf(w.Members), w.Loose) {
		key := types.NamespacedName{Namespace: w.Set.Namespace, Name: name}
		w.Deleted[name] = r.Deletions.Observed(key)
		if !from.Live || w.Deleted[name] {
			continue
		}
		var pod corev1.Pod
		err := r.Cache.Get(ctx, key, &pod)
		if err == nil {
			w.Ending = append(w.Ending, name)
		} else if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
