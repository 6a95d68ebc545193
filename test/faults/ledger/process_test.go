package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

// trio returns a set of a primary a with its followers b and c.
func trio(t *testing.T, env ...string) (s *set, a, b, c *member) {
	s = newSet(t, 3, env...)
	a, b, c = s.members[0], s.members[1], s.members[2]
	for _, m := range s.members {
		m.ends(exitStopped, "status")
	}
	a.does("seed")
	b.does("secondary", a.address)
	c.does("secondary", a.address)
	a.ends(exitPrimary, "status")
	b.does("status")
	c.does("status")
	return s, a, b, c
}

func (s *set) same(members ...*member) {
	s.Helper()
	for _, m := range members[1:] {
		s.Eventually(func(g Gomega) { g.Expect(m.log()).To(Equal(members[0].log())) }, time.Minute).Should(Succeed(), "the log of %s", m.name)
	}
}

func TestPrimaryIsKilled(t *testing.T) {
	s, a, b, c := trio(t)
	s.appends(a, 20)
	a.does("kill")
	a.ends(exitFailedPrimary, "status")
	next := newest(b, c)
	next.does("promote")
	next.ends(exitPrimary, "status")
	s.appends(next, 20) // the other follower found the primary without a command
	a.does("stop")
	a.ends(exitStopped, "status")
	a.does("secondary", next.address)
	a.does("status")
	s.appends(next, 1)
	s.same(next, a, b, c)
	report := s.check(next)
	s.Expect(report.Appends).To(Equal(41))
	s.Expect(report.Failovers).To(HaveExactElements(HaveField("Pause", Not(BeZero()))))
	killed := report.Reigns[0]
	s.Expect(killed.Ceased).To(BeFalse())
	s.Expect(killed.Gone).To(BeNumerically(">=", killed.End), "the killed primary's end")
}

func TestSwitchover(t *testing.T) {
	s, a, b, c := trio(t)
	s.appends(a, 5)
	a.does("demote", a.address) // the arguments include the primary's own name
	a.does("status")
	newest(a, b, c).does("promote")
	a.does("primary") // it is the first of equals, and is primary again
	s.appends(a, 5)
	s.same(a, b)
	a.does("secondary", a.address) // as a fallback of demote
	b.does("primary")              // as a fallback of promote
	b.ends(exitPrimary, "status")
	s.appends(b, 5)
	c.does("primary", b.address) // there is a primary: it follows
	c.does("status")
	s.same(b, a, c)
	s.check(b)
}

func TestUnacknowledgedTailIsCut(t *testing.T) {
	s, a, b, c := trio(t)
	s.appends(a, 5)
	s.same(a, b, c)
	b.turn("replicate", "hang")
	c.turn("replicate", "hang")
	for range 2 {
		s.unacknowledged(a)
	}
	s.Expect(a.sequence()).To(BeNumerically(">", b.sequence()), "the primary's copy is newer")
	s.Expect(s.reads(a).Position).To(BeEquivalentTo(5), "a reader sees acknowledged entries")
	a.does("kill")
	b.turn("replicate", "")
	c.turn("replicate", "")
	b.does("promote")
	s.appends(b, 3)
	a.does("secondary", b.address)
	s.same(b, a, c)
	s.said(a, record.Cut)
	s.check(b)
}

// unacknowledged appends until the entry is in the member's log, and then stops.
func (s *set) unacknowledged(m *member) {
	s.Helper()
	before := m.view(s).Index
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	answered := make(chan record.Op)
	c := s.client(m)
	c.Try = 200 * time.Millisecond
	go func() {
		op, _ := c.Append(ctx, "too much")
		answered <- op
	}()
	s.until("the append is in the log", func() bool { return m.view(s).Index > before })
	cancel()
	op := <-answered
	s.Expect(op.Outcome).To(Equal(record.Unknown), "%+v", op)
}

