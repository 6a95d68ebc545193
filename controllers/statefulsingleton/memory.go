package statefulsingleton

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// Refused owners are looked for when an object is first seen by this process, and then,
// while it has no pods, at growing intervals; the pods of an object that is gone, since
// one may have been on its way when it went.
const (
	ownerLooks           = 9 // half an hour
	ownerLooksBesidePods = 3
	orphanLooks          = 5
)

// remembered is what no object says, by its name: what is known of the pods of one that is
// gone stays. A restart counts the rest of gates from its begin, and looks for refused owners
// once more.
type remembered struct {
	uid     types.UID
	first   time.Time // when this object was first seen
	refused memory.Refusal
	undone  undone.Memory
	orphans int       // how often the pods of an object that is gone were looked for
	looks   int       // how often refused owners were looked for
	due     time.Time // when to look for them again
	hadPods bool
	held    map[types.UID]time.Time // since when the gates of pods are known to run
	mirrors map[string]time.Time    // static pods that may run, and since when they are not shown; zero while they are
	causes  causes.Known
	lacking lackingOwner // the owner that lacks a pod
	// withoutBudget is the generation of the object that wants no PodDisruptionBudget, and
	// was seen to have none.
	withoutBudget generation
}

// generation is one of the spec of an object.
type generation struct {
	uid types.UID
	of  int64
}

// of returns what is remembered of a name.
func (r *Reconciler) of(key types.NamespacedName) *remembered {
	known, _ := r.memory.Get(key, "")
	return known
}

// dueForOwners reports whether to look for refused owners now, and when next.
func (known *remembered) dueForOwners(w *world) (bool, time.Time) {
	if len(w.pods) == 0 && known.hadPods { // mostly for a moment
		known.looks, known.due = 0, w.now.Add(firstOwnerLook)
	}
	known.hadPods = len(w.pods) > 0
	if known.looks >= known.mostLooks() {
		return false, time.Time{}
	}
	due := !known.due.After(w.now)
	if due {
		known.due = w.now.Add(min(firstOwnerLook<<known.looks, longestOwnerLook))
		known.looks++
	}
	return due, known.due
}

// mostLooks is how often refused owners are looked for. An outage of the webhook is
// mostly one of this process: the first looks are for pods of a rollout, whose old pod is
// there still.
func (known *remembered) mostLooks() int {
	if known.hadPods {
		return ownerLooksBesidePods
	}
	return ownerLooks
}

// recall puts what is remembered into a world.
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

// recallMirrors finds out which static pods are not shown any more. One that is
// seen to have ended is not missed.
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

// noteMirrors remembers the static pods that may run, and returns the names of all that
// are shown.
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
