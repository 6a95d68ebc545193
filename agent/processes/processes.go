// Package processes lists and ends the processes of a PID namespace. A zombie does not count, because it
// has ended.
package processes

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/pause"
)

// Process is a process that has not ended.
type Process struct {
	ID, Parent int
	Name       string // at most 15 bytes
}

// All returns the processes of this PID namespace.
func All() ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var all []Process
	for _, entry := range entries {
		id, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, ok := read(id); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// Named returns the processes with one of the names.
func Named(names ...string) ([]Process, error) {
	all, err := All()
	var found []Process
	for _, p := range all {
		if slices.Contains(names, p.Name) {
			found = append(found, p)
		}
	}
	return found, err
}

// read returns false if a process has ended.
func read(id int) (Process, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat")
	if err != nil {
		return Process{}, false
	}
	return parse(id, string(text))
}

// parse reads the content of a stat file. The name is in parentheses, and can contain any character.
func parse(id int, stat string) (Process, bool) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return Process{}, false
	}
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 2 {
		return Process{}, false
	}
	hasEnded := fields[0] == "Z" && !hasThreads(fields)
	if hasEnded || fields[0] == "X" {
		return Process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return Process{ID: id, Parent: parent, Name: stat[open+1 : end]}, err == nil
}

// hasThreads reports whether a process has several threads. If its first one is a zombie, the others are still
// ending, and hold files and ports.
func hasThreads(fields []string) bool {
	const number = 17
	if len(fields) <= number {
		return false
	}
	threads, err := strconv.Atoi(fields[number])
	return err == nil && threads > 1
}

// Arguments returns the program and its arguments. It returns nil if the process has ended.
func (p Process) Arguments() []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.ID) + "/cmdline")
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// Others returns the other processes that run the executable of this one, except process 1.
func Others() ([]Process, error) {
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	all, err := All()
	var found []Process
	for _, p := range all {
		// A process that has ended, or that another user runs, has no readable executable.
		info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(p.ID), "exe"))
		if err != nil || p.ID == 1 || p.ID == os.Getpid() {
			continue
		}
		if os.SameFile(self, info) {
			found = append(found, p)
		}
	}
	return found, err
}

// Signal sends a signal to all given processes, as far as they exist.
func Signal(all []Process, signal syscall.Signal) {
	for _, p := range all {
		_ = syscall.Kill(p.ID, signal) // it may have ended
	}
}

// Kill sends SIGKILL to the processes that a function lists until two lists are empty. One is no proof: a process
// can have started another one after the first was listed, and have ended before it was read. Kill returns false
// if the time expires before.
func Kill(limit time.Duration, list func() ([]Process, error)) bool {
	empty := 0
	return WaitUntil(limit, func() bool {
		remaining, err := list()
		Signal(remaining, syscall.SIGKILL)
		empty++
		if err != nil || len(remaining) > 0 {
			empty = 0
		}
		return empty == 2
	})
}

// pollEvery is the longest interval in which the end of processes is observed.
const pollEvery = 50 * time.Millisecond

// WaitUntil calls a function until it returns true, and returns false if the time expires before.
func WaitUntil(limit time.Duration, done func() bool) bool {
	next := pause.Growing(pollEvery)
	for deadline := time.Now().Add(limit); ; time.Sleep(next()) {
		if done() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// Reap releases the children of this process that have ended, calls a function for each unless it is nil, and
// reports whether others remain.
func Reap(ended func(pid int, status syscall.WaitStatus)) (remain bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return false
		case pid == 0:
			return true
		case ended != nil:
			ended(pid, status)
		}
	}
}