func (m *member) view(s *set) view {
	s.Helper()
	var v view
	s.Expect(ask(s.Context(), m.address, "GET", "/role", nil, &v)).To(Succeed())
	return v
}

// said returns how many lines of this kind a member's journal has, and expects at least one.
func (s *set) said(m *member, what string) int {
	s.Helper()
	lines, err := record.ReadLines[record.Line](filepath.Join(s.dir, "journal", m.name+record.JournalSuffix))
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(lines).To(ContainElement(HaveField("What", what)), "the journal of %s", m.name)
	return len(slices.DeleteFunc(lines, func(l record.Line) bool { return l.What != what }))
}

func TestLightsOut(t *testing.T) {
	s, a, b, c := trio(t)
	s.appends(a, 10)
	c.does("stop")
	s.appends(a, 10)
	s.same(a, b)
	for _, m := range s.members {
		m.kill()
	}
	a.dropTail(3) // a's disk lost entries that it had confirmed
	for _, m := range s.members {
		m.start()
		m.ends(exitStopped, "status")
	}
	s.Expect(a.sequence()).To(BeNumerically("<", b.sequence()))
	s.Expect(a.sequence()).To(BeNumerically(">", c.sequence()))
	b.does("seed")
	a.does("secondary", b.address)
	c.turn("replicate", "lag 300ms")
	c.does("secondary", b.address)
	s.Expect(len(c.log())).To(BeNumerically(">=", 21), "entries when secondary ended")
	s.appends(b, 5)
	s.same(b, a, c)
	s.check(b)
}

func (m *member) dropTail(count int) {
	m.Helper()
	path := filepath.Join(m.dir, logFile)
	text, err := os.ReadFile(path)
	m.Expect(err).NotTo(HaveOccurred())
	lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	kept := strings.Join(lines[:len(lines)-count], "") + `{"epoch":1,"ind` // an incomplete write
	m.Expect(os.WriteFile(path, []byte(kept), 0o644)).To(Succeed())
}

func TestPrimaryWithoutFollowersLeavesNothing(t *testing.T) {
	s, a, b, c := trio(t, "LEDGER_ACK_TIMEOUT=200ms")
	s.appends(a, 5)
	s.same(a, b, c)
	for _, m := range s.members {
		m.does("stop")
	}
	was := b.sequence()
	b.does("seed")
	err := ask(t.Context(), b.address, "POST", "/append", request{"x", "1", "lost"}, &answer{})
	s.Expect(err).To(MatchError(ContainSubstring(`"effect":"none"`)))
	s.Expect(b.sequence()).To(Equal(was), "without followers, and with a copy that looks newer")
	b.does("kill")
	a.does("seed") // takes the epoch that b had
	c.does("secondary", a.address)
	s.appends(a, 5)
	b.does("secondary", a.address) // b has joined its own epoch
	s.appends(a, 1)
	s.same(a, b, c)
	s.Expect(s.said(a, record.Established)).To(BeNumerically(">=", 3), "a continued in an epoch in which b had joined another one")
	s.check(a)
}

func TestJoinedEpochOutlivesItsMember(t *testing.T) {
	s := newSet(t, 3, "LEDGER_ACKS=2") // so that one follower is not enough to start an epoch
	a, b := s.members[0], s.members[1]
	a.does("seed")
	b.does("secondary", a.address)
	s.until("b has joined", func() bool { return b.view(s).Epoch == 1 })
	a.does("kill")
	b.kill()
	b.start("LEDGER_ACKS=2")
	b.does("seed")
	v := b.view(s)
	s.Expect(v.Epoch).To(BeEquivalentTo(2), "b, which had joined epoch 1, leads")
	s.Expect(v.Established).To(BeFalse())
}

