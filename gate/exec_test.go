package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// probe makes cmd run this test binary in the given roles.
func probe(t *testing.T, cmd *exec.Cmd, roles string) *exec.Cmd {
	t.Helper()
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, probeEnv+"="+roles)
	return cmd
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestArgumentsArriveByteForByte(t *testing.T) {
	argv := []string{
		"two words", "", `a "quoted" 'word'`, "semi;colon && more | less > x", "$(id -u) `id` ${HOME} $$ $1", `back\slash\n`,
		"a,b", "[1,2]", "{\"json\": [\"x\"]}", "two\nlines\n", "\t", "\xff\xfe not UTF-8 \x80", "Grüße, 世界", "*", "~", "-", "--", "-n",
		"-g", "daemon off;", "#", "!", "%s%n", "\x01\x7f", "", strings.Repeat("long ", 20000),
	}
	everyWay(t, func(t *testing.T, w way) {
		program := self(t)
		got := run(t, probe(t, w.command(newPod(t, granted), append([]string{program}, argv...)...), "arguments"))
		want := strings.Join(append([]string{program}, argv...), "\x00")
		wantEqual(t, "argv", got.stdout, want)
		wantEqual(t, "the exit", got.status, "exit 0")
	})
}

func TestTheProgramsNameStaysWhatItWas(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		dir := t.TempDir()
		if err := os.Symlink(self(t), filepath.Join(dir, "my program")); err != nil {
			t.Fatal(err)
		}
		cmd := probe(t, w.command(newPod(t, granted), "my program", "x"), "arguments")
		cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"))
		wantEqual(t, "argv", run(t, cmd).stdout, "my program\x00x")
	})
}

func TestTheExitStatusIsTheProgramsOwn(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		p := newPod(t, granted)
		codes := []int{0, 1, 2, 126, 127, 128, 143, 255}
		if w.argv == nil {
			codes = nil
			for code := range 256 {
				codes = append(codes, code)
			}
		}
		for _, code := range codes {
			want := "exit " + strconv.Itoa(code)
			wantEqual(t, "the exit", run(t, w.command(p, "/bin/sh", "-c", want)).status, want)
		}
		for _, s := range []syscall.Signal{
			syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGKILL, syscall.SIGSEGV,
			syscall.SIGPIPE, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGXCPU, 64,
		} {
			number := strconv.Itoa(int(s))
			got := run(t, w.command(p, "/bin/sh", "-c", "ulimit -c 0; kill -"+number+" $$"))
			wantEqual(t, "the exit", got.status, "signal "+number)
		}
	})
}

// The program must also read input that was sent before it was started.
func TestStdinIsTheProgramsOwn(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		p := newPod(t, "")
		cmd := w.command(p, "cat")
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = reader
		if _, err := io.WriteString(writer, "first\x00\n"); err != nil {
			t.Fatal(err)
		}
		r := start(t, cmd)
		r.waits()
		p.grant(granted)
		if _, err := io.WriteString(writer, "second"); err != nil {
			t.Fatal(err)
		}
		writer.Close()
		wantEqual(t, "the input of the program", r.end().stdout, "first\x00\nsecond")
		reader.Close()
	})
}

// rawOutput starts a program with an unmodified environment and returns its output. Package os/exec
// would clean up the environment.
func rawOutput(t *testing.T, argv, env []string) string {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Env: env, Files: []*os.File{nil, writer, nil}})
	if err != nil {
		t.Fatal(err)
	}
	writer.Close()
	out, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	if _, err := process.Wait(); err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestTheEnvironmentIsTheProgramsOwn(t *testing.T) {
	p := newPod(t, granted)
	cat := []string{"/bin/cat", "/proc/self/environ"}
	for name, env := range map[string][]string{
		"strange": {
			"GATE_SIGNAL_DIR=" + p.dir, "TWICE=1", "TWICE=2", "EMPTY=", "", "=odd", "no equals sign", "with.dot=1", "a-b=2",
			"bytes=\xff\xfe\n\x01", "spaces= a  b ", "GODEBUG=madvdontneed=1", "GOMAXPROCS=7", "ORIGINAL_ENTRYPOINT={\"command\":[\"a\"]}", "",
		},
		"short": {"GATE_SIGNAL_DIR=" + p.dir},
	} {
		t.Run(name, func(t *testing.T) {
			without := rawOutput(t, cat, env)
			with := rawOutput(t, append([]string{gateBinary, "run", "--"}, cat...), env)
			wantEqual(t, "the environment", with, without)
		})
	}
}

