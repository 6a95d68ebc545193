package observe

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// Recall copies the memory of this process into a world, after it has noted the changes since the
// last pass in the memory.
func (r *Reader) Recall(w *facts.World) {
	remembered := r.MemoryOf(w.Set)
	w.Refused, w.Mended, w.ClosedAt = remembered.Refused.Text(), remembered.mended, remembered.closedAt
	w.Undone = remembered.Undone.Held(w.Set.Generation, w.Now)
	if requested := w.Set.Annotations[v1alpha1.AnnotationSwitchoverTo]; requested != remembered.requested {
		remembered.requested, remembered.requestedAt = requested, w.Now
	}
	w.RequestedAt = remembered.requestedAt
	remembered.noteProvenStop(w)
	remembered.noteLoss(w)
	w.LossAt, w.LossOf, w.LossPod, w.LossProven = remembered.lossAt, remembered.lossOf, remembered.lossPod, remembered.lossProven
	remembered.noteStateful(w)
	w.StatefulSince, w.RefusedDryRun = remembered.statefulSince, remembered.trial
	before := remembered.Pods
	remembered.Pods = map[types.UID]*Seen{}
	for _, m := range w.Members {
		s := before[m.Pod.UID]
		if s == nil {
			s = &Seen{
				touched: w.Now,
				Said:    map[string]podexec.Result{},
				Counted: map[string]time.Time{},
				Tries:   map[string]int{},
			}
		}
		remembered.Pods[m.Pod.UID] = s
		s.Look(m, w.Set.Status.Unanswered, w.Now)
		if w.Set.Spec.Paused && !s.unansweredOnRecord { // no status command is sent while paused
			s.askedAt, m.AskedAt = time.Time{}, time.Time{}
		}
	}
}

// noteStateful remembers when the generation of the StatefulSet changed.
func (k *Remembered) noteStateful(w *facts.World) {
	if w.Stateful != nil && w.Stateful.Generation != k.statefulGeneration {
		k.statefulGeneration, k.statefulSince = w.Stateful.Generation, w.Now
	}
}

// noteProvenStop remembers the last stop that was made when another member was known to have all data.
// Its result is dropped with the pod, which may be recreated before the next primary is started.
func (k *Remembered) noteProvenStop(w *facts.World) {
	for _, m := range w.Members {
		r, ok := m.Results[v1alpha1.CommandStop]
		isProven := ok && r.Proven && r.Outcome == podexec.Succeeded
		if isProven && r.Ended.After(k.provenStop.Ended) {
			k.provenStop = r
		}
	}
}

// endsGrant reports whether a stop is in the container of a grant, and ended after the grant was given.
func endsGrant(r *podexec.Result, g *v1alpha1.Grant) bool {
	return r.UID == g.UID && r.ContainerID == g.ContainerID && r.Ended.After(g.Since.Time)
}

// noteLoss remembers when the last grant was removed, from which pod, and whether a proven stop was the
// cause.
func (k *Remembered) noteLoss(w *facts.World) {
	lost := slices.DeleteFunc(
		slices.Clone(k.grants),
		func(g v1alpha1.Grant) bool { return isGranted(w.Set.Status.Grants, &g) },
	)
	k.grants = w.Set.Status.Grants
	if k.lossAt.IsZero() || len(lost) > 0 {
		k.lossAt = w.Now
	}
	switch len(lost) {
	case 0:
	case 1:
		k.lossOf, k.lossPod, k.lossProven = lost[0].UID, lost[0].Pod, endsGrant(&k.provenStop, &lost[0])
	default:
		k.lossOf, k.lossPod, k.lossProven = "", "", false // unknown which of them had the newest data
	}
}

// isGranted reports whether a grant for the same container is in the list.
func isGranted(grants []v1alpha1.Grant, g *v1alpha1.Grant) bool {
	return slices.ContainsFunc(
		grants,
		func(o v1alpha1.Grant) bool { return o.UID == g.UID && o.ContainerID == g.ContainerID },
	)
}

// Remember notes a successful write in the memory, for decisions of later passes that depend on
// whether this process made it.
func (r *Reader) Remember(w *facts.World, o *action.Outcome) {
	if o.Verb != action.Patch {
		return
	}
	switch o.Reason {
	case facts.ReasonRefused:
		if o.Object.GetAnnotations()[v1alpha1.AnnotationSwitchoverTo] == "" {
			r.MemoryOf(w.Set).requested = "" // the same member may be requested again at once
		}
	case facts.ReasonBudget:
		r.MemoryOf(w.Set).closedAt = o.Object.GetAnnotations()[v1alpha1.AnnotationClosedAt]
	case facts.ReasonChild, facts.ReasonTemplate:
		r.MemoryOf(w.Set).mended[facts.ChildKey(o.From)] = w.Now
	}
}

// ForgetPatches forgets when the children of a set were patched. The next patches then wait for no earlier ones.
func (r *Reader) ForgetPatches(set *v1alpha1.ReplicatedStatefulSet) { clear(r.MemoryOf(set).mended) }

// Look notes the changes of a pod and the new command results in the memory, and copies the memory
// into the member. recorded is status.unanswered of the object.
func (s *Seen) Look(m *facts.Member, recorded []v1alpha1.Unanswered, now time.Time) {
	if container, ready := m.Running(), podstate.Ready(m.Pod); container != s.container || ready != s.ready {
		if container != s.container {
			s.resetForContainer(m, recorded)
		}
		s.container, s.ready, s.touched = container, ready, now
	}
	for name, r := range m.Results {
		if s.Counted[name].Equal(r.Ended) {
			continue
		}
		s.Counted[name] = r.Ended
		if r.Outcome == podexec.Unknown {
			s.noteNoAnswer(m, r)
		} else {
			s.noteAnswer(r)
		}
	}
	if s.askedAt.IsZero() && m.Runs(v1alpha1.CommandStatus) {
		s.askedAt = m.Busy.Asked
	}
	m.AskedAt, m.UnansweredOnRecord = s.askedAt, s.unansweredOnRecord
	m.ResizeRefused = s.Resize
	m.Touched, m.Said, m.Tries, m.Missed = s.touched, s.Said, s.Tries, s.missed
}

