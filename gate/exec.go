package main

import (
	"errors"
	"os"
	"strings"
	"syscall"
)

// The gate does not remain as a parent process: it replaces itself with the program by exec. So
// signals, exit status, stdin, job control of the terminal, orphans and zombies work as without a gate.
// No part of the gate remains that could behave differently, crash or use memory.
//
// The program inherits the same state as the gate:
//
//   - Arguments and environment are identical.
//   - Open files: Go opens its own files with O_CLOEXEC, and so does the gate.
//   - Limits: Go's runtime raises RLIMIT_NOFILE for itself, and syscall.Exec resets it.
//   - Signals: exec resets handlers to the default. release resets SIGHUP and SIGINT, which Go keeps
//     ignored if they were. A Go program cannot detect or restore other ignored or blocked signals, but
//     no container starts with any. crun resets and unblocks all signals. runc is itself a Go program
//     that uses exec, so it loses the same state.
//
// exec_test.go compares a program that a Go program starts directly with one that it starts through the
// gate.

// defaultPath is the path that container runtimes use if PATH is not set.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const accessExecute = 1 // X_OK of access(2)

// refusal describes why a program cannot be started.
type refusal struct {
	code int
	why  string
}

func (r *refusal) report() int {
	say(r.why)
	return r.code
}

// become replaces this process with the program. It returns only if the program cannot be started. It
// looks up the program again, because the wait may have been long.
func become(argv, env []string, c caught) int {
	path, refused := find(argv[0], env)
	if refused != nil {
		return refused.report()
	}
	if s, ok := c.release(); ok {
		return stopped(s, say)
	}
	for {
		err := syscall.Exec(path, argv, env)
		if err != syscall.EINTR {
			return kernelRefuses(path, err).report()
		}
	}
}

func kernelRefuses(path string, err error) *refusal {
	hint := ""
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		hint = ": it is built for another architecture, or is a script without a #! line"
	case errors.Is(err, syscall.ENOENT):
		hint = ": the file exists, so its interpreter (after #!) or its dynamic loader is missing"
	}
	return &refusal{exitCannotExecute, "the kernel refuses to run " + quote(path) + ": " + err.Error() + hint}
}

// find looks up the program as a container runtime does: a name with a slash is a path, any other name
// is searched in PATH.
func find(name string, env []string) (string, *refusal) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	path := defaultPath
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
			break
		}
	}
	missing := &refusal{exitNotFound, "program " + quote(name) + " not found in PATH " + quote(path)}
	if name == "" || path == "" {
		return "", missing
	}
	for dir := range strings.SplitSeq(path, ":") {
		if dir == "" {
			dir = "."
		}
		candidate := dir + "/" + name
		refused := executable(candidate)
		if refused == nil {
			return candidate, nil
		}
		if refused.code == exitCannotExecute && !isDirectory(candidate) {
			missing = refused
		}
	}
	return "", missing
}

func executable(path string) *refusal {
	var info syscall.Stat_t
	switch err := syscall.Stat(path, &info); {
	case err == syscall.ENOENT || err == syscall.ENOTDIR:
		return &refusal{exitNotFound, "program " + quote(path) + " not found"}
	case err != nil:
		return &refusal{exitCannotExecute, "cannot run " + quote(path) + ": " + err.Error()}
	case info.Mode&syscall.S_IFMT == syscall.S_IFDIR:
		return &refusal{exitCannotExecute, "cannot run " + quote(path) + ": it is a directory"}
	}
	const atEffectiveID = 0x200 // AT_EACCESS
	if err := syscall.Faccessat(-100, path, accessExecute, atEffectiveID); err != nil {
		return &refusal{exitCannotExecute, "cannot run " + quote(path) + ": " + err.Error()}
	}
	return nil
}

func isDirectory(path string) bool {
	var info syscall.Stat_t
	return syscall.Stat(path, &info) == nil && info.Mode&syscall.S_IFMT == syscall.S_IFDIR
}

// environment returns the original environment of the process. Package os would omit empty entries and
// duplicate names.
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
