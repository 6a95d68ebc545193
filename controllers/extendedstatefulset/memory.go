package extendedstatefulset

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// remembered is what this process remembers of one object from pass to pass. It may be
// lost: it is found out again.
type remembered struct {
	refusal    memory.Refusal
	undone     undone.Memory
	whyMissing whyMissing
	// jobsMissing is since when Jobs on record are missing, by UID.
	jobsMissing map[types.UID]time.Time
}

// whyMissing remembers why pods are not there that a StatefulSet should have.
type whyMissing struct {
	due  time.Time // when to read the events again; zero while no pod is missing
	next time.Duration
	said map[string]string // by the name of the pod
}

// begin notes that pods are missing.
func (m *whyMissing) begin(now time.Time) {
	if m.due.IsZero() {
		m.due, m.next = now.Add(refusalsFirst), refusalsAgain
	}
}

// learn takes what the events said.
func (m *whyMissing) learn(said map[string]string, now time.Time) {
	m.said, m.due, m.next = said, now.Add(m.next), min(2*m.next, refusalsSeldom)
}
