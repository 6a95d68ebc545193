package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/settings"
)

// connect connects as a client does, over the network.
func (m *member) connect(options string) (*pgx.Conn, error) {
	return m.connectAs("postgres", password, options)
}

func (m *member) connectAs(user, password, options string) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=%s database=postgres %s", m.address, m.port, user, options))
	check(m.t, err)
	config.Password = password
	return pgx.ConnectConfig(ctx, config)
}

// sql runs statements that must succeed.
func (m *member) sql(statements ...string) {
	m.t.Helper()
	c, err := m.connect("sslmode=disable")
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", m.name, err, m.log())
	}
	defer c.Close(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, statement := range statements {
		if _, err := c.Exec(ctx, statement); err != nil {
			m.t.Fatalf("%s: %s: %v\n%s", m.name, statement, err, m.log())
		}
	}
}

// value returns a value, or the text of the error.
func (m *member) value(query string) string {
	c, err := m.connect("sslmode=disable")
	if err != nil {
		return err.Error()
	}
	defer c.Close(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var text string
	if err := c.QueryRow(ctx, "select ("+query+")::text").Scan(&text); err != nil {
		return err.Error()
	}
	return text
}

func (m *member) wants(query, want string) {
	m.t.Helper()
	if got := m.value(query); got != want {
		m.t.Fatalf("%s: %s is %q, want %q\n%s", m.name, query, got, want, m.log())
	}
}

func (m *member) gets(query, want string) {
	m.t.Helper()
	m.eventually(m.name+": "+query+" is "+want, func() bool { return m.value(query) == want })
}

const sumOf = "select coalesce(sum(n), 0) from numbers"

// pair returns a primary with a standby, and a table with the number 1.
func pair(t *testing.T, change ...func(*settings.Config)) (s *set, primary, standby *member) {
	t.Helper()
	s = newSet(t, 2, change...)
	primary, standby = s.members[0], s.members[1]
	primary.must(driver.Succeeded, "seed")
	s.primaryIs(primary)
	primary.sql("create table numbers (n int)", "insert into numbers values (1)")
	standby.must(driver.Succeeded, "secondary", primary.host())
	return s, primary, standby
}

func TestAStoppedMemberContinues(t *testing.T) {
	m := newSet(t, 1).members[0]
	m.must(driver.Stopped, "status")
	if got := m.sequence(); got != 0 {
		t.Errorf("the sequence without data is %d, want 0", got)
	}
	m.must(driver.Succeeded, "stop")
	m.must(driver.Failed, "promote")
	m.must(driver.Failed, "ready")
	m.must(driver.NotConfigured, "primary", "db-1.db-svc")
	m.must(driver.Unimplemented, "dance")

	m.must(driver.Succeeded, "seed")
	m.must(driver.Primary, "status")
	m.must(driver.Succeeded, "ready")
	m.must(driver.Succeeded, "seed") // idempotent
	m.sql("create table numbers (n int)", "insert into numbers values (1)")
	before := m.sequence()
	if timelineOf(before) != 1 {
		t.Errorf("the sequence is %x, want timeline 1", before)
	}
	m.must(driver.Succeeded, "stop")
	m.must(driver.Stopped, "status")
	m.must(driver.Succeeded, "stop")
	stopped := m.sequence()
	if stopped < before {
		t.Errorf("the sequence decreases from %x to %x by a stop", before, stopped)
	}

	m.restart()
	if got := m.sequence(); got != stopped {
		t.Errorf("the sequence of the next container is %x, want %x", got, stopped)
	}
	// A standby gets the history of a new timeline before its records.
	m.writeData("pg_wal/00000007.history", "1\t0/F000000\tno recovery target specified\n")
	if got := m.sequence(); got != stopped {
		t.Errorf("the sequence with a history and no records of it is %x, want %x", got, stopped)
	}
	check(t, os.Remove(m.data("pg_wal/00000007.history")))
	m.writeData("postmaster.pid", "1\n/data/pgdata\n") // now of another process
	m.must(driver.Succeeded, "seed")
	m.wants(sumOf, "1")
	if got := m.sequence(); timelineOf(got) != 2 {
		t.Errorf("the sequence is %x after another seed, want timeline 2", got)
	}
	m.wants("current_setting('data_checksums')", "on")
	m.wants("select rolpassword like 'SCRAM-SHA-256$%' from pg_authid where rolname = 'replicator'", "true")
}

// writeData writes a file as the user of the member.
func (m *member) writeData(name, text string) {
	m.t.Helper()
	check(m.t, os.WriteFile(m.data(name), []byte(text), 0o600))
	check(m.t, os.Chown(m.data(name), m.user, 0))
}

func TestAStandbyTakesOver(t *testing.T) {
	s, old, standby := pair(t)
	standby.must(driver.Secondary, "status")
	standby.must(driver.Succeeded, "secondary", old.host()) // idempotent
	standby.must(driver.Succeeded, "ready")
	standby.gets(sumOf, "1")
	old.must(driver.Failed, "secondary", standby.host()) // it is primary
	before := old.sequence()
	s.eventually("the standby has the sequence of the primary", func() bool { return standby.sequence() >= before })

	// The standby does not get the last row, because it is stopped.
	standby.must(driver.Succeeded, "stop")
	stopped := standby.sequence()
	if stopped < before {
		t.Errorf("the sequence of the standby decreases from %x to %x by a stop", before, stopped)
	}
	old.sql("insert into numbers values (1000)")
	old.restart() // kills everything
	if diverged := old.sequence(); diverged <= stopped {
		t.Errorf("the sequence is %x, want more than %x of the standby that was stopped before", diverged, stopped)
	}
	s.primaryIs(nil)
	standby.must(driver.Succeeded, "seed")
	s.primaryIs(standby)
	standby.must(driver.Primary, "status")
	standby.sql("insert into numbers values (10)")
	if got := standby.sequence(); timelineOf(got) != 2 || got < old.sequence() {
		t.Errorf("the sequence is %x, want timeline 2", got)
	}

	old.must(driver.Succeeded, "secondary", old.host(), standby.host())
	old.gets(sumOf, "11")
	if !strings.Contains(old.log(), "separates at") || strings.Contains(old.log(), "copies all data") {
		t.Errorf("the former primary was not rewound: %s", old.log())
	}
	if _, err := os.Stat(old.data() + ".incomplete"); err == nil {
		t.Error("the mark remains")
	}
	// It follows, and takes over in turn.
	standby.sql("insert into numbers values (100)")
	old.gets(sumOf, "111")
	s.primaryIs(nil)
	standby.crash()
	old.must(driver.Succeeded, "promote")
	old.must(driver.Succeeded, "promote")
	s.primaryIs(old)
	old.wants(sumOf, "111")
	if got := old.sequence(); timelineOf(got) != 3 {
		t.Errorf("the sequence is %x, want timeline 3", got)
	}
	standby.must(driver.Succeeded, "secondary", old.host())
	standby.gets(sumOf, "111")
}

// A standby follows another primary without a command.
func TestASwitchover(t *testing.T) {
	s := newSet(t, 3)
	first, second, third := s.members[0], s.members[1], s.members[2]
	first.must(driver.Succeeded, "seed")
	s.primaryIs(first)
	first.sql("create table numbers (n int)")
	second.must(driver.Succeeded, "secondary", first.host())
	third.must(driver.Succeeded, "secondary", first.host())
	for i := range 2 {
		first.sql("insert into numbers values (1)")
		// The standbys lag, and the shutdown waits for them.
		second.signal("postgres", syscall.SIGSTOP)
		first.sql("insert into numbers select 0 from generate_series(1, 300000)")
		s.primaryIs(nil)
		shutdowns := func() int { return strings.Count(first.log(), "received fast shutdown request") }
		earlier := shutdowns()
		continued := make(chan struct{})
		go func() {
			defer close(continued)
			first.eventually("the shutdown begins", func() bool { return shutdowns() > earlier })
			second.signal("postgres", syscall.SIGCONT)
		}()
		first.must(driver.Succeeded, "demote")
		<-continued
		first.must(driver.Secondary, "status")
		first.must(driver.Succeeded, "demote")
		newest := first.sequence()
		if got := second.sequence(); got < newest {
			t.Fatalf("the standby has sequence %x, and the former primary %x", got, newest)
		}
		second.must(driver.Succeeded, "promote")
		s.primaryIs(second)
		second.sql("insert into numbers values (10)")
		for _, m := range []*member{first, third} {
			m.gets(sumOf, fmt.Sprint(11*(i+1)))
		}
		second.gets("select count(*) from pg_stat_replication where application_name in ('db-0', 'db-1', 'db-2')", "2")
		first, second = second, first
	}
	for _, m := range s.members {
		if strings.Count(m.log(), "copies all data") > 1 {
			t.Errorf("%s was copied again: %s", m.name, m.log())
		}
	}
}

// A server that hangs is not running correctly, but not stopped either.
func TestAServerThatHangs(t *testing.T) {
	m := newSet(t, 1).members[0]
	m.must(driver.Succeeded, "seed")
	m.signal("postgres", syscall.SIGSTOP)
	for _, name := range []string{"status", "ready", "sequence"} {
		if got := m.must(driver.Failed, name); got.took > 9*time.Second {
			t.Errorf("%s needs %s, and the min timeout is 10 s", name, got.took)
		}
	}
	if got := m.must(driver.Succeeded, "stop"); got.took > 45*time.Second {
		t.Errorf("stop needs %s", got.took)
	}
	m.must(driver.Stopped, "status")
	if got := len(m.processes("postgres")); got != 0 {
		t.Errorf("%d processes remain", got)
	}
	m.must(driver.Succeeded, "seed")
}

// Without slots, the log that a standby needs may be gone.
func TestAStandbyThatLags(t *testing.T) {
	s, primary, standby := pair(t, func(c *settings.Config) {
		c.Settings["wal_keep_size"] = "0"
		c.Settings["max_wal_size"] = "32MB"
		c.Settings["min_wal_size"] = "32MB"
	})
	forget := func() {
		for range 6 {
			primary.sql("select pg_switch_wal()", "insert into numbers values (0)")
		}
		primary.sql("checkpoint")
	}
	s.primaryIs(nil) // a running standby cannot connect
	standby.signal("postgres", syscall.SIGTERM)
	standby.eventually("the standby ends", func() bool { return len(standby.processes("postgres")) == 0 })
	s.primaryIs(primary)
	forget()
	standby.must(driver.Succeeded, "secondary", primary.host())
	if !strings.Contains(standby.log(), "and the primary has it from") {
		t.Errorf("the copy was not replaced: %s", standby.log())
	}
	standby.gets(sumOf, "1")

	// A running standby reports that it must be copied again, but only if a primary confirms it.
	s.primaryIs(nil)
	primary.sql("select pg_terminate_backend(pid) from pg_stat_replication")
	standby.gets("select count(*) from pg_stat_wal_receiver where status = 'streaming'", "0")
	forget()
	standby.must(driver.Secondary, "status")
	s.primaryIs(primary)
	s.eventually("status fails", func() bool { return standby.run("status").code == driver.Failed })
	standby.must(driver.Succeeded, "stop")
	standby.must(driver.Succeeded, "secondary", primary.host())
	standby.must(driver.Secondary, "status")
}

// A start that waits would prevent a failover.
func TestAStandbyThatCannotConnect(t *testing.T) {
	s, primary, standby := pair(t)
	standby.must(driver.Succeeded, "stop")
	copied := standby.sequence()
	s.primaryIs(nil) // secondary gets the name of the member, and the server that of the Service
	if got := standby.must(driver.Failed, "secondary", primary.host()); got.took > 100*time.Second {
		t.Errorf("secondary fails after %s", got.took)
	}
	standby.must(driver.Stopped, "status")
	if got := standby.sequence(); got < copied {
		t.Errorf("the sequence decreases from %x to %x", copied, got)
	}
	standby.must(driver.Failed, "secondary", "no-such-host")
	standby.must(driver.Failed, "secondary", standby.host()) // itself
	s.primaryIs(primary)
	standby.must(driver.Succeeded, "secondary", standby.host(), primary.host())
	if got := strings.Count(standby.log(), "copies all data"); got != 1 {
		t.Errorf("there were %d copies, want 1", got)
	}
}

func TestSynchronousStandbys(t *testing.T) {
	s := newSet(t, 2, func(c *settings.Config) { c.SynchronousStandbys = 1 })
	primary, standby := s.members[0], s.members[1]
	primary.must(driver.Succeeded, "seed") // does not wait for standbys
	s.primaryIs(primary)
	waiting := make(chan error, 1)
	go func() {
		c, err := primary.connect("sslmode=disable")
		if err == nil {
			_, err = c.Exec(context.Background(), "create table numbers (n int)")
		}
		waiting <- err
	}()
	primary.gets("select count(*) from pg_stat_activity where wait_event = 'SyncRep'", "1")
	standby.must(driver.Succeeded, "secondary", primary.host())
	check(t, <-waiting)
	primary.wants("select sync_state from pg_stat_replication where application_name = 'db-1'", "quorum")
	s.primaryIs(nil)
	primary.crash()
	standby.must(driver.Succeeded, "promote") // does not wait either
	standby.wants("select count(*) from numbers", "0")
}

// A standby with lower limits than the primary would stop to replay.
func TestLimitsCanBeDecreased(t *testing.T) {
	s, primary, standby := pair(t)
	s.config.Settings["max_connections"] = "10"
	standby.must(driver.Succeeded, "stop")
	standby.restart()
	standby.must(driver.Succeeded, "secondary", primary.host())
	standby.wants("current_setting('max_connections')", "20")
	s.primaryIs(nil)
	primary.must(driver.Succeeded, "stop")
	primary.restart()
	primary.must(driver.Succeeded, "seed")
	primary.wants("current_setting('max_connections')", "10")
}

func TestOneCommandChangesStateAtATime(t *testing.T) {
	s, primary, standby := pair(t)
	standby.must(driver.Succeeded, "stop")
	// The command waits for a primary that hangs.
	primary.signal("postgres", syscall.SIGSTOP)
	cmd := standby.runc("exec", standby.container(), "/agent/agent", "postgresql", "secondary", primary.host())
	check(t, cmd.Start())
	s.eventually("the command runs", func() bool {
		_, err := os.Stat(filepath.Join(s.dir, standby.name+".log"))
		return err == nil && strings.Count(standby.log(), "postgresql secondary: started") == 2
	})
	if got := standby.must(driver.Failed, "seed"); !strings.Contains(got.stderr, "another command") {
		t.Errorf("seed prints %q", got.stderr)
	}
	standby.must(driver.Degraded, "status")
	standby.must(driver.Succeeded, "stop") // ends the other command
	standby.must(driver.Stopped, "status")
	if err := cmd.Wait(); err == nil {
		t.Error("the command was not ended by stop")
	}
	primary.signal("postgres", syscall.SIGCONT)
}
