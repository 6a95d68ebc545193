package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/lease"
	"github.com/stateful-operator/stateful-operator/agent/lease/leasetest"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// These tests run the agent as process 1 of a container with its own processes and mounts.

const (
	uid    = "0a1b2c3d-1111-2222-3333-444455556666"
	first  = "orders-a_" + uid
	second = "orders-b_" + uid
	other  = "orders-c_" + uid
	// leaseDuration is the shortest one.
	leaseDuration = 10 * time.Second
)

// enter creates the mounts of a container.
const enter = `set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mkdir /run/fencing /run/signal /run/files
mount --bind "$0/fencing" /run/fencing
mount --bind "$0/signal" /run/signal
mount --bind "$0/files" /run/files
cd /run/files
exec "$@"`

// singleton is a pod of a StatefulSingleton with a running container.
type singleton struct {
	t        *testing.T
	server   *leasetest.Server
	identity string
	dir      string
	cmd      *exec.Cmd
	ended    chan struct{}
}

// startPod starts a container with a program, which runs in the folder of its files.
func startPod(t *testing.T, server *leasetest.Server, identity string, argv ...string) *singleton {
	t.Helper()
	return startAgent(t, server, identity, nil, slices.Concat([]string{"run"}, flagsOfLease, []string{"--"}, argv)...)
}

// flagsOfLease are the flags of an agent with the Lease of the server.
var flagsOfLease = []string{"--lease=" + leasetest.Name, "--duration=" + leaseDuration.String()}

// startAgent starts a container whose process 1 is the agent with additional variables.
func startAgent(t *testing.T, server *leasetest.Server, identity string, variables []string, args ...string) *singleton {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can create the PID namespace and the mounts of a container")
	}
	p := &singleton{t: t, server: server, identity: identity, dir: t.TempDir(), ended: make(chan struct{})}
	for _, folder := range []string{"fencing", "signal", "files"} {
		check(t, os.Mkdir(filepath.Join(p.dir, folder), 0o755))
	}
	name, uid, _ := strings.Cut(identity, "_")
	server.WriteFolder(filepath.Join(p.dir, "fencing"), name, uid)
	log, err := os.Create(filepath.Join(p.dir, "log"))
	check(t, err)
	defer log.Close()
	p.cmd = exec.Command("/bin/sh", append([]string{"-c", enter, p.dir, agentBinary}, args...)...)
	p.cmd.Env = append(os.Environ(), append(server.Environment(), "HTTPS_PROXY=http://127.0.0.1:9", "FENCING_EPOCH=of the image")...)
	p.cmd.Env = append(p.cmd.Env, variables...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	check(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // ProcessState has the result
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
		if t.Failed() {
			t.Logf("%s:\n%s", identity, p.log())
		}
	})
	return p
}

func (p *singleton) log() string {
	text, err := os.ReadFile(filepath.Join(p.dir, "log"))
	check(p.t, err)
	return string(text)
}

// file returns a file that the program has written, or "".
func (p *singleton) file(name string) string {
	text, err := os.ReadFile(filepath.Join(p.dir, "files", name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	return string(text)
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	if !processes.WaitUntil(time.Minute, done) {
		t.Fatalf("not true after a minute: %s", what)
	}
}

func (p *singleton) waits() {
	p.t.Helper()
	eventually(p.t, p.identity+" waits", func() bool { return strings.Contains(p.log(), "waiting for Lease shop/orders") })
}

// runs waits until the program has written a file.
func (p *singleton) runs(file string) {
	p.t.Helper()
	eventually(p.t, p.identity+" runs", func() bool { return p.file(file) != "" })
}

// ends waits for the end of the container, and compares the exit code.
func (p *singleton) ends(code int) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		p.t.Fatal("the container has not ended after a minute")
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("the container ends with %s, want %d", p.cmd.ProcessState, code)
	}
}

func (p *singleton) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (p *singleton) signal(s syscall.Signal) {
	p.t.Helper()
	check(p.t, p.cmd.Process.Signal(s))
}

// exec returns a command in the container, as exec of Kubernetes executes it.
func (p *singleton) exec(argv ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"-t", strconv.Itoa(p.cmd.Process.Pid), "-p", "-m"}, argv...)...)
}

