package lease

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// The environment variables that the program gets. It has none of them if it runs without the Lease.
const (
	epochVariable = "FENCING_EPOCH"
	leaseVariable = "FENCING_LEASE"
)

// killLimit limits the wait for the end of processes that were killed.
const killLimit = 10 * time.Second

// LookUp returns the path of a program, or the exit code and the reason if it cannot be started.
func LookUp(name string) (path string, code int, err error) {
	path, err = exec.LookPath(name)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot): // a container runtime accepts relative folders in PATH
		return path, 0, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "", ExitNotFound, fmt.Errorf("program %q not found: %w", name, errors.Unwrap(err))
	}
	return "", ExitCannotExecute, fmt.Errorf("cannot run program %q: %w", name, errors.Unwrap(err))
}

// environment returns the original environment of the process. Package os would omit empty entries and duplicate
// names.
func environment() []string {
	raw, err := os.ReadFile("/proc/self/environ")
	switch {
	case err != nil:
		return os.Environ()
	case len(raw) == 0:
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
}

// withLease returns the environment of a program that holds a Lease.
func withLease(environment []string, lease string, epoch int64) []string {
	var all []string
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if name != epochVariable && name != leaseVariable {
			all = append(all, entry)
		}
	}
	return append(all, epochVariable+"="+strconv.FormatInt(epoch, 10), leaseVariable+"="+lease)
}

// start starts the program. Go's runtime has raised RLIMIT_NOFILE and set signal handlers for this process, and
// ForkExec resets them in the child.
func start(path string, argv, environment []string) (pid int, err error) {
	attributes := &syscall.ProcAttr{Env: environment, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{}}
	if isTerminal(0) {
		attributes.Sys = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
	}
	pid, err = syscall.ForkExec(path, argv, attributes)
	if errors.Is(err, syscall.ENOTTY) { // it is not the controlling terminal
		attributes.Sys = &syscall.SysProcAttr{}
		pid, err = syscall.ForkExec(path, argv, attributes)
	}
	if err != nil {
		return 0, fmt.Errorf("the kernel refuses to run %q: %w%s", path, err, hint(err))
	}
	return pid, nil
}

func hint(err error) string {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return ": it is built for another architecture, or is a script without a #! line"
	case errors.Is(err, syscall.ENOENT):
		return ": the file exists, so its interpreter (after #!) or its dynamic loader is missing"
	}
	return ""
}

// exitCode returns the exit code with which the container ends, as in shells.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return status.ExitStatus()
}

// killRest kills all other processes of the PID namespace, and reports whether all have ended. Those of exec are
// no children of process 1.
func killRest() bool {
	return processes.WaitUntil(killLimit, func() bool {
		_ = syscall.Kill(-1, syscall.SIGKILL) // all processes of the PID namespace, except this one
		if processes.Reap(nil) {
			return false
		}
		all, err := processes.All()
		return err == nil && len(all) == 1
	})
}
