package facts

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Derive computes the facts of a world. It does not change the world. The order of the calls
// matters: each one uses the facts that earlier ones set.
func Derive(w *World) *Facts {
	f := &Facts{World: w}
	copies := make([]Member, len(w.Members))
	for i, m := range w.Members {
		copies[i] = *m
		f.Members = append(f.Members, &copies[i])
	}
	f.setPodFacts()
	f.Observed = f.observe()
	f.Record = record.Update(&w.Set.Status, f.Observed)
	f.setStates()
	f.setGrantFacts()
	setMaintenanceFacts(f)
	f.setFailureFacts()
	f.setCopyFacts()
	for _, m := range f.Members {
		m.WhyNotStartable = whyNotStartable(f, m)
	}
	if f.ManagesChildren() {
		f.WantedAgent = f.wantedAgent()
	}
	return f
}

// observe returns the part of the world by which the record is updated. It runs after setPodFacts.
func (f *Facts) observe() *record.Observed {
	o := &record.Observed{Set: f.Set, Now: f.Now, Watch: f.Watch, Invalid: f.Invalid != "", Wanted: f.Wanted(), WantedPrimaries: f.WantedPrimaries(),
		Leases: f.leases()}
	o.Members = make([]record.ObservedMember, len(f.Members))
	for i, m := range f.Members {
		o.Members[i] = m.observed()
	}
	return o
}

// setPodFacts sets the facts that need neither a state nor the record.
func (f *Facts) setPodFacts() {
	for _, m := range f.Members {
		m.PoweredOff = f.IsPoweredOff(m)
		m.Fenced = m.PoweredOff && m.CannotRestart()
		m.ShouldLeaveNode = m.Node.Cordoned || f.evictionRequested(m)
		m.UpToDate = f.IsUpToDate(m)
		m.NotAnswering = m.Reachable() && f.answersTooLate(m)
	}
}

// setStates sets the commands and states.
func (f *Facts) setStates() {
	for i, m := range f.Members {
		m.Command = record.CommandOf(f.Record.Commands, m.Pod.UID)
		m.State = f.Observed.StateOf(&f.Observed.Members[i], m.Command)
	}
}

// setGrantFacts sets the facts that depend on grants. It runs after the states are known.
func (f *Facts) setGrantFacts() {
	for _, m := range f.Members {
		m.Granted = f.Record.Grants(m.Identity())
		m.GrantedHere = f.Record.GrantsRunning(m.Identity())
		m.OnRecord = m.Granted || f.IsStored(m)
		m.WhyForeign = f.WhyForeign(m, m.OnRecord)
		m.Shown = f.shownAs(m)
		m.ReadyChangedAt = f.readyChangedAt(m)
	}
}

// setFailureFacts sets the facts about recent failures.
func (f *Facts) setFailureFacts() {
	for _, m := range f.Members {
		m.Failure = f.Record.FailureOf(m.Identity())
		if m.Failure != nil {
			m.CannotRunHere = record.CannotRun(m.Failure, f.Set.Generation)
			m.RetryAt = m.Failure.Last.Add(spec.Backoff(int(m.Failure.Count)))
		}
	}
}

// setCopyFacts sets the facts that compare copies. It runs after all states and grants are known.
func (f *Facts) setCopyFacts() {
	for _, m := range f.Members {
		m.Version = f.versionOf(m)
	}
	for _, m := range f.Members {
		m.Retained = f.isRetained(m)
		m.ScaledDown = m.Ordinal >= f.Wanted() && !m.Retained
		m.setMembershipFacts(f)
	}
}

// setMembershipFacts sets the facts about the membership in the application. A set that is stopped
// or deleted keeps its members.
func (m *Member) setMembershipFacts(f *Facts) {
	m.Membership = f.Record.MembershipOf(m.Name())
	removed := m.ScaledDown && f.Wanted() > 0 && f.Configured(v1alpha1.CommandLeave)
	switch m.Membership.State {
	case v1alpha1.MembershipJoined:
		m.MustLeave = removed
	case v1alpha1.MembershipLeaving:
		m.MustLeave, m.MustRejoin = removed, !m.ScaledDown
	case v1alpha1.MembershipLeft:
		m.MustRejoin = !m.ScaledDown
	}
}

// IsPoweredOff reports whether an administrator declared the member's machine off, or its Node has
// been missing for FenceAfter.
func (c *Clock) IsPoweredOff(m *Member) bool {
	if m.Node.Missing {
		return c.Watch.Elapsed(m.Node.MissingSince, c.Now) >= spec.FenceAfter
	}
	return m.Node.OutOfService && !m.Node.Ready
}

