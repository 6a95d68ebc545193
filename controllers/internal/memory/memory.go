// Package memory keeps what no object says from one pass to the next. All of it may be
// lost: whoever remembers something here finds it out again after a restart.
package memory

import (
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/rejection"
)

// Of remembers a T for each object. One key is reconciled by one worker at a time, so
// what Get returns belongs to that worker. The zero value is ready for use.
type Of[T any] struct {
	mu    sync.Mutex
	known map[types.NamespacedName]*entry[T]
}

type entry[T any] struct {
	uid   types.UID
	value T
}

// Get returns what is remembered of an object, and whether it was seen for the first
// time. An object of the same name with another UID is another object: what was known
// of the one before is dropped.
func (m *Of[T]) Get(key types.NamespacedName, uid types.UID) (value *T, isNew bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.known[key]; known != nil && known.uid == uid {
		return &known.value, false
	}
	if m.known == nil {
		m.known = map[types.NamespacedName]*entry[T]{}
	}
	fresh := &entry[T]{uid: uid}
	m.known[key] = fresh
	return &fresh.value, true
}

// Forget drops what is known of an object that is gone, and reports whether anything
// was.
func (m *Of[T]) Forget(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.known[key]
	delete(m.known, key)
	return known
}

// Refusal remembers what the API server refuses. The first refusal is not told: it may
// be of an object that somebody deleted in this moment.
type Refusal struct {
	failed int // passes in a row
	text   string
}

// Learn takes how a pass ended, nil if nothing failed.
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

// Text is what the API server said when it refused a write twice in a row; "" if it did
// not.
func (r *Refusal) Text() string { return r.text }

// refused reports whether the API server understood a write and said no, or did not take it as
// it was sent.
func refused(err error) bool {
	return errors.Is(err, rejection.ErrChanged) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsInternalError(err) || apierrors.IsAlreadyExists(err)
}
