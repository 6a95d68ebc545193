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
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// Remembered is state of this process that no object has, such as refused writes, pods deleted by a
// scale-down, and crashing pods. After a restart each refused write is retried once.
type Remembered struct {
	seen    int64 // generation of the last live pass
	Refused map[string]facts.Refusal
	Undone  undone.Memory
	Retired map[types.UID]bool
	Crashed map[types.UID]bool
	causes  causes.Known
	// aside holds when claims that were set aside and have no pod were first seen.
	aside   map[types.UID]time.Time
	members map[types.UID]bool // pods that the set controlled when they were last seen
	Foreign []string
	looked  time.Time // time of the last live pass
	// Searched is true if no claim of an earlier set with this name lacks a retained label.
	Searched bool
	Written  time.Time // time of the last status write
	// Hidden is true while a revision or budget with a name of the set exists that the cache does
	// not show, because it lacks the operator's label. Budget is that budget, or the budget of
	// another owner.
	Hidden bool
	budget *policyv1.PodDisruptionBudget
}

// Of returns what this process remembers about a set.
func (r *Reader) Of(set *v1alpha1.StatefulCluster) *Remembered {
	known, isNew := r.memory.Get(client.ObjectKeyFromObject(set), set.UID)
	if isNew {
		known.Refused, known.Retired, known.Crashed = map[string]facts.Refusal{}, map[types.UID]bool{}, map[types.UID]bool{}
	}
	return known
}

// Forget forgets a deleted set.
func (r *Reader) Forget(key types.NamespacedName) { r.memory.Forget(key) }

// WantsLive reports whether a live read is needed: for a new generation of the set, for objects
// that the cache does not show, or for claims of earlier sets with this name that lack the retained
// label.
func (known *Remembered) WantsLive(set *v1alpha1.StatefulCluster, now time.Time) bool {
	switch {
	case known.seen != set.Generation, !known.Searched:
		return true
	case known.Hidden && known.budget == nil:
		return true
	case known.Hidden, len(known.Foreign) > 0:
		return now.Sub(known.looked) >= spec.ForeignInterval
	}
	return false
}

// Recall copies the remembered state into w. The results of a live read are remembered first.
func (known *Remembered) Recall(w *facts.World) {
	known.noteMembers(w)
	if w.Live {
		if known.seen != w.Set.Generation {
			known.Refused = map[string]facts.Refusal{} // they were about an earlier spec
			known.Crashed = map[types.UID]bool{}
		}
		known.seen, known.Foreign, known.looked = w.Set.Generation, w.Foreign, w.Now
		known.budget = nil
		if w.ForeignBudget() || w.UnseenBudget() {
			known.budget = w.Budget
		}
		known.Hidden = known.budget != nil
		known.Searched = known.Searched || len(w.Abandoned) == 0
		known.noteAside(w)
	}
	w.Aside = maps.Clone(known.aside)
	w.Budget = cmp.Or(w.Budget, known.budget)
	w.Foreign = known.Foreign
	w.Refused = maps.Clone(known.Refused)
	w.Undone = known.Undone.Held(w.Set.Generation, w.Now)
	w.Retired = maps.Clone(known.Retired)
	w.Crashed = maps.Clone(known.Crashed)
}

// noteAside remembers which claims without a pod were set aside, and when they were first seen.
func (known *Remembered) noteAside(w *facts.World) {
	aside := map[types.UID]time.Time{}
	for _, c := range w.Loose {
		if facts.IsRetained(c) {
			aside[c.UID] = w.Now
			if first, seen := known.aside[c.UID]; seen {
				aside[c.UID] = first
			}
		}
	}
	known.aside = aside
}

// Learn remembers the results of the writes. givenUp are the UIDs of the old pods of members that
// the writes remove from status.updating because the set is scaled down. It returns the errors that
// need an immediate retry.
func (known *Remembered) Learn(f *facts.Facts, givenUp []types.UID, outcomes []action.Outcome) error {
	if slices.ContainsFunc(outcomes, WroteStatus) {
		for _, uid := range givenUp {
			known.Retired[uid] = true
		}
	}
	if len(outcomes) == 0 { // nothing was written, so expired refusals are no longer relevant
		maps.DeleteFunc(known.Refused, func(_ string, r facts.Refusal) bool { return f.Reached(r.Until) })
	}
	var retry error
	for _, o := range outcomes {
		if retiredPod(o) {
			known.Retired[o.Object.GetUID()] = true
		}
		retry = errors.Join(retry, known.hear(o, f.Now))
	}
	known.noteCrashes(f)
	gone := func(uid types.UID, _ bool) bool {
		return !slices.ContainsFunc(f.Members, func(m *facts.Member) bool { return m.Pod.UID == uid })
	}
	maps.DeleteFunc(known.Retired, gone)
	maps.DeleteFunc(known.Crashed, gone)
	return retry
}

// noteCrashes remembers which members crash, until their pod is Ready or fails to run for another
// reason.
func (known *Remembered) noteCrashes(f *facts.Facts) {
	for _, m := range f.Alive {
		why := causes.Of(m.Pod).Word
		switch {
		case m.Ready():
			delete(known.Crashed, m.Pod.UID)
		case why == causes.CrashLoop:
			known.Crashed[m.Pod.UID] = true
		case why != "":
			delete(known.Crashed, m.Pod.UID)
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

// hear remembers the result of one write. It returns an error that needs an immediate retry.
func (known *Remembered) hear(o action.Outcome, now time.Time) error {
	switch {
	case o.Err == nil:
		delete(known.Refused, o.Reason)
	case o.Verb == action.Delete && apierrors.IsNotFound(o.Err), apierrors.IsConflict(o.Err):
		// The cache was stale; the next pass reads again.
	case Hides(o):
		known.Hidden = true
	case facts.CreatesNew(o) && apierrors.IsAlreadyExists(o.Err):
		// The pod of another owner has the name. The name is removed from the record, and that
		// write triggers the next pass.
	case RefusedForGood(o.Err), webhookUnanswered(o.Err), o.Verb == action.Resize && apierrors.IsNotFound(o.Err): // Kubernetes before 1.33 has no resize subresource
		times := known.Refused[o.Reason].Times + 1
		known.Refused[o.Reason] = facts.Refusal{Message: o.Err.Error(), Until: now.Add(spec.Doubled(spec.FirstRefusal, times-1, spec.MaxRefusal)), Times: times}
	default:
		return o.Err
	}
	return nil
}

// RefusedForGood reports whether the API server rejected the write, so that an immediate retry
// would be rejected too.
func RefusedForGood(err error) bool {
	return slices.ContainsFunc([]func(error) bool{
		apierrors.IsForbidden, apierrors.IsInvalid, apierrors.IsBadRequest, apierrors.IsMethodNotSupported,
		apierrors.IsRequestEntityTooLargeError, apierrors.IsAlreadyExists,
	}, func(is func(error) bool) bool { return is(err) })
}

// Hides reports whether a create failed because of an object that the cache does not show.
func Hides(o action.Outcome) bool {
	return apierrors.IsAlreadyExists(o.Err) && (o.Reason == facts.ReasonRevision || o.Reason == facts.ReasonBudget)
}

// webhookUnanswered reports whether a write failed because an admission webhook did not respond.
// Like a refused write, it is reported and retried with backoff.
func webhookUnanswered(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}
