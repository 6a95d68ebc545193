package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/etcd/gateway"
	etcdsettings "github.com/stateful-operator/stateful-operator/agent/etcd/settings"
)

// cluster is a set whose members elect their leader: etcd or RabbitMQ.
type cluster struct{ *set }

func newCluster(t *testing.T, members int) *cluster {
	t.Helper()
	s := &set{t: t, application: "etcd", server: "etcd"}
	s.prepare()
	s.environment = func(address string) ([]string, error) {
		config := etcdsettings.Config{Common: s.common("/data", map[string]string{"election-timeout": "500", "heartbeat-interval": "50"}), Service: "db-svc"}
		config.ListenAddresses = address
		text, err := config.Encode()
		return []string{etcdsettings.Variable + "=" + text}, err
	}
	s.write("credentials/"+etcdsettings.PasswordKey, password)
	s.startMembers(members)
	s.primaryIs(nil)
	return &cluster{s}
}

// seed starts the first member, as the operator does.
func (c *cluster) seed(m *member) {
	c.t.Helper()
	m.must(driver.Succeeded, "seed")
	m.must(driver.Primary, "status")
}

func (c *cluster) join(m *member, others ...*member) {
	c.t.Helper()
	m.must(driver.Succeeded, "primary", hosts(others)...)
	m.must(driver.Primary, "status")
	if got := m.sequence(); got != 1 {
		c.t.Fatalf("the sequence of %s is %d", m.name, got)
	}
}

func hosts(members []*member) (names []string) {
	for _, m := range members {
		names = append(names, m.host())
	}
	return names
}

// all starts all members of a new cluster.
func (c *cluster) all() {
	c.t.Helper()
	c.seed(c.members[0])
	for i, m := range c.members[1:] {
		c.join(m, c.members[:i+1]...)
	}
}

func (m *member) etcd() *gateway.Client {
	return gateway.New(net.JoinHostPort(m.address, strconv.Itoa(int(m.port))), password)
}

// puts waits until the cluster accepts a write by this member.
func (m *member) puts(key, value string) {
	m.t.Helper()
	m.eventually(m.name+" accepts a write", func() bool { return m.etcd().Put(context.Background(), key, value) == nil })
}

// has fails if the cluster has another value.
func (m *member) has(key, want string) {
	m.t.Helper()
	m.eventually(fmt.Sprintf("%s reads %s=%s", m.name, key, want), func() bool {
		got, err := m.etcd().Get(context.Background(), key)
		return err == nil && got == want
	})
}

// voters returns the names of the members that vote, as a member sees them.
func (m *member) voters() string {
	m.t.Helper()
	var names []string
	m.eventually("the members are listed", func() bool {
		found, err := m.etcd().Members(context.Background())
		names = nil
		for _, o := range found.Members {
			if !o.IsLearner {
				names = append(names, o.Name)
			}
		}
		return err == nil
	})
	return strings.Join(names, " ")
}

func TestEtcdKeepsAllWrites(t *testing.T) {
	c := newCluster(t, 3)
	a, b, d := c.members[0], c.members[1], c.members[2]
	for _, m := range c.members {
		m.must(driver.Stopped, "status")
		m.must(driver.Succeeded, "stop")
		if got := m.sequence(); got != 0 {
			t.Fatalf("the sequence of %s without data is %d", m.name, got)
		}
	}
	c.all()
	a.must(driver.Succeeded, "seed") // idempotent
	b.must(driver.Succeeded, "primary", a.host())
	if got := gateway.New(net.JoinHostPort(a.address, strconv.Itoa(int(a.port))), "wrong").Put(context.Background(), "x", "1"); got == nil {
		t.Error("a wrong password is accepted")
	}
	for i := range 50 {
		a.puts(fmt.Sprint("key", i), strings.Repeat("x", 100))
	}
	for _, m := range c.members {
		m.must(driver.Succeeded, "ready")
	}

	// One is killed, and returns with its data.
	a.crash()
	b.puts("while", "down")
	a.must(driver.Stopped, "status")
	if a.sequence() != 1 {
		t.Error("a killed member is not a member")
	}
	c.join(a, b, d)
	a.has("while", "down")

	// All are killed. The first has no majority, and is not failed.
	for _, m := range c.members {
		m.crash()
	}
	c.seed(d)
	d.must(driver.Failed, "ready")
	d.must(driver.Primary, "status")
	c.join(b, d)
	c.join(a, d, b)
	a.has("while", "down")
	d.puts("after", "lights out")
	a.has("after", "lights out")

	// All are stopped.
	for _, m := range c.members {
		m.must(driver.Succeeded, "stop")
		m.must(driver.Stopped, "status")
	}
	c.seed(b)
	c.join(a, b)
	c.join(d, a, b)
	d.has("after", "lights out")
}