// A shell adds variables such as PWD. The script must not add or change others.
func TestTheScriptLeavesTheEnvironmentAlone(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		if w.argv == nil {
			t.Skip("the gate has a stricter test")
		}
		p := newPod(t, granted)
		env := []string{"GATE_SIGNAL_DIR=" + p.dir, "PATH=" + os.Getenv("PATH"), "a=1", "dir=2", "uid=3", "grant=4", "epoch=5", "pod=6", "IFS=7", "n=8"}
		shell := w.argv[:len(w.argv)-1]
		cat := []string{"/bin/cat", "/proc/self/environ"}
		without := rawOutput(t, append(append([]string{}, shell...), "-c", `exec "$@"`, "sh", cat[0], cat[1]), env)
		with := rawOutput(t, append(append([]string{}, w.argv...), cat...), env)
		wantEqual(t, "the environment", with, without)
	})
}

func TestTheWorkingDirectoryStays(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		cmd := w.command(newPod(t, granted), "readlink", "/proc/self/cwd")
		cmd.Dir = t.TempDir()
		wantEqual(t, "the working directory", run(t, cmd).stdout, cmd.Dir+"\n")
	})
}

// changing matches status lines that differ between any two processes.
var changing = regexp.MustCompile(`(?m)^(Pid|Tgid|NStgid|NSpid|NSpgid|NSsid|PPid|SigQ|Vm\w+|Rss\w+|Hugetlb\w+|\w*voluntary\w*|FDSize|Kthread|x86_\w+):.*\n`)

// numbers matches numbers that differ between any two pipes and processes.
var numbers = regexp.MustCompile(`(pipe:|/proc/)\[?\d+\]?`)

// inherited returns the output of a program that is started in the given roles.
func inherited(t *testing.T, p pod, roles string, argv []string) string {
	t.Helper()
	for range strings.Count(roles, ",") { // each role except the first is this binary again
		argv = append([]string{self(t)}, argv...)
	}
	cmd := exec.Command(self(t), argv...)
	cmd.Env = append(os.Environ(), "GATE_SIGNAL_DIR="+p.dir)
	got := run(t, probe(t, cmd, roles))
	wantEqual(t, "the exit", got.status, "exit 0")
	return numbers.ReplaceAllString(changing.ReplaceAllString(got.stdout, ""), "$1")
}

// In a container, a program is started by runc, which is a Go program that uses exec. So this test
// binary starts the program once directly and once through the gate. The inherited state is once normal
// and once as unusual as possible.
func TestTheProgramInheritsWhatItWouldWithoutTheGate(t *testing.T) {
	p, status := newPod(t, granted), []string{"/bin/cat", "/proc/self/status"}
	if inherited(t, p, "launcher", status) == inherited(t, p, "hostile,launcher", status) {
		t.Fatal("the bad environment does not reach a program, so this test would prove nothing")
	}
	everyWay(t, func(t *testing.T, w way) {
		held := w.argv
		if held == nil {
			held = []string{gateBinary, "run", "--"}
		}
		for _, roles := range []string{"launcher", "hostile,launcher"} {
			for _, look := range [][]string{
				status,
				{"/bin/cat", "/proc/self/limits"},
				{"/bin/ls", "-l", "--time-style=+", "/proc/self/fd"},
			} {
				without := inherited(t, p, roles, look)
				with := inherited(t, p, roles, append(append([]string{}, held...), look...))
				wantEqual(t, roles+": "+look[len(look)-1], with, without)
			}
		}
	})
}

// The parent death signal belongs to the thread that calls exec.
func TestTheParentDeathSignalStays(t *testing.T) {
	runtime.LockOSThread() // the signal is sent when this thread ends
	defer runtime.UnlockOSThread()
	everyWay(t, func(t *testing.T, w way) {
		runtime.LockOSThread()
		cmd := probe(t, w.command(newPod(t, granted), self(t)), "deathsignal")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGUSR2}
		wantEqual(t, "the parent death signal and its error", run(t, cmd).stdout, "12 0")
	})
}

func TestSignalsReachTheProgram(t *testing.T) {
	script := `trap 'exit 9' TERM; echo "StatefulSingleton: ready" >&2; while :; do sleep 0.1 & wait; done`
	everyWay(t, func(t *testing.T, w way) {
		r := start(t, w.command(newPod(t, granted), "/bin/sh", "-c", script))
		r.line()
		wantEqual(t, "the line of the program", r.line(), "ready")
		r.signal(syscall.SIGTERM)
		wantEqual(t, "the exit", r.end().status, "exit 9")
	})
}

