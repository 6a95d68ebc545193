package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/processes"
	redissettings "github.com/stateful-operator/stateful-operator/agent/redis/settings"
)

// cache is a set of Redis, with the operator's epoch.
type cache struct {
	*set
	created, epoch int
}

func newCache(t *testing.T, members int, change ...func(*redissettings.Config)) *cache {
	t.Helper()
	s := &set{t: t, application: "redis", server: "redis-server"}
	s.prepare()
	config := redissettings.Config{Common: s.common("/data", map[string]string{"save": "3600 1"})}
	for _, f := range change {
		f(&config)
	}
	s.environment = func(address string) ([]string, error) {
		config := config
		config.ListenAddresses = address
		text, err := config.Encode()
		return []string{redissettings.Variable + "=" + text}, err
	}
	s.write("credentials/"+redissettings.PasswordKey, password)
	s.startMembers(members)
	return &cache{set: s, created: 1800000000}
}

// lead runs a start as primary, with a new epoch as the operator does.
func (c *cache) lead(m *member, command string) {
	c.t.Helper()
	c.epoch++
	m.must(driver.Succeeded, command, fmt.Sprintf("--start=%d.%d", c.created, c.epoch))
	m.must(driver.Primary, "status")
	c.primaryIs(m)
}

func (c *cache) follow(m, primary *member) {
	c.t.Helper()
	m.must(driver.Succeeded, "secondary", primary.host())
	m.must(driver.Secondary, "status")
}

// connect connects as a client does.
func (m *member) redis(password string, tls *tls.Config) *redis.Client {
	client := redis.NewClient(&redis.Options{
		Addr: net.JoinHostPort(m.address, strconv.Itoa(int(m.port))), Password: password, TLSConfig: tls, Protocol: 2, MaxRetries: -1,
	})
	m.t.Cleanup(func() { client.Close() })
	return client
}

// do runs a command as a client, and returns its result or error as text.
func (m *member) do(args ...any) string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	result, err := m.redis(password, nil).Do(ctx, args...).Result()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(result)
}

func (m *member) does(want string, args ...any) {
	m.t.Helper()
	if got := m.do(args...); !strings.Contains(got, want) {
		m.t.Fatalf("%s: %v returns %q, want %q\n%s", m.name, args, got, want, m.log())
	}
}

// saved waits until the snapshot has all data.
func (m *member) saved() {
	m.t.Helper()
	m.eventually("a snapshot", func() bool { return m.do("save") == "OK" })
}

func TestRedisKeepsAllWritesInAFailover(t *testing.T) {
	c := newCache(t, 3)
	a, b, d := c.members[0], c.members[1], c.members[2]
	for _, m := range c.members {
		m.must(driver.Stopped, "status")
		if got := m.sequence(); got != 0 {
			t.Fatalf("the sequence of %s without data is %d", m.name, got)
		}
	}
	c.lead(a, "seed")
	c.follow(b, a)
	c.follow(d, a)
	for i := range 200 {
		a.does("OK", "set", fmt.Sprint("a", i), strings.Repeat("x", 100))
	}
	c.eventually("all copies are equal", func() bool {
		return a.sequence() == b.sequence() && b.sequence() == d.sequence() && b.do("dbsize") == "200"
	})
	a.crash()
	a.must(driver.Stopped, "status")
	if old, next := a.sequence(), b.sequence(); old >= next {
		t.Errorf("the sequence of the snapshot is %d, and that of a secondary %d", old, next)
	}
	before := b.sequence()
	c.lead(b, "promote")
	if after := b.sequence(); after>>40 <= before>>40 {
		t.Errorf("the sequence is %d before the promotion, and %d after it", before, after)
	}
	b.does("OK", "set", "b", "1")
	c.follow(a, b)
	a.does("1", "get", "b")
	c.eventually("the other secondary follows", func() bool { return d.do("get", "b") == "1" })

	b.must(driver.Succeeded, "demote")
	b.must(driver.Secondary, "status")
	c.lead(a, "promote")
	a.does("OK", "set", "c", "2")
	c.eventually("the former primary follows", func() bool { return b.do("get", "c") == "2" })
	for _, m := range []*member{b, d, a} { // the primary is stopped last
		m.must(driver.Succeeded, "stop")
		m.must(driver.Stopped, "status")
	}
	if a.sequence() < b.sequence() || a.sequence() < d.sequence() || a.sequence() == 0 {
		t.Errorf("the copy of the primary is older: %d, %d, %d", a.sequence(), b.sequence(), d.sequence())
	}
	c.lead(a, "seed")
	a.does("202", "dbsize")
}

