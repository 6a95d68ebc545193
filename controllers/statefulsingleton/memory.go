package statefulsingleton

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// Max number of searches. Owners of refused pods are searched for when this process first
// sees an object, and then at increasing intervals while the object has no pods. The pods
// of a deleted object are searched for several times, because one may have been in creation
// during the deletion.
const (
	ownerLooks           = 9 // half an hour
	ownerLooksBesidePods = 3
	orphanLooks          = 5
)

// remembered is what this process remembers about an object name and the API does not
// store. It is kept when the object is deleted, for the object's remaining pods. After a
// restart the time for which gates have been running starts again, and refused owners are
// searched for again.
type remembered struct {
	uid     types.UID
	first   time.Time // when this process first saw the object
	refused memory.Refusal
	undone  undone.Memory
	orphans int       // number of searches for pods of the deleted object
	looks   int       // number of searches for refused owners
	due     time.Time // time of the next search for refused owners
	hadPods bool
	held    map[types.UID]time.Time // when the gate of each pod was first seen running
	mirrors map[string]time.Time    // when the mirror of each static pod that may run went missing, else zero
	causes  causes.Known
	lacking lackingOwner // the owner that lacks a pod
	// withoutBudget is the generation of an object that wants no PodDisruptionBudget and
	// was seen to have none.
	withoutBudget generation
}

// generation identifies one generation of the spec of one object.
type generation struct {
	uid types.UID
	of  int64
}

// of returns the memory of an object name.
func (r *reader) of(key types.NamespacedName) *remembered {
	known, _ := r.memory.Get(key, "")
	return known
}

// forget forgets an object name. Pods of a namespace without objects are no longer watched.
func (r *reader) forget(ctx context.Context, key types.NamespacedName) {
	r.memory.Forget(key)
	if len(r.known(ctx, key.Namespace)) == 0 {
		r.pods.leave(key.Namespace)
	}
}

// dueForOwners reports whether to search for refused owners now, and when the next search
// is due.
func (known *remembered) dueForOwners(w *world) (bool, time.Time) {
	if len(w.pods) == 0 && known.hadPods { // usually only for a moment
		known.looks, known.due = 0, w.now.Add(firstOwnerLook)
	}
	known.hadPods = len(w.pods) > 0
	if known.looks >= known.maxLooks() {
		return false, time.Time{}
	}
	due := !known.due.After(w.now)
	if due {
		known.due = w.now.Add(min(firstOwnerLook<<known.looks, maxOwnerLook))
		known.looks++
	}
	return due, known.due
}

// maxLooks returns the max number of searches for refused owners. An outage of the webhook
// is usually an outage of this process as well. So the first searches after a start also
// find the refused pod of a rollout whose old pod still exists.
func (known *remembered) maxLooks() int {
	if known.hadPods {
		return ownerLooksBesidePods
	}
	return ownerLooks
}

// recall copies the memory into a world, and updates the memory.
func (known *remembered) recall(w *world) {
	w.refused = known.refused.Text()
	if w.object == nil {
		return
	}
	known.orphans = 0
	w.undone = known.undone.Held(w.object.Generation, w.now)
	if known.uid != w.object.UID {
		known.uid, known.first, known.mirrors = w.object.UID, w.now, nil
	}
	w.firstSeen = known.first
	known.recallMirrors(w)
	before := known.held
	known.held = map[types.UID]time.Time{}
	for _, m := range w.pods {
		if !m.held() {
			continue
		}
		if m.heldSince = w.now; !before[m.pod.UID].IsZero() {
			m.heldSince = before[m.pod.UID]
		}
		known.held[m.pod.UID] = m.heldSince
	}
}

// recallMirrors finds the static pods whose mirror is missing. A static pod that was seen
// to have ended is not missed.
func (known *remembered) recallMirrors(w *world) {
	shown := known.noteMirrors(w)
	for name, gone := range known.mirrors {
		switch {
		case shown[name]:
			continue
		case gone.IsZero():
			gone = w.now
			known.mirrors[name] = gone
		case w.until(gone, mirrorReturns) <= 0:
			delete(known.mirrors, name)
			continue
		}
		if gone.After(w.mirrorGone) {
			w.mirrorGone = gone
		}
	}
}

// noteMirrors records the static pods that may run, and returns the names of all mirrors.
func (known *remembered) noteMirrors(w *world) (shown map[string]bool) {
	if known.mirrors == nil {
		known.mirrors = map[string]time.Time{}
	}
	shown = map[string]bool{}
	for _, m := range w.pods {
		if !isMirror(m.pod) {
			continue
		}
		shown[m.name()] = true
		delete(known.mirrors, m.name())
		if w.mayRun(m) {
			known.mirrors[m.name()] = time.Time{}
		}
	}
	return shown
}
