package facts

import (
	"cmp"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// runsInRole reports whether a member runs its application, as primary or secondary, and is not
// parked.
func (m *Member) runsInRole() bool {
	runs := m.Shown == record.Primary || m.Shown == record.Secondary
	return runs && !m.Parked && !m.Terminating() && !m.NodeUnreachable()
}

// Serves reports whether a member runs its application and serves clients. It is one of
// status.readyReplicas.
func (m *Member) Serves() bool { return m.runsInRole() && m.Unserved() == "" }

// MinReady returns spec.minReadySeconds.
func (w *World) MinReady() time.Duration {
	return time.Duration(w.Set.Spec.MinReadySeconds) * time.Second
}

// IsAvailable reports whether a member has served clients for MinReady. It is one of
// status.availableReplicas.
func (f *Facts) IsAvailable(m *Member) bool {
	return m.Serves() && (f.MinReady() == 0 || f.Now.Sub(m.ReadyChangedAt) >= f.MinReady())
}

// BlocksUpdate reports whether an update must wait for a member with the current template, because
// it has not been observed to serve clients for MinReady. After a restart of the operator this takes
// the full time again: the end of the command that started the member is not recorded.
func (f *Facts) BlocksUpdate(m *Member) bool {
	if f.MinReady() == 0 || !m.UpToDate || !m.runsInRole() {
		return false
	}
	return !m.Serves() || f.Now.Before(f.AvailableAt(m))
}

// AvailableAt returns when a member that serves clients is available.
func (f *Facts) AvailableAt(m *Member) time.Time {
	return f.Watch.Deadline(m.ReadyChangedAt, f.MinReady())
}

// WhyUnavailable states why BlocksUpdate is true for a member.
func (f *Facts) WhyUnavailable(m *Member) string {
	return cmp.Or(m.Unserved(), "until "+f.AvailableAt(m).UTC().Format(time.RFC3339))
}
