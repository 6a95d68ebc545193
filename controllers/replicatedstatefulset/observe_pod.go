package replicatedstatefulset

import (
	"maps"
	"time"

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
