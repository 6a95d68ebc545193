package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

var received = regexp.MustCompile(`^start signal received \(epoch 7\) after [0-9]+\.[0-9]s$`)

func TestWaitEndsWithTheGrant(t *testing.T) {
	p := newPod(t, "")
	r := start(t, gate(p, "wait"))
	r.waits()
	p.grant(granted)
	if line := r.line(); !received.MatchString(line) {
		t.Errorf("the log is %q, want %s", line, received)
	}
	if got, want := r.end(), (result{status: "exit 0"}); got != want {
		t.Errorf("the result is %+v, want %+v", got, want)
	}
}

func TestAGrantedPodDoesNotSayThatItWaits(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		r := start(t, w.command(newPod(t, granted), "sh", "-c", "exit 3"))
		if line := r.line(); !received.MatchString(line) {
			t.Errorf("the log is %q, want %s", line, received)
		}
		wantEqual(t, "the exit", r.end().status, "exit 3")
	})
}

// The process must end: a gate that ignores the signal would block this test.
func TestASignalEndsTheWait(t *testing.T) {
	names := map[syscall.Signal]string{
		syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGTERM: "SIGTERM",
		syscall.SIGUSR1: "SIGUSR1", syscall.SIGUSR2: "SIGUSR2", syscall.SIGWINCH: "SIGWINCH",
	}
	everyWay(t, func(t *testing.T, w way) {
		for s, name := range names {
			mark := filepath.Join(t.TempDir(), "started")
			r := start(t, w.command(newPod(t, ""), "touch", mark))
			r.waits()
			r.signal(s)
			wantEqual(t, "the line", r.line(), "got "+name+" before the start signal; the program was not started")
			wantEqual(t, "the exit", r.end().status, "exit "+strconv.Itoa(128+int(s)))
			if _, err := os.Stat(mark); err == nil {
				t.Errorf("%s: the program was started", name)
			}
		}
	})
}

// The script discards error messages of the shell about files that it cannot read. It must not discard
// its own message if the signal arrives at that time.
func TestASignalWhileTheScriptReads(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		if w.argv == nil {
			t.Skip("the gate handles signals independently of files")
		}
		p := pod{t: t, dir: t.TempDir()}
		fifo := filepath.Join(p.dir, grantFile)
		p.check(syscall.Mkfifo(fifo, 0o600))
		r := start(t, w.command(p, "true"))
		writer, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns when the script reads
		p.check(err)
		r.signal(syscall.SIGTERM)
		p.check(writer.Close())
		wantEqual(t, "the line", r.line(), "got SIGTERM before the start signal; the program was not started")
		wantEqual(t, "the exit", r.end().status, "exit 143")
	})
}

// A stop signal and the grant may arrive together. The signal must not be lost to the program that is
// about to start. If it were lost, the program false would run in place of this test.
func TestASignalThatCameWithTheGrant(t *testing.T) {
	c := caught{stop: make(chan os.Signal, 1), child: make(chan os.Signal, 1)}
	c.stop <- syscall.SIGTERM
	if got := become([]string{"/bin/false"}, nil, c); got != 143 {
		t.Errorf("the exit code is %d, want 143", got)
	}
	c.stop <- syscall.SIGINT
	if got := newWaiter(newPod(t, granted).dir, c).await(); got != 130 {
		t.Errorf("the exit code is %d, want 130", got)
	}
}

// An image can specify any stop signal; systemd uses 37.
func TestAnyStopSignalEndsTheWait(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGABRT, syscall.SIGALRM, syscall.SIGIO, syscall.SIGPWR, 37, 64} {
		r := start(t, gate(newPod(t, ""), "wait"))
		r.waits()
		r.signal(s)
		wantEqual(t, "the exit", r.end().status, "exit "+strconv.Itoa(128+int(s)))
	}
}

