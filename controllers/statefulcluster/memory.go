package statefulcluster

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// remembered is state of this process that no object has, such as refused writes, pods deleted by a
// scale-down, and crashing pods. After a restart each refused write is retried once.
type remembered struct {
	seen    int64 // generation of the last live pass
	refused map[string]refusal
	undone  undone.Memory
	retired map[types.UID]bool
	crashed map[types.UID]bool
	causes  causes.Known
	// aside holds when claims that were set aside and have no pod were first seen.
	aside   map[types.UID]time.Time
	members map[types.UID]bool // pods that the set controlled when they were last seen
	foreign []string
	looked  time.Time // time of the last live pass
	// searched is true if no claim of an earlier set with this name lacks a retained label.
	searched bool
	written  time.Time // time of the last status write
	// hidden is true while a revision or budget with a name of the set exists that the cache does
	// not show, because it lacks the operator's label. budget is that budget, or the budget of
	// another owner.
	hidden bool
	budget *policyv1.PodDisruptionBudget
}

// refusal is the error of a refused write, and when to retry it.
type refusal struct {
	message string
	until   time.Time
	times   int
}

// of returns what this process remembers about a set.
func (r *reader) of(set *v1alpha1.StatefulCluster) *remembered {
	known, isNew := r.memory.Get(client.ObjectKeyFromObject(set), set.UID)
	if isNew {
		known.refused, known.retired, known.crashed = map[string]refusal{}, map[types.UID]bool{}, map[types.UID]bool{}
	}
	return known
}

// forget forgets a deleted set.
func (r *reader) forget(key types.NamespacedName) { r.memory.Forget(key) }

// wantsLive reports whether a live read is needed: for a new generation of the set, for objects
// that the cache does not show, or for claims of earlier sets with this name that lack the retained
// label.
func (known *remembered) wantsLive(set *v1alpha1.StatefulCluster, now time.Time) bool {
	switch {
	case known.seen != set.Generation, !known.searched:
		return true
	case known.hidden && known.budget == nil:
		return true
	case known.hidden, len(known.foreign) > 0:
		return now.Sub(known.looked) >= foreignInterval
	}
	return false
}

// recall copies the remembered state into w. The results of a live read are remembered first.
func (known *remembered) recall(w *world) {
	known.noteMembers(w)
	if w.live {
		if known.seen != w.set.Generation {
			known.refused = map[string]refusal{} // they were about an earlier spec
			known.crashed = map[types.UID]bool{}
		}
		known.seen, known.foreign, known.looked = w.set.Generation, w.foreign, w.now
		known.budget = nil
		if w.foreignBudget() || w.unseenBudget() {
			known.budget = w.budget
		}
		known.hidden = known.budget != nil
		known.searched = known.searched || len(w.abandoned) == 0
		known.noteAside(w)
	}
	w.aside = maps.Clone(known.aside)
	w.budget = cmp.Or(w.budget, known.budget)
	w.foreign = known.foreign
	w.refused = maps.Clone(known.refused)
	w.undone = known.undone.Held(w.set.Generation, w.now)
	w.retired = maps.Clone(known.retired)
	w.crashed = maps.Clone(known.crashed)
}

// noteAside remembers which claims without a pod were set aside, and when they were first seen.
func (known *remembered) noteAside(w *world) {
	aside := map[types.UID]time.Time{}
	for _, c := range w.loose {
		if isRetained(c) {
			aside[c.UID] = w.now
			if first, seen := known.aside[c.UID]; seen {
				aside[c.UID] = first
			}
		}
	}
	known.aside = aside
}

// learn remembers the results of the writes. givenUp are the UIDs of the old pods of members that
// the writes remove from status.updating because the set is scaled down. It returns the errors that
// need an immediate retry.
func (known *remembered) learn(f *facts, givenUp []types.UID, outcomes []action.Outcome) error {
	if slices.ContainsFunc(outcomes, wroteStatus) {
		for _, uid := range givenUp {
			known.retired[uid] = true
		}
	}
	if len(outcomes) == 0 { // nothing was written, so expired refusals are no longer relevant
		maps.DeleteFunc(known.refused, func(_ string, r refusal) bool { return f.reached(r.until) })
	}
	var retry error
	for _, o := range outcomes {
		if retiredPod(o) {
			known.retired[o.Object.GetUID()] = true
		}
		retry = errors.Join(retry, known.hear(o, f.now))
	}
	known.noteCrashes(f)
	gone := func(uid types.UID, _ bool) bool {
		return !slices.ContainsFunc(f.members, func(m *member) bool { return m.pod.UID == uid })
	}
	maps.DeleteFunc(known.retired, gone)
	maps.DeleteFunc(known.crashed, gone)
	return retry
}

// noteCrashes remembers which members crash, until their pod is Ready or fails to run for another
// reason.
func (known *remembered) noteCrashes(f *facts) {
	for _, m := range f.alive {
		why := causes.Of(m.pod).Word
		switch {
		case m.ready():
			delete(known.crashed, m.pod.UID)
		case why == causes.CrashLoop:
			known.crashed[m.pod.UID] = true
		case why != "":
			delete(known.crashed, m.pod.UID)
		}
	}
}

// wroteStatus reports whether a step that writes the status succeeded.
func wroteStatus(o action.Outcome) bool { return o.Verb == action.PatchStatus && o.Err == nil }

// retiredPod reports whether a scale-down deleted a pod, or found it already deleted.
func retiredPod(o action.Outcome) bool {
	if o.Verb != action.Delete || o.Reason != reasonRetired {
		return false
	}
	return o.Err == nil || apierrors.IsNotFound(o.Err)
}

// hear remembers the result of one write. It returns an error that needs an immediate retry.
func (known *remembered) hear(o action.Outcome, now time.Time) error {
	switch {
	case o.Err == nil:
		delete(known.refused, o.Reason)
	case o.Verb == action.Delete && apierrors.IsNotFound(o.Err), apierrors.IsConflict(o.Err):
		// The cache was stale; the next pass reads again.
	case hides(o):
		known.hidden = true
	case createsNew(o) && apierrors.IsAlreadyExists(o.Err):
		// The pod of another owner has the name. The name is removed from the record, and that
		// write triggers the next pass.
	case refusedForGood(o.Err), webhookUnanswered(o.Err), o.Verb == action.Resize && apierrors.IsNotFound(o.Err): // Kubernetes before 1.33 has no resize subresource
		times := known.refused[o.Reason].times + 1
		known.refused[o.Reason] = refusal{o.Err.Error(), now.Add(doubled(firstRefusal, times-1, maxRefusal)), times}
	default:
		return o.Err
	}
	return nil
}

// refusedForGood reports whether the API server rejected the write, so that an immediate retry
// would be rejected too.
func refusedForGood(err error) bool {
	return slices.ContainsFunc([]func(error) bool{
		apierrors.IsForbidden, apierrors.IsInvalid, apierrors.IsBadRequest, apierrors.IsMethodNotSupported,
		apierrors.IsRequestEntityTooLargeError, apierrors.IsAlreadyExists,
	}, func(is func(error) bool) bool { return is(err) })
}

// hides reports whether a create failed because of an object that the cache does not show.
func hides(o action.Outcome) bool {
	return apierrors.IsAlreadyExists(o.Err) && (o.Reason == reasonRevision || o.Reason == reasonBudget)
}
