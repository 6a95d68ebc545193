package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// When a secondary must be promoted, members that do not run may have newer copies. A search asks
// for their sequences, and delays the promotion until they are known.

// searchResult is the result of a search.
type searchResult struct {
	// blocks is true if no secondary may be promoted now.
	blocks bool
	// candidates are the members that may have newer copies. sequenceUnknown names those whose
	// sequence is unknown.
	candidates      []*facts.Member
	sequenceUnknown string
	// waiting is the reason why the promotion is delayed. again is the delay until the next check.
	waiting engine.Notice
	after   time.Duration
	// newer are the members with newer copies than all running members. One of them is started
	// first. If that fails, its copy counts as missing.
	newer copies
}

// isNothing reports whether there is nothing to search for.
func (e *searchResult) isNothing() bool { return !e.blocks && len(e.candidates) == 0 }

// search finds copies that are newer than those of the running secondaries.
type search struct {
	*facts.Facts
	// running are the running secondaries, and sequence the highest of their sequences.
	running  []*facts.Member
	sequence uint64
}

// wasHandedOver reports whether the member is the last lost primary and was stopped when another
// member had all of its data.
func wasHandedOver(f *facts.Facts, m *facts.Member) bool {
	if m.Pod.UID != f.LossOf {
		return false
	}
	r, ok := m.Result(v1alpha1.CommandStop)
	if !ok || r.Outcome != podexec.Succeeded || r.Ended.Before(m.ChangedAt()) {
		return false
	}
	return r.Proven
}

// incomplete reports whether copies of members that do not run are compared: more members are
// missing than the former primary, or spec.failover.restartPrimary requires it.
func (s search) incomplete() bool {
	if restartsPrimary(s.World) {
		return true
	}
	return len(s.running) < max(s.Wanted(), len(s.Members))-1
}

// restartsPrimary reports whether the former primary is restarted if its copy is too new to be lost.
func restartsPrimary(w *facts.World) bool {
	p := w.Set.Spec.Failover
	if p == nil {
		return false
	}
	return p.RestartPrimary == v1alpha1.RestartIfNewest || p.MaxLoss != nil
}

// unread names the members whose sequences must be known before a promotion with spec.failover.maxLoss:
// the former primary, or all members if this process has not seen which one that was.
func (s search) unread() string {
	if !s.LimitsLoss() {
		return ""
	}
	if s.LossPod != "" {
		return s.whyUnread(cmp.Or(s.ByUID(s.LossOf), s.Named(s.LossPod)), s.LossPod)
	}
	var names []string
	for i := range s.Wanted() {
		name := spec.MemberName(s.Set, i)
		if why := s.whyUnread(s.Named(name), name); why != "" {
			names = append(names, why)
		}
	}
	for _, m := range s.Members {
		if why := s.whyUnread(m, m.Name()); why != "" && m.Ordinal >= s.Wanted() {
			names = append(names, why)
		}
	}
	return strings.Join(names, ", ")
}

// whyUnread returns the name of a member whose sequence must be known, and is not.
func (s search) whyUnread(m *facts.Member, name string) string {
	switch {
	case m == nil:
		return name
	case slices.Contains(s.running, m), wasHandedOver(s.Facts, m):
		return ""
	case m.Version.Answered && !m.Version.Known:
		return fmt.Sprintf("%s (%s)", name, whyUnknown(m))
	case s.isCompared(m):
		return ""
	}
	return name
}

// isCompared reports whether the sequence of a member is known and within the limit. A sequence of 0 can be
// that of a volume whose data was lost, unless the pod is still the same.
func (s search) isCompared(m *facts.Member) bool {
	if m.Version.Sequence == 0 && s.sequence > 0 && m.Pod.UID != s.LossOf {
		return false
	}
	return m.Version.Known && !s.IsTooNew(m.Version.Sequence, s.sequence)
}

// find checks the members that do not run for newer copies. If all members but one run, there is
// nothing to search for, because that one was the primary.
func (s search) find() searchResult {
	if s.incomplete() {
		if e := s.awaitReturn(); e.blocks {
			return e
		}
	}
	candidates := s.Among(s.mayHaveNewer)
	if len(candidates) == 0 {
		return s.limited(searchResult{})
	}
	all := copiesOf(candidates)
	e := searchResult{
		candidates:      candidates,
		sequenceUnknown: all.matching(func(m *facts.Member) bool { return m.Retained }).unknownNames(),
	}
	switch {
	case !all.answered(), e.sequenceUnknown != "":
		e.blocks = true
		e.waiting = engine.Notice{Reason: v1alpha1.ReasonSeeding, Message: all.whyWaiting(e.sequenceUnknown)}
	case all[0].Version.Known && s.IsTooNew(all[0].Version.Sequence, s.sequence):
		e.blocks = true
		e.newer = all.newest()
	}
	return s.limited(e)
}

// limited returns the result of a search, which also blocks a promotion whose loss is unknown.
func (s search) limited(e searchResult) searchResult {
	unread := s.unread()
	if e.blocks || unread == "" {
		return e
	}
	e.blocks, e.sequenceUnknown = true, unread
	e.waiting = engine.Notice{Reason: v1alpha1.ReasonSeeding, Message: "data version unknown for " + unread + ", so the loss of a failover could exceed spec.failover.maxLoss"}
	return e
}

