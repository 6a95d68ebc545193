package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/processes"
	rabbitsettings "github.com/stateful-operator/stateful-operator/agent/rabbitmq/settings"
	"github.com/stateful-operator/stateful-operator/test/run/debian"
	"github.com/stateful-operator/stateful-operator/test/run/rabbitmq/server"
)

// rabbitPrograms extracts the packages of RabbitMQ once.
var rabbitPrograms = sync.OnceValues(func() (debian.Root, error) {
	folder := filepath.Join(filepath.Dir(agentBinary), "rabbitmq") // removed with it
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", err
	}
	root, _, err := server.Image.Extract(context.Background(), folder)
	return root, err
})

// newRabbits returns a set of RabbitMQ.
func newRabbits(t *testing.T, members int) *cluster {
	t.Helper()
	needContainers(t)
	root, err := rabbitPrograms()
	check(t, err)
	s := &set{t: t, application: "rabbitmq", server: "beam.smp", dataDir: "rabbitmq", usr: root.Path("usr"), programs: "/usr/lib/rabbitmq/bin:/usr/sbin:"}
	s.prepare()
	s.port = 5672
	s.addBridge()
	s.environment = func(string) ([]string, error) {
		config := rabbitsettings.Config{Common: s.common("/data", map[string]string{"heartbeat": "10"}), Service: "db-svc"}
		text, err := config.Encode()
		return []string{rabbitsettings.Variable + "=" + text, "RABBITMQ_DEFAULT_USER=other", "RABBITMQ_NODE_PORT=1"}, err
	}
	s.write("credentials/"+rabbitsettings.PasswordKey, password)
	s.write("credentials/"+rabbitsettings.CookieKey, "a-secret-cookie\n")
	s.write("etc/passwd", fmt.Sprintf("root:x:0:0::/:/bin/sh\nrabbitmq:x:%d:0::/:/bin/sh\n", memberUser))
	s.startMembers(members)
	s.primaryIs(nil)
	return &cluster{s}
}

// amqp connects to a member.
func (m *member) amqp(password string) (*amqp.Connection, error) {
	return amqp.DialConfig(fmt.Sprintf("amqp://%s:%d/", m.address, m.port), amqp.Config{
		SASL: []amqp.Authentication{&amqp.PlainAuth{Username: "admin", Password: password}}, Dial: amqp.DefaultDial(5 * time.Second), Vhost: "/",
	})
}

// channel opens a channel of a member for a function, which returns an error if it fails.
func (m *member) channel(do func(*amqp.Channel) error) error {
	connection, err := m.amqp(password)
	if err != nil {
		return err
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	return do(channel)
}

// publish waits until the cluster confirms a message.
func (m *member) publish(queue, text string) {
	m.t.Helper()
	m.eventually(m.name+" accepts a message", func() bool {
		return m.channel(func(c *amqp.Channel) error {
			if _, err := c.QueueDeclare(queue, true, false, false, false, nil); err != nil {
				return err
			}
			if err := c.Confirm(false); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			confirmation, err := c.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(text)})
			if err != nil {
				return err
			}
			confirmed, err := confirmation.WaitContext(ctx)
			if err == nil && !confirmed {
				err = fmt.Errorf("not confirmed")
			}
			return err
		}) == nil
	})
}

// receive removes a message, which must be the first one.
func (m *member) receive(queue, want string) {
	m.t.Helper()
	got := ""
	m.eventually(m.name+" returns a message", func() bool {
		return m.channel(func(c *amqp.Channel) error {
			message, ok, err := c.Get(queue, false)
			if err != nil || !ok {
				return fmt.Errorf("no message: %w", err)
			}
			got = string(message.Body)
			return message.Ack(false)
		}) == nil
	})
	if got != want {
		m.t.Fatalf("%s returns %q, want %q", m.name, got, want)
	}
}

// expression evaluates an Erlang expression in a member.
func (m *member) expression(text string) string {
	m.t.Helper()
	got := m.execute("/usr/bin/env", "HOME=/run/agent/rabbitmq", "RABBITMQ_USE_LONGNAME=true", "LC_ALL=C.UTF-8",
		"/usr/lib/rabbitmq/bin/rabbitmqctl", "-q", "-n", "rabbit@"+m.host(), "eval", text)
	if got.code != 0 {
		m.t.Fatalf("%s: %s: %s%s", m.name, text, got.stdout, got.stderr)
	}
	return strings.Join(strings.Fields(got.stdout), " ")
}

