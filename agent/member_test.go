package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	etcdsettings "github.com/stateful-operator/stateful-operator/agent/etcd/settings"
	"github.com/stateful-operator/stateful-operator/agent/lease"
	"github.com/stateful-operator/stateful-operator/agent/lease/leasetest"
	common "github.com/stateful-operator/stateful-operator/agent/settings"
)

// These tests run process 1 of a member of a ReplicatedStatefulSet, whose database is not installed.

// newMemberServer returns a server with the Lease of a member, which has epoch 1.
func newMemberServer(t *testing.T, holder string) *leasetest.Server {
	t.Helper()
	s := leasetest.New(t, other)
	s.Update(func(l *coordinationv1.Lease) { l.Labels = map[string]string{lease.LabelMember: "orders"} })
	s.Assign(holder)
	return s
}

// setEpoch changes the Lease to any epoch.
func setEpoch(s *leasetest.Server, holder string, epoch int32) {
	s.Update(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity, l.Spec.LeaseTransitions = &holder, &epoch })
}

// memberVariables returns the configuration of a member.
func memberVariables(t *testing.T) []string {
	t.Helper()
	config := etcdsettings.Config{
		Common:  common.Common{PrimaryHost: "db-primary", DataDir: "/run/data", RunDir: "/run", CredentialsDir: "/run/credentials"},
		Service: "db-svc",
	}
	text, err := config.Encode()
	check(t, err)
	return []string{etcdsettings.Variable + "=" + text, "POD_NAME=orders-a"}
}

// has waits until the log contains a text.
func (p *singleton) has(text string) {
	p.t.Helper()
	eventually(p.t, "the log has "+text, func() bool { return strings.Contains(p.log(), text) })
}

// startIdle starts the container of a member.
func startIdle(t *testing.T, server *leasetest.Server, flags ...string) *singleton {
	t.Helper()
	return startAgent(t, server, first, memberVariables(t), append([]string{"etcd", "idle"}, flags...)...)
}

// newIdle starts a member with a Lease.
func newIdle(t *testing.T, server *leasetest.Server) *singleton {
	t.Helper()
	return startIdle(t, server, flagsOfLease...)
}

// comm returns the name of process 1.
func (p *singleton) comm() string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.cmd.Process.Pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// shows waits until process 1 has a name.
func (p *singleton) shows(name string) {
	p.t.Helper()
	eventually(p.t, p.identity+" shows "+name, func() bool { return p.comm() == name })
}

func anyPatch(string) bool { return true }

// fenced executes a command of an epoch, and returns its exit code and output.
func (p *singleton) fenced(epoch int, argv ...string) (code int, output string) {
	cmd := p.exec(slices.Concat([]string{agentBinary, "fenced", fmt.Sprintf("--epoch=%d", epoch), "--"}, argv)...)
	cmd.Env = append(os.Environ(), "VALUE=a  b")
	out, _ := cmd.CombinedOutput() // the exit code is compared
	return cmd.ProcessState.ExitCode(), string(out)
}

// beats starts a program in the container, and returns a channel that is closed when it has ended.
func (p *singleton) beats(epoch int) <-chan struct{} {
	p.t.Helper()
	cmd := p.exec(agentBinary, "fenced", fmt.Sprintf("--epoch=%d", epoch), "--", "/bin/sh", "-c", `cd /run/files; trap '' TERM; `+beat)
	check(p.t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // killed with the container
	}()
	p.runs("beats")
	return ended
}

// An epoch must not be shown before the response to its first renewal.
func TestAMemberIsArmedAfterARenewal(t *testing.T) {
	t.Parallel()
	s := newMemberServer(t, "")
	arrived, answer := make(chan string, 10), make(chan struct{})
	s.Before = func(patch string) { arrived <- patch; <-answer }
	p := newIdle(t, s)
	p.waits()
	p.shows("agent-waiting")
	s.Assign(first)
	if patch := <-arrived; isHandOver(patch) {
		t.Errorf("the first write is %s, want a renewal", patch)
	}
	if name := p.comm(); name != "agent-waiting" {
		t.Errorf("process 1 shows %s before the response to the renewal", name)
	}
	answer <- struct{}{}
	p.shows("armed-2")
	setEpoch(s, first, 7)
	p.shows("agent-waiting")
	close(answer)
	p.shows("armed-7")
	l := s.Lease()
	if l.Spec.RenewTime == nil || *l.Spec.LeaseDurationSeconds != 10 || *l.Spec.LeaseTransitions != 7 {
		t.Errorf("the renewed Lease is %+v", l.Spec)
	}
	n := countPatches(s, anyPatch)
	eventually(t, "it renews", func() bool { return countPatches(s, anyPatch) >= n+2 })
	if s.Holder() != first || p.hasEnded() {
		t.Errorf("the holder is %s", s.Holder())
	}
}

