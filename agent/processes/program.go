package processes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Inherited returns variables of the own environment.
func Inherited(names ...string) []string {
	var found []string
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			found = append(found, name+"="+value)
		}
	}
	return found
}

// Tool returns a program that ends with this process, so that it does not outlive its command.
func Tool(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = "/"
	cmd.Env = append(Inherited("PATH", "TZ"), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// waitLimit is the time in which the output of a program ends after it was killed.
const waitLimit = 2 * time.Second

// WithItsChildren ends a program with all processes that it starts: a script does not become the program that
// it runs.
func WithItsChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr.Setpgid = true
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = waitLimit
}

// Run runs a program. In process 1, which waits for all processes, the result of a program can be lost: then
// it is its output. The kernel sends the parent death signal when the thread that started the program
// ends, so the thread must not end before.
func Run(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if errors.Is(err, syscall.ECHILD) && os.Getpid() == 1 {
		return nil
	}
	return err
}

// Output returns the standard output of a program. The end of its standard error is in the error.
func Output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := Run(cmd); err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, Tail(stderr.String()+stdout.String()))
	}
	return stdout.String(), nil
}

// Log returns the standard error of a program.
func Log(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := Run(cmd); err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, Tail(stderr.String()))
	}
	return stderr.String(), nil
}

// Tail returns the end of an output.
func Tail(text string) string {
	const maxOutput = 2000
	text = strings.TrimSpace(text)
	return text[max(0, len(text)-maxOutput):]
}

// Detach starts a program that does not keep the output of this command open, because the operator waits
// until it is closed. The program gets the environment of the container, except that of the agent. Detach
// returns its process ID.
func Detach(output *os.File, environment []string, path string, args ...string) (pid int, err error) {
	cmd := exec.Command(path, args...)
	cmd.Dir = "/"
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "AGENT_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, environment...)
	if output != nil {
		cmd.Stdout, cmd.Stderr = output, output
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	// This process is its parent until the command ends. A zombie would not count as running.
	go func() { _ = cmd.Wait() }()
	return cmd.Process.Pid, nil
}
