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

// IndexRestarts is the field that the cache of a kind is indexed by: of StatefulSets that
// restart pods for a change it is "true".
const IndexRestarts = "restarts"

// Turns lets the objects of one kind restart pods, a number of them at one time. Who does
// so is seen in their StatefulSets.
type Turns struct {
	Limiter
	// Cache has the StatefulSets, indexed by IndexRestarts.
	Cache client.Reader
	// Kind is that of their owners.
	Kind string
	// Began is when the restart for a change began that is under way in a StatefulSet;
	// zero if none is.
	Began func(*appsv1.StatefulSet) time.Time
	// Wake makes the controller look at an object.
	Wake func(types.NamespacedName)
}

// WakeBy makes a controller look at an object by a channel that it watches. One that is
// full wakes nobody: who waits looks again by itself after a while.
func WakeBy(woken chan<- event.GenericEvent, object func(types.NamespacedName) client.Object) func(types.NamespacedName) {
	return func(key types.NamespacedName) {
		select {
		case woken <- event.GenericEvent{Object: object(key)}:
		default:
		}
	}
}

// RestartIndex gives the values of IndexRestarts. began is as in Turns.
func RestartIndex(began func(*appsv1.StatefulSet) time.Time) client.IndexerFunc {
	return func(o client.Object) []string {
		if set, ok := o.(*appsv1.StatefulSet); ok && !began(set).IsZero() {
			return []string{"true"}
		}
		return nil
	}
}

// Take asks for the turn of an object whose change was seen at since.
func (t *Turns) Take(ctx context.Context, key types.NamespacedName, since, now time.Time) (Slot, error) {
	restarting, err := t.restarting(ctx, now)
	if err != nil {
		return Slot{}, err
	}
	return t.Ask(key, since, now, restarting), nil
}

// WakeNext wakes those whose turn it is now, but for the object that is looked at.
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

// restarting finds the objects that restart pods for a change, and since when. Of one
// that restarts several StatefulSets the last began last.
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
