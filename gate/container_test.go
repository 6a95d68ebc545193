package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// These tests run the gate as process 1 of a container that the test creates. The container has its own
// processes and mounts. Some tests also use a scratch image, a read-only root, and a user that is
// unknown in the image.

const (
	rootEnv   = "GATE_TEST_ROOT"   // a folder that becomes the root
	userEnv   = "GATE_TEST_USER"   // the user ID
	uptimeEnv = "GATE_TEST_UPTIME" // a file that replaces /proc/uptime
)

// container makes cmd process 1 of a new container. This test binary runs first in the container.
func container(t *testing.T, cmd *exec.Cmd, roles string, env ...string) *exec.Cmd {
	t.Helper()
	needRoot(t)
	cmd.Args = append([]string{self(t)}, cmd.Args...)
	if len(cmd.Args[1]) > 0 && cmd.Args[1][0] != '/' {
		t.Fatal("the first argument must be a path")
	}
	cmd.Path = self(t)
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	return probe(t, cmd, strings.TrimSuffix("container,"+roles, ","))
}

// enterContainer sets up the container from inside.
func enterContainer() {
	must(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	root, user, uptime := os.Getenv(rootEnv), os.Getenv(userEnv), os.Getenv(uptimeEnv)
	must(syscall.Mount("proc", root+"/proc", "proc", 0, ""))
	if uptime != "" {
		must(syscall.Mount(uptime, "/proc/uptime", "", syscall.MS_BIND, ""))
	}
	if root != "" {
		volume := os.Getenv("GATE_SIGNAL_DIR")
		must(syscall.Mount(root, root, "", syscall.MS_BIND|syscall.MS_REC, ""))
		must(syscall.Mount(volume, root+defaultSignalDir, "", syscall.MS_BIND, ""))
		must(syscall.Mount("tmpfs", root+"/opt/wrapper", "tmpfs", 0, "mode=777"))
		must(syscall.Mount("", root, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""))
		must(syscall.Chroot(root))
		must(syscall.Chdir("/"))
		must(os.Unsetenv("GATE_SIGNAL_DIR"))
	}
	if id, err := strconv.Atoi(user); err == nil {
		must(syscall.Setgroups(nil))
		must(syscall.Setgid(0))
		must(syscall.Setuid(id))
	}
}

func TestProcessOneAnswersWhileItWaits(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH} {
			r := start(t, container(t, w.command(newPod(t, ""), "echo", "started"), ""))
			r.waits()
			r.signal(s)
			got := r.end()
			wantEqual(t, "the exit", got.stdout+got.status, "exit "+strconv.Itoa(128+int(s)))
		}
	})
}

func TestTheProgramIsProcessOne(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		p := newPod(t, "")
		script := `echo "I am $$"; trap 'exit 9' TERM; echo "StatefulSingleton: ready" >&2; while :; do sleep 0.1 & wait; done`
		r := start(t, container(t, w.command(p, "/bin/sh", "-c", script), ""))
		r.waits()
		p.grant(granted)
		r.line()
		r.line()
		r.signal(syscall.SIGTERM)
		got := r.end()
		wantEqual(t, "the program", got.stdout+got.status, "I am 1\nexit 9")
	})
}

// Process 1 of a container becomes the parent of every orphan. The program must handle its zombies with
// the gate as it does without.
func TestAProgramThatLeavesZombiesDoesSoAsBefore(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		without := run(t, container(t, exec.Command(self(t)), "zombies"))
		with := run(t, container(t, w.command(newPod(t, granted), self(t)), "zombies"))
		wantEqual(t, "with the gate", with.stdout+with.status, without.stdout+without.status)
		wantEqual(t, "without the gate", without.stdout+without.status, "children: Zexit 5")
	})
}

