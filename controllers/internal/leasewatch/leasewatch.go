// Package leasewatch watches the Leases of objects. Each triggers a pass of its object when its holder changes, and
// when it is not renewed.
package leasewatch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
)

// Watch watches the Leases with one label. Its value is the name of the object of a Lease, which may have several.
// A renewal triggers no pass. A nil Watch watches nothing.
type Watch struct {
	now     func() time.Time
	label   string
	open    Opener
	requeue func(object types.NamespacedName)

	// mu is not held while a watch is opened, so that a slow API server does not block passes of other objects.
	mu sync.Mutex
	// followed are the namespaces with a watch, and leases the Leases in them.
	followed map[string]*following
	leases   map[types.NamespacedName]*watchedLease
}

// following is the watch of a namespace.
type following struct {
	// objects are those that have Leases. The watch ends with the last one.
	objects map[types.NamespacedName]bool
	// end ends the watch. It is nil while the watch is being opened.
	end context.CancelFunc
}

// watchedLease is a Lease as it was last seen.
type watchedLease struct {
	Sighting
	object   types.NamespacedName
	holder   string
	duration time.Duration
	// due is when to trigger the next pass, since the sighting.
	due time.Duration
}

// tick is the interval in which the ages of the Leases are checked.
const tick = 500 * time.Millisecond

// New returns a Watch that triggers passes of objects by requeue.
func New(now func() time.Time, label string, open Opener, requeue func(object types.NamespacedName)) *Watch {
	return &Watch{now: now, label: label, open: open, requeue: requeue,
		followed: map[string]*following{}, leases: map[types.NamespacedName]*watchedLease{}}
}

// Start checks the ages of the Leases until the context ends.
func (w *Watch) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(context.Context) {
		for _, object := range w.due() {
			w.requeue(object)
		}
	}, tick)
	return nil
}

// due returns the objects with Leases that have not been renewed, after half of the duration, after all of it, and
// then in growing intervals.
func (w *Watch) due() []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	var objects []types.NamespacedName
	for _, lease := range w.leases {
		if lease.holder == "" || w.now().Sub(lease.at) < lease.due {
			continue
		}
		objects = append(objects, lease.object)
		lease.due = max(lease.duration, lease.due*2, tick)
	}
	return objects
}

// Follow starts to watch the Leases of an object's namespace, unless it already does. The right to do so must exist. It
// does not wait for a pass of another object that is opening the same watch: after an
// error, the passes of both try again.
func (w *Watch) Follow(ctx context.Context, object types.NamespacedName) error {
	if w == nil {
		return nil
	}
	selector, err := labels.Parse(w.label)
	if err != nil {
		return err
	}
	f := w.join(object)
	if f == nil {
		return nil
	}
	handler := toolscache.ResourceEventHandlerFuncs{AddFunc: w.see, UpdateFunc: func(_, lease any) { w.see(lease) }, DeleteFunc: w.forget}
	// It ends with the manager, if no Leave ends it before.
	end, err := w.open(ctx, cache.Options{
		DefaultNamespaces: map[string]cache.Config{object.Namespace: {}},
		ByObject:          map[client.Object]cache.ByObject{&coordinationv1.Lease{}: {Label: selector}},
	}, handler, &coordinationv1.Lease{})
	for _, other := range w.opened(object, f, end, err) {
		w.requeue(other)
	}
	if err != nil {
		return fmt.Errorf("watch Leases in %s: %w", object.Namespace, err)
	}
	return nil
}

// join adds an object to the watch of its namespace. It returns the watch if the caller must open it, and else nil.
func (w *Watch) join(object types.NamespacedName) *following {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.followed[object.Namespace]; f != nil {
		f.objects[object] = true
		return nil
	}
	f := &following{objects: map[types.NamespacedName]bool{object: true}}
	w.followed[object.Namespace] = f
	return f
}

// opened records the result of the opening of a watch. If all objects have left meanwhile, it ends the watch. After an
// error it returns the other objects that have joined: their passes must try again.
func (w *Watch) opened(object types.NamespacedName, f *following, end context.CancelFunc, err error) (others []types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f.end = end
	switch {
	case err != nil:
		delete(w.followed, object.Namespace)
		delete(f.objects, object)
		return slices.Collect(maps.Keys(f.objects))
	case len(f.objects) == 0:
		w.close(object.Namespace, f)
	}
	return nil
}

// Leave ends the watch of an object's namespace if no other object there has Leases.
func (w *Watch) Leave(object types.NamespacedName) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.followed[object.Namespace]
	if f == nil || !f.objects[object] {
		return
	}
	delete(f.objects, object)
	if len(f.objects) == 0 && f.end != nil {
		w.close(object.Namespace, f)
	}
}

// close ends the watch of a namespace, and forgets its Leases. The caller holds the mutex.
func (w *Watch) close(namespace string, f *following) {
	f.end()
	delete(w.followed, namespace)
	maps.DeleteFunc(w.leases, func(lease types.NamespacedName, _ *watchedLease) bool { return lease.Namespace == namespace })
}

// objectOf returns the object of a Lease.
func (w *Watch) objectOf(lease *coordinationv1.Lease) types.NamespacedName {
	return types.NamespacedName{Namespace: lease.Namespace, Name: lease.Labels[w.label]}
}

// see records a version of a Lease, and triggers a pass if its holder has changed. It ignores events of a watch that has
// ended.
func (w *Watch) see(obj any) {
	lease, ok := obj.(*coordinationv1.Lease)
	if !ok {
		return
	}
	key, object, holder := client.ObjectKeyFromObject(lease), w.objectOf(lease), fencing.HolderOf(lease)
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	w.mu.Lock()
	if w.followed[lease.Namespace] == nil {
		w.mu.Unlock()
		return
	}
	before := w.leases[key]
	if before == nil || before.version != lease.ResourceVersion {
		w.leases[key] = &watchedLease{Sighting: Sighting{lease.ResourceVersion, w.now()},
			object: object, holder: holder, duration: duration, due: duration / 2}
	}
	changed := before == nil || before.holder != holder || before.object != object
	w.mu.Unlock()
	if changed {
		w.requeue(object)
	}
}

// forget forgets a Lease that was deleted, and triggers a pass.
func (w *Watch) forget(obj any) {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	lease, ok := obj.(*coordinationv1.Lease)
	if !ok {
		return
	}
	w.mu.Lock()
	delete(w.leases, client.ObjectKeyFromObject(lease))
	w.mu.Unlock()
	w.requeue(w.objectOf(lease))
}

// Since returns when this process first saw a version of a Lease, which it has read now. seen is what earlier reads have
// seen. The watch may have seen it before.
func (w *Watch) Since(lease types.NamespacedName, seen *Sighting, version string, now time.Time) time.Time {
	since := seen.Since(version, now)
	if earlier := w.SeenAt(lease, version); !earlier.IsZero() && earlier.Before(since) {
		return earlier
	}
	return since
}

// SeenAt returns when a version of a Lease was seen; zero if it is not the last one that was seen.
func (w *Watch) SeenAt(lease types.NamespacedName, version string) time.Time {
	if w == nil {
		return time.Time{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen := w.leases[lease]; seen != nil && seen.version == version {
		return seen.at
	}
	return time.Time{}
}