func TestHarmlessSignalsDoNotEndTheWait(t *testing.T) {
	p := newPod(t, "")
	r := start(t, gate(p, "run", "--", "echo", "started"))
	r.waits()
	for _, s := range []syscall.Signal{syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE, syscall.SIGCONT} {
		r.signal(s)
	}
	p.grant(granted)
	wantEqual(t, "the program", r.end().stdout, "started\n")
}

// On a terminal, SIGWINCH reports a change of the window size.
func TestAWindowMayChangeDuringTheWait(t *testing.T) {
	terminal := openTerminal(t)
	everyWay(t, func(t *testing.T, w way) {
		p := newPod(t, "")
		cmd := w.command(p, "echo", "started")
		cmd.Stdin = terminal
		r := start(t, cmd)
		r.waits()
		r.signal(syscall.SIGWINCH)
		p.grant(granted)
		wantEqual(t, "the program", r.end().stdout, "started\n")
	})
}

func openTerminal(t *testing.T) *os.File {
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		lacks(t, "this machine does not have terminals: "+err.Error())
	}
	t.Cleanup(func() { control.Close() })
	var unlocked, number int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, control.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	terminal, err := os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return terminal
}

// A log that is not read must delay neither the program nor a stop.
func TestALogThatIsNotRead(t *testing.T) {
	for name, stuck := range map[string]func(*testing.T) *os.File{"full": fullPipe, "broken": brokenPipe} {
		t.Run(name, func(t *testing.T) {
			cmd := gate(newPod(t, granted), "run", "--", "sh", "-c", "exit 3")
			cmd.Stderr = stuck(t)
			if err := cmd.Run(); err == nil || endOf(cmd.ProcessState) != "exit 3" {
				t.Errorf("the program ended with %v, want exit 3", err)
			}
			p := pod{t: t, dir: t.TempDir()}
			looks := p.makeFIFO()
			cmd = gate(p, "wait")
			cmd.Stderr = stuck(t)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			looks()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil || endOf(cmd.ProcessState) != "exit 143" {
				t.Errorf("the wait ended with %v, want exit 143", err)
			}
		})
	}
}

// makeFIFO creates the grant file as a FIFO. It returns a function that waits until the FIFO is opened
// for reading, and then replaces it by an ordinary file without a grant.
func (p pod) makeFIFO() (looks func()) {
	path := filepath.Join(p.dir, grantFile)
	p.check(syscall.Mkfifo(path, 0o600))
	return func() {
		writer, err := os.OpenFile(path, os.O_WRONLY, 0)
		p.check(err)
		p.check(os.WriteFile(path+".empty", nil, 0o600))
		p.check(os.Rename(path+".empty", path))
		p.check(writer.Close())
	}
}

func brokenPipe(t *testing.T) *os.File {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { writer.Close() })
	reader.Close()
	return writer
}

func fullPipe(t *testing.T) *os.File {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close(); writer.Close() })
	fd := int(writer.Fd())
	for _, chunk := range []int{4096, 1} {
		if err := syscall.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
		for err = error(nil); err == nil; {
			_, err = syscall.Write(fd, make([]byte, chunk))
		}
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	return writer
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timed out waiting for: " + what)
		}
	}
}

