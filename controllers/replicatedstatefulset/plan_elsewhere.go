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

// elsewhere is what is found out, before a secondary is promoted, of copies that do not run.
type elsewhere struct {
	// holdsUp is true if no secondary is promoted for now.
	holdsUp bool
	// asked are members that may have what those that run have not; blind names those of
	// which it is not known.
	asked []*member
	blind string
	// waiting says what is waited for, and again is when to look again.
	waiting engine.Notice
	again   time.Duration
	// newer are those with a copy that is newer than all that run; one of them is started
	// first, and is missed if that fails.
	newer copies
}

// isNothing reports whether there is nothing to look for.
func (e *elsewhere) isNothing() bool { return !e.holdsUp && len(e.asked) == 0 }

// search looks for copies that are newer than that of secondaries that run.
type search struct {
	*facts
	running  []*member
	sequence uint64
}

// incomplete reports whether copies that do not run are compared: more members are missing
// than the one that was the primary, or spec.failover.restartPrimary asks for it.
func (s search) incomplete() bool {
	if s.restartsPrimary() {
		return true
	}
	return len(s.running) < max(s.wanted(), len(s.members))-1
}

// restartsPrimary reports whether the former primary is started again if its copy is the
// newest.
func (w *world) restartsPrimary() bool {
	p := w.set.Spec.Failover
	if p == nil {
		return false
	}
	return p.RestartPrimary == v1alpha1.RestartIfNewest
}

// find looks at members that do not run: they may have what those that run have not. If all
// but one run there is nothing to look for: that one was the primary.
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

// mayHaveNewer reports whether a member that does not run is asked how new its copy is.
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

// follow does what was found out about copies that do not run.
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
	p.record.noteVersion(first, first.version.sequence)
	if m := e.newer.startable(); m != nil {
		p.start(
			f,
			m,
			fmt.Sprintf(
				"it does not run, and has the newest copy, sequence %d",
				m.version.sequence,
			),
		)
		return
	}
	p.waitForNewest(e.newer)
}

// awaitReturn finds out whether members failed together with the last primary, and are
// about to come back: what was acknowledged may be in them alone. One that has been Pending
// for longer, whose container ended longer ago, or whose node is lost, holds up no other.
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

// havePods is how many of the wanted members have a pod.
func (s search) havePods() int {
	return len(s.among(func(m *member) bool { return m.ordinal < s.wanted() }))
}

// returns reports whether the member cannot say how new its copy is, and is expected to
// soon.
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

// isStartingSince reports whether the pod was made after that, and waits for its kubelet.
func isStartingSince(m *member, then time.Time) bool {
	return m.pod.Status.Phase == corev1.PodPending && m.pod.CreationTimestamp.After(then)
}

// noteUncompared notes that the copy of the last primary may be newer than that of the secondary
// that is promoted.
func (p *plan) noteUncompared(f *facts, promoted *member) {
	if !p.sent || f.record.epoch == 0 {
		return
	}
	old := f.byUID(f.lossOf)
	if old == nil {
		old = f.named(f.lossPod)
	}
	had := "not read and may have been higher"
	switch {
	case old == nil && len(f.among(func(m *member) bool { return m.version.known && m.ordinal < f.wanted() })) >= f.wanted():
		return // all were compared
	case old == nil:
	case f.wasHandedOver(old), old.version.known && old.version.sequence <= promoted.version.sequence:
		return
	case old.version.known:
		had = strconv.FormatUint(old.version.sequence, 10)
	}
	p.uncompared = fmt.Sprintf("%s%s was promoted with sequence %d. The sequence of %s was %s: what only its copy had is lost. "+
		"To read it first, set spec.failover.restartPrimary to IfNewest",
		beginningOf(p.record.epochOf(v1alpha1.CommandPromote)), promoted.name(), promoted.version.sequence, cmp.Or(f.lossPod, "the former primary"), had)
}

// beginningOf is how a message about an epoch begins.
func beginningOf(epoch int64) string { return fmt.Sprintf("epoch %d: ", epoch) }
