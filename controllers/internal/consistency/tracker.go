// Package consistency makes a controller wait until its cache contains the controller's own writes, as
// controllers of Kubernetes do since 1.36 (KEP-5647). Decisions based on an older cache would repeat
// actions.
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

// Patience is how long a key waits for its cache. Some writes never appear in the cache: a broken watch
// can miss objects that were created and deleted meanwhile. Such a write must not block the key for
// ever. A controller that acts after Patience must first read from the API server.
const Patience = 5 * time.Second

// Tracker records, for each reconciled key, the writes that the cache does not contain yet. The zero
// value is ready to use. Tracker is safe for concurrent use.
type Tracker struct {
	mu     sync.Mutex
	writes map[types.NamespacedName]map[types.UID]write
}

// write is the last recorded write of an object.
type write struct {
	object  client.Object // only type, name and UID are used
	version string
	deleted bool
	// going is true if the object was terminating when it was written. This write may have been its
	// last one, and then it never appears in the cache.
	going bool
	at    time.Time
}

// Wrote records an object as returned by the API server for a create or patch.
func (t *Tracker) Wrote(key types.NamespacedName, obj client.Object) {
	t.record(key, write{object: obj, version: obj.GetResourceVersion(), going: obj.GetDeletionTimestamp() != nil, at: time.Now()})
}

// Deleted records that an object was deleted or became terminating.
func (t *Tracker) Deleted(key types.NamespacedName, obj client.Object) {
	t.record(key, write{object: obj, deleted: true, at: time.Now()})
}

// record stores a write. It replaces an earlier write of the same object.
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

// Forget removes all records of a key whose object no longer exists.
func (t *Tracker) Forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.writes, key)
}

// Gone removes the record of an object that was removed from the cache. The cache has then seen all
// writes to it, even if Behind was not called in between.
func (t *Tracker) Gone(key types.NamespacedName, obj client.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(key, obj.GetUID())
}

// remove deletes the record of one object. The caller holds mu.
func (t *Tracker) remove(key types.NamespacedName, uid types.UID) {
	delete(t.writes[key], uid)
	if len(t.writes[key]) == 0 {
		delete(t.writes, key)
	}
}

// Behind reports whether the cache still lacks a write of this key. It removes the records of writes
// that the cache contains, and those older than Patience. newObject returns an empty object of the type
// that the cache uses for the written object, because some kinds are cached as metadata only.
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
			cached, err := w.isCached(ctx, cache, newObject(w.object))
			if err != nil {
				return false, err
			}
			if !cached {
				return true, nil
			}
		}
		t.drop(key, w)
	}
	return false, nil
}

// drop removes the record of a write, unless a later write of the object was recorded meanwhile.
func (t *Tracker) drop(key types.NamespacedName, w write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if uid := w.object.GetUID(); t.writes[key][uid].at.Equal(w.at) {
		t.remove(key, uid)
	}
}

// isCached reports whether the cache contains a write, or a later one. It reads the object into have.
func (w write) isCached(ctx context.Context, cache client.Reader, have client.Object) (bool, error) {
	err := cache.Get(ctx, client.ObjectKeyFromObject(w.object), have)
	if apierrors.IsNotFound(err) {
		return w.deleted || w.going, nil
	}
	if err != nil {
		return false, err
	}
	if have.GetUID() != w.object.GetUID() {
		// Another object has this name: ours was deleted, or was replaced.
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