func TestTheLogSaysEachMinuteThatItWaits(t *testing.T) {
	p := newPod(t, "")
	began, tick := time.Now(), make(chan time.Time)
	lines := make(chan string, 10)
	w := waiter{dir: p.dir, caught: caught{}, began: began, tick: tick, log: func(line string) { lines <- line }}
	code := make(chan int)
	go func() { code <- w.await() }()
	// The files are read after each tick. So they may change only after a line shows that they have
	// been read.
	after := func(waited time.Duration) { tick <- began.Add(waited) }

	wantEqual(t, "the first line", <-lines, "waiting for the start signal; pod "+podUID)
	after(59900 * time.Millisecond)
	after(60 * time.Second)
	wantEqual(t, "after a minute", <-lines, "still waiting for the start signal after 60.0s; pod "+podUID)
	p.grant(strangeUID + " 1")
	after(100 * time.Second)
	after(10 * time.Minute) // the node was suspended
	wantEqual(t, "with the grant of another pod", <-lines, "still waiting for the start signal after 600.0s; pod "+podUID+
		"; the grant is for pod \""+strangeUID+"\", but this is pod \""+podUID+"\"")
	after(659 * time.Second)
	after(660 * time.Second)
	if line := <-lines; !strings.HasPrefix(line, "still waiting for the start signal after 660.0s; ") {
		t.Errorf("a minute later the line is %q", line)
	}
	p.grant(granted)
	after(661250 * time.Millisecond)
	wantEqual(t, "the last line", <-lines, "start signal received (epoch 7) after 661.2s")
	if got := <-code; got != 0 || len(lines) > 0 {
		t.Errorf("the exit code is %d, with %d more lines; want 0 and none", got, len(lines))
	}
}

func TestIdleSaysWhatChanges(t *testing.T) {
	p := newPod(t, "")
	cmd := gate(p, "idle")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // if this test fails
	lines := bufio.NewScanner(stdout)
	for _, step := range []struct{ grant, line string }{
		{"", "waiting"},
		{granted, "granted, epoch 7"},
		{podUID + " 8", "granted, epoch 8"},
		{"", "waiting"},
	} {
		p.grant(step.grant)
		if !lines.Scan() || lines.Text() != step.line {
			t.Fatalf("idle prints %q, want %q", lines.Text(), step.line)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if lines.Scan() {
		t.Errorf("idle prints another line: %q", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("idle ended with %v, want 0", err)
	}
}

func TestIdleSaysNothingTwice(t *testing.T) {
	p := newPod(t, "")
	tick, lines := make(chan time.Time), make(chan string, 10)
	c := caught{stop: make(chan os.Signal, 1)}
	code := make(chan int)
	go func() { code <- follow(p.dir, c, tick, func(line string) { lines <- line }) }()
	for range 3 {
		tick <- time.Time{}
	}
	c.stop <- syscall.SIGTERM
	if got := <-code; got != 0 {
		t.Errorf("the exit code is %d, want 0", got)
	}
	wantEqual(t, "the line", <-lines, "waiting")
	if len(lines) > 0 {
		t.Errorf("another line is %q", <-lines)
	}
}

// The sleep command of an image may not support fractions, or may be missing.
func TestTheScriptTakesTheSleepThatThereIs(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		if w.argv == nil || w.name == "busybox" {
			t.Skip("it does not need the sleep of the image")
		}
		p, bin := newPod(t, ""), t.TempDir()
		cmd := w.command(p, "/bin/echo", "started")
		cmd.Env = append(cmd.Env, "PATH="+bin)
		wantEqual(t, "without sleep", run(t, cmd).status, "exit 127")

		asked := filepath.Join(bin, "asked")
		script := "#!/bin/sh\necho $1 >>" + asked + "\ncase $1 in *.*) exit 1;; esac\nexec /bin/sleep 0.01\n"
		if err := os.WriteFile(filepath.Join(bin, "sleep"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd = w.command(p, "/bin/echo", "started")
		cmd.Env = append(cmd.Env, "PATH="+bin)
		r := start(t, cmd)
		r.waits()
		eventually(t, "the script sleeps for one second", func() bool {
			text, _ := os.ReadFile(asked) // empty at first
			return strings.HasPrefix(string(text), "0.05\n1\n1\n")
		})
		p.grant(granted)
		wantEqual(t, "the program", r.end().stdout, "started\n")
	})
}

func TestTheScriptNeedsACommand(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		if w.argv == nil {
			t.Skip("the gate prints its usage")
		}
		got := run(t, exec.Command(w.argv[0], w.argv[1:]...))
		wantEqual(t, "the exit", got.status+" "+got.stderr,
			"exit 2 StatefulSingleton: usage: entrypoint-wrapper.sh COMMAND [ARGUMENT]...\n")
	})
}
