// Package consistency makes a controller wait until its cache has seen the
// controller's own writes, as Kubernetes' own controllers do since 1.36
// (KEP-5647). Deciding on an older cache would repeat what was done.
package consistency

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patience is how long a key waits for its cache. A write that the cache never
// shows (a watch that was broken misses what was created and deleted meanwhile)
// must not hold the key for ever; whoever acts after that must read live first.
const Patience = 5 * time.Second

// Tracker remembers, for each reconciled key, the writes that the cache has
// not shown yet. The zero value is ready for use, by many goroutines.
type Tracker struct {
	mu     sync.Mutex
	writes map[types.NamespacedName]map[types.UID]write
}

type write struct {
	object  client.Object // identity only: type, name, UID
	version string
	deleted bool
	// going is true of one that was terminating when it was written: this write
	// may have been its last, and then it is never shown.
	going bool
	at    time.Time
}

// Wrote records an object as the API server answered it to a create or patch.
func (t *Tracker) Wrote(key types.NamespacedName, obj client.Object) {
	t.record(key, write{object: obj, version: obj.GetResourceVersion(), going: obj.GetDeletionTimestamp() != nil, at: time.Now()})
}

// Deleted records that an object was deleted, or began to terminate.
func (t *Tracker) Deleted(key types.NamespacedName, obj client.Object) {
	t.record(key, write{object: obj, deleted: true, at: time.Now()})
}

func (t *Tracker) record(key types.NamespacedName, w write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.writes == nil {
		t.writes = map[types.NamespacedName]map[types.UID]write{}
	}
	if t.writes[key] == nil {
		t.writes[key] = map[types.UID]write{}
	}
	t.writes[key][w.object.GetUID()] = w
}

// Forget drops what is known of a key whose object is gone.
func (t *Tracker) Forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.writes, key)
}

// Gone is told of an object that the cache had and has no more: all that was
// written to it has been shown, though nobody looked in between.
func (t *Tracker) Gone(key types.NamespacedName, obj client.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(key, obj.GetUID())
}

// remove forgets the write to one object. The caller holds mu.
func (t *Tracker) remove(key types.NamespacedName, uid types.UID) {
	delete(t.writes[key], uid)
	if len(t.writes[key]) == 0 {
		delete(t.writes, key)
	}
}

// Behind reports whether the cache still lacks a write of this key, and forgets
// the writes that it has. After Patience a write is forgotten too. newObject
// turns a written object into the empty one to read from the cache with, for
// kinds that are cached as metadata only.
func (t *Tracker) Behind(ctx context.Context, key types.NamespacedName, cache client.Reader,
	newObject func(client.Object) client.Object) (bool, error) {
	t.mu.Lock()
	pending := make([]write, 0, len(t.writes[key]))
	for _, w := range t.writes[key] {
		pending = append(pending, w)
	}
	t.mu.Unlock()
	for _, w := range pending {
		if time.Since(w.at) < Patience {
			seen, err := w.seen(ctx, cache, newObject(w.object))
			if err != nil {
				return false, err
			}
			if !seen {
				return true, nil
			}
		}
		t.drop(key, w)
	}
	return false, nil
}

func (t *Tracker) drop(key types.NamespacedName, w write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if uid := w.object.GetUID(); t.writes[key][uid].at.Equal(w.at) {
		t.remove(key, uid)
	}
}

func (w write) seen(ctx context.Context, cache client.Reader, have client.Object) (bool, error) {
	err := cache.Get(ctx, client.ObjectKeyFromObject(w.object), have)
	if apierrors.IsNotFound(err) {
		return w.deleted || w.going, nil
	}
	if err != nil {
		return false, err
	}
	if have.GetUID() != w.object.GetUID() {
		// Another object of that name: ours came and went, or was replaced.
		return w.deleted || w.going, nil
	}
	if w.deleted {
		return have.GetDeletionTimestamp() != nil, nil
	}
	order, err := resourceversion.CompareResourceVersion(have.GetResourceVersion(), w.version)
	if err != nil {
		return false, fmt.Errorf("compare versions of %s: %w", w.object.GetName(), err)
	}
	return order >= 0, nil
}