// nodes waits until the cluster has a number of members.
func (m *member) nodes(want int) {
	m.t.Helper()
	got := ""
	m.eventually(fmt.Sprintf("%s lists %d members", m.name, want), func() bool {
		got = m.expression("rabbit_khepri:nodes().")
		return strings.Count(got, "rabbit@") == want
	})
}

func TestRabbitMQKeepsAllMessages(t *testing.T) {
	c := newRabbits(t, 3)
	a, b, d := c.members[0], c.members[1], c.members[2]
	for _, m := range c.members {
		m.must(driver.Stopped, "status")
		m.must(driver.Succeeded, "stop")
		if got := m.sequence(); got != 0 {
			t.Fatalf("the sequence of %s without data is %d", m.name, got)
		}
	}
	c.all()
	a.publish("q", "1")
	b.must(driver.Succeeded, "stop")
	a.publish("q", "2")
	c.join(b, a, d)
	b.receive("q", "1")
}

func TestRabbitMQForgetsMembersThatLeave(t *testing.T) {
	c := newRabbits(t, 3)
	a, b, d := c.members[0], c.members[1], c.members[2]
	c.all()
	a.publish("q", "1")
	d.must(driver.Succeeded, "leave", a.host(), b.host(), d.host())
	d.must(driver.Stopped, "status")
	d.must(driver.Succeeded, "leave", a.host(), b.host()) // idempotent, in a stopped member
	if got := d.sequence(); got != 0 {
		t.Errorf("the sequence of a member that has left is %d", got)
	}
	d.must(driver.NotInstalled, "seed")
	b.must(driver.Succeeded, "leave", a.host(), b.host())
	b.must(driver.Succeeded, "stop")
	a.nodes(1)
	a.publish("q", "2")

	// They return with their old volumes, and get replicas.
	c.join(b, a)
	c.join(d, b, a)
	a.nodes(3)
	a.replicas("q", 3)
	a.must(driver.Succeeded, "stop")
	d.receive("q", "1")
	c.join(a, b, d)

	// A stopped member leaves, and then one whose volume is empty.
	d.must(driver.Succeeded, "stop")
	d.must(driver.Succeeded, "leave", a.host(), b.host())
	a.nodes(2)
	c.join(d, a, b)
	d.must(driver.Succeeded, "stop")
	d.clear()
	d.must(driver.Succeeded, "leave", a.host(), b.host())
	a.nodes(2)
	a.receive("q", "2")
}

// replicas waits until a queue has a number of replicas.
func (m *member) replicas(queue string, want int) {
	m.t.Helper()
	const expression = `{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"%s">>)), map_size(maps:get(nodes, amqqueue:get_type_state(Q))).`
	m.eventually(fmt.Sprintf("queue %s has %d replicas", queue, want), func() bool {
		return m.expression(fmt.Sprintf(expression, queue)) == fmt.Sprint(want)
	})
}

// Messages that only one member has are not deleted with it.
func TestRabbitMQDoesNotForgetMessages(t *testing.T) {
	c := newRabbits(t, 2)
	a, b := c.members[0], c.members[1]
	c.all()
	check(t, b.channel(func(ch *amqp.Channel) error {
		if _, err := ch.QueueDeclare("classic", true, false, false, false, amqp.Table{"x-queue-type": "classic"}); err != nil {
			return err
		}
		return ch.Publish("", "classic", true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("1")})
	}))
	b.publish("only", "1") // with the only replica in this member, because two have no majority without one
	got := b.must(driver.Failed, "leave", a.host())
	if !strings.Contains(got.stderr, "are only in this member: consume the messages, or delete the queues: queue 'classic' in vhost '/'") {
		t.Errorf("leave fails with %s", got.stderr)
	}
	b.must(driver.Primary, "status")
	b.receive("classic", "1")
	b.must(driver.Succeeded, "leave", a.host())
	a.receive("only", "1")
	a.nodes(1)

	// The password is changed, and the same is set again.
	s3cret := password + "2"
	a.write("credentials/"+rabbitsettings.PasswordKey, s3cret)
	a.eventually("the password is changed", func() bool {
		connection, err := a.amqp(s3cret)
		if err != nil {
			return false
		}
		return connection.Close() == nil
	})
	if log := a.log(); strings.Contains(log, s3cret) || strings.Contains(log, password) {
		t.Error("the log has a password")
	}

	// A server that hangs is failed, and is stopped.
	a.signal("beam.smp", syscall.SIGSTOP)
	a.must(driver.Failed, "status")
	a.must(driver.Succeeded, "stop")
	a.must(driver.Stopped, "status")
}

