package replicatedstatefulset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

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

// mostLookups is how many pods that the labels did not find are looked for one by one.
const mostLookups = 32

// unlisted are the names of pods that there should be, or that the books name, and
// that were not listed. Where many are missing they are those that there are: a set
// that wants a thousand and gets none costs no thousand reads each time.
func (r *Reconciler) unlisted(ctx context.Context, w *world, listed map[string]bool) (names []string, err error) {
	for _, name := range w.inBooks() {
		if !listed[name] {
			names = append(names, name)
		}
	}
	missing := 0
	for name := range w.wantedNames() {
		if !listed[name] {
			if missing++; missing > mostLookups {
				break
			}
			names = append(names, name)
		}
	}
	if missing > mostLookups {
		if names, err = r.unlabelled(ctx, w, listed); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// unlabelled are the same, by a list of all pods of the namespace.
func (r *Reconciler) unlabelled(ctx context.Context, w *world, listed map[string]bool) (names []string, err error) {
	books := w.inBooks()
	list := metadataListOf("Pod")
	for {
		options := []client.ListOption{client.InNamespace(w.set.Namespace), client.Limit(500), client.Continue(list.Continue)}
		if err := r.Live.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		for i := range list.Items {
			name := list.Items[i].Name
			if n, ok := ordinalOf(w.set, name); !listed[name] && (ok && n < int(*w.set.Spec.Replicas) || slices.Contains(books, name)) {
				names = append(names, name)
			}
		}
		if list.Continue == "" {
			return names, nil
		}
	}
}

// inBooks are the names of the pods that the books speak of.
func (w *world) inBooks() (names []string) {
	for i := range w.set.Status.Grants {
		names = append(names, w.set.Status.Grants[i].Pod)
	}
	for i := range w.set.Status.Commands {
		names = append(names, w.set.Status.Commands[i].Pod)
	}
	return names
}
