package replicatedstatefulset

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// elsewhere is the result of a search, before a secondary is promoted, for newer copies in members
// that do not run.
type elsewhere struct {
	// holdsUp is true if no secondary may be promoted now.
	holdsUp bool
	// asked are the members that may have newer copies. blind names those whose sequence is
	// unknown.
	asked []*member
	blind string
	// waiting is the reason why the promotion is delayed. again is the delay until the next check.
	waiting engine.Notice
	again   time.Duration
	// newer are the members with newer copies than all running members. One of them is started
	// first. If that fails, its copy counts as missing.
	newer copies
}

// isNothing reports whether there is nothing to search for.
func (e *elsewhere) isNothing() bool { return !e.holdsUp && len(e.asked) == 0 }

// search finds copies that are newer than those of the running secondaries.
type search struct {
	*facts
	running  []*member
	sequence uint64
}

// incomplete reports whether copies of members that do not run are compared: more members are
// missing than the former primary, or spec.failover.restartPrimary requires it.
func (s search) incomplete() bool {
	if s.restartsPrimary() {
		return true
	}
	return len(s.running) < max(s.wanted(), len(s.members))-1
}

// restartsPrimary reports whether the former primary is restarted if its copy is the newest.
func (w *world) restartsPrimary() bool {
	p := w.set.Spec.Failover
	if p == nil {
		return false
	}
	return p.RestartPrimary == v1alpha1.RestartIfNewest
}

// find checks the members that do not run for newer copies. If all members but one run, there is
// nothing to search for, because that one was the primary.
func (s search) find() elsewhere {
	if s.incomplete() {
		if e := s.awaitReturn(); e.holdsUp {
			return e
		}
	}
	asked := s.among(s.mayHaveNewer)
	if len(asked) == 0 {
		return elsewhere{}
	}
	all := copiesOf(asked)
	e := elsewhere{
		asked: asked,
		blind: all.those(func(m *member) bool { return m.retained }).unknown(),
	}
	switch {
	case !all.answered(), e.blind != "":
		e.holdsUp = true
		e.waiting = engine.Notice{Reason: v1alpha1.ReasonSeeding, Message: all.whyWaiting(e.blind)}
	case all[0].version.known && all[0].version.sequence > s.sequence:
		e.holdsUp = true
		e.newer = all.newest()
	}
	return e
}

// mayHaveNewer reports whether a member that does not run is asked for its sequence.
func (s search) mayHaveNewer(m *member) bool {
	switch {
	case s.wasHandedOver(m):
		return false
	case !s.incomplete():
		return m.state == idle && m.retained
	case !m.owned:
		return false
	case m.cannotRunHere && !m.retained:
		return false
	}
	switch m.state {
	case idle, failed:
		return true
	case secondary:
		return m.terminating()
	}
	return false
}

// follow adds the actions for the result of a search.
func (p *plan) follow(f *facts, e elsewhere) {
	p.LookAgain(e.again)
	if len(e.asked) > 0 {
		p.askVersions(f, e.asked)
		p.blind = e.blind
	}
	if e.waiting.Message != "" {
		p.WaitFor(e.waiting.Reason, e.waiting.Message)
	}
	if len(e.newer) == 0 {
		return
	}
	first := e.newer[0]
	said, _ := first.answer(v1alpha1.CommandSequence)
	p.record.noteVersion(first.name(), first.version.sequence, said.Began)
	if m := e.newer.startable(); m != nil {
		p.start(
			f,
			m,
			fmt.Sprintf(
				"it is not running and has the newest copy, sequence %d",
				m.version.sequence,
			),
		)
		return
	}
	p.waitForNewest(e.newer)
}

// awaitReturn waits for members that failed together with the last primary and are about to return,
// because acknowledged writes may be in their copies only. It does not wait for a member that has
// been Pending for longer, whose container ended earlier, or whose node is lost.
func (s search) awaitReturn() elsewhere {
	left := s.watch.Deadline(s.lossAt, returnsWithin).Sub(s.now)
	if left <= 0 {
		return elsewhere{}
	}
	went, missing := s.among(s.returns), s.wanted()-s.havePods()
	if len(went) == 0 && missing <= 0 {
		return elsewhere{}
	}
	who := namesOf(went)
	if who == "" {
		who = fmt.Sprintf("%d of %d pods", missing, s.wanted())
	}
	return elsewhere{holdsUp: true, again: left, waiting: engine.Notice{
		Reason: v1alpha1.ReasonSeeding,
		Message: fmt.Sprintf(
			"waiting up to %gm for members that failed with the primary and may hold newer data: %s",
			returnsWithin.Minutes(), who,
		),
	}}
}

// havePods returns the number of wanted members that have a pod.
func (s search) havePods() int {
	return len(s.among(func(m *member) bool { return m.ordinal < s.wanted() }))
}

// returns reports whether the member cannot report its sequence now, but is expected to soon.
func (s search) returns(m *member) bool {
	if m.lost() || !m.owned {
		return false
	}
	if !m.down() {
		return m.command != nil && m.reachable()
	}
	if m.goesForGood() {
		return true
	}
	went := s.lossAt.Add(-returnsWithin)
	return m.endedAfter(went) || isStartingSince(m, went)
}

// isStartingSince reports whether the pod was created after then and has not been started by its
// kubelet.
func isStartingSince(m *member, then time.Time) bool {
	return m.pod.Status.Phase == corev1.PodPending && m.pod.CreationTimestamp.After(then)
}

// noteUncompared records that the copy of the last primary may be newer than that of the promoted
// secondary.
func (p *plan) noteUncompared(f *facts, promoted *member) {
	if !p.sent || f.record.epoch == 0 {
		return
	}
	old := f.byUID(f.lossOf)
	if old == nil {
		old = f.named(f.lossPod)
	}
	had := "not read, and may have been higher"
	switch {
	case old == nil && len(f.among(func(m *member) bool { return m.version.known && m.ordinal < f.wanted() })) >= f.wanted():
		return // all were compared
	case old == nil:
	case f.wasHandedOver(old), old.version.known && old.version.sequence <= promoted.version.sequence:
		return
	case old.version.known:
		had = strconv.FormatUint(old.version.sequence, 10)
	}
	p.uncompared = fmt.Sprintf("%s%s was promoted with sequence %d. The sequence of %s was %s: data that only its copy had is lost. "+
		"To compare that copy before a promotion, set spec.failover.restartPrimary to IfNewest",
		beginningOf(p.record.epochOf(v1alpha1.CommandPromote)), promoted.name(), promoted.version.sequence, cmp.Or(f.lossPod, "the former primary"), had)
}

// beginningOf returns the prefix of a message about an epoch.
func beginningOf(epoch int64) string { return fmt.Sprintf("epoch %d: ", epoch) }