func TestProgramsAreFoundAsTheRuntimeFindsThem(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("first/plain", "", 0o644)
	write("first/tool/file", "", 0o755) // tool is a folder here
	write("second/plain", "#!/bin/sh\necho second\n", 0o755)
	write("second/tool", "#!/bin/sh\necho tool\n", 0o755)
	write("second/data", "", 0o644)
	write("here", "#!/bin/sh\necho here\n", 0o755)
	write("noshebang", "echo hello\n", 0o755)
	write("nointerpreter", "#!/nowhere/sh\n", 0o755)
	path := "PATH=" + dir + "/first:" + dir + "/nowhere:" + dir + "/second"
	for name, c := range map[string]struct {
		argv0, path, stdout, log, status string
	}{
		"a file that is not executable is skipped":                          {"plain", path, "second\n", "", "exit 0"},
		"a directory is skipped":                                            {"tool", path, "tool\n", "", "exit 0"},
		"a path is relative to the working directory":                       {"./here", path, "here\n", "", "exit 0"},
		"a path without a leading dot is relative to the working directory": {"second/tool", path, "tool\n", "", "exit 0"},
		"an empty entry is the working directory":                           {"here", "PATH=/nowhere::/nowhere2", "here\n", "", "exit 0"},
		"without PATH the default of the runtime is used":                   {"true", "", "", "", "exit 0"},
		"the first PATH is used":                                            {"tool", path + "\x00PATH=/nowhere", "tool\n", "", "exit 0"},
		"an empty PATH finds nothing":                                       {"true", "PATH=", "", `program "true" not found in PATH ""`, "exit 127"},
		"an unknown name":                                                   {"nope", "PATH=/nowhere", "", `program "nope" not found in PATH "/nowhere"`, "exit 127"},
		"no name":                                                           {"", path, "", `program "" not found in PATH`, "exit 127"},
		"an unknown path":                                                   {"/no/where", path, "", `program "/no/where" not found`, "exit 127"},
		"a path through a file":                                             {"/etc/passwd/x", path, "", `program "/etc/passwd/x" not found`, "exit 127"},
		"a name with no executable file in PATH":                            {"data", path, "", `second/data": permission denied`, "exit 126"},
		"a path of a file that is not executable":                           {"./first/plain", path, "", `cannot run "./first/plain": permission denied`, "exit 126"},
		"a path of a directory":                                             {"./first", path, "", `cannot run "./first": it is a directory`, "exit 126"},
		"no #! line":                                                        {"./noshebang", path, "", `the kernel refuses to run "./noshebang": exec format error: it is built for another architecture, or is a script without a #! line`, "exit 126"},
		"no interpreter":                                                    {"./nointerpreter", path, "", `its interpreter (after #!) or its dynamic loader is missing`, "exit 126"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, granted)
			cmd := exec.Command(gateBinary, "run", "--", c.argv0)
			cmd.Dir = dir
			cmd.Env = []string{"GATE_SIGNAL_DIR=" + p.dir}
			if c.path != "" {
				cmd.Env = append(cmd.Env, strings.Split(c.path, "\x00")[0])
			}
			got := run(t, cmd)
			wantEqual(t, "the exit", got.status, c.status)
			wantEqual(t, "the output", got.stdout, c.stdout)
			if !strings.Contains(got.stderr, c.log) || strings.Count(got.stderr, "\n") > 2 {
				t.Errorf("the log is %q, want %q", got.stderr, c.log)
			}
		})
	}
}

// The old pod still runs at that time, so there is no downtime.
func TestAMissingProgramFailsBeforeTheWait(t *testing.T) {
	got := run(t, gate(newPod(t, ""), "run", "--", "/no/where"))
	want := result{stderr: "StatefulSingleton: program \"/no/where\" not found\n", status: "exit 127"}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestAProgramThatGoesAwayDuringTheWait(t *testing.T) {
	p, program := newPod(t, ""), filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := start(t, gate(p, "run", "--", program))
	r.waits()
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	p.grant(granted)
	r.line()
	wantEqual(t, "the line", r.line(), `program "`+program+`" not found`)
	wantEqual(t, "the exit", r.end().status, "exit 127")
}

func TestAProgramOfAnotherUser(t *testing.T) {
	needRoot(t)
	p := newPod(t, granted)
	program := filepath.Join(p.dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := gate(p, "run", "--", program)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: randomUID, Gid: 0}}
	got := run(t, cmd)
	if got.status != "exit 126" || !bytes.Contains([]byte(got.stderr), []byte("permission denied")) {
		t.Errorf("%+v, want exit 126 and permission denied", got)
	}
}

const randomUID = 1000680000

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		lacks(t, "only root can create namespaces and processes of other users")
	}
}