// mayHaveNewer reports whether a member that does not run is asked for its sequence.
func (s search) mayHaveNewer(m *facts.Member) bool {
	switch {
	case wasHandedOver(s.Facts, m):
		return false
	case !s.incomplete():
		return m.State == record.Idle && m.Retained
	case !m.Owned:
		return false
	case m.CannotRunHere && !m.Retained:
		return false
	}
	switch m.State {
	case record.Idle, record.Failed:
		return true
	case record.Secondary:
		return m.Terminating()
	}
	return false
}

// actOnSearch adds the actions for the result of a search.
func (p *Plan) actOnSearch(f *facts.Facts, e searchResult) {
	p.LookAgain(e.after)
	if len(e.candidates) > 0 {
		p.askVersions(f, e.candidates)
	}
	p.SequenceUnknown = cmp.Or(e.sequenceUnknown, p.SequenceUnknown)
	if e.waiting.Message != "" {
		p.WaitFor(e.waiting.Reason, e.waiting.Message)
	}
	if len(e.newer) == 0 {
		return
	}
	first := e.newer[0]
	answer, _ := first.Answer(v1alpha1.CommandSequence)
	p.Record.NoteVersion(first.Name(), first.Version.Sequence, answer.Began)
	if m := e.newer.startable(); m != nil {
		p.startFirstPrimary(
			f,
			m,
			fmt.Sprintf(
				"it is not running and has the newest copy, sequence %d",
				m.Version.Sequence,
			),
		)
		return
	}
	p.waitForNewest(e.newer)
}

// awaitReturn waits for members that failed together with the last primary and are about to return,
// because acknowledged writes may be in their copies only. It does not wait for a member that has
// been Pending for longer, whose container ended earlier, or whose node is lost.
func (s search) awaitReturn() searchResult {
	left := s.Watch.Deadline(s.LossAt, spec.ReturnsWithin).Sub(s.Now)
	if left <= 0 {
		return searchResult{}
	}
	went, missing := s.Among(s.returns), s.Wanted()-s.havePods()
	if len(went) == 0 && missing <= 0 {
		return searchResult{}
	}
	who := facts.NamesOf(went)
	if who == "" {
		who = fmt.Sprintf("%d of %d pods", missing, s.Wanted())
	}
	return searchResult{blocks: true, after: left, waiting: engine.Notice{
		Reason: v1alpha1.ReasonSeeding,
		Message: fmt.Sprintf(
			"waiting up to %gm for members that failed with the primary and may hold newer data: %s",
			spec.ReturnsWithin.Minutes(), who,
		),
	}}
}

// havePods returns the number of wanted members that have a pod.
func (s search) havePods() int {
	return len(s.Among(func(m *facts.Member) bool { return m.Ordinal < s.Wanted() }))
}

// returns reports whether the member cannot report its sequence now, but is expected to soon.
func (s search) returns(m *facts.Member) bool {
	if m.NodeUnreachable() || !m.Owned {
		return false
	}
	if !m.Down() {
		return m.Command != nil && m.Reachable()
	}
	if m.CannotRestart() {
		return true
	}
	went := s.LossAt.Add(-spec.ReturnsWithin)
	return m.EndedAfter(went) || isStartingSince(m, went)
}

// isStartingSince reports whether the pod was created after then and has not been started by its
// kubelet.
func isStartingSince(m *facts.Member, then time.Time) bool {
	return m.Pod.Status.Phase == corev1.PodPending && m.Pod.CreationTimestamp.After(then)
}

// noteNotCompared records that the copy of the last primary may be newer than that of the promoted
// secondary.
func (p *Plan) noteNotCompared(f *facts.Facts, promoted *facts.Member) {
	if !p.writesRecord || f.Record.Epoch == 0 {
		return
	}
	old := f.ByUID(f.LossOf)
	if old == nil {
		old = f.Named(f.LossPod)
	}
	had := "not read, and may have been higher"
	switch {
	case old == nil && len(f.Among(func(m *facts.Member) bool { return m.Version.Known && m.Ordinal < f.Wanted() })) >= f.Wanted():
		return // all were compared
	case old != nil && old.Version.Known:
		if old.Version.Sequence <= promoted.Version.Sequence {
			return
		}
		had = strconv.FormatUint(old.Version.Sequence, 10)
	case f.LossProven, old != nil && wasHandedOver(f, old):
		return
	}
	remedy := "To compare that copy before a promotion, set spec.failover.restartPrimary to IfNewest"
	if f.LimitsLoss() {
		remedy = "This does not exceed spec.failover.maxLoss"
	}
	p.Uncompared = fmt.Sprintf("%s%s was promoted with sequence %d. The sequence of %s was %s: data that only its copy had is lost. %s",
		BeginningOf(p.Record.EpochOf(v1alpha1.CommandPromote)), promoted.Name(), promoted.Version.Sequence, cmp.Or(f.LossPod, "the former primary"), had, remedy)
}

// BeginningOf returns the prefix of a message about an epoch.
func BeginningOf(epoch int64) string { return fmt.Sprintf("epoch %d: ", epoch) }

// waitForNewest states why no member with the newest copy is started. Members in maintenance still
// block the start of older copies.
func (p *Plan) waitForNewest(newest copies) {
	p.WaitFor(v1alpha1.ReasonRecovering, cannotStart(newest[0]))
	if !slices.ContainsFunc(newest, func(m *facts.Member) bool { return !m.Parked }) {
		p.Risk = fmt.Sprintf("%s has the newest copy, sequence %d, and is in spec.maintenance", newest[0].Name(), newest[0].Version.Sequence)
	}
}

// cannotStart states why the member with the newest copy is not started.
func cannotStart(m *facts.Member) string {
	return fmt.Sprintf("cannot start %s, which has the newest data: %s", m.Name(), m.WhyNotStartable)
}
