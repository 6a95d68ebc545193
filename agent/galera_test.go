package main

import (
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	galerasettings "github.com/stateful-operator/stateful-operator/agent/galera/settings"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// mariaDB is a set of MariaDB Galera.
type mariaDB struct {
	*set
	epoch int
}

func newGalera(t *testing.T, members int) *mariaDB {
	t.Helper()
	s := &set{t: t, application: "galera", server: "mariadbd", dataDir: "mysql", programs: "/usr/sbin:"}
	s.prepare()
	s.environment = func(address string) ([]string, error) {
		config := galerasettings.Config{Common: s.common("/data", map[string]string{
			"innodb_buffer_pool_size": "32M", "innodb_log_file_size": "16M", "gcache.size": "16M", "innodb_fast_shutdown": "0",
		})}
		config.ListenAddresses = address
		text, err := config.Encode()
		return []string{galerasettings.Variable + "=" + text, galerasettings.AddressVariable + "=" + address}, err
	}
	s.write("credentials/"+galerasettings.PasswordKey, password)
	check(t, os.Mkdir(filepath.Join(s.dir, "etc", "alternatives"), 0o755))
	check(t, os.Symlink("/usr/bin/mawk", filepath.Join(s.dir, "etc", "alternatives", "awk")))
	s.startMembers(members)
	s.primaryIs(nil)
	return &mariaDB{set: s}
}

// seed starts the first member, as the operator does.
func (g *mariaDB) seed(m *member) {
	g.t.Helper()
	g.epoch++
	m.must(driver.Succeeded, "seed", fmt.Sprintf("--start=100.%d", g.epoch))
	m.must(driver.Primary, "status")
}

func (g *mariaDB) join(m *member, others ...*member) {
	g.t.Helper()
	m.must(driver.Succeeded, "primary", hosts(others)...)
	m.eventually(m.name+" has all data", func() bool { return m.run("status").code == driver.Primary })
}

// all starts all members of a new cluster.
func (g *mariaDB) all() {
	g.t.Helper()
	g.seed(g.members[0])
	for i, m := range g.members[1:] {
		g.join(m, g.members[:i+1]...)
	}
}

// receives starts primary, and returns while the member receives a copy of all data.
func (m *member) receives(donor *member) *exec.Cmd {
	m.t.Helper()
	cmd := m.runc("exec", m.container(), "/agent/agent", "galera", "primary", donor.host())
	check(m.t, cmd.Start())
	m.eventually("a copy is being made", func() bool {
		_, err := os.Stat(m.data("sst_in_progress"))
		return err == nil
	})
	return cmd
}

// isConnectedTo waits until a member with a majority has this number of connected members, with itself.
func (m *member) isConnectedTo(count int) {
	m.t.Helper()
	m.eventually(fmt.Sprintf("%s has %d connected members", m.name, count), func() bool {
		got, err := m.query("select variable_value from information_schema.global_status where variable_name = 'wsrep_cluster_size'")
		return err == nil && slices.Equal(got, []string{strconv.Itoa(count)})
	})
}

// query executes statements as root, and returns the first column.
func (m *member) query(statements ...string) ([]string, error) {
	return m.queryAs(password, statements...)
}

func (m *member) queryAs(password string, statements ...string) (column []string, err error) {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr = "root", password, "tcp", net.JoinHostPort(m.address, strconv.Itoa(int(m.port)))
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	for _, s := range statements {
		rows, err := db.Query(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				return nil, err
			}
			column = append(column, text)
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return column, nil
}

// executes runs statements, which must succeed.
func (m *member) executes(statements ...string) {
	m.t.Helper()
	if _, err := m.query(statements...); err != nil {
		m.t.Fatalf("%s: %v\n%s", m.name, err, m.log())
	}
}

const createTable = "create table t.entries (id int primary key, text varchar(10)) engine=innodb"

func (m *member) inserts(ids ...int) {
	m.t.Helper()
	for _, id := range ids {
		m.executes(fmt.Sprintf("insert into t.entries values (%d, 'x')", id))
	}
}

// entries fails if a member does not get these entries.
func (m *member) entries(want ...int) {
	m.t.Helper()
	text := strings.Trim(fmt.Sprint(want), "[]")
	m.eventually(fmt.Sprintf("%s has entries %s", m.name, text), func() bool {
		got, err := m.query("select id from t.entries order by id")
		return err == nil && strings.Join(got, " ") == text
	})
}

func TestGaleraKeepsAllWrites(t *testing.T) {
	g := newGalera(t, 3)
	a, b, c := g.members[0], g.members[1], g.members[2]
	for _, m := range g.members {
		m.must(driver.Stopped, "status")
		if got := m.sequence(); got != 0 {
			t.Errorf("the sequence of %s is %d without data", m.name, got)
		}
	}
	b.must(driver.Failed, "primary")
	b.must(driver.Failed, "primary", a.host())
	g.all()
	b.executes("create database t", createTable)
	for i, m := range g.members {
		m.inserts(i + 1)
		m.must(driver.Succeeded, "ready")
	}
	a.must(driver.Succeeded, "primary", b.host(), c.host()) // it runs

	// Two of three members continue without the first one.
	a.crash()
	b.isConnectedTo(2)
	b.must(driver.Primary, "status")
	b.inserts(4)
	g.join(a, b, c)

	// A member that was stopped, and one that crashed, receive the missing transactions.
	for i, end := range []func(){func() { b.must(driver.Succeeded, "stop"); b.must(driver.Stopped, "status") }, b.crash} {
		end()
		before := b.sequence()
		a.inserts(10 + i)
		c.must(driver.Primary, "status")
		if after := c.sequence(); after <= before || before == 0 {
			t.Errorf("the sequence of a running member is %d, and that of a stopped one %d", after, before)
		}
		g.join(b, a, c)
	}
	b.entries(1, 2, 3, 4, 10, 11)
	if strings.Count(b.log(), "Proceeding with SST") != 1 {
		t.Errorf("a member that returns receives all data:\n%s", b.log())
	}

	// Lights out: one member is ahead.
	b.must(driver.Succeeded, "stop")
	a.inserts(20)
	a.crash()
	c.crash()
	newest := a
	if c.sequence() > a.sequence() {
		newest = c
	}
	if b.sequence() >= newest.sequence() {
		t.Errorf("the sequence of %s is %d, and %s was stopped with %d", newest.name, newest.sequence(), b.name, b.sequence())
	}
	g.seed(newest)
	for _, m := range g.members {
		if m != newest {
			g.join(m, newest)
		}
	}
	for _, m := range g.members {
		m.entries(1, 2, 3, 4, 10, 11, 20)
	}
	if strings.Count(b.log(), "Proceeding with SST") != 1 {
		t.Errorf("a member of the generation before receives all data:\n%s", b.log())
	}
}

func TestGaleraWithoutAMajority(t *testing.T) {
	g := newGalera(t, 3)
	a, b, c := g.members[0], g.members[1], g.members[2]
	g.all()
	a.executes("create database t", createTable)
	for _, m := range []*member{b, c} {
		m.signal("mariadbd", syscall.SIGSTOP)
	}
	a.eventually("the member has no majority", func() bool { return a.run("ready").code != driver.Succeeded })
	a.must(driver.Failed, "status")
	if _, err := a.query("insert into t.entries values (1, 'x')"); err == nil {
		t.Error("a member without a majority accepts a write")
	}
	a.must(driver.Failed, "primary", c.host())
	b.restart()
	c.restart()
	a.must(driver.Succeeded, "stop")
	g.seed(a)
	g.join(b, a)
	g.join(c, a, b)
	c.inserts(2)
	b.entries(2)
}

// An administrator has seeded a copy that is not the newest. The other copy has more transactions of the
// same history, and must not keep them.
func TestGaleraReplacesACopyWithOtherTransactions(t *testing.T) {
	g := newGalera(t, 2)
	a, b := g.members[0], g.members[1]
	g.all()
	a.executes("create database t", createTable)
	b.must(driver.Succeeded, "stop")
	a.inserts(1, 2, 3)
	a.must(driver.Succeeded, "stop")
	g.seed(b)
	b.inserts(4)
	if b.sequence() <= a.sequence() {
		t.Errorf("the seeded copy has sequence %d, and the other one %d", b.sequence(), a.sequence())
	}
	b.inserts(5, 6, 7, 8)
	g.join(a, b)
	a.entries(4, 5, 6, 7, 8)
	if a.sequence() != b.sequence() {
		t.Errorf("equal copies have sequences %d and %d", a.sequence(), b.sequence())
	}
}

func TestGaleraAnInterruptedCopyIsNone(t *testing.T) {
	g := newGalera(t, 2)
	a, b := g.members[0], g.members[1]
	g.seed(a)
	a.executes("create database t", createTable)
	a.inserts(1)
	for _, end := range []func(){
		b.restart,
		func() {
			b.killCommands("primary", "copy")
			b.must(driver.Succeeded, "stop")
			b.must(driver.Stopped, "status")
		},
		func() { b.signal("mariadbd", syscall.SIGKILL); b.restart() },
	} {
		check(t, os.RemoveAll(b.data("sst_in_progress"))) // of the last interruption
		cmd := b.receives(a)
		end()
		_ = cmd.Wait() // it was interrupted
		if got := b.sequence(); got != 0 {
			t.Errorf("the sequence of an interrupted copy is %d", got)
		}
		b.must(driver.NotInstalled, "seed", "--start=100.9")
		a.isConnectedTo(1)
		a.must(driver.Primary, "status")
		a.must(driver.Succeeded, "ready")
	}
	g.join(b, a)
	b.entries(1)
}

func TestGaleraACopyContinuesAfterItsCommand(t *testing.T) {
	g := newGalera(t, 2)
	a, b := g.members[0], g.members[1]
	g.seed(a)
	a.executes("create database t", createTable)
	// The program that makes the copy waits.
	check(t, os.MkdirAll(filepath.Join(g.dir, "agent", "slow"), 0o755))
	check(t, os.WriteFile(filepath.Join(g.dir, "agent", "slow", "mariadb-backup"), []byte("#!/bin/sh\nwhile [ -e /agent/slow/wait ]; do sleep 0.2; done\nexec /usr/bin/mariadb-backup \"$@\"\n"), 0o755))
	g.write("agent/slow/wait", "")
	a.must(driver.Succeeded, "stop")
	a.path = "/agent/slow:"
	a.restart()
	g.seed(a)
	b.must(driver.Succeeded, "primary", a.host())
	b.must(driver.DegradedPrimary, "status")
	b.must(driver.Failed, "ready")
	b.must(driver.Failed, "primary", a.host()) // it is under way
	if got := b.sequence(); got != 0 {
		t.Errorf("the sequence is %d while all data is being received", got)
	}
	a.inserts(1)
	check(t, os.Remove(filepath.Join(g.dir, "agent", "slow", "wait")))
	b.eventually("the copy is complete", func() bool { return b.run("status").code == driver.Primary })
	b.entries(1)
	if a.sequence() != b.sequence() {
		t.Errorf("equal copies have sequences %d and %d", a.sequence(), b.sequence())
	}
}

func TestGaleraOtherData(t *testing.T) {
	g := newGalera(t, 2)
	a, b := g.members[0], g.members[1]
	g.seed(a)
	g.seed(b)
	b.must(driver.Succeeded, "stop")
	got := b.must(driver.NotInstalled, "primary", a.host())
	if !strings.Contains(got.stderr, "delete the claim of db-1") {
		t.Errorf("the message is %s", got.stderr)
	}
	check(t, os.Remove(filepath.Join(b.volume(), "galera.json")))
	b.must(driver.NotInstalled, "sequence")
	b.must(driver.NotInstalled, "seed", "--start=100.9")
	b.must(driver.NotInstalled, "primary", a.host())
}

func TestGaleraAnInterruptedCreationIsRepeated(t *testing.T) {
	g := newGalera(t, 1)
	a := g.members[0]
	cmd := a.runc("exec", a.container(), "/agent/agent", "galera", "seed", "--start=100.1")
	check(t, cmd.Start())
	a.eventually("the database is being created", func() bool {
		_, err := os.Stat(a.data("ibdata1"))
		return err == nil
	})
	a.restart()
	_ = cmd.Wait()
	g.seed(a)
	a.executes("create database t", createTable)
	a.inserts(1)
}

func TestGaleraPassword(t *testing.T) {
	g := newGalera(t, 2)
	a, b := g.members[0], g.members[1]
	g.all()
	for _, wrong := range []string{"", "guess"} {
		if _, err := a.queryAs(wrong, "select 1"); err == nil {
			t.Errorf("root has password %q", wrong)
		}
	}
	const changed = "it's another \\ \"one\""
	g.write("credentials/"+galerasettings.PasswordKey, changed)
	a.eventually("the password is changed", func() bool {
		_, err := b.queryAs(changed, "select 1")
		return err == nil
	})
	b.must(driver.Succeeded, "stop")
	g.join(b, a)
	for _, m := range g.members {
		if strings.Contains(m.log(), password) || strings.Contains(m.log(), changed) {
			t.Errorf("the log of %s has a password", m.name)
		}
	}
}

// While Galera changes a table, it removes its position from the disk.
func TestGaleraAKilledChangeOfATable(t *testing.T) {
	g := newGalera(t, 2)
	a, b := g.members[0], g.members[1]
	g.all()
	a.executes("create database t", "create table t.large (id int primary key, text varchar(200)) engine=innodb",
		"insert into t.large select seq, repeat('x', 200) from t.seq_1_to_100000", createTable)
	b.must(driver.Succeeded, "stop")
	before := a.sequence()
	a.inserts(1)
	go func() { _, _ = a.query("alter table t.large add index (text), force") }() // it is interrupted
	a.eventually("the position is removed", func() bool {
		text, err := os.ReadFile(a.data("grastate.dat"))
		return err == nil && strings.Contains(string(text), "00000000-0000-0000-0000-000000000000")
	})
	a.crash()
	if after := a.sequence(); after <= before || after <= b.sequence() {
		t.Errorf("the sequence is %d after a crash, and was %d; that of the other member is %d", after, before, b.sequence())
	}
	g.seed(a)
	a.entries(1)
	g.join(b, a)
	b.entries(1)
}

// The donor is lost, and with it the majority.
func TestGaleraALostDonor(t *testing.T) {
	g := newGalera(t, 2)
	a, b := g.members[0], g.members[1]
	g.seed(a)
	a.executes("create database t", createTable)
	cmd := b.receives(a)
	a.restart()
	_ = cmd.Wait() // it continues in the background
	if !processes.WaitUntil(2*time.Minute, func() bool { return b.run("status").code == driver.Stopped }) {
		t.Errorf("the member still waits for its donor:\n%s", b.log())
	}
	if got := b.sequence(); got != 0 {
		t.Errorf("the sequence is %d", got)
	}
	g.seed(a)
	g.join(b, a)
}
