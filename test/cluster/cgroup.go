package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// cgroupParent is the parent of all clusters' cgroups.
const cgroupParent = "/stateful-operator"

// cgroupOf returns the parent cgroup of a cluster's nodes.
func cgroupOf(cluster string) string { return filepath.Join(cgroupParent, cluster) }

// cgroupRoot is a variable for the tests.
var cgroupRoot = "/sys/fs/cgroup"

// cgroupV2 reports whether the machine uses the unified hierarchy of cgroup v2. In hybrid mode the v2
// mount has no controllers, and the result is false.
func cgroupV2() bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return err == nil
}

// makeCgroup creates the cgroup path so that a kubelet can use it as its root.
func makeCgroup(path string) error {
	if cgroupV2() {
		return makeCgroupV2(path)
	}
	return makeCgroupV1(path)
}

// makeCgroupV1 creates path in each controller's hierarchy.
func makeCgroupV1(path string) error {
	hierarchies, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return err
	}
	for _, h := range hierarchies {
		top := filepath.Join(cgroupRoot, h.Name())
		// Links are aliases of the same hierarchy; "unified" has no controllers.
		if !h.IsDir() || h.Name() == "unified" {
			continue
		}
		for _, level := range levels(path) {
			dir := filepath.Join(top, level)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if err := inheritCpuset(dir); err != nil {
				return fmt.Errorf("cgroup %s: %w", dir, err)
			}
		}
	}
	return nil
}

// inheritCpuset copies the parent's CPUs. A new cpuset has none and accepts no processes until they are
// set.
func inheritCpuset(dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(dir, file))
		if errors.Is(err, os.ErrNotExist) {
			return nil // another controller's hierarchy
		}
		if err != nil || strings.TrimSpace(string(own)) != "" {
			return err
		}
		parents, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), parents, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// makeCgroupV2 creates path and enables all controllers in it.
func makeCgroupV2(path string) error {
	dir := cgroupRoot
	for _, level := range levels(path) {
		if err := delegate(dir); err != nil {
			return fmt.Errorf("cgroup %s: %w", dir, err)
		}
		dir = filepath.Join(cgroupRoot, level)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	// The kubelet enables controllers below path. No process is ever put into path itself, because a
	// cgroup with processes cannot enable controllers for its children.
	return delegate(dir)
}

// delegate enables all controllers of dir for its children.
func delegate(dir string) error {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	enabled, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	missing := missingControllers(string(available), string(enabled))
	if missing == "" {
		return nil
	}
	control := filepath.Join(dir, "cgroup.subtree_control")
	err = os.WriteFile(control, []byte(missing), 0o644)
	if !errors.Is(err, syscall.EBUSY) {
		return err
	}
	// In a container the root is an ordinary cgroup that contains the container's processes. They are
	// moved into a leaf, as in the tests of container engines.
	if err := moveProcesses(dir, filepath.Join(dir, "init")); err != nil {
		return err
	}
	return os.WriteFile(control, []byte(missing), 0o644)
}

// missingControllers returns the value to write into cgroup.subtree_control.
func missingControllers(available, enabled string) string {
	var missing []string
	has := strings.Fields(enabled)
	for _, controller := range strings.Fields(available) {
		if !slices.Contains(has, controller) {
			missing = append(missing, "+"+controller)
		}
	}
	return strings.Join(missing, " ")
}

func moveProcesses(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	pids, err := os.ReadFile(filepath.Join(from, "cgroup.procs"))
	if err != nil {
		return err
	}
	for _, pid := range strings.Fields(string(pids)) {
		err := os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(pid), 0o644)
		// A process that ended meanwhile is ignored.
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("move process %s to %s: %w", pid, to, err)
		}
	}
	return nil
}

// levels returns all cgroups on the way to path, the top one first.
func levels(path string) []string {
	var out []string
	for p := filepath.Clean(path); p != "/" && p != "."; p = filepath.Dir(p) {
		out = append([]string{p}, out...)
	}
	return out
}

// removeCgroups removes path and everything below it in every hierarchy. Its processes have been
// killed. It retries, because the kernel may need a moment to release them.
func removeCgroups(path string) error {
	var last error
	for range 100 {
		last = nil
		tops, err := filepath.Glob(filepath.Join(cgroupRoot, "*", path))
		if err != nil {
			return err
		}
		for _, dir := range append(tops, filepath.Join(cgroupRoot, path)) {
			if err := removeTree(dir); err != nil {
				last = err
			}
		}
		if last == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("cgroups are left: %w", last)
}

// removeTree removes only folders, because a cgroup's files are removed with it.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := syscall.Rmdir(dir); err != nil && err != syscall.ENOENT {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}