// isStarted returns the exit code of the startupProbe.
func (p *singleton) isStarted() int {
	p.t.Helper()
	cmd := p.exec(agentBinary, "started")
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// grant writes a start grant.
func (p *singleton) grant() {
	p.t.Helper()
	for name, text := range map[string]string{"pod-uid": uid, "start-signal": uid + " 7"} {
		check(p.t, os.WriteFile(filepath.Join(p.dir, "signal", name), []byte(text), 0o644))
	}
}

// others returns the processes of the container except process 1.
func (p *singleton) others() []processes.Process {
	own := fmt.Sprintf("/proc/%d/ns/pid", p.cmd.Process.Pid)
	namespace, err := os.Readlink(own)
	if err != nil {
		return nil
	}
	all, err := processes.All()
	if err != nil {
		p.t.Error(err)
	}
	return slices.DeleteFunc(all, func(o processes.Process) bool {
		link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", o.ID))
		return err != nil || link != namespace || o.ID == p.cmd.Process.Pid
	})
}

func isHandOver(patch string) bool { return strings.Contains(patch, "holderIdentity") }

func countPatches(s *leasetest.Server, is func(string) bool) int {
	n := 0
	for _, request := range s.Requests() {
		if patch, ok := strings.CutPrefix(request, "PATCH "); ok && is(patch) {
			n++
		}
	}
	return n
}

const beat = `while :; do echo x >>beats; sleep 0.05; done`

// The program must not start before the response to the first renewal.
func TestTheProgramStartsAfterARenewal(t *testing.T) {
	t.Parallel()
	s := leasetest.New(t, other)
	arrived, answer := make(chan string, 10), make(chan struct{})
	s.Before = func(patch string) { arrived <- patch; <-answer }
	p := startPod(t, s, first, "/bin/sh", "-c",
		`ulimit -n >limit; tr '\0' '\n' </proc/self/environ >environment; echo x >beats; exec sleep 1000`)
	p.waits()
	if got := p.isStarted(); got != 1 {
		t.Errorf("the startupProbe exits with %d while the pod waits, want 1", got)
	}
	s.Assign(first)
	if patch := <-arrived; isHandOver(patch) {
		t.Errorf("the first write is %s, want a renewal", patch)
	}
	if len(p.others()) > 0 {
		t.Errorf("processes run before the response to the renewal: %v", p.others())
	}
	close(answer)
	p.runs("beats")
	eventually(t, "the startupProbe succeeds", func() bool { return p.isStarted() == 0 })
	l := s.Lease()
	if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil || *l.Spec.LeaseDurationSeconds != 10 {
		t.Errorf("the renewed Lease is %+v", l.Spec)
	}
	environment := "\n" + p.file("environment")
	for _, want := range []string{"\nFENCING_EPOCH=1\n", "\nFENCING_LEASE=shop/orders\n"} {
		if !strings.Contains(environment, want) {
			t.Errorf("the environment lacks %q: %s", want, environment)
		}
	}
	if strings.Contains(environment, "of the image") {
		t.Error("the environment has two epochs")
	}
	var limit syscall.Rlimit
	check(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	out, err := exec.Command("/bin/sh", "-c", "ulimit -n").Output()
	check(t, err)
	if p.file("limit") != string(out) {
		t.Errorf("the limit of open files is %q, and without the agent %q (%d)", p.file("limit"), out, limit.Cur)
	}
}

// testCut cuts a pod off, takes the Lease over as an operator does, and starts another pod.
func testCut(t *testing.T, fault leasetest.Fault) {
	t.Parallel()
	s := leasetest.New(t, first)
	p := startPod(t, s, first, "/bin/sh", "-c", `trap '' TERM INT; `+beat)
	p.runs("beats")
	eventually(t, "the program was started for longer than a renewal", func() bool {
		return countPatches(s, func(string) bool { return true }) >= 2
	})
	s.Fail(fault)
	version, since := s.Lease().ResourceVersion, time.Now()
	eventually(t, "the Lease has not changed for its duration", func() bool {
		if now := s.Lease().ResourceVersion; now != version {
			version, since = now, time.Now()
		}
		return time.Since(since) >= leaseDuration
	})
	if !p.hasEnded() {
		t.Errorf("the program runs when the Lease is taken over")
	}
	s.Assign("")
	p.ends(lease.ExitFenced)
	if !strings.Contains(p.log(), "no renewal of the Lease has succeeded in time: ends the container") {
		t.Error("the log has no reason")
	}
	s.Fail(leasetest.None)
	s.Assign(second)
	next := startPod(t, s, second, "/bin/sh", "-c", "echo $FENCING_EPOCH >epoch; exec sleep 1000")
	next.runs("epoch")
	if next.file("epoch") != "2\n" {
		t.Errorf("the epoch is %q, want 2", next.file("epoch"))
	}
}

func TestASilentServerEndsTheProgram(t *testing.T)   { testCut(t, leasetest.Silent) }
func TestARefusingServerEndsTheProgram(t *testing.T) { testCut(t, leasetest.Refused) }

// The renewals succeed, but the agent cannot know.
func TestLostResponsesDoNotStartTheProgram(t *testing.T) {
	t.Parallel()
	s := leasetest.New(t, first)
	s.Fail(leasetest.Lost)
	p := startPod(t, s, first, "/bin/sh", "-c", beat)
	eventually(t, "renewals arrive", func() bool { return countPatches(s, func(string) bool { return true }) >= 3 })
	if p.file("beats") != "" {
		t.Error("the program runs without a response")
	}
	s.Fail(leasetest.None)
	p.runs("beats")
}

func TestSignalsAndExitCodesAreForwarded(t *testing.T) {
	t.Parallel()
	s := leasetest.New(t, first)
	p := startPod(t, s, first, "/bin/sh", "-c", `trap 'echo x >hup' HUP; trap 'exit 9' TERM; echo x >beats; while :; do sleep 0.05; done`)
	p.runs("beats")
	p.signal(syscall.SIGHUP)
	p.runs("hup")
	p.signal(syscall.SIGTERM)
	p.ends(9)
	if n := countPatches(s, isHandOver); n > 0 {
		t.Error("the agent hands over without a successor")
	}
}

func TestTheSignalOfTheProgramIsTheExitCode(t *testing.T) {
	t.Parallel()
	p := startPod(t, leasetest.New(t, first), first, "/bin/sh", "-c", "kill -KILL $$")
	p.ends(128 + 9)
}

func TestAWaitingPodStops(t *testing.T) {
	t.Parallel()
	s := leasetest.New(t, other)
	p := startPod(t, s, first, "/bin/sh", "-c", beat)
	p.waits()
	p.signal(syscall.SIGTERM)
	p.ends(128 + 15)
	if p.file("beats") != "" || countPatches(s, func(string) bool { return true }) > 0 {
		t.Error("the program was started, or the Lease written")
	}
}

// Nothing of the program may run when the Lease names the successor.
func TestHandover(t *testing.T) {
	t.Parallel()
	s := leasetest.New(t, first)
	p := startPod(t, s, first, "/bin/sh", "-c",
		`trap 'exit 3' TERM; setsid sh -c "trap '' TERM; `+strings.ReplaceAll(beat, "beats", "orphans")+`" & `+beat)
	next := startPod(t, s, second, "/bin/sh", "-c", `echo $FENCING_EPOCH >epoch; exec sleep 1000`)
	p.runs("orphans")
	p.runs("beats")
	next.waits()
	s.Before = func(patch string) {
		if isHandOver(patch) && len(p.others()) > 0 {
			t.Errorf("processes run at the handover: %v", p.others())
		}
	}
	s.Name(second)
	p.signal(syscall.SIGTERM)
	next.runs("epoch")
	p.ends(3)
	l := s.Lease()
	if *l.Spec.HolderIdentity != second || l.Annotations[leasetest.Next] != "" || next.file("epoch") != "1\n" || l.Spec.AcquireTime == nil {
		t.Errorf("the Lease is %+v %+v, and the epoch %q", l.ObjectMeta, l.Spec, next.file("epoch"))
	}
}

func TestAnotherHolderEndsTheProgram(t *testing.T) {
	for name, fault := range map[string]leasetest.Fault{"the watch reports it": leasetest.None, "a conflict reports it": leasetest.Unwatched} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := leasetest.New(t, first)
			s.Fail(fault)
			p := startPod(t, s, first, "/bin/sh", "-c", beat)
			p.runs("beats")
			s.Assign(second)
			p.ends(lease.ExitFenced)
			if s.Holder() != second || !strings.Contains(p.log(), "the Lease has another holder: ends the container") {
				t.Errorf("the holder is %s, and the log\n%s", s.Holder(), p.log())
			}
		})
	}
}

