package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sysctls are settings of the whole machine by name.
type sysctls map[string]string

// kubeletSets is what every kubelet sets for the machine it runs on; down puts
// it back as it was.
var kubeletSets = []string{
	"vm.overcommit_memory", "vm.panic_on_oom",
	"kernel.panic", "kernel.panic_on_oops",
	"kernel.keys.root_maxkeys", "kernel.keys.root_maxbytes",
}

func readSysctls() sysctls {
	now := sysctls{}
	for _, name := range kubeletSets {
		if content, err := os.ReadFile(sysctlFile(name)); err == nil {
			now[name] = strings.TrimSpace(string(content))
		}
	}
	return now
}

func (s sysctls) restore() error {
	for name, value := range s {
		if now, err := os.ReadFile(sysctlFile(name)); err == nil && strings.TrimSpace(string(now)) == value {
			continue
		}
		if err := os.WriteFile(sysctlFile(name), []byte(value), 0o644); err != nil {
			return fmt.Errorf("putting %s back to %s: %w", name, value, err)
		}
	}
	return nil
}

func sysctlFile(name string) string {
	return filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
}