func TestSameRequestIsOneEntry(t *testing.T) {
	s, a, b, c := trio(t)
	twice := request{Client: "x", Request: "1", Value: "v"}
	var first, second, third answer
	for _, to := range []*answer{&first, &second} {
		s.Expect(ask(t.Context(), a.address, "POST", "/append", twice, to)).To(Succeed())
	}
	s.same(a, b)
	a.does("kill")
	b.does("promote")
	s.Expect(ask(t.Context(), b.address, "POST", "/append", twice, &third)).To(Succeed())
	s.Expect(first.Index).NotTo(BeZero())
	s.Expect([]answer{second, third}).To(HaveEach(first))
	s.same(b, c)
	s.check(b)
}

// TestDemoteHandsOff verifies that a primary that acknowledges entries before followers have them
// transfers them to a follower before it is demoted.
func TestDemoteHandsOff(t *testing.T) {
	s := newSet(t, 2, "LEDGER_ACKS=0")
	a, b := s.members[0], s.members[1]
	a.does("seed")
	b.does("secondary", a.address)
	b.turn("replicate", "lag 300ms")
	s.appends(a, 20)
	a.does("demote", a.address)
	s.same(a, b)
	b.does("promote")
	s.check(b)
}

func TestAcksOfOneMember(t *testing.T) {
	s := newSet(t, 1)
	s.members[0].does("seed")
	s.appends(s.members[0], 3)
	s.members[0].does("seed") // of a primary: nothing to do
	s.check(s.members[0])
	s.Expect(s.said(s.members[0], record.Established)).To(Equal(1), "epochs")
}

func TestCommandsOfAStoppedMember(t *testing.T) {
	s := newSet(t, 2, "LEDGER_JOIN_TIMEOUT=300ms")
	a, b := s.members[0], s.members[1]
	a.does("stop")
	a.ends(exitStopped, "promote")
	a.ends(exitStopped, "demote")
	a.ends(exitUsage, "fence")
	a.ends(exitFailed, "secondary", b.address) // there is no primary
	a.ends(exitStopped, "status")
	s.Expect(a.sequence()).To(BeZero(), "an empty copy is the oldest")
	a.does("secondary")
	a.does("status")
	a.does("kill")
	a.ends(exitStopped, "status") // a secondary needs no cleanup
}

func TestProcess1Ends(t *testing.T) {
	s, a, b, _ := trio(t)
	s.Expect(a.process.Process.Signal(syscall.SIGTERM)).To(Succeed())
	s.Expect(a.process.Wait()).To(Succeed())
	s.Expect(a.serves()).To(BeFalse())
	for _, what := range []string{record.Ceased, record.Served, record.End} {
		s.said(a, what)
	}
	b.does("promote")
	s.appends(b, 3)
	s.check(b)
}

func TestWrongCommandsAreFound(t *testing.T) {
	t.Run("a second primary", func(t *testing.T) {
		s, a, b, c := trio(t)
		s.appends(a, 5)
		b.does("promote")
		c.does("secondary", b.address)
		s.appends(b, 5)
		// Readers of the old primary, which is not aware of the new one, see old data.
		s.reads(a)
		s.breaks(b, "held its lock")
		s.breaks(b, "no order of all operations")
	})
	t.Run("an old copy is seeded", func(t *testing.T) {
		s, a, b, c := trio(t)
		c.does("stop")
		s.appends(a, 5)
		for _, m := range s.members {
			m.does("stop")
		}
		c.does("seed")
		b.does("secondary", c.address)
		s.appends(c, 1)
		s.breaks(c, "lost: request")
	})
	t.Run("followers that do not count", func(t *testing.T) {
		s := newSet(t, 2, "LEDGER_ACKS=0")
		a, b := s.members[0], s.members[1]
		a.does("seed")
		b.does("secondary", a.address)
		b.turn("replicate", "hang")
		s.until("it has completed its last pull", func() bool { s.appends(a, 1); return len(b.log()) < len(a.log())-1 })
		a.does("kill")
		b.does("promote")
		s.breaks(b, "lost: request")
	})
}