// A failed primary may have written more than its successor. Its copy is older nevertheless.
func TestRedisPrefersTheLaterEpoch(t *testing.T) {
	c := newCache(t, 2)
	a, b := c.members[0], c.members[1]
	c.lead(a, "seed")
	c.follow(b, a)
	a.does("OK", "set", "both", "1")
	c.eventually("the write arrives", func() bool { return b.do("get", "both") == "1" })
	b.must(driver.Succeeded, "stop")
	a.must(driver.Succeeded, "stop")

	c.lead(a, "seed")
	for i := range 100 {
		a.does("OK", "set", fmt.Sprint("lost", i), strings.Repeat("x", 1000))
	}
	a.must(driver.Succeeded, "stop")
	c.lead(b, "seed")
	b.does("OK", "set", "kept", "1")
	if a.sequence() >= b.sequence() {
		t.Errorf("the copy of the failed primary has %d, and that of its successor %d", a.sequence(), b.sequence())
	}
	// The object is deleted and created again.
	b.must(driver.Succeeded, "stop")
	last := b.sequence()
	c.created, c.epoch = c.created+60, 0
	c.lead(b, "seed")
	if b.sequence() <= last {
		t.Errorf("the sequence is %d in a new object, and was %d", b.sequence(), last)
	}
	// A retry of a command begins no other epoch.
	first := b.sequence()
	c.epoch--
	c.lead(b, "seed")
	if b.sequence()>>40 != first>>40 {
		t.Error("a retry has begun another epoch")
	}
	c.follow(a, b)
	a.does("2", "dbsize")
}

func TestRedisFoldersThatItRefuses(t *testing.T) {
	c := newCache(t, 1)
	m := c.members[0]
	start := "--start=1.1"
	m.must(driver.NotConfigured, "seed")

	check(t, os.WriteFile(m.data("dump.rdb"), []byte("not a snapshot of Redis"), 0o644))
	if got := m.must(driver.NotInstalled, "sequence"); !strings.Contains(got.stderr, "not a snapshot") {
		t.Errorf("the error is %q", got.stderr)
	}
	m.must(driver.Failed, "seed", start)
	m.must(driver.Stopped, "status")
	check(t, os.Remove(m.data("dump.rdb")))

	check(t, os.Mkdir(m.data("appendonlydir"), 0o755))
	for _, name := range []string{"sequence", "seed"} {
		if got := m.must(driver.NotInstalled, name, start); !strings.Contains(got.stderr, "append-only file") {
			t.Errorf("the error of %s is %q", name, got.stderr)
		}
	}
	check(t, os.Remove(m.data("appendonlydir")))

	check(t, os.WriteFile(m.data("temp-77.rdb"), []byte("unfinished"), 0o644))
	c.lead(m, "seed")
	if _, err := os.Stat(m.data("temp-77.rdb")); err == nil {
		t.Error("an unfinished snapshot was not removed")
	}
}

// A snapshot of another server has no epoch.
func TestRedisStartsFromASnapshotOfAnotherServer(t *testing.T) {
	c := newCache(t, 1)
	m := c.members[0]
	c.lead(m, "seed")
	m.does("OK", "set", "a", "1")
	m.does("OK", "function", "delete", "stateful_operator")
	m.must(driver.Succeeded, "stop")
	if got := m.sequence(); got == 0 || got > 1<<40 {
		t.Errorf("the sequence without an epoch is %d", got)
	}
	c.lead(m, "seed")
	m.does("1", "get", "a")
}

func TestRedisWithoutASecondaryRefusesWrites(t *testing.T) {
	c := newCache(t, 2, func(c *redissettings.Config) { c.MinReplicasToWrite = 1 })
	a, b := c.members[0], c.members[1]
	c.lead(a, "seed")
	a.does("NOREPLICAS", "set", "a", "1")
	c.follow(b, a)
	c.eventually("writes are accepted", func() bool { return a.do("set", "a", "1") == "OK" })
	b.does("READONLY", "set", "a", "2")
	b.must(driver.Succeeded, "stop")
	c.lead(b, "seed")
	b.does("NOREPLICAS", "set", "a", "1")
}