// A volume that is lost, data of another cluster, and data that the agent has not created.
func TestRabbitMQWithOtherData(t *testing.T) {
	c := newRabbits(t, 4)
	a, b, d, stranger := c.members[0], c.members[1], c.members[2], c.members[3]
	c.seed(a)
	c.join(b, a)
	c.join(d, a, b)
	a.publish("q", "1")
	a.replicas("q", 3)
	d.must(driver.Succeeded, "stop")
	d.clear()
	if got := d.sequence(); got != 0 {
		t.Errorf("the sequence of an empty volume is %d", got)
	}
	c.join(d, a, b)
	a.replicas("q", 3)
	d.must(driver.Succeeded, "stop")
	check(t, os.RemoveAll(d.data()))
	d.must(driver.NotInstalled, "seed")
	c.join(d, b)
	a.replicas("q", 3)
	a.nodes(3)

	// All are killed. The first has no majority, and is not failed.
	for _, m := range []*member{a, b, d} {
		m.crash()
	}
	c.seed(b)
	b.must(driver.Failed, "ready")
	b.must(driver.Primary, "status")
	c.join(d, b)
	d.eventually("a member is ready with a majority", func() bool { return d.run("ready").code == 0 })
	c.join(a, d, b)
	a.receive("q", "1")

	c.seed(stranger)
	stranger.must(driver.Succeeded, "stop")
	stranger.must(driver.NotInstalled, "primary", a.host())
	check(t, os.Remove(filepath.Join(stranger.volume(), "member.json")))
	stranger.must(driver.NotInstalled, "sequence")
	stranger.must(driver.NotInstalled, "primary", a.host())
	stranger.must(driver.NotInstalled, "seed")

	// Without any other member, and without its own data, it does not start.
	stranger.clear()
	stranger.must(driver.Failed, "primary", "db-9.db-svc")
	stranger.must(driver.Failed, "primary")
}

// A join is interrupted at several points, while the only other member may need the vote of this one.
func TestRabbitMQJoinIsInterrupted(t *testing.T) {
	c := newRabbits(t, 2)
	a, d := c.members[0], c.members[1]
	c.seed(a)
	for _, point := range []struct {
		tool  string
		after time.Duration
	}{
		{"version", 0}, {"stop_app", 0}, {"join_cluster", 0}, {"join_cluster", 500 * time.Millisecond}, {"join_cluster", 700 * time.Millisecond},
		{"join_cluster", 800 * time.Millisecond}, {"join_cluster", 900 * time.Millisecond}, {"join_cluster", time.Second},
		{"join_cluster", 1200 * time.Millisecond}, {"join_cluster", 1400 * time.Millisecond}, {"join_cluster", 1600 * time.Millisecond},
		{"join_cluster", 1800 * time.Millisecond}, {"join_cluster", 2 * time.Second}, {"join_cluster", 4 * time.Second},
	} {
		cmd := d.runc("exec", d.container(), "/agent/agent", "rabbitmq", "primary", a.host())
		check(t, cmd.Start())
		d.eventually(point.tool+" runs", func() bool {
			return slices.ContainsFunc(d.processes("beam.smp"), func(p processes.Process) bool { return slices.Contains(p.Arguments(), point.tool) })
		})
		time.Sleep(point.after)
		d.killCommands("primary")
		processes.Signal(d.processes("beam.smp"), syscall.SIGKILL)
		_ = cmd.Wait()
		d.restart()
		d.must(driver.Stopped, "status")
		t.Logf("killed in %s after %s, joins after %s", point.tool, point.after, d.must(driver.Succeeded, "primary", a.host()).took)
		d.must(driver.Primary, "status")
		d.publish("q", point.tool)
		a.nodes(2)
		d.must(driver.Succeeded, "leave", a.host())
		a.publish("q", point.tool)
		a.nodes(1)
	}
}