// evictionRequested reports whether the eviction of the member was requested recently.
func (c *Clock) evictionRequested(m *Member) bool {
	return Entry{At: m.EvictionAt}.IsWithin(spec.EvictionFor, c.Now)
}

// answersTooLate reports whether status has not answered for AnswersWithin. An entry in the status
// of the object stays until the member answers, because a new operator process has not been asking
// for that long.
func (c *Clock) answersTooLate(m *Member) bool {
	if m.AskedAt.IsZero() {
		return m.UnansweredOnRecord
	}
	return m.UnansweredOnRecord || c.Watch.Elapsed(m.AskedAt, c.Now) >= spec.AnswersWithin
}

// shownAs returns the state of a member, or the last reported state while it is unknown. So a
// restart of the operator or a lost response changes no reported state.
func (w *World) shownAs(m *Member) record.State {
	was, name := &w.Set.Status.Members, m.Name()
	wasPrimary := slices.Contains(was.Primary, name)
	switch {
	case m.State != record.Unknown:
		return m.State
	case wasPrimary && m.GrantedHere:
		return record.Primary
	case slices.Contains(was.Secondary, name):
		return record.Secondary
	case slices.Contains(was.Failed, name):
		return record.Failed
	case slices.Contains(was.Ready, name) && !wasPrimary && !w.Configured(v1alpha1.CommandSecondary):
		return record.Idle
	}
	return record.Unknown
}

// isRetained reports whether a member above the wanted number stays until another member has its
// data: no member is primary, and no wanted member is known to have an equally new copy.
func (f *Facts) isRetained(m *Member) bool {
	wanted := f.Wanted()
	if wanted == 0 || m.Ordinal < wanted || f.Record.HasGrants() || !m.CouldBeFirst() {
		return false
	}
	sequence, known := f.sinceLoss(m)
	if !known {
		return true
	}
	return !slices.ContainsFunc(f.Members, func(o *Member) bool {
		n, current := f.sinceLoss(o)
		return o.Ordinal < wanted && o.CouldBeFirst() && current && n >= sequence
	})
}

// sinceLoss returns the sequence of the member if it was read after the loss of the last primary.
func (w *World) sinceLoss(m *Member) (n uint64, current bool) {
	r, ok := m.Answer(v1alpha1.CommandSequence)
	n, known := record.SequenceOf(r)
	return n, ok && known && r.Began.After(w.LossAt)
}

// setMaintenanceFacts sets the maintenance facts. It runs after the states and grants are known. A
// set that is being deleted stops all members, so none is listed.
func setMaintenanceFacts(f *Facts) {
	for _, m := range f.Members {
		m.Listed = spec.IsListed(f.Set, m.Name())
		m.Parked = m.Listed && f.Record.MaintenanceOf(m.Name()).State == v1alpha1.MaintenanceParked
	}
}

// readyChangedAt returns when the kubelet last changed condition Ready of the pod, but not before the
// start of its container, the end of its last command, or its grant.
func (f *Facts) readyChangedAt(m *Member) time.Time {
	since := m.startedAt()
	if at := m.ChangedAt(); at.After(since) {
		since = at
	}
	for _, c := range m.Pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	i := slices.IndexFunc(
		f.Record.Granted,
		func(g v1alpha1.Grant) bool { return g.UID == m.Pod.UID },
	)
	if i >= 0 && f.Record.Granted[i].Since.After(since) {
		since = f.Record.Granted[i].Since.Time
	}
	return since
}

// versionOf returns the version of a member. It is current if it was read after the loss of the
// last primary and, if the member runs, within FreshFor.
func (w *World) versionOf(m *Member) version {
	r, ok := m.Answer(v1alpha1.CommandSequence)
	if ok && r.Began.After(w.LossAt) && (m.State == record.Idle || w.Now.Sub(r.Ended) < spec.FreshFor) {
		n, known := record.SequenceOf(r)
		if !known {
			n = 0
		}
		return version{Sequence: n, Answered: true, Known: known, Current: known}
	}
	last, asked := m.Result(v1alpha1.CommandSequence)
	inVain := asked && last.Outcome == podexec.Unknown && m.Tries[v1alpha1.CommandSequence] >= spec.UnresponsiveAfter
	return version{Answered: inVain}
}
