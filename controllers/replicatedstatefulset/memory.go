package replicatedstatefulset

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
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// remembered is the state of a set that is kept in memory only. After a restart all members are
// queried again.
type remembered struct {
	// rules is the hash of the ConfigMaps with these versions. excess states why there is no hash.
	rules, versions, excess string
	grants                  []v1alpha1.Grant
	lossAt                  time.Time
	lossOf                  types.UID
	lossPod                 string
	statefulGeneration      int64     // of the StatefulSet
	statefulSince           time.Time // when this process first saw statefulGeneration
	trial                   refusedTrial
	pods                    map[types.UID]*seen
	refused                 memory.Refusal
	mended                  map[string]time.Time // time of the last patch of each child, by childKey
	undone                  undone.Memory
	closedAt                string // AnnotationClosedAt of the budget, if this process closed it last
	requested               string // member that the switchover annotation names
	requestedAt             time.Time
	// configSince is when a configuration change that has not caused a restart yet was first seen.
	// It is zero if there is none. A new process starts the batching window again.
	configSince time.Time
	causes      knownCauses
}

// hasNoRules reports whether the ConfigMaps of spec.ruleSelector have not been read yet.
func (k *remembered) hasNoRules() bool { return k.rules == "" && k.excess == "" }

// of returns the memory of a set.
func (r *reader) of(set *v1alpha1.ReplicatedStatefulSet) *remembered {
	known, isNew := r.memory.Get(client.ObjectKeyFromObject(set), set.UID)
	if isNew {
		known.pods, known.mended = map[types.UID]*seen{}, map[string]time.Time{}
		createdTotal.Inc()
	}
	return known
}

// recall copies the remembered state into a world, and remembers the changes in it.
func (r *reader) recall(w *world) {
	known := r.of(w.set)
	w.refused, w.mended, w.closedAt = known.refused.Text(), known.mended, known.closedAt
	w.undone = known.undone.Held(w.set.Generation, w.now)
	if requested := w.set.Annotations[v1alpha1.AnnotationSwitchoverTo]; requested != known.requested {
		known.requested, known.requestedAt = requested, w.now
	}
	w.requestedAt = known.requestedAt
	known.noteLoss(w)
	w.lossAt, w.lossOf, w.lossPod = known.lossAt, known.lossOf, known.lossPod
	known.noteStateful(w)
	w.statefulSince, w.trial = known.statefulSince, known.trial
	before := known.pods
	known.pods = map[types.UID]*seen{}
	for _, m := range w.members {
		s := before[m.pod.UID]
		if s == nil {
			s = &seen{
				touched: w.now,
				said:    map[string]podexec.Result{},
				counted: map[string]time.Time{},
				tries:   map[string]int{},
			}
		}
		known.pods[m.pod.UID] = s
		s.look(m, w.set.Status.Unanswered, w.now)
		if w.set.Spec.Paused && !s.unheard { // no status command is sent while paused
			s.askedAt, m.askedAt = time.Time{}, time.Time{}
		}
	}
}

// noteStateful remembers when the generation of the StatefulSet changed.
func (k *remembered) noteStateful(w *world) {
	if w.stateful != nil && w.stateful.Generation != k.statefulGeneration {
		k.statefulGeneration, k.statefulSince = w.stateful.Generation, w.now
	}
}

// noteLoss remembers when the last grant was removed, and from which pod.
func (k *remembered) noteLoss(w *world) {
	lost := slices.DeleteFunc(
		slices.Clone(k.grants),
		func(g v1alpha1.Grant) bool { return isGranted(w.set.Status.Grants, &g) },
	)
	k.grants = w.set.Status.Grants
	if k.lossAt.IsZero() || len(lost) > 0 {
		k.lossAt = w.now
	}
	switch len(lost) {
	case 0:
	case 1:
		k.lossOf, k.lossPod = lost[0].UID, lost[0].Pod
	default:
		k.lossOf, k.lossPod = "", "" // unknown which of them had the newest data
	}
}

func isGranted(grants []v1alpha1.Grant, g *v1alpha1.Grant) bool {
	return slices.ContainsFunc(
		grants,
		func(o v1alpha1.Grant) bool { return o.UID == g.UID && o.ContainerID == g.ContainerID },
	)
}

// remember records the outcome of a write for the next plan.
func (r *reader) remember(w *world, o *action.Outcome) {
	if o.Verb != action.Patch {
		return
	}
	switch o.Reason {
	case reasonRefused:
		if o.Object.GetAnnotations()[v1alpha1.AnnotationSwitchoverTo] == "" {
			r.of(w.set).requested = "" // the same member may be requested again at once
		}
	case reasonBudget:
		r.of(w.set).closedAt = o.Object.GetAnnotations()[v1alpha1.AnnotationClosedAt]
	case reasonChild, reasonTemplate:
		r.of(w.set).mended[childKey(o.From)] = w.now
	}
}

// seen is what this process remembers of a pod.
type seen struct {
	container string
	ready     bool
	touched   time.Time
	missed    int // see member
	askedAt   time.Time
	unheard   bool
	said      map[string]podexec.Result
	counted   map[string]time.Time // end of the last result that was counted, by command
	tries     map[string]int
	resize    refusedResize // last refused resize of the pod
}

