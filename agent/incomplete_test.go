package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/driver"
)

func TestACopyThatIsNotComplete(t *testing.T) {
	_, primary, standby := pair(t)
	standby.must(driver.Succeeded, "stop")
	for _, operation := range []string{"copy", "rewind"} {
		standby.writeData("../pgdata.incomplete", operation+"\n")
		if got := standby.sequence(); got != 0 {
			t.Errorf("the sequence after a %s that did not end is %x, want 0", operation, got)
		}
		standby.must(driver.NotInstalled, "seed") // users' data must not be replaced by an empty database
		copies := strings.Count(standby.log(), "copies all data")
		standby.must(driver.Succeeded, "secondary", primary.host())
		if got := strings.Count(standby.log(), "copies all data"); got != copies+1 {
			t.Errorf("after a %s that did not end, there were %d copies, want %d", operation, got, copies+1)
		}
		standby.gets(sumOf, "1")
		standby.must(driver.Succeeded, "stop")
	}

	// A command that is killed takes pg_basebackup with it.
	primary.sql("create table large as select md5(i::text) as t from generate_series(1, 500000) as i")
	check(t, os.RemoveAll(standby.data()))
	standby.replace("pg_basebackup", `exec "$real" --max-rate=1024 "$@"`)
	standby.killed("pg_basebackup", primary, "PG_VERSION", "pg_wal")
	if got := standby.sequence(); got != 0 {
		t.Errorf("the sequence after a copy that was killed is %x, want 0", got)
	}
	// The process that receives the log survives, and must not write into the next copy.
	if len(standby.processes("pg_basebackup")) == 0 {
		t.Error("nothing of pg_basebackup survives, so this test does not show that it is ended")
	}
	standby.must(driver.Succeeded, "stop")
	if got := standby.processes("pg_basebackup"); len(got) > 0 {
		t.Errorf("after stop, these remain: %v", got)
	}
	standby.path = ""
	standby.restart()
	standby.must(driver.Succeeded, "secondary", primary.host())
	standby.gets("select count(*) from large", "500000")
}

// A copy that takes long must not delay a failover. The member is a degraded secondary meanwhile.
func TestACopyContinuesInTheBackground(t *testing.T) {
	_, primary, standby := pair(t)
	standby.must(driver.Succeeded, "stop")
	check(t, os.RemoveAll(standby.data()))
	standby.replace("pg_basebackup", `sleep 25; exec "$real" "$@"`)
	if took := standby.must(driver.Succeeded, "secondary", primary.host()).took; took < driver.HandOff {
		t.Errorf("secondary returns after %s", took)
	}
	standby.must(driver.Degraded, "status")
	standby.must(driver.Failed, "ready")
	if got := standby.sequence(); got != 0 {
		t.Errorf("the sequence during a copy is %x, want 0", got)
	}
	for _, name := range []string{"seed", "secondary", "demote"} {
		if got := standby.must(driver.Failed, name, primary.host()); !strings.Contains(got.stderr, "a copy is being made") {
			t.Errorf("%s during a copy prints %q", name, got.stderr)
		}
	}
	standby.eventually("the copy is complete", func() bool { return standby.run("status").code == driver.Secondary })
	standby.gets(sumOf, "1")
	standby.must(driver.Succeeded, "ready")
	standby.must(driver.Succeeded, "stop")

	// A stop and a promotion end the copy.
	for _, end := range []string{"stop", "promote"} {
		check(t, os.RemoveAll(standby.data()))
		standby.must(driver.Succeeded, "secondary", primary.host())
		standby.run(end)
		standby.must(driver.Stopped, "status")
		if got := len(standby.processes("agent")); got != 1 {
			t.Errorf("after %s, %d processes of the agent run, want 1", end, got)
		}
	}
	// So does the end of the container.
	standby.must(driver.Succeeded, "secondary", primary.host())
	standby.must(driver.Degraded, "status")
	check(t, standby.runc("kill", standby.container(), "TERM").Run())
	standby.ends()
}

