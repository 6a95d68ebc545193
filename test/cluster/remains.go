package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Down stops a cluster and removes everything that belongs to it. It uses the recorded state and, for
// an Up that was killed before it was recorded, names and markers. It can be repeated.
func Down(ctx context.Context, name string, log io.Writer) error {
	if name == "" {
		name = DefaultName
	}
	if log == nil {
		log = io.Discard
	}
	dir, err := clusterDir(name)
	if err != nil {
		return err
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if !isDir(dir) && len(marked(dir)) == 0 && len(links(name)) == 0 {
		fmt.Fprintf(log, "cluster %s is not running\n", name)
		return nil
	}
	fmt.Fprintf(log, "deleting cluster %s …\n", name)
	if err := clear(ctx, name, dir); err != nil {
		return err
	}
	fmt.Fprintf(log, "cluster %s is deleted\n", name)
	return nil
}

// clear removes all remains of a cluster. It continues after an error, to remove as much as possible.
func clear(ctx context.Context, name, dir string) error {
	s, _ := readState(dir) // missing or incomplete after a crash
	errs := []error{killAll(ctx, s, dir)}
	for _, link := range links(name) {
		if err := run(ctx, "ip", "link", "delete", link); err != nil && linkExists(link) {
			errs = append(errs, err)
		}
	}
	if os.Geteuid() == 0 {
		removeForwardRule(ctx, name)
		errs = append(errs, removeCgroups(cgroupOf(name)), removeMounts(dir), restoreSysctls(ctx, dir))
		removeIfEmpty(cgroupParent)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove cluster %s: %w", name, err)
	}
	return os.RemoveAll(dir)
}

// killAll sends SIGKILL, because the data is removed anyway. A node's first process ends all processes
// of the node.
func killAll(ctx context.Context, s state, dir string) error {
	err := poll(ctx, time.Minute, func() bool {
		left := marked(dir)
		for _, p := range s.Processes {
			if p.alive() {
				left = append(left, p)
			}
		}
		for _, p := range left {
			if p.alive() && p.PID != os.Getpid() {
				_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may just have ended
			}
		}
		return len(left) == 0
	})
	if err != nil {
		return fmt.Errorf("some processes do not exit: %w", err)
	}
	return nil
}

func linkExists(name string) bool {
	_, err := os.Stat("/sys/class/net/" + name)
	return err == nil
}

// removeForwardRule removes all copies of the rule that makeBridge added.
func removeForwardRule(ctx context.Context, cluster string) {
	if _, err := exec.LookPath("iptables"); err != nil {
		return
	}
	remove := append([]string{"iptables", "-w", "-D"}, forwardRule(linkPrefix(cluster)+"br")...)
	for run(ctx, remove...) == nil {
	}
}

// removeMounts unmounts all mounts below dir. Nodes mount only in their own namespaces, so only a
// test's mounts are found.
func removeMounts(dir string) error {
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	lines := strings.Split(string(content), "\n")
	for i := len(lines) - 1; i >= 0; i-- { // the latest first
		fields := strings.Fields(lines[i])
		if len(fields) > 4 && strings.HasPrefix(fields[4], dir+string(filepath.Separator)) {
			if err := syscall.Unmount(fields[4], 0); err != nil {
				return fmt.Errorf("unmount %s: %w", fields[4], err)
			}
		}
	}
	return nil
}

// removeIfEmpty removes a cgroup unless other clusters still use it.
func removeIfEmpty(cgroup string) {
	tops, _ := filepath.Glob(filepath.Join(cgroupRoot, "*", cgroup))
	for _, dir := range append(tops, filepath.Join(cgroupRoot, cgroup)) {
		_ = syscall.Rmdir(dir)
	}
}
