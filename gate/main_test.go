package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stateful-operator/stateful-operator/gate/script"
)

const maxBytes = 2 << 20

// gateBinary is the path of the tested program. It is built as for a release, except for the folder of
// the grant.
var gateBinary string

func TestMain(m *testing.M) {
	if probe := os.Getenv(probeEnv); probe != "" {
		os.Exit(runProbe(probe))
	}
	// A process that ignores SIGHUP, as with nohup, passes this on to its children, and a shell then
	// cannot trap the signal. No container starts like this.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	os.Exit(withGate(m.Run))
}

func withGate(run func() int) int {
	dir, err := os.MkdirTemp("", "gate-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // other users run it too
		panic(err)
	}
	gateBinary = filepath.Join(dir, "gate")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w -X main.signalVariable=GATE_SIGNAL_DIR", "-o", gateBinary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic("building the gate: " + err.Error() + "\n" + string(out))
	}
	return run()
}

// way is one of the ways to hold the program of a container.
type way struct {
	name string
	argv []string // precedes the arguments of the program
}

var theGate = way{name: "the gate"}

// program returns the path of a program on this machine.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		lacks(t, "this machine does not have "+name)
	}
	return path
}

// lacks skips a test that needs something that this machine does not have: root, a terminal, a
// container runtime or a shell. If GATE_NEEDS_ALL is set, the test fails instead. `cluster packages`
// installs what can be installed.
func lacks(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("GATE_NEEDS_ALL") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// everyWay runs a test with the gate, and with the script in each installed shell.
func everyWay(t *testing.T, test func(*testing.T, way)) {
	held := scriptFor(t)
	t.Run("gate", func(t *testing.T) { test(t, theGate) })
	for _, shell := range [][]string{{"dash"}, {"busybox", "sh"}, {"bash"}} {
		t.Run(shell[0], func(t *testing.T) {
			test(t, way{name: shell[0], argv: append(append([]string{program(t, shell[0])}, shell[1:]...), held)})
		})
	}
}

// scriptFor returns the path of the script, modified only in the folder of the grant.
func scriptFor(t *testing.T) string {
	t.Helper()
	const shipped = "\n_ssn_dir=/var/run/signal\n"
	if strings.Count(script.Text, shipped) != 1 {
		t.Fatalf("the script does not contain %q exactly once", shipped)
	}
	file := filepath.Join(t.TempDir(), script.Name)
	if err := os.WriteFile(file, []byte(strings.Replace(script.Text, shipped, "\n_ssn_dir=${GATE_SIGNAL_DIR:-/var/run/signal}\n", 1)), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// The environment of a pod may come from a ConfigMap that other users can write. So it must not
// determine where the grant is.
func TestTheEnvironmentDoesNotSayWhereTheGrantIs(t *testing.T) {
	p := newPod(t, granted)
	shipped := filepath.Join(t.TempDir(), "gate")
	build := exec.Command("go", "build", "-o", shipped, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the gate: %v\n%s", err, out)
	}
	if _, err := os.Stat(defaultSignalDir); err == nil {
		lacks(t, "this machine has "+defaultSignalDir)
	}
	cmd := gate(p, "status")
	cmd.Path = shipped
	if got := run(t, cmd); got.status != "exit 1" || !strings.Contains(got.stdout, defaultSignalDir) {
		t.Errorf("with a grant in a folder of its environment, the gate returns %+v", got)
	}
	if strings.Contains(script.Text, "GATE_SIGNAL_DIR") {
		t.Error("the script reads the folder of the grant from its environment")
	}
}

// command returns a command that runs argv in a pod, held in this way.
func (w way) command(p pod, argv ...string) *exec.Cmd {
	held := w.argv
	if held == nil {
		held = []string{gateBinary, "run", "--"}
	}
	held = append(append([]string{}, held...), argv...)
	cmd := exec.Command(held[0], held[1:]...)
	cmd.Env = append(os.Environ(), "GATE_SIGNAL_DIR="+p.dir)
	return cmd
}

func gate(p pod, args ...string) *exec.Cmd {
	cmd := exec.Command(gateBinary, args...)
	cmd.Env = append(os.Environ(), "GATE_SIGNAL_DIR="+p.dir)
	return cmd
}

const (
	podUID     = "0a1b2c3d-1111-2222-3333-444455556666"
	strangeUID = "ffffffff-1111-2222-3333-444455556666"
	granted    = podUID + " 7"
)

// pod is a downwardAPI volume as the kubelet creates it: the files are links into ..data, which is a
// link to a folder with a new name for each content.
type pod struct {
	t   *testing.T
	dir string
}

func newPod(t *testing.T, grant string) pod {
	t.Helper()
	p := pod{t: t, dir: t.TempDir()}
	p.openTo(p.dir)
	p.write(map[string]string{grantFile: grant, uidFile: podUID})
	return p
}

// openTo makes a folder and its parents accessible to all users.
func (p pod) openTo(dir string) {
	for ; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p pod) grant(text string) { p.write(map[string]string{grantFile: text, uidFile: podUID}) }

func (p pod) write(files map[string]string) {
	p.t.Helper()
	content, err := os.MkdirTemp(p.dir, "..content-")
	p.check(err)
	p.check(os.Chmod(content, 0o755))
	for name, text := range files {
		p.check(os.WriteFile(filepath.Join(content, name), []byte(text), 0o644))
	}
	next, data := filepath.Join(p.dir, "..data_tmp"), filepath.Join(p.dir, "..data")
	old, _ := os.Readlink(data) // empty on the first call
	p.check(os.Symlink(filepath.Base(content), next))
	p.check(os.Rename(next, data))
	for name := range files {
		link := filepath.Join(p.dir, name)
		if _, err := os.Lstat(link); errors.Is(err, os.ErrNotExist) {
			p.check(os.Symlink(filepath.Join("..data", name), link))
		}
	}
	if old != "" {
		p.check(os.RemoveAll(filepath.Join(p.dir, old)))
	}
}

func (p pod) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// result is the result of a process.
type result struct {
	stdout, stderr string
	status         string // "exit 3", "signal 15"
}

func endOf(state *os.ProcessState) string {
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return "signal " + strconv.Itoa(int(status.Signal()))
	}
	return "exit " + strconv.Itoa(status.ExitStatus())
}

func run(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), endOf(cmd.ProcessState)}
}

