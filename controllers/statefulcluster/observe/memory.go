package observe

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/decisions"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// Remembered is the state of this process about one set that no object has. After a restart each
// refused write is retried once, and pods that lost their owner reference are orphans.
type Remembered struct {
	// liveGeneration and lastLive are the generation of the set in the last live pass, and its time.
	liveGeneration int64
	lastLive       time.Time
	// Written is the time of the last status write.
	Written time.Time
	// Decisions are those that the status does not have yet.
	Decisions decisions.Buffer

	// The next fields are copied into the world, where they are described.

	Refused map[string]facts.Refusal
	Undone  undone.Memory
	Retired map[types.UID]bool
	Crashed map[types.UID]bool
	Foreign []string
	causes  causes.Known
	aside   map[types.UID]time.Time

	// members are the pods that the set controlled when this process last saw them. They stay
	// members if their owner reference is removed.
	members map[types.UID]bool
	// Searched is true if a search found no claim of an earlier set with this name that lacks the
	// retained label.
	Searched bool
	// Hidden is true while a revision or budget exists that has a name of the set, and that the cache
	// does not have, because it lacks the operator's label.
	Hidden bool
	// budget is such a budget, or the budget of another owner; nil if there is none.
	budget *policyv1.PodDisruptionBudget
}

// Of returns the memory of a set. A set that was recreated under its name has a new one.
func (r *Reader) Of(set *v1alpha1.StatefulCluster) *Remembered {
	mem, isNew := r.memory.Get(client.ObjectKeyFromObject(set), set.UID)
	if isNew {
		mem.Refused, mem.Retired, mem.Crashed = map[string]facts.Refusal{}, map[types.UID]bool{}, map[types.UID]bool{}
	}
	return mem
}

// Forget removes the memory of a deleted set.
func (r *Reader) Forget(key types.NamespacedName) { r.memory.Forget(key) }

// WantsLive reports whether a live read is needed: for a new generation of the set, for objects
// that the cache does not show, or for claims of earlier sets with this name that lack the retained
// label.
func (mem *Remembered) WantsLive(set *v1alpha1.StatefulCluster, now time.Time) bool {
	switch {
	case mem.liveGeneration != set.Generation, !mem.Searched:
		return true
	case mem.Hidden && mem.budget == nil:
		return true
	case mem.Hidden, len(mem.Foreign) > 0:
		return now.Sub(mem.lastLive) >= spec.ForeignInterval
	}
	return false
}

// Recall updates the memory from w, mainly if w was read live, and then copies the memory into w.
func (mem *Remembered) Recall(w *facts.World) {
	mem.noteMembers(w)
	if w.Live {
		if mem.liveGeneration != w.Set.Generation {
			mem.Refused = map[string]facts.Refusal{} // they were about an earlier spec
			mem.Crashed = map[types.UID]bool{}
		}
		mem.liveGeneration, mem.Foreign, mem.lastLive = w.Set.Generation, w.Foreign, w.Now
		mem.budget = nil
		if w.ForeignBudget() || w.UnseenBudget() {
			mem.budget = w.Budget
		}
		mem.Hidden = mem.budget != nil
		mem.Searched = mem.Searched || len(w.Abandoned) == 0
		mem.noteAside(w)
	}
	w.Aside = maps.Clone(mem.aside)
	w.Budget = cmp.Or(w.Budget, mem.budget)
	w.Foreign = mem.Foreign
	w.Refused = maps.Clone(mem.Refused)
	w.Undone = mem.Undone.Held(w.Set.Generation, w.Now)
	w.Retired = maps.Clone(mem.Retired)
	w.Crashed = maps.Clone(mem.Crashed)
}

// noteAside remembers which claims without a pod were set aside, and when they were first seen.
func (mem *Remembered) noteAside(w *facts.World) {
	aside := map[types.UID]time.Time{}
	for _, c := range w.Loose {
		if facts.IsRetained(c) {
			aside[c.UID] = w.Now
			if first, seen := mem.aside[c.UID]; seen {
				aside[c.UID] = first
			}
		}
	}
	mem.aside = aside
}

