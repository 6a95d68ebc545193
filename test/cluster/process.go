package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process identifies a running program uniquely. PIDs are reused, but not with the same start time.
type process struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
}

// markerVariable is in the environment of all processes that a cluster starts on this machine. With it,
// Down also finds processes that a killed Up did not record.
const markerVariable = "STATEFUL_OPERATOR_CLUSTER"

// startProcess runs args detached from this program, with a separate session and log, and with the
// marker of the cluster in folder dir.
func startProcess(dir, name string, args []string, sys *syscall.SysProcAttr, env ...string) (process, error) {
	logFile := filepath.Join(dir, "logs", name+".log")
	if err := os.MkdirAll(filepath.Dir(logFile), 0o755); err != nil {
		return process{}, err
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return process{}, err
	}
	defer log.Close()
	if sys == nil {
		sys = &syscall.SysProcAttr{}
	}
	sys.Setsid = true
	cmd := exec.Command(args[0], args[1:]...)
	// Less garbage collection uses more memory and less CPU time, which is scarcer.
	cmd.Env = append(append(os.Environ(), markerVariable+"="+dir, "GOGC=400"), env...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = sys
	if err := cmd.Start(); err != nil {
		return process{}, fmt.Errorf("start %s: %w", name, err)
	}
	// While this program runs, it is the parent and must wait for the child.
	go cmd.Wait() //nolint:errcheck // how a daemon ended is in its log
	return identify(cmd.Process.Pid), nil
}

// identify returns the current process with the PID. Start is empty if there is none.
func identify(pid int) process {
	start, _ := startTime(pid)
	return process{PID: pid, Start: start}
}

// alive reports whether exactly this process still runs.
func (p process) alive() bool {
	if p.PID <= 0 || p.Start == "" {
		return false
	}
	start, running := startTime(p.PID)
	return running && start == p.Start
}

// startTime returns the start time of the process with this PID. A zombie does not count as running.
func startTime(pid int) (start string, running bool) {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		return parseStat(stat)
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		return "", false
	}
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	state, start, found := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !found || strings.HasPrefix(state, "Z") {
		return "", false
	}
	return strings.TrimSpace(start), true
}

// parseStat parses state and start time in /proc/PID/stat. The program's name, in parentheses, can
// contain parentheses and spaces.
func parseStat(stat []byte) (start string, running bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return "", false
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", false
	}
	return fields[19], true
}

// stop stops the process with SIGTERM, or with SIGKILL after the grace period, and waits until it has
// ended. An API server with open watches needs a minute to end on SIGTERM.
func (p process) stop(ctx context.Context, grace time.Duration) error {
	if !p.alive() {
		return nil
	}
	if grace > 0 {
		if err := syscall.Kill(p.PID, syscall.SIGTERM); err != nil && err != syscall.ESRCH {
			return fmt.Errorf("stop process %d: %w", p.PID, err)
		}
		if p.waitGone(ctx, grace) {
			return nil
		}
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("kill process %d: %w", p.PID, err)
	}
	if !p.waitGone(ctx, 30*time.Second) {
		return fmt.Errorf("process %d does not exit", p.PID)
	}
	return nil
}

func (p process) waitGone(ctx context.Context, timeout time.Duration) bool {
	return poll(ctx, timeout, func() bool { return !p.alive() }) == nil
}

// poll uses a short interval, because a boot consists of many short waits.
func poll(ctx context.Context, timeout time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(30 * time.Millisecond):
		}
	}
	return nil
}

// marked returns all processes on this machine with the cluster's marker.
func marked(dir string) []process {
	var found []process
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	want := []byte(markerVariable + "=" + dir + "\x00")
	for _, environ := range environs {
		content, err := os.ReadFile(environ)
		if err != nil || !bytes.Contains(append(content, 0), want) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(environ)))
		if p := identify(pid); err == nil && p.alive() {
			found = append(found, p)
		}
	}
	return found
}

// descendants returns a process and all processes below it, parents first.
func descendants(root int) ([]int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		pid, parent, err := parsePIDs(string(stat))
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", path, err)
		}
		children[parent] = append(children[parent], pid)
	}
	found := []int{root}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found, nil
}

// parsePIDs returns the PID and the parent's PID in the stat file of a process. The name of the program, in
// parentheses, can contain spaces and parentheses.
func parsePIDs(stat string) (pid, parent int, err error) {
	first, _, _ := strings.Cut(stat, " ")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, 0, fmt.Errorf("%q has too few fields", stat)
	}
	if pid, err = strconv.Atoi(first); err != nil {
		return 0, 0, err
	}
	parent, err = strconv.Atoi(fields[1])
	return pid, parent, err
}