// A lost watch must not delay a waiting pod for longer than a third of the duration.
func TestAPodStartsWithoutAWatch(t *testing.T) {
	t.Parallel()
	s := leasetest.New(t, other)
	s.Fail(leasetest.Unwatched)
	p := startPod(t, s, first, "/bin/sh", "-c", beat)
	p.waits()
	s.Assign(first)
	p.runs("beats")
}

func TestAMissingLeaseIsLoggedOnce(t *testing.T) {
	t.Parallel()
	s := leasetest.New(t, other)
	s.Delete()
	p := startPod(t, s, first, "/bin/sh", "-c", beat)
	eventually(t, "the Lease is read several times", func() bool { return len(s.Requests()) > 4 })
	if n := strings.Count(p.log(), "not found"); n != 1 {
		t.Errorf("the log has %d lines, want 1", n)
	}
	s.Assign(first)
	p.runs("beats")
}

func TestAGrantReleasesAWaitingPod(t *testing.T) {
	t.Parallel()
	s := leasetest.New(t, other)
	p := startPod(t, s, first, "/bin/sh", "-c", `echo "$FENCING_LEASE" >lease; exit 4`)
	p.waits()
	p.grant()
	p.ends(4)
	if p.file("lease") != "\n" || countPatches(s, func(string) bool { return true }) > 0 {
		t.Error("the program has a Lease, or the agent has written it")
	}
}

