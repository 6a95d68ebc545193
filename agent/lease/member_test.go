package lease

import (
	"os"
	"strings"
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
		t.Fatal(err)
	}
	return now.Value != unix.Timespec{}
}

// TestAMemberShowsItsEpochWhileItIsArmed executes the steps of a member in this process.
func TestAMemberShowsItsEpochWhileItIsArmed(t *testing.T) {
	restoreComm(t)
	server := leasetest.New(t, self)
	server.Update(func(l *coordinationv1.Lease) { l.Labels = map[string]string{LabelMember: "orders"} })
	config := Config{Name: leasetest.Name, Label: LabelMember, Duration: 30 * time.Second, Folders: Folders{Fencing: t.TempDir()}}
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
	if !m.client.mustExist {
		t.Error("a missing Lease is no failure")
	}
	t.Cleanup(func() {
		m.watcher.stop()
		_ = m.watchdog.disarm() // it would end the tests
		config.Log.Flush()
	})
	shows := func(want string) {
		t.Helper()
		for limit := sinceBoot() + time.Minute; ownName(t) != want || m.holder.request != Wait; {
			step := m.holder.Next(sinceBoot())
			if step.Operation == Fence || sinceBoot() > limit {
				t.Fatalf("process 1 shows %q, want %q: the next step is %+v", ownName(t), want, step)
			}
			m.execute(step)
			hasEpoch := armedEpoch(ownName(t)) > 0
			if hasEpoch && !m.watchdog.isArmed(t) {
				t.Fatalf("process 1 shows %q without a watchdog", ownName(t))
			}
		}
	}
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

// TestKeepFails tests that process 1 of a member ends if it cannot be armed.
func TestKeepFails(t *testing.T) {
	if err := Keep(Config{Folders: Folders{Fencing: t.TempDir()}}); err == nil {
		t.Error("without an identity there is no error")
	}
}
