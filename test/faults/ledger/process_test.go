package main

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

// trio is a primary a with its followers b and c.
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
		s.until(m.name+" has the log of "+members[0].name, func() bool { return reflect.DeepEqual(m.log(), members[0].log()) })
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
	s.appends(next, 20) // the other one found it without being told
	a.does("stop")
	a.ends(exitStopped, "status")
	a.does("secondary", next.address)
	a.does("status")
	s.appends(next, 1)
	s.same(next, a, b, c)
	report := s.check(next)
	if report.Appends != 41 || len(report.Failovers) != 1 || report.Failovers[0].Pause == 0 {
		t.Errorf("got %v", report)
	}
	if killed := report.Reigns[0]; killed.Ceased || killed.Gone < killed.End {
		t.Errorf("the killed primary's end is %+v", killed)
	}
}

func TestSwitchover(t *testing.T) {
	s, a, b, c := trio(t)
	s.appends(a, 5)
	a.does("demote", a.address) // its own name is among those of the primaries
	a.does("status")
	newest(a, b, c).does("promote")
	a.does("primary") // it is the first of equals, and is primary again
	s.appends(a, 5)
	s.same(a, b)
	a.does("secondary", a.address) // as a fallback of demote
	b.does("primary")              // as a fallback of promote
	b.ends(exitPrimary, "status")
	s.appends(b, 5)
	c.does("primary", b.address) // there is one: it follows
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
	if a.sequence() <= b.sequence() {
		t.Error("the primary's copy is not newer")
	}
	if op := s.reads(a); op.Position != 5 {
		t.Errorf("a reader sees %d appends, and 5 are acknowledged", op.Position)
	}
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

// unacknowledged appends until it is in the member's log, and gives up.
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
	if op := <-answered; op.Outcome != record.Unknown {
		s.Errorf("it is not unknown: %+v", op)
	}
}

func (m *member) view(s *set) view {
	s.Helper()
	var v view
	if err := ask(s.Context(), m.address, "GET", "/role", nil, &v); err != nil {
		s.Fatal(err)
	}
	return v
}

// said counts how often a member's journal has such a line, and wants one.
func (s *set) said(m *member, what string) int {
	s.Helper()
	lines, err := record.ReadLines[record.Line](filepath.Join(s.dir, "journal", m.name+record.JournalSuffix))
	if err != nil {
		s.Fatal(err)
	}
	count := 0
	for _, l := range lines {
		if l.What == what {
			count++
		}
	}
	if count == 0 {
		s.Errorf("the journal of %s has no line %s", m.name, what)
	}
	return count
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
	dropTail(t, a, 3) // a's disk lost what it had said to have
	for _, m := range s.members {
		m.start()
		m.ends(exitStopped, "status")
	}
	if newest(a, b, c) != b || a.sequence() <= c.sequence() {
		t.Fatalf("sequences %d %d %d", a.sequence(), b.sequence(), c.sequence())
	}
	b.does("seed")
	a.does("secondary", b.address)
	c.turn("replicate", "lag 300ms")
	c.does("secondary", b.address)
	if len(c.log()) < 21 {
		t.Errorf("secondary ended when c had %d entries of 21", len(c.log()))
	}
	s.appends(b, 5)
	s.same(b, a, c)
	s.check(b)
}

func dropTail(t *testing.T, m *member, count int) {
	path := filepath.Join(m.dir, logFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	kept := strings.Join(lines[:len(lines)-count], "") + `{"epoch":1,"ind` // and was writing
	if err := os.WriteFile(path, []byte(kept), 0o644); err != nil {
		t.Fatal(err)
	}
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
	if err == nil || !strings.Contains(err.Error(), `"effect":"none"`) {
		t.Errorf("got %v", err)
	}
	if b.sequence() != was {
		t.Error("nobody follows it, and its copy looks newer")
	}
	b.does("kill")
	a.does("seed") // takes the epoch that b had
	c.does("secondary", a.address)
	s.appends(a, 5)
	b.does("secondary", a.address) // b has joined its own
	s.appends(a, 1)
	s.same(a, b, c)
	if s.said(a, record.Established) < 3 {
		t.Error("a went on in an epoch of which b had joined another's")
	}
	s.check(a)
}

func TestJoinedEpochOutlivesItsMember(t *testing.T) {
	s := newSet(t, 3, "LEDGER_ACKS=2") // so that one follower begins no epoch
	a, b := s.members[0], s.members[1]
	a.does("seed")
	b.does("secondary", a.address)
	s.until("b has joined", func() bool { return b.view(s).Epoch == 1 })
	a.does("kill")
	b.kill()
	b.start("LEDGER_ACKS=2")
	b.does("seed")
	if v := b.view(s); v.Epoch != 2 || v.Established {
		t.Errorf("b, which had joined epoch 1, leads as %+v", v)
	}
}

func TestSameRequestIsOneEntry(t *testing.T) {
	s, a, b, c := trio(t)
	twice := request{Client: "x", Request: "1", Value: "v"}
	var first, second, third answer
	for _, to := range []*answer{&first, &second} {
		if err := ask(t.Context(), a.address, "POST", "/append", twice, to); err != nil {
			t.Fatal(err)
		}
	}
	s.same(a, b)
	a.does("kill")
	b.does("promote")
	if err := ask(t.Context(), b.address, "POST", "/append", twice, &third); err != nil {
		t.Fatal(err)
	}
	if first.Index == 0 || second != first || third != first {
		t.Errorf("answers %+v, %+v and %+v", first, second, third)
	}
	s.same(b, c)
	s.check(b)
}

func TestAcksOfOneMember(t *testing.T) {
	s := newSet(t, 1)
	s.members[0].does("seed")
	s.appends(s.members[0], 3)
	s.members[0].does("seed") // of a primary: nothing to do
	s.check(s.members[0])
	if n := s.said(s.members[0], record.Established); n != 1 {
		t.Errorf("%d epochs", n)
	}
}

func TestCommandsOfAStoppedMember(t *testing.T) {
	s := newSet(t, 2, "LEDGER_JOIN_TIMEOUT=300ms")
	a, b := s.members[0], s.members[1]
	a.does("stop")
	a.ends(exitStopped, "promote")
	a.ends(exitStopped, "demote")
	a.ends(exitUsage, "fence")
	a.ends(exitFailed, "secondary", b.address) // nobody is primary
	a.ends(exitStopped, "status")
	if a.sequence() != 0 {
		t.Error("an empty copy is not the oldest")
	}
	a.does("secondary")
	a.does("status")
	a.does("kill")
	a.ends(exitStopped, "status") // a secondary leaves nothing to clean
}

func TestProcess1Ends(t *testing.T) {
	s, a, b, _ := trio(t)
	if err := a.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := a.process.Wait(); err != nil || a.serves() {
		t.Errorf("it ended with %v, and serves: %t", err, a.serves())
	}
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
		// Readers of the old one, which does not know, see old data.
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
		s.until("it has ended its last pull", func() bool { s.appends(a, 1); return len(b.log()) < len(a.log())-1 })
		a.does("kill")
		b.does("promote")
		s.breaks(b, "lost: request")
	})
}
