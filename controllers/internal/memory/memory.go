// Package memory keeps state between passes that is not stored in any object. All of it can be lost: it
// must be possible to determine it again after a restart.
package memory

import (
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/rejection"
)

// Of stores a T for each object. A key is reconciled by one worker at a time, so that worker can use
// the result of Get without a lock. The zero value is ready to use.
type Of[T any] struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]*entry[T]
}

// entry is the value of an object, which is identified by its UID.
type entry[T any] struct {
	uid   types.UID
	value T
}

// Get returns the value of an object, and stores a zero value if there is none. isNew is true then. If
// the stored value is of another object with the same name, by UID, it is replaced.
func (m *Of[T]) Get(key types.NamespacedName, uid types.UID) (value *T, isNew bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[key]; e != nil && e.uid == uid {
		return &e.value, false
	}
	if m.entries == nil {
		m.entries = map[types.NamespacedName]*entry[T]{}
	}
	fresh := &entry[T]{uid: uid}
	m.entries[key] = fresh
	return &fresh.value, true
}

// Forget removes the value of a deleted object. It reports whether there was one.
func (m *Of[T]) Forget(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, stored := m.entries[key]
	delete(m.entries, key)
	return stored
}

// Refusal records that the API server rejects the writes for an object. The first rejection is not
// reported, because the object may just have been deleted.
type Refusal struct {
	failed int // number of consecutive failed passes
	text   string
}

// Learn records the error of a pass; nil if there was none.
func (r *Refusal) Learn(failed error) {
	if failed == nil {
		*r = Refusal{}
		return
	}
	r.failed++
	if r.failed > 1 && refused(failed) {
		r.text = failed.Error()
	}
}

// Text returns the API server's message if it rejected a write in two consecutive passes, else "".
func (r *Refusal) Text() string { return r.text }

// refused reports whether the API server rejected a write, or stored it with changes.
func refused(err error) bool {
	return errors.Is(err, rejection.ErrChanged) || errors.Is(err, rejection.ErrUnstored) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsInternalError(err) || apierrors.IsAlreadyExists(err)
}
