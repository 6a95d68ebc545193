package observe

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// Max number of searches. Owners of refused pods are searched for when this process first
// sees an object, and then at increasing intervals while the object has no pods. The pods
// of a deleted object are searched for several times, because one may have been in creation
// during the deletion.
const (
	OwnerLooks           = 9 // half an hour
	ownerLooksBesidePods = 3
	OrphanLooks          = 5
)

// Remembered is what this process remembers about an object name and the API does not
// store. It is kept when the object is deleted, for the object's remaining pods. After a
// restart the time for which gates have been running starts again, and refused owners are
// searched for again.
type Remembered struct {
	uid     types.UID
	first   time.Time // when this process first saw the object
	Refused memory.Refusal
	Undone  undone.Memory
	Orphans int       // number of searches for pods of the deleted object
	looks   int       // number of searches for refused owners
	due     time.Time // time of the next search for refused owners
	hadPods bool
	held    map[types.UID]time.Time // when the gate of each pod was first seen running
	mirrors map[string]time.Time    // when the mirror of each static pod that may run went missing, else zero
	causes  causes.Known
	lacking facts.LackingOwner // the owner that lacks a pod
	// withoutBudget is the generation of an object that wants no PodDisruptionBudget and
	// was seen to have none.
	withoutBudget generation
}

// generation identifies one generation of the spec of one object.
type generation struct {
	uid types.UID
	of  int64
}

// Of returns the memory of an object name.
func (r *Reader) Of(key types.NamespacedName) *Remembered {
	known, _ := r.memory.Get(key, "")
	return known
}

// Forget forgets an object name. Pods of a namespace without objects are no longer watched.
func (r *Reader) Forget(ctx context.Context, key types.NamespacedName) {
	r.memory.Forget(key)
	if len(r.Known(ctx, key.Namespace)) == 0 {
		r.Pods.leave(key.Namespace)
	}
}

// dueForOwners reports whether to search for refused owners now, and when the next search
// is due.
func (known *Remembered) dueForOwners(w *facts.World) (bool, time.Time) {
	if len(w.Pods) == 0 && known.hadPods { // usually only for a moment
		known.looks, known.due = 0, w.Now.Add(spec.FirstOwnerLook)
	}
	known.hadPods = len(w.Pods) > 0
	if known.looks >= known.maxLooks() {
		return false, time.Time{}
	}
	due := !known.due.After(w.Now)
	if due {
		known.due = w.Now.Add(min(spec.FirstOwnerLook<<known.looks, spec.MaxOwnerLook))
		known.looks++
	}
	return due, known.due
}

// maxLooks returns the max number of searches for refused owners. An outage of the webhook
// is usually an outage of this process as well. So the first searches after a start also
// find the refused pod of a rollout whose old pod still exists.
func (known *Remembered) maxLooks() int {
	if known.hadPods {
		return ownerLooksBesidePods
	}
	return OwnerLooks
}

// Recall copies the memory into a world, and updates the memory.
func (known *Remembered) Recall(w *facts.World) {
	w.Refused = known.Refused.Text()
	if w.Object == nil {
		return
	}
	known.Orphans = 0
	w.Undone = known.Undone.Held(w.Object.Generation, w.Now)
	if known.uid != w.Object.UID {
		known.uid, known.first, known.mirrors = w.Object.UID, w.Now, nil
	}
	w.FirstSeen = known.first
	known.recallMirrors(w)
	before := known.held
	known.held = map[types.UID]time.Time{}
	for _, m := range w.Pods {
		if !m.Held() {
			continue
		}
		if m.HeldSince = w.Now; !before[m.Pod.UID].IsZero() {
			m.HeldSince = before[m.Pod.UID]
		}
		known.held[m.Pod.UID] = m.HeldSince
	}
}

// recallMirrors finds the static pods whose mirror is missing. A static pod that was seen
// to have ended is not missed.
func (known *Remembered) recallMirrors(w *facts.World) {
	shown := known.noteMirrors(w)
	for name, gone := range known.mirrors {
		switch {
		case shown[name]:
			continue
		case gone.IsZero():
			gone = w.Now
			known.mirrors[name] = gone
		case w.Until(gone, spec.MirrorReturns) <= 0:
			delete(known.mirrors, name)
			continue
		}
		if gone.After(w.MirrorGone) {
			w.MirrorGone = gone
		}
	}
}

// noteMirrors records the static pods that may run, and returns the names of all mirrors.
func (known *Remembered) noteMirrors(w *facts.World) (shown map[string]bool) {
	if known.mirrors == nil {
		known.mirrors = map[string]time.Time{}
	}
	shown = map[string]bool{}
	for _, m := range w.Pods {
		if !facts.IsMirror(m.Pod) {
			continue
		}
		shown[m.Name()] = true
		delete(known.mirrors, m.Name())
		if w.MayRun(m) {
			known.mirrors[m.Name()] = time.Time{}
		}
	}
	return shown
}
