package observe

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/decisions"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leasewatch"
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
	OwnerLooks           = 9 // for an object without pods: half an hour
	ownerLooksBesidePods = 3 // for an object with pods
	OrphanLooks          = 5 // for the pods of a deleted object
)

// Remembered is what this process remembers about an object name and the API does not
// store. It is kept when the object is deleted, for the object's remaining pods. After a
// restart the time for which gates have been running starts again, and refused owners are
// searched for again.
type Remembered struct {
	// uid is that of the object, and first is when this process first saw it.
	uid   types.UID
	first time.Time
	// Refused is the last error of a write.
	Refused memory.Refusal
	// Undone are the writes that an admission webhook or policy reverted.
	Undone undone.Memory
	// Decisions are those that the status does not have yet.
	Decisions decisions.Buffer
	// Orphans is the number of searches for pods of the deleted object.
	Orphans int
	// looks is the number of searches for refused owners, and due the time of the next one.
	looks int
	due   time.Time
	// hadPods is true if the object had pods in the last pass.
	hadPods bool
	// atGate is when the gate of each pod was first seen running.
	atGate map[types.UID]time.Time
	// mirrors has the static pods that may run, with the time at which the mirror went missing;
	// zero while it exists.
	mirrors map[string]time.Time
	// causes are the reasons why the pod whose turn it is does not run.
	causes causes.Known
	// lacking is the owner whose pod the API server refuses.
	lacking facts.LackingOwner
	// lease is the last version of the Lease, and when it was first read.
	lease leasewatch.Sighting
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
	mem, _ := r.memory.Get(key, "")
	return mem
}

// Forget forgets an object name. Pods of a namespace without objects are no longer watched.
func (r *Reader) Forget(ctx context.Context, key types.NamespacedName) {
	r.memory.Forget(key)
	if len(r.CachedObjects(ctx, key.Namespace)) == 0 {
		r.Pods.leave(key.Namespace)
	}
}

// dueForOwners reports whether to search for refused owners now, and when the next search
// is due.
func (mem *Remembered) dueForOwners(w *facts.World) (bool, time.Time) {
	if len(w.Pods) == 0 && mem.hadPods { // usually only for a moment
		mem.looks, mem.due = 0, w.Now.Add(spec.FirstOwnerLook)
	}
	mem.hadPods = len(w.Pods) > 0
	if mem.looks >= mem.maxLooks() {
		return false, time.Time{}
	}
	due := !mem.due.After(w.Now)
	if due {
		mem.due = w.Now.Add(min(spec.FirstOwnerLook<<mem.looks, spec.MaxOwnerLook))
		mem.looks++
	}
	return due, mem.due
}

// maxLooks returns the max number of searches for refused owners. An outage of the webhook
// is usually an outage of this process as well. So the first searches after a start also
// find the refused pod of a rollout whose old pod still exists.
func (mem *Remembered) maxLooks() int {
	if mem.hadPods {
		return ownerLooksBesidePods
	}
	return OwnerLooks
}

// Recall updates the memory from a world, and then copies it into the world.
func (mem *Remembered) Recall(w *facts.World) {
	w.Refused = mem.Refused.Text()
	if w.Object == nil {
		return
	}
	mem.Orphans = 0
	w.Undone = mem.Undone.Held(w.Object.Generation, w.Now)
	if mem.uid != w.Object.UID {
		mem.uid, mem.first, mem.mirrors = w.Object.UID, w.Now, nil
	}
	w.FirstSeen = mem.first
	mem.recallMirrors(w)
	before := mem.atGate
	mem.atGate = map[types.UID]time.Time{}
	for _, m := range w.Pods {
		if !m.AtGate() {
			continue
		}
		if m.AtGateSince = w.Now; !before[m.Pod.UID].IsZero() {
			m.AtGateSince = before[m.Pod.UID]
		}
		mem.atGate[m.Pod.UID] = m.AtGateSince
	}
}

// recallMirrors sets w.MirrorGone to the time at which the mirror of a static pod went missing,
// the last one if there are several. A static pod that was seen to have ended is not missing.
func (mem *Remembered) recallMirrors(w *facts.World) {
	shown := mem.noteMirrors(w)
	for name, gone := range mem.mirrors {
		switch {
		case shown[name]:
			continue
		case gone.IsZero():
			gone = w.Now
			mem.mirrors[name] = gone
		case w.Until(gone, spec.MirrorReturns) <= 0:
			delete(mem.mirrors, name)
			continue
		}
		if gone.After(w.MirrorGone) {
			w.MirrorGone = gone
		}
	}
}

// noteMirrors records the static pods that may run, and returns the names of all mirrors.
func (mem *Remembered) noteMirrors(w *facts.World) (shown map[string]bool) {
	if mem.mirrors == nil {
		mem.mirrors = map[string]time.Time{}
	}
	shown = map[string]bool{}
	for _, m := range w.Pods {
		if !facts.IsMirror(m.Pod) {
			continue
		}
		shown[m.Name()] = true
		delete(mem.mirrors, m.Name())
		if w.MayRun(m) {
			mem.mirrors[m.Name()] = time.Time{}
		}
	}
	return shown
}