// The container of a released member remains, also when the server is silent for longer than the deadline.
func TestAReleasedMemberIsDisarmed(t *testing.T) {
	t.Parallel()
	s := newMemberServer(t, first)
	p := newIdle(t, s)
	p.shows("armed-1")
	ended := p.beats(1)
	setEpoch(s, "", 1)
	p.shows("agent-waiting")
	n := countPatches(s, anyPatch)
	s.Fail(leasetest.Silent)
	cut := newMemberServer(t, first)
	armed := newIdle(t, cut)
	armed.shows("armed-1")
	cut.Fail(leasetest.Silent)
	armed.ends(lease.ExitFenced)
	if p.hasEnded() {
		t.Fatal("the released member has ended when an armed one does")
	}
	if countPatches(s, anyPatch) != n {
		t.Error("the released member has written the Lease")
	}
	s.Fail(leasetest.None)
	s.Assign(first)
	p.shows("armed-2")
	select {
	case <-ended:
		t.Error("the program has ended")
	default:
	}
}

// testCutMember cuts an armed member off.
func testCutMember(t *testing.T, cut func(*leasetest.Server)) *singleton {
	t.Parallel()
	s := newMemberServer(t, first)
	p := newIdle(t, s)
	p.shows("armed-1")
	ended := p.beats(1)
	eventually(t, "it renews", func() bool { return countPatches(s, anyPatch) >= 2 })
	cut(s)
	p.ends(lease.ExitFenced)
	<-ended
	if !strings.Contains(p.log(), "no renewal of the Lease has succeeded in time: ends the container") {
		t.Error("the log has no reason")
	}
	return p
}

func TestASilentServerEndsAMember(t *testing.T) {
	testCutMember(t, func(s *leasetest.Server) { s.Fail(leasetest.Silent) })
}

func TestAMissingLeaseEndsAMember(t *testing.T) {
	p := testCutMember(t, (*leasetest.Server).Delete)
	if n := strings.Count(p.log(), "the operator's Lease does not exist"); n != 1 {
		t.Errorf("the log has %d lines, want 1", n)
	}
}

// A Lease that another client has created does not keep a member armed, although it names the pod.
func TestALeaseWithoutTheLabelEndsAMember(t *testing.T) {
	p := testCutMember(t, func(s *leasetest.Server) {
		s.Update(func(l *coordinationv1.Lease) { l.Labels = map[string]string{leasetest.Label: "orders"} })
	})
	if n := strings.Count(p.log(), `has no label clusterlabs.org/lease`); n != 1 {
		t.Errorf("the log has %d lines, want 1", n)
	}
}

// The operator can have seen the first renewal although the member has no response. The deadline is that of the first
// one, and the member is not armed before.
func TestALostFirstResponseEndsAMember(t *testing.T) {
	t.Parallel()
	s := newMemberServer(t, "")
	s.Before = func(string) { s.Fail(leasetest.Silent) }
	p := newIdle(t, s)
	p.waits()
	s.Assign(first)
	eventually(t, "a renewal is committed", func() bool { return s.Lease().Spec.RenewTime != nil })
	renewed := s.Lease().Spec.RenewTime.Time
	if name := p.comm(); name != "agent-waiting" {
		t.Errorf("process 1 shows %s", name)
	}
	p.ends(lease.ExitFenced)
	if n := countPatches(s, anyPatch); n < 2 || !s.Lease().Spec.RenewTime.Time.Equal(renewed) {
		t.Errorf("the member has sent %d renewals, and the last is of %s", n, s.Lease().Spec.RenewTime)
	}
	if !strings.Contains(p.log(), "no renewal of the Lease has succeeded in time: ends the container") || strings.Contains(p.log(), "armed") {
		t.Error("the log has no reason, or the member was armed")
	}
}

func TestALowerEpochEndsAMember(t *testing.T) {
	t.Parallel()
	s := newMemberServer(t, first)
	setEpoch(s, first, 5)
	p := newIdle(t, s)
	p.shows("armed-5")
	setEpoch(s, first, 4)
	p.ends(lease.ExitFenced)
	if !strings.Contains(p.log(), "the Lease has a lower epoch than before: ends the container") {
		t.Error("the log has no reason")
	}
}

func TestAnEpochThatIsTooLongIsLoggedOnce(t *testing.T) {
	t.Parallel()
	s := newMemberServer(t, "")
	setEpoch(s, first, 1000000000)
	p := newIdle(t, s)
	eventually(t, "the Lease is read again", func() bool { return len(s.Requests()) > 3 })
	if n := strings.Count(p.log(), "is not from 1 to 999999999"); n != 1 || countPatches(s, anyPatch) > 0 || p.comm() != "agent-waiting" {
		t.Errorf("%d lines, and process 1 shows %s", n, p.comm())
	}
}