func TestAGrantReleasesARunningPod(t *testing.T) {
	t.Parallel()
	s := leasetest.New(t, first)
	p := startPod(t, s, first, "/bin/sh", "-c", `trap 'exit 5' TERM; `+beat)
	p.runs("beats")
	p.grant()
	eventually(t, "the pod is released", func() bool { return strings.Contains(p.log(), "received start grant 7") })
	s.Assign(second)
	s.Fail(leasetest.Silent)
	cut := leasetest.New(t, first)
	notReleased := startPod(t, cut, first, "/bin/sh", "-c", beat)
	notReleased.runs("beats")
	cut.Fail(leasetest.Silent)
	notReleased.ends(lease.ExitFenced)
	if p.hasEnded() {
		t.Fatal("the program has ended when it would without a grant")
	}
	p.signal(syscall.SIGTERM)
	p.ends(5)
}

func TestOrphansAreReaped(t *testing.T) {
	t.Parallel()
	p := startPod(t, leasetest.New(t, first), first, "/bin/sh", "-c",
		`(while [ ! -e stop ]; do sleep 0.02; done & echo x >orphan); exec sleep 1000`)
	p.runs("orphan")
	children := func(want int) func() bool {
		return func() bool {
			lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid)) // one a thread
			check(t, err)
			all := ""
			for _, list := range lists {
				text, _ := os.ReadFile(list) // empty if the thread has ended
				all += string(text)
			}
			return len(strings.Fields(all)) == want
		}
	}
	eventually(t, "the orphan is a child of process 1", children(2))
	check(t, os.WriteFile(filepath.Join(p.dir, "files", "stop"), nil, 0o644))
	eventually(t, "only the program remains", children(1))
}

// A program that is not in the image fails before the wait.
func TestAProgramThatCannotStart(t *testing.T) {
	for _, row := range []struct {
		program string
		code    int
		text    string
	}{
		{"nothing-of-this-name", 127, `program "nothing-of-this-name" not found`},
		{"/nothing-of-this-name", 127, `program "/nothing-of-this-name" not found`},
		{"/etc/passwd", 126, `cannot run program "/etc/passwd"`},
		{"/etc", 126, `cannot run program "/etc"`},
	} {
		s := leasetest.New(t, other)
		p := startPod(t, s, first, row.program)
		p.ends(row.code)
		if !strings.Contains(p.log(), row.text) {
			t.Errorf("the log is %s", p.log())
		}
	}
}

func TestRunRefusesItsArguments(t *testing.T) {
	for _, row := range []struct {
		args []string
		code driver.Code
		text string
	}{
		{[]string{"--lease=a", "--duration=15s", "--", "true"}, driver.NotConfigured, "must be process 1"},
		{[]string{"--lease=a", "--duration=9s", "--", "true"}, driver.NotConfigured, "from 10s to 10m0s"},
		{[]string{"--lease=a", "--duration=601s", "--", "true"}, driver.NotConfigured, "from 10s to 10m0s"},
		{[]string{"--lease=a", "--duration=15.5s", "--", "true"}, driver.NotConfigured, "must be whole seconds"},
		{[]string{"--lease=a", "--", "true"}, driver.NotConfigured, "from 10s to 10m0s"},
		{[]string{"--duration=15s", "--", "true"}, driver.Unimplemented, usage},
		{[]string{"--lease=a", "--duration=15s", "--"}, driver.Unimplemented, usage},
		{[]string{"--lease=a", "--duration=15s", "true"}, driver.Unimplemented, usage},
		{[]string{"--lease=a", "--duration=15s", "x", "--", "true"}, driver.Unimplemented, usage},
		{[]string{"--lease=a", "--duration=soon", "--", "true"}, driver.Unimplemented, usage},
	} {
		cmd := exec.Command(agentBinary, append([]string{"run"}, row.args...)...)
		out, _ := cmd.CombinedOutput() // the exit code is compared
		if cmd.ProcessState.ExitCode() != int(row.code) || !strings.Contains(string(out), row.text) {
			t.Errorf("%v: %s: %s", row.args, cmd.ProcessState, out)
		}
	}
}

// TestStartedOutsideOfAContainer runs the probe where process 1 is another program.
func TestStartedOutsideOfAContainer(t *testing.T) {
	cmd := exec.Command(agentBinary, "started")
	_ = cmd.Run() // the exit code is compared
	if got := cmd.ProcessState.ExitCode(); got != 1 {
		t.Errorf("the probe exits with %d, want 1", got)
	}
}
