package lease

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/stateful-operator/stateful-operator/agent/lease/leasetest"
)

// restoreComm restores the name of this process at the end of a test.
func restoreComm(t *testing.T) {
	t.Helper()
	before := ownName(t)
	t.Cleanup(func() {
		if err := setComm(before); err != nil {
			t.Error(err)
		}
	})
}

func ownName(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(ownComm)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// isArmed reports whether the timer runs.
func (w *watchdog) isArmed(t *testing.T) bool {
	t.Helper()
	var now unix.ItimerSpec
	if err := unix.TimerfdGettime(w.fd, &now); err != nil {
		t.Error(err)
	}
	return now.Value != unix.Timespec{}
}

// startMember returns a server with the Lease of a member, and the member, whose steps a test executes in this process.
func startMember(t *testing.T, holder string, duration time.Duration) (*leasetest.Server, *member) {
	t.Helper()
	restoreComm(t)
	server := leasetest.New(t, holder)
	server.Update(func(l *coordinationv1.Lease) { l.Labels = map[string]string{LabelMember: "orders"} })
	config := Config{Name: leasetest.Name, Label: LabelMember, Duration: duration, Folders: Folders{Fencing: t.TempDir()}}
	config.Log = NewLog(func(line string) { t.Log(line) })
	name, uid, _ := strings.Cut(self, "_")
	server.WriteFolder(config.Folders.Fencing, name, uid)
	for _, variable := range server.Environment() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	m, err := newMember(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.watcher.stop()
		_ = m.watchdog.disarm() // it would end the tests
		config.Log.Flush()
	})
	return server, m
}

// executeUntil executes steps until a condition is met and no request is in the network.
func (m *member) executeUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	for limit := sinceBoot() + time.Minute; !done() || m.holder.request != Wait; {
		step := m.holder.Next(sinceBoot())
		if step.Operation == Fence || sinceBoot() > limit {
			t.Fatalf("process 1 shows %q, and not %s: the next step is %+v", ownName(t), what, step)
		}
		m.execute(step)
		hasEpoch := armedEpoch(ownName(t)) > 0
		if hasEpoch && !m.watchdog.isArmed(t) {
			t.Fatalf("process 1 shows %q without a watchdog", ownName(t))
		}
	}
}

func (m *member) shows(t *testing.T, name string) {
	t.Helper()
	m.executeUntil(t, "shows "+name, func() bool { return ownName(t) == name })
}

func TestAMemberShowsItsEpochWhileItIsArmed(t *testing.T) {
	server, m := startMember(t, self, 30*time.Second)
	if !m.client.mustExist {
		t.Error("a missing Lease is no failure")
	}
	shows := func(name string) { t.Helper(); m.shows(t, name) }
	shows(commWaiting)
	server.Assign(self)
	shows("armed-1")
	server.Assign(self)
	shows("armed-2")
	server.Assign("")
	shows(commWaiting)
	if m.watchdog.isArmed(t) {
		t.Error("the watchdog of a member that waits is armed")
	}
	server.Assign(self)
	shows("armed-4")
}

// TestTheWatchdogPrecedesTheFirstRenewal tests that a renewal has a deadline before the server knows it, and none after
// a refusal.
func TestTheWatchdogPrecedesTheFirstRenewal(t *testing.T) {
	server, m := startMember(t, "", 30*time.Second)
	var arrived atomic.Int32
	server.Before = func(string) {
		if !m.watchdog.isArmed(t) {
			t.Error("the watchdog is not armed when a renewal arrives")
		}
		if arrived.Add(1) == 1 {
			server.Assign("") // the renewal is outdated
		}
	}
	server.Assign(self)
	m.executeUntil(t, "is released", func() bool { return arrived.Load() > 0 && m.holder.Known().Holder == "" })
	if m.watchdog.isArmed(t) {
		t.Error("the watchdog is armed after a refusal")
	}
	server.Fail(leasetest.Lost)
	server.Assign(self)
	m.executeUntil(t, "has lost a response", func() bool { return server.Lease().Spec.RenewTime != nil })
	if !m.watchdog.isArmed(t) {
		t.Error("the watchdog is not armed although a renewal is committed")
	}
	server.Fail(leasetest.None)
	server.Assign("")
	m.executeUntil(t, "is released", func() bool { return m.holder.Known().Holder == "" })
	if m.watchdog.isArmed(t) {
		t.Error("the watchdog of a released member is armed")
	}
}

// TestAMemberThatIsAskedReadsTheLease tests a member whose watch is dead. With this duration, it would read the Lease
// after 200 s.
func TestAMemberThatIsAskedReadsTheLease(t *testing.T) {
	server, m := startMember(t, "", 600*time.Second)
	m.executeUntil(t, "watches", func() bool { return m.watcher.isActive() })
	server.Fail(leasetest.Unwatched)
	server.Assign(self)
	assigned := server.Lease().ResourceVersion
	m.asked <- askSignal
	m.shows(t, "armed-1")
	if m.watcher.reported != assigned {
		t.Errorf("the watch is one after version %s, want %s", m.watcher.reported, assigned)
	}
}

// TestKeepFails tests that process 1 of a member ends if it cannot be armed.
func TestKeepFails(t *testing.T) {
	if err := Keep(Config{Folders: Folders{Fencing: t.TempDir()}}); err == nil {
		t.Error("without an identity there is no error")
	}
}