// A slow stop of the application does not end with the deadline.
func TestAMemberRenewsWhileItStops(t *testing.T) {
	t.Parallel()
	s := newMemberServer(t, first)
	p := newIdle(t, s)
	p.shows("armed-1")
	server := filepath.Join(p.dir, "files", "etcd")
	check(t, os.WriteFile(server, []byte("#!/bin/sh\ncd /run/files; trap '' TERM; echo x >runs; while [ ! -e stop ]; do sleep 0.05; done\n"), 0o755))
	if code, out := p.fenced(1, "/bin/sh", "-c", "/run/files/etcd >/dev/null 2>&1 </dev/null &"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	p.runs("runs")
	p.signal(syscall.SIGTERM)
	p.has("stops the application")
	n := countPatches(s, anyPatch)
	eventually(t, "it renews", func() bool { return countPatches(s, anyPatch) >= n+3 })
	if p.hasEnded() || p.comm() != "armed-1" {
		t.Errorf("process 1 shows %s", p.comm())
	}
	check(t, os.WriteFile(filepath.Join(p.dir, "files", "stop"), nil, 0o644))
	p.ends(int(driver.Succeeded))
	if s.Holder() != first {
		t.Errorf("the holder is %s", s.Holder())
	}
}

func TestAMemberWithoutALease(t *testing.T) {
	t.Parallel()
	s := newMemberServer(t, first)
	p := startIdle(t, s)
	p.has("waits for commands")
	p.signal(syscall.SIGUSR1)
	if p.comm() != programName {
		t.Errorf("process 1 shows %s", p.comm())
	}
	p.signal(syscall.SIGTERM)
	p.ends(int(driver.Succeeded))
	if len(s.Requests()) > 0 || strings.Contains(p.log(), "Lease") {
		t.Error("the agent uses a Lease")
	}
}

// A member that cannot be armed must not wait for commands.
func TestAMemberNeedsAnIdentity(t *testing.T) {
	t.Parallel()
	p := startAgent(t, newMemberServer(t, first), "_"+uid, memberVariables(t), append([]string{"etcd", "idle"}, flagsOfLease...)...)
	p.ends(int(driver.Failed))
	if !strings.Contains(p.log(), "idle: read the identity of the pod: file /var/run/fencing/pod-name is empty") {
		t.Error("the log has no reason")
	}
}

func TestFenced(t *testing.T) {
	t.Parallel()
	s := newMemberServer(t, first)
	setEpoch(s, first, 3)
	p := newIdle(t, s)
	p.shows("armed-3")
	t.Run("it becomes the program", func(t *testing.T) {
		code, out := p.fenced(3, "sh", "-c", `echo "$VALUE,$0,$1"; exit 9`, "x", "--")
		if code != 9 || out != "a  b,x,--\n" {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
	t.Run("an outdated command fails at once", func(t *testing.T) {
		code, out := p.fenced(2, "touch", "/run/files/outdated")
		if code != lease.ExitFenced || !strings.Contains(out, `process 1 must show "armed-2", and shows "armed-3"`) {
			t.Errorf("exit code %d: %s", code, out)
		}
		if _, err := os.Stat(filepath.Join(p.dir, "files", "outdated")); err == nil {
			t.Error("the program was started")
		}
	})
	t.Run("a later epoch is awaited", func(t *testing.T) {
		code, out := p.fenced(4, "touch", "/run/files/early")
		if code != lease.ExitFenced || strings.Count(out, "\n") != 1 || !strings.Contains(out, "may not reach the API server") {
			t.Errorf("exit code %d: %s", code, out)
		}
		if _, err := os.Stat(filepath.Join(p.dir, "files", "early")); err == nil {
			t.Error("the program was started")
		}
		done := make(chan int)
		go func() {
			code, _ := p.fenced(4, "touch", "/run/files/awaited")
			done <- code
		}()
		eventually(t, "the command waits", func() bool { return len(p.others()) > 0 })
		s.Assign(first)
		if code := <-done; code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("a program that is not found", func(t *testing.T) {
		if code, out := p.fenced(4, "nothing-of-this-name"); code != lease.ExitNotFound {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
}

// A dead watch does not delay a command. With this duration, the member would read the Lease after 200 s.
func TestFencedAsksProcess1(t *testing.T) {
	t.Parallel()
	s := newMemberServer(t, "")
	p := startIdle(t, s, "--lease="+leasetest.Name, "--duration=600s")
	p.waits()
	eventually(t, "it watches", func() bool { return len(s.Requests()) >= 2 })
	s.Fail(leasetest.Unwatched)
	s.Assign(first)
	if code, out := p.fenced(2, "sh", "-c", "echo done"); code != 0 || out != "done\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
}