// Learn updates the memory from the results of the writes of a pass. givenUp are the UIDs of the old
// pods of members that the writes remove from status.updating because the set is scaled down. It
// returns the errors that need an immediate retry.
func (mem *Remembered) Learn(f *facts.Facts, givenUp []types.UID, outcomes []action.Outcome) error {
	if slices.ContainsFunc(outcomes, WroteStatus) {
		for _, uid := range givenUp {
			mem.Retired[uid] = true
		}
	}
	if len(outcomes) == 0 { // nothing was written, so expired refusals are no longer relevant
		maps.DeleteFunc(mem.Refused, func(_ string, r facts.Refusal) bool { return f.Reached(r.Until) })
	}
	var retry error
	for _, o := range outcomes {
		if retiredPod(o) {
			mem.Retired[o.Object.GetUID()] = true
		}
		retry = errors.Join(retry, mem.learnOne(o, f.Now))
	}
	mem.noteCrashes(f)
	gone := func(uid types.UID, _ bool) bool {
		return !slices.ContainsFunc(f.Members, func(m *facts.Member) bool { return m.Pod.UID == uid })
	}
	maps.DeleteFunc(mem.Retired, gone)
	maps.DeleteFunc(mem.Crashed, gone)
	return retry
}

// noteCrashes remembers which members crash, until their pod is Ready or fails to run for another
// reason.
func (mem *Remembered) noteCrashes(f *facts.Facts) {
	for _, m := range f.Alive {
		why := causes.Of(m.Pod).Word
		switch {
		case m.Ready():
			delete(mem.Crashed, m.Pod.UID)
		case why == causes.CrashLoop:
			mem.Crashed[m.Pod.UID] = true
		case why != "":
			delete(mem.Crashed, m.Pod.UID)
		}
	}
}

// WroteStatus reports whether a step that writes the status succeeded.
func WroteStatus(o action.Outcome) bool { return o.Verb == action.PatchStatus && o.Err == nil }

// retiredPod reports whether a scale-down deleted a pod, or found it already deleted.
func retiredPod(o action.Outcome) bool {
	if o.Verb != action.Delete || o.Reason != facts.ReasonRetired {
		return false
	}
	return o.Err == nil || apierrors.IsNotFound(o.Err)
}

// learnOne updates the memory from the result of one write. It returns an error that needs an immediate
// retry.
func (mem *Remembered) learnOne(o action.Outcome, now time.Time) error {
	switch {
	case o.Err == nil:
		delete(mem.Refused, o.Reason)
	case o.Verb == action.Delete && apierrors.IsNotFound(o.Err), apierrors.IsConflict(o.Err):
		// The cache was stale; the next pass reads again.
	case Hides(o):
		mem.Hidden = true // the next pass reads revisions and budget from the API server
	case facts.CreatesNew(o) && apierrors.IsAlreadyExists(o.Err):
		// The pod of another owner has the name. The name is removed from the record, and that
		// write triggers the next pass.
	case RefusedForGood(o.Err), webhookUnanswered(o.Err), o.Verb == action.Resize && apierrors.IsNotFound(o.Err): // Kubernetes before 1.33 has no resize subresource
		times := mem.Refused[o.Reason].Times + 1
		mem.Refused[o.Reason] = facts.Refusal{Message: o.Err.Error(), Until: now.Add(spec.Doubled(spec.FirstRefusal, times-1, spec.MaxRefusal)), Times: times}
	default:
		return o.Err
	}
	return nil
}

// RefusedForGood reports whether the API server rejected the write for a reason that does not pass at
// once. It is retried with backoff, and reported.
func RefusedForGood(err error) bool {
	return slices.ContainsFunc([]func(error) bool{
		apierrors.IsForbidden, apierrors.IsInvalid, apierrors.IsBadRequest, apierrors.IsMethodNotSupported,
		apierrors.IsRequestEntityTooLargeError, apierrors.IsAlreadyExists,
	}, func(is func(error) bool) bool { return is(err) })
}

// Hides reports whether a create failed because the object exists and the cache does not have it.
func Hides(o action.Outcome) bool {
	return apierrors.IsAlreadyExists(o.Err) && (o.Reason == facts.ReasonRevision || o.Reason == facts.ReasonBudget)
}

// webhookUnanswered reports whether a write failed because an admission webhook did not respond.
// Like a refused write, it is reported and retried with backoff.
func webhookUnanswered(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}