// running is a process whose log is read line by line.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	log    *bufio.Reader
	stdout bytes.Buffer
}

func start(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, cmd: cmd, log: bufio.NewReader(stderr)}
	if cmd.Stdout == nil {
		cmd.Stdout = &r.stdout
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // the test has already failed
			_ = cmd.Wait()
		}
	})
	return r
}

// line returns the next line of the log, without the required prefix.
func (r *running) line() string {
	r.t.Helper()
	line, err := r.log.ReadString('\n')
	text, prefixed := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "StatefulSingleton: ")
	if err != nil || !prefixed {
		r.t.Fatalf("the log is %q (%v), want a line that starts with StatefulSingleton:", line, err)
	}
	return text
}

// waits waits until the process logs that it is waiting.
func (r *running) waits() {
	r.t.Helper()
	if line, want := r.line(), "waiting for the start signal; pod "+podUID; line != want {
		r.t.Fatalf("the log is %q, want %q", line, want)
	}
}

func (r *running) signal(s os.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) end() result {
	r.t.Helper()
	rest := new(strings.Builder)
	if _, err := r.log.WriteTo(rest); err != nil {
		r.t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := r.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return result{r.stdout.String(), rest.String(), endOf(r.cmd.ProcessState)}
}

func wantEqual(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is\n%q, want\n%q", what, got, want)
	}
}

func TestTheBinaryIsSmallAndStandsAlone(t *testing.T) {
	info, err := os.Stat(gateBinary)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the gate has %d bytes", info.Size())
	if info.Size() > maxBytes {
		t.Errorf("the gate has %d bytes, the max is %d", info.Size(), maxBytes)
	}
	list := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}other {{end}}{{.ImportPath}}", ".")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, name := range names[:len(names)-1] { // the last is the gate itself
		switch {
		case name == "fmt", name == "reflect", name == "net", strings.HasPrefix(name, "net/"), strings.HasPrefix(name, "encoding/"):
			t.Errorf("the gate depends on %s, which makes it large or adds network access", name)
		case strings.HasSuffix(name, "/gate/script"), strings.HasSuffix(name, "/gate/selfcopy"): // parts of the gate
		case strings.HasPrefix(name, "other "):
			t.Errorf("the gate depends on %s, but should depend on the standard library only", strings.TrimPrefix(name, "other "))
		}
	}
}

func TestUnknownCommandsGetTheUsage(t *testing.T) {
	p := newPod(t, granted)
	for _, args := range [][]string{
		{}, {"help"}, {"--help"}, {"install"}, {"install", "a", "b"}, {"wait", "x"}, {"status", "x"}, {"idle", "x"},
		{"touch", "x"}, {"run"}, {"run", "--"}, {"run", "true"}, {"run", "true", "--"},
	} {
		got := run(t, gate(p, args...))
		wantEqual(t, strings.Join(args, " "), got.status+" "+got.stdout+got.stderr, "exit 2 "+usage+"\n")
	}
}

func TestTouchDoesNothing(t *testing.T) {
	if got, want := run(t, gate(pod{dir: "/nonexistent"}, "touch")), (result{status: "exit 0"}); got != want {
		t.Errorf("touch: %+v, want %+v", got, want)
	}
}
