package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stateful-operator/stateful-operator/test/cluster/nodeinit"
)

// sysctls are settings of the whole machine by name.
type sysctls map[string]string

// inotifyInstances is the max number of inotify instances of a user. Each node uses about ten. The
// kernel's default of 128 is not enough for three clusters, and a kubelet does not start without one.
const inotifyInstances, wantedInstances = "fs.inotify.max_user_instances", 1024

// kubeletSets are the settings that kubelets, or raiseLimits, change for the whole machine. Down
// restores them.
var kubeletSets = []string{
	inotifyInstances,
	"vm.overcommit_memory", "vm.panic_on_oom",
	"kernel.panic", "kernel.panic_on_oops",
	"kernel.keys.root_maxkeys", "kernel.keys.root_maxbytes",
}

// lockSysctls returns the file with the settings from before the first cluster. Other clusters wait until unlock is
// called.
func lockSysctls(ctx context.Context, dir string) (file string, unlock func(), err error) {
	file = filepath.Join(filepath.Dir(dir), "sysctls.json")
	unlock, err = lock(ctx, file+".lock")
	return file, unlock, err
}

// keepSysctls records the settings from before the first cluster. The state of the cluster must have been saved, so
// that restoreSysctls of another one finds it.
func keepSysctls(ctx context.Context, dir string) error {
	file, unlock, err := lockSysctls(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	before := sysctls{}
	for _, name := range kubeletSets {
		if content, err := os.ReadFile(sysctlFile(name)); err == nil {
			before[name] = strings.TrimSpace(string(content))
		}
	}
	return nodeinit.WriteJSON(file, before)
}

// raiseLimits raises limits whose default is too low for nodes.
func raiseLimits() error {
	content, err := os.ReadFile(sysctlFile(inotifyInstances))
	if err != nil {
		return fmt.Errorf("read %s: %w", inotifyInstances, err)
	}
	if have, err := strconv.Atoi(strings.TrimSpace(string(content))); err == nil && have >= wantedInstances {
		return nil
	}
	if err := os.WriteFile(sysctlFile(inotifyInstances), []byte(strconv.Itoa(wantedInstances)), 0o644); err != nil {
		return fmt.Errorf("increase %s: %w", inotifyInstances, err)
	}
	return nil
}

// restoreSysctls restores the settings when the last cluster with nodes is removed.
func restoreSysctls(ctx context.Context, dir string) error {
	file, unlock, err := lockSysctls(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	others, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*", stateFile))
	for _, other := range others {
		s, err := readState(filepath.Dir(other))
		if filepath.Dir(other) != dir && err == nil && s.Nodes > 0 {
			return nil
		}
	}
	var before sysctls
	if err := nodeinit.ReadJSON(file, &before); err != nil {
		return nil // no cluster had nodes
	}
	for name, value := range before {
		if now, err := os.ReadFile(sysctlFile(name)); err == nil && strings.TrimSpace(string(now)) == value {
			continue
		}
		if err := os.WriteFile(sysctlFile(name), []byte(value), 0o644); err != nil {
			return fmt.Errorf("reset %s to %s: %w", name, value, err)
		}
	}
	return os.Remove(file)
}

func sysctlFile(name string) string {
	return filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
}
