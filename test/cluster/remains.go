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

// Down ends a cluster and removes everything of it. It works from what is
// recorded and, for an up that was killed before it could record, from names
// and marks; so it may always be run again.
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
		fmt.Fprintf(log, "cluster %s does not run\n", name)
		return nil
	}
	fmt.Fprintf(log, "taking cluster %s down …\n", name)
	if err := clear(ctx, name, dir); err != nil {
		return err
	}
	fmt.Fprintf(log, "cluster %s is down; nothing of it is left\n", name)
	return nil
}

// clear removes whatever there is of a cluster. Steps go on after an error, so
// that one stubborn remainder keeps as little as possible.
func clear(ctx context.Context, name, dir string) error {
	s, _ := readState(dir) // missing or torn after a crash
	errs := []error{killAll(ctx, s, dir)}
	for _, link := range links(name) {
		if err := run(ctx, "ip", "link", "delete", link); err != nil && linkExists(link) {
			errs = append(errs, err)
		}
	}
	if os.Geteuid() == 0 {
		removeForwardRule(ctx, name)
		errs = append(errs, removeCgroups(cgroupOf(name)), removeMounts(dir), restoreSysctls(dir))
		removeIfEmpty(cgroupParent)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clearing cluster %s: %w", name, err)
	}
	return os.RemoveAll(dir)
}

// killAll kills at once: the data are removed anyhow. First processes of nodes
// take everything on their node with them.
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
		return fmt.Errorf("some processes do not end: %w", err)
	}
	return nil
}

func linkExists(name string) bool {
	_, err := os.Stat("/sys/class/net/" + name)
	return err == nil
}

// removeForwardRule removes what makeBridge added, as often as it is there.
func removeForwardRule(ctx context.Context, cluster string) {
	if _, err := exec.LookPath("iptables"); err != nil {
		return
	}
	remove := append([]string{"iptables", "-w", "-D"}, forwardRule(linkPrefix(cluster)+"br")...)
	for run(ctx, remove...) == nil {
	}
}

// removeMounts unmounts what is mounted below dir. Nodes mount in their own
// namespaces only, so this finds something only if a test mounted it.
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
				return fmt.Errorf("unmounting %s: %w", fields[4], err)
			}
		}
	}
	return nil
}

// removeIfEmpty removes a cgroup that other clusters may still use.
func removeIfEmpty(cgroup string) {
	tops, _ := filepath.Glob(filepath.Join(cgroupRoot, "*", cgroup))
	for _, dir := range append(tops, filepath.Join(cgroupRoot, cgroup)) {
		_ = syscall.Rmdir(dir)
	}
}
