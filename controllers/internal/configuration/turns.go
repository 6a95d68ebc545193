package configuration

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// IndexRestarts is an index field in the cache of a kind. Its value is "true" for StatefulSets that
// restart pods for a change of configuration.
const IndexRestarts = "restarts"

// Turns limits how many objects of one kind restart pods concurrently. It is a Limiter that reads the
// active restarts from the cache of StatefulSets, and requeues the objects that can get a slot.
type Turns struct {
	Limiter
	// Cache contains the StatefulSets, indexed by IndexRestarts.
	Cache client.Reader
	// Kind is the kind of their owners.
	Kind string
	// Began returns when the active restart of a StatefulSet for a change began; zero if there is none.
	Began func(*appsv1.StatefulSet) time.Time
	// Wake requeues an object.
	Wake func(types.NamespacedName)
}

// WakeBy returns a function that requeues an object through a channel that the controller watches. If
// the channel is full, it does nothing: waiting objects are requeued after a delay anyway.
func WakeBy(woken chan<- event.GenericEvent, object func(types.NamespacedName) client.Object) func(types.NamespacedName) {
	return func(key types.NamespacedName) {
		select {
		case woken <- event.GenericEvent{Object: object(key)}:
		default:
		}
	}
}

// RestartIndex returns the index function of IndexRestarts. began is as in Turns.
func RestartIndex(began func(*appsv1.StatefulSet) time.Time) client.IndexerFunc {
	return func(o client.Object) []string {
		if set, ok := o.(*appsv1.StatefulSet); ok && !began(set).IsZero() {
			return []string{"true"}
		}
		return nil
	}
}

// Take requests a slot for an object whose change was detected at since.
func (t *Turns) Take(ctx context.Context, key types.NamespacedName, since, now time.Time) (Slot, error) {
	restarting, err := t.restarting(ctx, now)
	if err != nil {
		return Slot{}, err
	}
	return t.Ask(key, since, now, restarting), nil
}

// WakeNext requeues the objects that can get a slot now, except self.
func (t *Turns) WakeNext(ctx context.Context, self types.NamespacedName, now time.Time) error {
	if t.None() {
		return nil
	}
	restarting, err := t.restarting(ctx, now)
	if err != nil {
		return err
	}
	for _, key := range t.Next(now, restarting) {
		if key != self {
			t.Wake(key)
		}
	}
	return nil
}

// restarting returns the objects that restart pods for a change, with their start times. If an object
// restarts several StatefulSets, the latest start counts.
func (t *Turns) restarting(ctx context.Context, now time.Time) (map[types.NamespacedName]time.Time, error) {
	var all appsv1.StatefulSetList
	if err := t.Cache.List(ctx, &all, client.MatchingFields{IndexRestarts: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list StatefulSets that restart: %w", err)
	}
	began := map[types.NamespacedName]time.Time{}
	for i := range all.Items {
		owner := metav1.GetControllerOf(&all.Items[i])
		if owner == nil || owner.Kind != t.Kind {
			continue
		}
		key := types.NamespacedName{Namespace: all.Items[i].Namespace, Name: owner.Name}
		if at := t.Began(&all.Items[i]); began[key].Before(at) && !at.After(now) {
			began[key] = at
		}
	}
	return began, nil
}