// Processes of probes or `kubectl exec` can be orphaned while the gate waits. Without reaping, they
// would remain zombies, and later be unknown children of the program.
func TestOrphansDoNotPileUpDuringTheWait(t *testing.T) {
	program(t, "nsenter")
	everyWay(t, func(t *testing.T, w way) {
		p := newPod(t, "")
		r := start(t, container(t, w.command(p, self(t)), "zombies"))
		r.waits()
		pid := r.cmd.Process.Pid
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			enter := exec.Command("nsenter", "-t", strconv.Itoa(pid), "-p", "sh", "-c", "cat <&3 >/dev/null 2>&1 &")
			enter.ExtraFiles = []*os.File{reader}
			if out, err := enter.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		reader.Close()
		orphans := func() int { return strings.Count(namesOfChildren(pid), "cat") }
		eventually(t, "three orphans become its children", func() bool { return orphans() == 3 })
		writer.Close()
		eventually(t, "the orphans are reaped", func() bool { return orphans() == 0 })
		p.grant(granted)
		got := r.end()
		wantEqual(t, "the output of the program", got.stdout+got.status, "children: Zexit 5")
	})
}

func namesOfChildren(parent int) string {
	var names []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, _ := os.ReadFile(path) // empty if the process has exited
		head, state, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(state); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			names = append(names, head[strings.Index(head, "(")+1:])
		}
	}
	return strings.Join(names, " ")
}

// scratch creates an image that contains only the gate and a program.
func scratch(t *testing.T) string {
	t.Helper()
	needRoot(t)
	p := newPod(t, "")
	root := filepath.Join(p.dir, "root")
	for _, dir := range []string{"/proc", defaultSignalDir, "/opt/wrapper", "/bin"} {
		p.check(os.MkdirAll(root+dir, 0o755))
	}
	for from, to := range map[string]string{gateBinary: "/gate", self(t): "/bin/program"} {
		data, err := os.ReadFile(from)
		p.check(err)
		p.check(os.WriteFile(root+to, data, 0o755))
	}
	return root
}

func TestAScratchImageThatIsReadOnlyUnderARandomUser(t *testing.T) {
	root := scratch(t)
	p := newPod(t, "")
	inside := []string{rootEnv + "=" + root, userEnv + "=" + strconv.Itoa(randomUID)}
	held := func(argv ...string) *exec.Cmd {
		cmd := gate(p, append([]string{"run", "--"}, argv...)...)
		cmd.Args[0] = "/gate"
		return cmd
	}

	r := start(t, container(t, held("program", "a b", ""), "arguments", inside...))
	r.waits()
	p.grant(granted)
	got := r.end()
	wantEqual(t, "the program", got.stdout+" "+got.status, "program\x00a b\x00 exit 0")

	p.grant("")
	r = start(t, container(t, held("/bin/program"), "arguments", inside...))
	r.waits()
	r.signal(syscall.SIGTERM)
	wantEqual(t, "the exit", r.end().status, "exit 143")

	// The program is `/gate install`. The next command runs the installed copy.
	p.grant(granted)
	cmd := held("/gate", "run", "--", "/gate", "install", "/opt/wrapper")
	wantEqual(t, "installing", run(t, container(t, cmd, "", inside...)).status, "exit 0")
	cmd = held("/gate", "install", "/bin")
	got = run(t, container(t, cmd, "", inside...))
	if !strings.Contains(got.stderr, "cannot install the gate: ") || got.status != "exit 1" {
		t.Errorf("installing into a read-only folder: %+v, want exit 1 and the cause", got)
	}
}

// The script reads /proc/uptime to measure how long it has waited.
func TestTheScriptSaysEachMinuteThatItWaits(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		if w.argv == nil {
			t.Skip("the gate has its own test")
		}
		p, clock := newPod(t, ""), filepath.Join(t.TempDir(), "uptime")
		set := func(text string) {
			t.Helper()
			p.check(os.WriteFile(clock, []byte(text), 0o644)) // write in place, because the file is bind-mounted
		}
		set("1000.08 4000.00\n")
		r := start(t, container(t, w.command(p, "echo", "started"), "", uptimeEnv+"="+clock))
		r.waits()
		set("1059.99 4000.00\n")
		set("1060.09 4000.00\n")
		wantEqual(t, "after a minute", r.line(), "still waiting for the start signal after 60.0s; pod "+podUID)
		set("9070.99 4000.00\n")
		wantEqual(t, "after hours", r.line(), "still waiting for the start signal after 8070.9s; pod "+podUID)
		p.grant(granted)
		wantEqual(t, "the last line", r.line(), "start signal received (epoch 7) after 8070.9s")
		wantEqual(t, "the program", r.end().stdout, "started\n")
	})
}