// resetForContainer resets the unanswered queries when the container changes, and restores those
// that the status of the object records for the new container.
func (s *Seen) resetForContainer(m *facts.Member, recorded []v1alpha1.Unanswered) {
	s.missed, s.askedAt, s.unansweredOnRecord = 0, time.Time{}, false
	s.Said = map[string]podexec.Result{} // also if the same container is reported again
	for _, r := range recorded {
		if r.Pod == m.Name() && r.ContainerID == m.Running() {
			s.askedAt, s.unansweredOnRecord = r.Since.Time, true
		}
	}
}

// noteNoAnswer counts a command with an unknown outcome. For status it counts only commands that
// reached the running container or were refused, so an outage does not count.
func (s *Seen) noteNoAnswer(m *facts.Member, r podexec.Result) {
	reached := r.Sent || r.Refused
	if r.Name == v1alpha1.CommandStatus && reached && r.ContainerID == s.container {
		s.missed++
		if s.askedAt.IsZero() {
			s.askedAt = r.Began
		}
	}
	s.Tries = with(s.Tries, r.Name, s.Tries[r.Name]+1)
	m.UnknownResults = append(m.UnknownResults, r)
}

// noteAnswer remembers a response. A sequence that is not a number is also retried with backoff.
func (s *Seen) noteAnswer(r podexec.Result) {
	if r.Name == v1alpha1.CommandStatus {
		s.missed, s.askedAt, s.unansweredOnRecord = 0, time.Time{}, false
	}
	s.Said = with(s.Said, r.Name, r)
	tries := s.Tries[r.Name] + 1
	if _, number := record.SequenceOf(r); number || r.Name != v1alpha1.CommandSequence {
		tries = 0
	}
	s.Tries = with(s.Tries, r.Name, tries)
}

// with returns a copy of a map with another value of a key. Members of earlier passes share the map.
func with[V any](values map[string]V, key string, value V) map[string]V {
	values = maps.Clone(values)
	values[key] = value
	return values
}

// LearnResize remembers a write in place that the API server refused, or accepted and changed.
// Without this, either write would be retried forever. It reports whether the write was refused. An
// API server without the resize subresource returns NotFound.
func (k *Remembered) LearnResize(o *action.Outcome) (refused bool) {
	pod, isPod := o.Object.(*corev1.Pod)
	if !isPod || (o.Verb != action.Resize && o.Reason != facts.ReasonInPlace) {
		return false
	}
	s := k.Pods[pod.UID]
	if s == nil {
		return false
	}
	note, _ := facts.InPlaceNoteOf(pod)
	switch {
	case o.Verb == action.Resize && refusesResize(o.Err):
		s.Resize = facts.RefusedResize{
			Revision: note.Revision,
			Text:     excerpt.Message(o.Err.Error()),
		}
		return true
	case o.Err == nil && isReverted(pod, o.Answer):
		s.Resize = facts.RefusedResize{
			Revision: note.Revision,
			Text:     "the API server or an admission policy reverts the write",
		}
	}
	return false
}

// LearnDryRun remembers a dry run that the API server refused, and forgets it after a successful
// one. It reports whether this dry run was refused.
func (k *Remembered) LearnDryRun(w *facts.World, o *action.Outcome) (refused bool) {
	if o.Verb != action.Try {
		return false
	}
	refused = report.Judge(o.Err) == report.Failed && isRefusal(o.Err)
	k.trial = facts.RefusedDryRun{}
	if refused {
		k.trial = facts.RefusedDryRun{Text: excerpt.Message(o.Err.Error()), At: w.Now}
	}
	w.RefusedDryRun = k.trial
	return refused
}

// isReverted reports whether the API server stored a different pod than the one that was written.
func isReverted(written *corev1.Pod, answer client.Object) bool {
	now, isPod := answer.(*corev1.Pod)
	if !isPod {
		return false
	}
	return now.Annotations[v1alpha1.AnnotationInPlace] != written.Annotations[v1alpha1.AnnotationInPlace] ||
		!apiequality.Semantic.DeepEqual(resourcesOf(now), resourcesOf(written))
}

// resourcesOf returns the resources of the containers of a pod.
func resourcesOf(pod *corev1.Pod) (all []corev1.ResourceRequirements) {
	for i := range pod.Spec.Containers {
		all = append(all, pod.Spec.Containers[i].Resources)
	}
	return all
}

// refusesResize reports whether the API server would refuse the resize again. NotFound and
// MethodNotSupported are the responses of a server without the subresource.
func refusesResize(err error) bool {
	return isRefusal(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// isRefusal reports whether the API server refused the request and would refuse it again.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// KeepBoard removes deleted pods from the Board.
func (r *Reader) KeepBoard(w *facts.World) {
	uids := make([]types.UID, 0, len(w.Members))
	for _, m := range w.Members {
		uids = append(uids, m.Pod.UID)
	}
	r.Board.Keep(client.ObjectKeyFromObject(w.Set), uids...)
}

// Forget drops what this process knows about a deleted set. It reports whether it knew the set.
func (r *Reader) Forget(ctx context.Context, key types.NamespacedName) bool {
	if r.Config != nil {
		r.Config.forget(ctx, key)
	}
	r.Board.Keep(key)
	r.useLeases(key, false)
	return r.memory.Forget(key)
}