func TestRedisKeepsItsEpoch(t *testing.T) {
	c := newCache(t, 1)
	m := c.members[0]
	c.lead(m, "seed")
	before := m.sequence()
	m.does("OK", "flushall")
	m.does("NOPERM", "function", "flush")
	m.does("NOPERM", "function", "restore", "x", "flush")
	if after := m.sequence(); after < before {
		t.Errorf("the sequence is %d after FLUSHALL, and was %d", after, before)
	}
}

func TestRedisStopsAServerThatHangs(t *testing.T) {
	c := newCache(t, 1)
	m := c.members[0]
	c.lead(m, "seed")
	m.does("OK", "set", "a", "1")
	m.saved()
	m.signal("redis-server", syscall.SIGSTOP)
	m.must(driver.Failed, "status")
	m.must(driver.Failed, "ready")
	m.must(driver.Succeeded, "stop")
	m.must(driver.Stopped, "status")
	c.lead(m, "seed")
	m.does("1", "get", "a")
}

func TestRedisContinuesIfItCannotSave(t *testing.T) {
	c := newCache(t, 1, func(c *redissettings.Config) { c.Settings["save"] = "1 1" })
	m := c.members[0]
	c.lead(m, "seed")
	c.eventually("the first snapshot", func() bool { _, err := os.Stat(m.data("dump.rdb")); return err == nil })
	check(t, os.Chmod(m.volume(), 0o555))
	m.does("OK", "set", "a", "1")
	c.eventually("a snapshot fails", func() bool { return strings.Contains(m.do("set", "a", "1"), "MISCONF") })
	m.must(driver.Succeeded, "ready")
	if got := m.must(driver.Failed, "stop"); !strings.Contains(got.stderr, "cannot save") {
		t.Errorf("the error is %q", got.stderr)
	}
	m.must(driver.Primary, "status")
	check(t, os.Chmod(m.volume(), 0o777))
	m.must(driver.Succeeded, "stop")
	c.lead(m, "seed")
	m.does("1", "get", "a")
}

// A start as primary that is not complete has no epoch, so it must not be primary.
func TestRedisStartThatIsInterrupted(t *testing.T) {
	c := newCache(t, 2)
	a, b := c.members[0], c.members[1]
	c.lead(a, "seed")
	c.follow(b, a)
	c.primaryIs(nil)
	a.must(driver.Succeeded, "stop")
	// The state after a promotion that was killed between its two steps.
	check(t, b.runc("exec", b.container(), "/bin/sh", "-c", "touch /run/agent/redis/start-pending; "+
		"redis-cli -s /run/agent/redis/redis.sock --user stateful-operator -a $(cat /run/agent/redis/password) replicaof no one").Run())
	b.must(driver.Failed, "status")
	b.must(driver.Succeeded, "stop")
	b.must(driver.Stopped, "status")
	c.lead(b, "seed")
	c.follow(a, b)
}

// An epoch must begin also in a server that refuses writes.
func TestRedisBeginsAnEpochWithoutMemory(t *testing.T) {
	c := newCache(t, 2, func(c *redissettings.Config) { c.MinReplicasToWrite = 1 })
	a, b := c.members[0], c.members[1]
	c.lead(a, "seed")
	c.follow(b, a)
	for _, m := range c.members {
		m.does("OK", "config", "set", "maxmemory", "1")
	}
	b.must(driver.Succeeded, "demote")
	a.must(driver.Succeeded, "demote")
	before := b.sequence()
	c.lead(b, "promote")
	if after := b.sequence(); after>>40 <= before>>40 {
		t.Errorf("the sequence is %d, and was %d", after, before)
	}
	b.does("maxmemory 1", "config", "get", "maxmemory")
	b.does("min-replicas-to-write 1", "config", "get", "min-replicas-to-write")
}

// A server with too many clients is stopped with its data.
func TestRedisStopsAServerWithTooManyClients(t *testing.T) {
	c := newCache(t, 1, func(c *redissettings.Config) { c.Settings["maxclients"] = "3" })
	m := c.members[0]
	c.lead(m, "seed")
	m.does("OK", "set", "a", "1")
	for range 4 {
		_ = m.redis(password, nil).Conn().Ping(context.Background()).Err() // keeps its connection
	}
	m.must(driver.Succeeded, "stop")
	c.lead(m, "seed")
	m.does("1", "get", "a")
}

