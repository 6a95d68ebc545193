package replicatedstatefulset

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// remembered is what no object says. A restart asks all members again.
type remembered struct {
	// rules is a hash of ConfigMaps, versions of which, and excess why there is none.
	rules, versions, excess string
	grants                  []v1alpha1.Grant
	lossAt                  time.Time
	lossOf                  types.UID
	pods                    map[types.UID]*seen
	refused                 memory.Refusal
	mended                  map[string]mended // the last patches of children, by childKey
	wish                    string            // who a person wants to be primary
	wishAt                  time.Time
}

// of returns what is remembered of a set.
func (r *Reconciler) of(set *v1alpha1.ReplicatedStatefulSet) *remembered {
	known, isNew := r.memory.Get(client.ObjectKeyFromObject(set), set.UID)
	if isNew {
		known.pods, known.mended = map[types.UID]*seen{}, map[string]mended{}
		createdTotal.Inc()
	}
	return known
}

// recall puts what is remembered into a world, and remembers what is new in it.
func (r *Reconciler) recall(w *world) {
	known := r.of(w.set)
	w.refused, w.mended = known.refused.Text(), known.mended
	if wish := w.set.Annotations[v1alpha1.AnnotationSwitchoverTo]; wish != known.wish {
		known.wish, known.wishAt = wish, w.now
	}
	w.wishAt = known.wishAt
	lost := slices.DeleteFunc(slices.Clone(known.grants), func(g v1alpha1.Grant) bool {
		return slices.ContainsFunc(w.set.Status.Grants, func(o v1alpha1.Grant) bool { return o.UID == g.UID && o.ContainerID == g.ContainerID })
	})
	if known.lossAt.IsZero() || len(lost) > 0 {
		known.lossAt = w.now
	}
	if len(lost) > 0 {
		known.lossOf = lost[0].UID
	}
	if len(lost) > 1 {
		known.lossOf = "" // nobody knows whose data was the newest
	}
	known.grants, w.lossAt, w.lossOf = w.set.Status.Grants, known.lossAt, known.lossOf
	before := known.pods
	known.pods = map[types.UID]*seen{}
	for _, member := range w.members {
		s := before[member.pod.UID]
		if s == nil {
			s = &seen{touched: w.now, said: map[string]podexec.Result{}, counted: map[string]time.Time{}, tries: map[string]int{}}
		}
		known.pods[member.pod.UID] = s
		s.look(member, w.set.Status.Unanswered, w.now)
		if w.set.Spec.Paused && !s.unheard { // nobody asks
			s.askedAt, member.askedAt = time.Time{}, time.Time{}
		}
	}
}

// remember notes of a write what the next plan has to know.
func (r *Reconciler) remember(w *world, o *action.Outcome) {
	known := r.of(w.set)
	switch {
	case o.Verb != action.Patch:
	case o.Reason == reasonRefused && o.Object.GetAnnotations()[v1alpha1.AnnotationSwitchoverTo] == "":
		known.wish = "" // the same one may be wanted again at once
	case o.Reason == reasonChild || o.Reason == reasonTemplate:
		was, now := known.mended[childKey(o.From)], mended{attemptOf(o.From, o.Object), o.Answer.GetResourceVersion() == o.From.GetResourceVersion(), w.now}
		known.mended[childKey(o.From)] = now
		if now.vain && (!was.vain || was.attempt != now.attempt) {
			r.event(w, o.Object, corev1.EventTypeWarning, v1alpha1.EventWriteUndone, "Keep",
				"%s: changed nothing; the API server, or a policy in it, takes back what is written there", o.String())
		}
	}
}

// seen is what this process remembers of a pod.
type seen struct {
	container  string
	ready      bool
	touched    time.Time
	unanswered int // as in member
	askedAt    time.Time
	unheard    bool
	said       map[string]podexec.Result
	counted    map[string]time.Time // the end of the last result that was counted
	tries      map[string]int
}

// look remembers what is new in a pod.
func (s *seen) look(m *member, recorded []v1alpha1.Unanswered, now time.Time) {
	if container, ready := m.running(), podstate.Ready(m.pod); container != s.container || ready != s.ready {
		if container != s.container {
			s.unanswered, s.askedAt, s.unheard = 0, time.Time{}, false
			for _, r := range recorded {
				if r.Pod == m.name() && r.ContainerID == container {
					s.askedAt, s.unheard = r.Since.Time, true
				}
			}
		}
		s.container, s.ready, s.touched = container, ready, now
	}
	for name, r := range m.results {
		switch {
		case s.counted[name].Equal(r.Ended):
		case r.Outcome == podexec.Unknown:
			if name == v1alpha1.CommandStatus && (r.Sent || r.Refused) && r.ContainerID == s.container {
				s.unanswered++
				if s.askedAt.IsZero() {
					s.askedAt = r.Began
				}
			}
			s.tries[name]++
			m.unclear = append(m.unclear, r)
		default:
			if name == v1alpha1.CommandStatus {
				s.unanswered, s.askedAt, s.unheard = 0, time.Time{}, false
			}
			s.said[name], s.tries[name] = r, s.tries[name]+1
			if _, number := sequenceOf(r); number || name != v1alpha1.CommandSequence {
				s.tries[name] = 0
			}
		}
		s.counted[name] = r.Ended
	}
	if m.busy != nil && m.busy.Name == v1alpha1.CommandStatus && s.askedAt.IsZero() {
		s.askedAt = m.busy.Asked
	}
	m.askedAt, m.unheard = s.askedAt, s.unheard
	m.touched, m.said, m.tries, m.unanswered = s.touched, maps.Clone(s.said), maps.Clone(s.tries), s.unanswered
}