// look remembers the changes of a pod.
func (s *seen) look(m *member, recorded []v1alpha1.Unanswered, now time.Time) {
	if container, ready := m.running(), podstate.Ready(m.pod); container != s.container || ready != s.ready {
		if container != s.container {
			s.begin(m, recorded)
		}
		s.container, s.ready, s.touched = container, ready, now
	}
	for name, r := range m.results {
		if s.counted[name].Equal(r.Ended) {
			continue
		}
		s.counted[name] = r.Ended
		if r.Outcome == podexec.Unknown {
			s.hearNothing(m, r)
		} else {
			s.hear(r)
		}
	}
	if s.askedAt.IsZero() && m.runs(v1alpha1.CommandStatus) {
		s.askedAt = m.busy.Asked
	}
	m.askedAt, m.unheard = s.askedAt, s.unheard
	m.resizeRefused = s.resize
	m.touched, m.said, m.tries, m.missed = s.touched, maps.Clone(s.said), maps.Clone(s.tries), s.missed
}

// begin resets the unanswered queries when the container changes, and restores those that the
// status of the object records for the new container.
func (s *seen) begin(m *member, recorded []v1alpha1.Unanswered) {
	s.missed, s.askedAt, s.unheard = 0, time.Time{}, false
	for _, r := range recorded {
		if r.Pod == m.name() && r.ContainerID == m.running() {
			s.askedAt, s.unheard = r.Since.Time, true
		}
	}
}

// hearNothing counts a command with an unknown outcome. For status it counts only commands that
// reached the running container or were refused, so an outage does not count.
func (s *seen) hearNothing(m *member, r podexec.Result) {
	reached := r.Sent || r.Refused
	if r.Name == v1alpha1.CommandStatus && reached && r.ContainerID == s.container {
		s.missed++
		if s.askedAt.IsZero() {
			s.askedAt = r.Began
		}
	}
	s.tries[r.Name]++
	m.unclear = append(m.unclear, r)
}

// hear remembers a response. A sequence that is not a number is also retried with backoff.
func (s *seen) hear(r podexec.Result) {
	if r.Name == v1alpha1.CommandStatus {
		s.missed, s.askedAt, s.unheard = 0, time.Time{}, false
	}
	s.said[r.Name] = r
	s.tries[r.Name]++
	if _, number := sequenceOf(r); number || r.Name != v1alpha1.CommandSequence {
		s.tries[r.Name] = 0
	}
}

// refusedResize is a resize that the API server refused: its revision, and the error message.
type refusedResize struct{ revision, text string }

// learnResize remembers a write in place that the API server refused, or accepted and changed.
// Without this, either write would be retried forever. It reports whether the write was refused. An
// API server without the resize subresource returns NotFound.
func (k *remembered) learnResize(o *action.Outcome) (refused bool) {
	pod, isPod := o.Object.(*corev1.Pod)
	if !isPod || (o.Verb != action.Resize && o.Reason != reasonInPlace) {
		return false
	}
	s := k.pods[pod.UID]
	if s == nil {
		return false
	}
	note, _ := inPlaceNoteOf(pod)
	switch {
	case o.Verb == action.Resize && refusesResize(o.Err):
		s.resize = refusedResize{
			revision: note.Revision,
			text:     excerpt.Message(o.Err.Error()),
		}
		return true
	case o.Err == nil && isTakenBack(pod, o.Answer):
		s.resize = refusedResize{
			revision: note.Revision,
			text:     "the API server or an admission policy reverts the write",
		}
	}
	return false
}

// learnTrial remembers a dry run that the API server refused, and forgets it after a successful
// one. It reports whether this dry run was refused.
func (k *remembered) learnTrial(w *world, o *action.Outcome) (refused bool) {
	if o.Verb != action.Try {
		return false
	}
	refused = report.Judge(o.Err) == report.Failed && isRefusal(o.Err)
	k.trial = refusedTrial{}
	if refused {
		k.trial = refusedTrial{text: excerpt.Message(o.Err.Error()), at: w.now}
	}
	w.trial = k.trial
	return refused
}

// isTakenBack reports whether the API server stored a different pod than the one that was written.
func isTakenBack(written *corev1.Pod, answer client.Object) bool {
	now, isPod := answer.(*corev1.Pod)
	if !isPod {
		return false
	}
	return now.Annotations[v1alpha1.AnnotationInPlace] != written.Annotations[v1alpha1.AnnotationInPlace] ||
		!apiequality.Semantic.DeepEqual(resourcesOf(now), resourcesOf(written))
}

func resourcesOf(pod *corev1.Pod) (all []corev1.ResourceRequirements) {
	for i := range pod.Spec.Containers {
		all = append(all, pod.Spec.Containers[i].Resources)
	}
	return all
}

func refusesResize(err error) bool {
	return isRefusal(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// isRefusal reports whether the API server refused the request and would refuse it again.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// keepBoard removes deleted pods from the Board.
func (r *reader) keepBoard(w *world) {
	uids := make([]types.UID, 0, len(w.members))
	for _, m := range w.members {
		uids = append(uids, m.pod.UID)
	}
	r.Board.Keep(client.ObjectKeyFromObject(w.set), uids...)
}

// forget drops what this process knows about a deleted set. It reports whether it knew the set.
func (r *reader) forget(ctx context.Context, key types.NamespacedName) bool {
	if r.config != nil {
		r.config.forget(ctx, key)
	}
	r.Board.Keep(key)
	return r.memory.Forget(key)
}