// A secondary that is killed while it receives the data has its old copy, or the new one.
func TestRedisIsKilledDuringACopy(t *testing.T) {
	c := newCache(t, 2, func(c *redissettings.Config) { c.Settings["enable-debug-command"] = "yes" })
	a, b := c.members[0], c.members[1]
	c.lead(a, "seed")
	a.does("OK", "debug", "populate", "400000", "key", "100")
	c.eventually("killed while it copies", func() bool {
		cmd := b.runc("exec", b.container(), "/agent/agent", "redis", "secondary", a.host())
		check(t, cmd.Start())
		found := processes.WaitUntil(5*time.Second, func() bool {
			files, _ := filepath.Glob(b.data("temp*.rdb"))
			return len(files) > 0
		})
		b.restart()
		_ = cmd.Wait()
		return found
	})
	if own, theirs := b.sequence(), a.sequence(); own > theirs {
		t.Errorf("the sequence is %d, and that of the primary %d", own, theirs)
	}
	c.follow(b, a)
	b.does("400000", "dbsize")
}

// A copy that takes long must not delay a failover. The member is a degraded secondary meanwhile.
func TestRedisCopiesInTheBackground(t *testing.T) {
	c := newCache(t, 2, func(c *redissettings.Config) {
		c.Settings["enable-debug-command"], c.Settings["rdb-key-save-delay"] = "yes", "250"
	})
	a, b := c.members[0], c.members[1]
	c.lead(a, "seed")
	a.does("OK", "debug", "populate", "100000") // its snapshot takes 25 seconds
	if took := b.must(driver.Succeeded, "secondary", a.host()).took; took < driver.HandOff {
		t.Errorf("secondary returns after %s", took)
	}
	b.must(driver.Degraded, "status")
	b.must(driver.Failed, "ready")
	c.eventually("the copy is complete", func() bool { return b.run("status").code == driver.Secondary })
	b.does("100000", "dbsize")
}

func TestRedisEndsWithACrash(t *testing.T) {
	c := newCache(t, 1)
	m := c.members[0]
	c.lead(m, "seed")
	m.does("OK", "set", "a", "1")
	m.saved()
	m.crash()
	c.lead(m, "seed")
	m.does("1", "get", "a")
	check(t, m.runc("kill", m.container(), "TERM").Run())
	m.ends()
	if _, err := os.Stat(m.data("dump.rdb")); err != nil {
		t.Errorf("the data was not saved: %v", err)
	}
}

func TestRedisSecrets(t *testing.T) {
	c := newCache(t, 2, func(c *redissettings.Config) { c.TLSDir = "/tls" })
	c.certificate("first", newAuthority(t))
	a, b := c.members[0], c.members[1]
	c.lead(a, "seed")
	c.follow(b, a)
	ping := func(m *member, password string, config *tls.Config) string {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		text, err := m.redis(password, config).Ping(ctx).Result()
		if err != nil {
			return err.Error()
		}
		return text
	}
	if got := ping(a, password, nil); got == "PONG" {
		t.Error("a client without TLS is accepted")
	}
	trusting := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the test only encrypts
	if got := ping(a, password, trusting); got != "PONG" {
		t.Errorf("a client with TLS gets %q", got)
	}
	if got := ping(a, "wrong", trusting); !strings.Contains(got, "WRONGPASS") {
		t.Errorf("a wrong password gets %q", got)
	}
	c.write("credentials/"+redissettings.PasswordKey, "changed")
	for _, m := range c.members {
		c.eventually("the new password works", func() bool { return ping(m, "changed", trusting) == "PONG" })
		if got := ping(m, password, trusting); !strings.Contains(got, "WRONGPASS") {
			t.Errorf("the old password gets %q", got)
		}
	}
	b.must(driver.Succeeded, "stop")
	c.follow(b, a)
	for _, m := range c.members {
		for _, secret := range []string{password, "changed"} {
			if strings.Contains(m.log(), secret) {
				t.Errorf("the log has a password: %s", m.log())
			}
		}
	}
}