func TestEtcdForgetsMembersThatLeave(t *testing.T) {
	c := newCluster(t, 3)
	a, b, d := c.members[0], c.members[1], c.members[2]
	c.all()
	a.puts("one", "1")
	d.must(driver.Succeeded, "leave", a.host(), b.host(), d.host())
	d.must(driver.Stopped, "status")
	d.must(driver.Succeeded, "leave", a.host(), b.host()) // idempotent, in a stopped member
	if got := d.sequence(); got != 0 {
		t.Errorf("the sequence of a member that has left is %d", got)
	}
	d.must(driver.NotInstalled, "seed")
	b.must(driver.Succeeded, "leave", a.host(), b.host())
	b.must(driver.Succeeded, "stop")
	if got := a.voters(); got != "db-0" {
		t.Fatalf("the members are %s", got)
	}
	a.puts("two", "2")

	// They return with their old volumes. The first member that the second one asks is not the leader.
	c.join(b, a)
	c.join(d, b, a)
	if got := d.voters(); len(strings.Fields(got)) != 3 {
		t.Fatalf("the members are %s", got)
	}
	d.has("two", "2")

	// A stopped member leaves, and then one whose volume is empty.
	d.must(driver.Succeeded, "stop")
	d.must(driver.Succeeded, "leave", a.host(), b.host())
	c.join(d, a, b)
	d.must(driver.Succeeded, "stop")
	d.clear()
	d.must(driver.Succeeded, "leave", a.host(), b.host())
	if got := a.voters(); len(strings.Fields(got)) != 2 {
		t.Fatalf("the members are %s", got)
	}
}

// A volume that is lost, data of another cluster, and data that the agent has not created.
func TestEtcdWithOtherData(t *testing.T) {
	c := newCluster(t, 4)
	a, b, d, stranger := c.members[0], c.members[1], c.members[2], c.members[3]
	c.seed(a)
	c.join(b, a)
	c.join(d, a, b)
	a.puts("one", "1")
	d.must(driver.Succeeded, "stop")
	d.clear()
	if got := d.sequence(); got != 0 {
		t.Errorf("the sequence of an empty volume is %d", got)
	}
	c.join(d, a, b)
	d.has("one", "1")
	if got := a.voters(); len(strings.Fields(got)) != 3 {
		t.Errorf("the members are %s", got)
	}

	c.seed(stranger)
	stranger.must(driver.Succeeded, "stop")
	stranger.must(driver.NotInstalled, "primary", a.host())
	check(t, os.Remove(stranger.data("member.json")))
	stranger.must(driver.NotInstalled, "sequence")
	stranger.must(driver.NotInstalled, "primary", a.host())
	stranger.must(driver.NotInstalled, "seed")

	// Without any other member, and without its own data, it does not start.
	stranger.clear()
	stranger.must(driver.Failed, "primary", "db-9.db-svc")
	stranger.must(driver.Failed, "primary")
}

// A join is interrupted at several points, while the only other member may need the vote of this one.
func TestEtcdJoinIsInterrupted(t *testing.T) {
	c := newCluster(t, 2)
	a, d := c.members[0], c.members[1]
	c.seed(a)
	for _, delay := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond, time.Second} {
		cmd := d.runc("exec", d.container(), "/agent/agent", "etcd", "primary", a.host())
		check(t, cmd.Start())
		time.Sleep(delay)
		d.killCommands("primary")
		_ = cmd.Wait()
		d.must(driver.Succeeded, "stop")
		d.must(driver.Stopped, "status")
		c.join(d, a)
		d.puts("during", delay.String())
		if got := a.voters(); len(strings.Fields(got)) != 2 {
			t.Fatalf("after %s the members are %s", delay, got)
		}
		d.must(driver.Succeeded, "leave", a.host())
		a.puts("alone", delay.String())
	}
}

// A member was promoted, and the command was killed before it could write that.
func TestEtcdPromotionIsNotOnDisk(t *testing.T) {
	c := newCluster(t, 2)
	a, b := c.members[0], c.members[1]
	c.seed(a)
	c.join(b, a)
	a.puts("one", "1")
	b.must(driver.Succeeded, "stop")
	text, err := os.ReadFile(b.data("member.json"))
	check(t, err)
	check(t, os.WriteFile(b.data("member.json"), []byte(strings.Replace(string(text), `"member"`, `"being promoted"`, 1)), 0o644))
	check(t, os.Chown(b.data("member.json"), memberUser, 0))
	if got := b.sequence(); got != 1 {
		t.Errorf("the sequence is %d", got)
	}
	a.must(driver.Succeeded, "stop")
	c.seed(b) // no majority, so it cannot ask
	c.join(a, b)
	b.has("one", "1")
	c.primaryIs(a)
	b.eventually("the join is completed", func() bool {
		text, err := os.ReadFile(b.data("member.json"))
		return err == nil && strings.Contains(string(text), `"state":"member"`)
	})
}

// The folder of etcd was removed, and the file of the agent remains.
func TestEtcdWithoutItsData(t *testing.T) {
	c := newCluster(t, 3)
	a, b, d := c.members[0], c.members[1], c.members[2]
	c.all()
	a.puts("one", "1")
	d.must(driver.Succeeded, "stop")
	check(t, os.RemoveAll(d.data("etcd")))
	if got := d.sequence(); got != 0 {
		t.Errorf("the sequence is %d", got)
	}
	d.must(driver.NotInstalled, "seed")
	c.join(d, a, b)
	d.has("one", "1")
	if got := a.voters(); len(strings.Fields(got)) != 3 {
		t.Errorf("the members are %s", got)
	}
	// A server that does not answer requests for a majority is not failed.
	a.must(driver.Succeeded, "stop")
	b.must(driver.Succeeded, "stop")
	d.must(driver.Primary, "status")
	d.must(driver.Failed, "ready")
}

// clear makes the volume empty.
func (m *member) clear() {
	m.t.Helper()
	files, err := filepath.Glob(filepath.Join(m.volume(), "*"))
	check(m.t, err)
	for _, name := range files {
		check(m.t, os.RemoveAll(name))
	}
}
