package main

import (
	"errors"
	"os"
	"strings"
	"syscall"
)

// The gate does not stay as the program's parent: it becomes the program. Then
// signals, exit status, stdin, the terminal's job control, orphans and zombies
// are the program's own business, as without a gate, and nothing is left of the
// gate that could differ, die or cost memory.
//
// What the program inherits is what the gate was given:
//
//   - Arguments, and the environment, byte for byte.
//   - Open files: Go opens its own with O_CLOEXEC, and so does the gate.
//   - Limits: Go's runtime raises RLIMIT_NOFILE for itself, and syscall.Exec
//     sets it back.
//   - Signals: handlers become the default again at exec, and release gave back
//     SIGHUP and SIGINT, which Go leaves ignored when they were. Other ignored
//     or blocked signals a Go program cannot see, let alone restore. No
//     container starts with one: crun sets all of them to their default and
//     unblocks them, and runc is itself a Go program that execs, so what would
//     be lost here was lost there.
//
// exec_test.go compares a program that a Go program starts with one that it
// starts through the gate.

// defaultPath is where container runtimes look when there is no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const accessExecute = 1 // X_OK of access(2)

// refusal says why a program cannot be started.
type refusal struct {
	code int
	why  string
}

func (r *refusal) report() int {
	say(r.why)
	return r.code
}

// become returns only if the program cannot be started. It looks for it again:
// the wait may have been long.
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
		hint = ": it is built for another processor, or a script without a #! line"
	case errors.Is(err, syscall.ENOENT):
		hint = ": the file is there, so its interpreter (after #!) or its dynamic loader is missing"
	}
	return &refusal{exitCannotExecute, "the kernel refuses to run " + quote(path) + ": " + err.Error() + hint}
}

// find is what the container runtime does with the first argument: a name with
// a slash is a path, any other is looked up in PATH.
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
	missing := &refusal{exitNotFound, "there is no program " + quote(name) + " in PATH, which is " + quote(path)}
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
		return &refusal{exitNotFound, "there is no program " + quote(path)}
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

// environment is what the kernel was given: package os leaves out empty entries
// and the second of two entries with one name.
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
