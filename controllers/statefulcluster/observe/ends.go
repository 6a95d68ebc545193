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

// Ends records the deletions of member pods that this process observed and that were not
// disruptions. The zero value is ready for use.
type Ends struct {
	mu sync.Mutex
	// deleted are the names of the deleted pods, by namespace.
	deleted memory.Recent[string, string, struct{}]
	// Leaving are the pods that had not ended when their deletion was first seen.
	Leaving map[types.NamespacedName]bool
}

// MaxEnds is how many deletions are remembered for each namespace: the newest. A user may delete all
// pods of the largest set at the same time. If more pods are deleted before the next pass of a set,
// its deletions are unknown, as after a restart of the operator.
const MaxEnds = spec.MaxReplicas

// Gone records the deletion of a pod. ours reports whether a set controls it. A pod that had ended
// before it was deleted is not recorded: its kubelet ended it, or pod garbage collection removed it.
// During a deletion the kubelet also reports how the pod ended, so the state at the time when the
// deletion was first seen counts.
func (e *Ends) Gone(pod *corev1.Pod, ours bool, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := client.ObjectKeyFromObject(pod)
	endedFirst := podstate.Ended(pod) && !e.Leaving[key]
	delete(e.Leaving, key)
	if endedFirst || podstate.Disrupted(pod) || !ours {
		e.deleted.Remove(key.Namespace, key.Name)
		return
	}
	e.deleted.Put(key.Namespace, key.Name, struct{}{}, MaxEnds, now)
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
	return r.Ends.handler(r.Now, r.OfCachedSet)
}

// leaves records that a pod is being deleted, if it has not ended. The record is removed when the pod
// is gone, so there are never more records than pods in the cache.
func (e *Ends) leaves(pod *corev1.Pod) {
	if !podstate.Terminating(pod) || podstate.Ended(pod) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Leaving == nil {
		e.Leaving = map[types.NamespacedName]bool{}
	}
	e.Leaving[client.ObjectKeyFromObject(pod)] = true
}

// missed removes a pod whose delete event the watch missed.
func (e *Ends) missed(pod *corev1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.Leaving, client.ObjectKeyFromObject(pod))
}

// Made records that a pod exists.
func (e *Ends) Made(pod *corev1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deleted.Remove(pod.Namespace, pod.Name)
	delete(e.Leaving, client.ObjectKeyFromObject(pod))
}

// Knows reports whether the deletion of the pod with that name was observed.
func (e *Ends) Knows(key types.NamespacedName) bool {
	_, known := e.deleted.Get(key.Namespace, key.Name)
	return known
}

// handler returns the event handler for pods. ours reports whether a set controls a pod. Deletions that
// were missed while the watch was interrupted are ignored.
func (e *Ends) handler(now func() time.Time, ours func(*corev1.Pod) bool) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if pod, ok := obj.(*corev1.Pod); ok {
				e.Made(pod)
				e.leaves(pod)
			}
		},
		UpdateFunc: func(_, obj any) {
			if pod, ok := obj.(*corev1.Pod); ok {
				e.leaves(pod)
			}
		},
		DeleteFunc: func(obj any) {
			switch is := obj.(type) {
			case *corev1.Pod:
				e.Gone(is, ours(is), now())
			case toolscache.DeletedFinalStateUnknown:
				if pod, ok := is.Obj.(*corev1.Pod); ok {
					e.missed(pod)
				}
			}
		},
	}
}

// readEnds sets w.Deleted and w.Ending for the pods that are gone.
func (r *Reader) readEnds(ctx context.Context, w *facts.World, from engine.View) error {
	w.Deleted = map[string]bool{}
	for _, name := range facts.Unexplained(w, facts.PodsOf(w.Members), w.Loose) {
		key := types.NamespacedName{Namespace: w.Set.Namespace, Name: name}
		w.Deleted[name] = r.Ends.Knows(key)
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