// pg_rewind leaves a copy with parts of both histories when it is killed.
func TestARewindThatWasKilled(t *testing.T) {
	s, old, standby := pair(t)
	standby.must(driver.Succeeded, "stop")
	old.sql("insert into numbers values (1000)")
	s.primaryIs(nil)
	old.crash()
	standby.must(driver.Succeeded, "seed")
	s.primaryIs(standby)
	old.replace("pg_rewind", `exec sleep 1000`)
	if old.sequence() == 0 {
		t.Error("the sequence is 0 before the rewind")
	}
	old.killed("sleep", standby, "PG_VERSION")
	old.eventually("the program ends with its command", func() bool { return len(old.processes("sleep")) == 0 })
	if got := old.sequence(); got != 0 {
		t.Errorf("the sequence after a rewind that was killed is %x, want 0", got)
	}
	old.path = ""
	old.restart()
	old.must(driver.Succeeded, "secondary", standby.host())
	old.gets(sumOf, "1")
	if !strings.Contains(old.log(), "copies all data") {
		t.Errorf("the copy was not replaced: %s", old.log())
	}

	// A rewind that fails ends with a copy.
	standby.must(driver.Succeeded, "demote")
	old.must(driver.Succeeded, "promote")
	s.primaryIs(old)
	old.sql("insert into numbers values (2)")
	standby.gets(sumOf, "3") // so that it has the timeline, and seeds another one
	standby.must(driver.Succeeded, "stop")
	old.sql("insert into numbers values (10)")
	s.primaryIs(nil)
	old.crash()
	standby.must(driver.Succeeded, "seed")
	s.primaryIs(standby)
	old.replace("pg_rewind", `exit 1`)
	old.must(driver.Succeeded, "secondary", standby.host())
	if !strings.Contains(old.log(), "cannot be rewound") {
		t.Errorf("the rewind did not fail: %s", old.log())
	}
	old.gets(sumOf, "3")
}

// A creation that was killed never had data of users.
func TestACreationThatDidNotEnd(t *testing.T) {
	m := newSet(t, 1).members[0]
	m.must(driver.Succeeded, "seed")
	m.must(driver.Succeeded, "stop")
	m.writeData("../pgdata.incomplete", "create\n")
	if got := m.sequence(); got != 0 {
		t.Errorf("the sequence is %x, want 0", got)
	}
	m.must(driver.Succeeded, "seed")
	m.must(driver.Primary, "status")
}

func TestForeignDataIsNeitherANumberNorDeleted(t *testing.T) {
	s := newSet(t, 2)
	primary, m := s.members[0], s.members[1]
	primary.must(driver.Succeeded, "seed")
	s.primaryIs(primary)
	unchanged := func(name string) {
		t.Helper()
		if _, err := os.Stat(m.data(name)); err != nil {
			t.Error(err)
		}
	}
	refuses := func(why string) {
		t.Helper()
		for _, command := range [][]string{{"sequence"}, {"seed"}, {"secondary", primary.host()}} {
			if got := m.must(driver.NotInstalled, command[0], command[1:]...); !strings.Contains(got.stderr, why) || got.stdout != "" {
				t.Errorf("%s prints %q and %q, want %q", command[0], got.stdout, got.stderr, why)
			}
		}
	}
	m.execute("/usr/bin/mkdir", "-p", "/data/pgdata/photos")
	refuses("is not a data folder of PostgreSQL")
	unchanged("photos")

	check(t, os.RemoveAll(m.data()))
	m.must(driver.Succeeded, "seed") // another history
	m.must(driver.Succeeded, "stop")
	if got := m.must(driver.NotInstalled, "secondary", primary.host()); !strings.Contains(got.stderr, "does not belong to this set") {
		t.Errorf("secondary prints %q", got.stderr)
	}
	unchanged("PG_VERSION")

	check(t, os.WriteFile(m.data("PG_VERSION"), []byte("11\n"), 0o644))
	refuses("is of PostgreSQL 11, and the image has")
	unchanged("global")

	check(t, os.WriteFile(m.data("PG_VERSION"), []byte("15\n"), 0o644))
	control, err := os.ReadFile(m.data("global/pg_control"))
	check(t, err)
	control[100] ^= 0xff
	check(t, os.WriteFile(m.data("global/pg_control"), control, 0o644))
	if got := m.must(driver.Failed, "sequence"); got.stdout != "" {
		t.Errorf("sequence prints %q for a damaged control file", got.stdout)
	}
	check(t, os.Remove(m.data("global/pg_control")))
	if got := m.must(driver.Failed, "sequence"); got.stdout != "" {
		t.Errorf("sequence prints %q without a control file", got.stdout)
	}
}

// Two copies can select the same number for different timelines.
func TestTimelinesWithTheSameNumber(t *testing.T) {
	s, a, b := pair(t)
	s.primaryIs(nil)
	a.must(driver.Succeeded, "stop")
	b.must(driver.Succeeded, "stop")
	b.must(driver.Succeeded, "seed")
	b.sql("insert into numbers values (10)")
	b.must(driver.Succeeded, "stop")
	a.must(driver.Succeeded, "seed")
	a.sql("insert into numbers values (100)", "insert into numbers values (1000)", "insert into numbers select 0 from generate_series(1, 1000)")
	if one, other := timelineOf(a.sequence()), timelineOf(b.sequence()); one != other {
		t.Fatalf("the timelines are %d and %d, want the same", one, other)
	}
	s.primaryIs(a)
	b.must(driver.Succeeded, "secondary", a.host())
	b.gets(sumOf, "1101")
	if !strings.Contains(b.log(), "has other records before") {
		t.Errorf("the copy was not compared: %s", b.log())
	}
}
