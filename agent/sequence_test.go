package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/driver"
)

// After a promotion, the control file has the earlier timeline until the next checkpoint.
func TestACrashAfterAPromotion(t *testing.T) {
	m := newSet(t, 1).members[0]
	m.must(driver.Succeeded, "seed")
	m.sql("create table numbers (n int)", "checkpoint", "insert into numbers select 1 from generate_series(1, 200000)")
	m.crash()
	m.must(driver.Succeeded, "seed")
	m.sql("insert into numbers values (1)")
	before := m.sequence()
	m.crash()
	if got := m.checkpointTimeline(); got != "1" {
		t.Fatalf("the last checkpoint is of timeline %s, want 1", got)
	}
	if got := m.sequence(); got < before || timelineOf(got) != 2 {
		t.Errorf("the sequence changes from %x to %x by a crash", before, got)
	}
	m.must(driver.Succeeded, "seed")
	m.wants(sumOf, "200001")
	if got := m.sequence(); timelineOf(got) != 3 {
		t.Errorf("the sequence is %x, want timeline 3", got)
	}
}

// The server flushes whole pages, and the last record of a page may continue on the next one, which does not
// exist after a crash.
func TestTheFlushPositionIsInsideARecord(t *testing.T) {
	m := newSet(t, 1).members[0]
	m.must(driver.Succeeded, "seed")
	m.sql("create table large (b text)", "alter table large alter b set storage plain")
	c, err := m.connect("sslmode=disable")
	check(t, err)
	_, err = c.Exec(context.Background(), "begin; insert into large select repeat('x', 3000) from generate_series(1, 500)")
	check(t, err) // no commit, which would flush the rest
	m.eventually("a page is flushed", func() bool {
		return m.value("select (p - '0/0') % 8192 = 0 and p < pg_current_wal_insert_lsn() from pg_current_wal_flush_lsn() as p") == "true"
	})
	before := m.sequence()
	m.crash()
	if got := m.sequence(); got < before { // it may be higher: the server flushes more before the crash
		t.Errorf("the sequence decreases from %x to %x by a crash", before, got)
	}
}

func (m *member) checkpointTimeline() string {
	m.t.Helper()
	got := m.execute("/usr/bin/sh", "-c", "/usr/lib/postgresql/*/bin/pg_controldata /data/pgdata | sed -n \"s/^Latest checkpoint's TimeLineID: *//p\"")
	return strings.TrimSpace(got.stdout)
}

// A crash must not decrease the sequence, and must not lose a commit.
func TestAKillDoesNotDecreaseTheSequence(t *testing.T) {
	m := newSet(t, 1).members[0]
	m.must(driver.Succeeded, "seed")
	m.sql("create table numbers (n int)", "create table large (b text)")
	committed := int64(0)
	for round := range 5 {
		var acknowledged atomic.Int64
		acknowledged.Store(committed)
		done := make(chan struct{})
		c, err := m.connect("sslmode=disable")
		check(t, err)
		go func() {
			defer close(done)
			for n := committed + 1; ; n++ {
				_, err := c.Exec(context.Background(), fmt.Sprintf("with a as (insert into numbers values (%d)) "+
					"insert into large select repeat(md5(random()::text), %d)", n, n%1000))
				if err != nil {
					return
				}
				acknowledged.Store(n)
			}
		}()
		highest := uint64(0)
		for range 4 {
			number := m.sequence()
			if number < highest {
				t.Fatalf("round %d: the sequence decreases from %x to %x", round, highest, number)
			}
			highest = number
		}
		m.crash()
		<-done
		m.must(driver.Stopped, "status")
		if got := m.sequence(); got < highest {
			t.Fatalf("round %d: the sequence decreases from %x to %x by a crash", round, highest, got)
		}
		m.must(driver.Succeeded, "seed")
		committed = acknowledged.Load()
		m.wants(fmt.Sprintf("select count(*) from numbers where n <= %d", committed), fmt.Sprint(committed))
		if got := m.sequence(); timelineOf(got) != uint64(round+2) {
			t.Fatalf("round %d: the sequence is %x, want another timeline", round, got)
		}
		committed++ // it may have been committed
		m.sql(fmt.Sprintf("insert into numbers select %d where not exists (select from numbers where n = %d)", committed, committed))
	}
}
