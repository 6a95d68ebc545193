package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// Remedies that are appended to errors.
const (
	elsewhere  = "set KUBECONFIG to an existing cluster, or use a virtual machine"
	privileged = "start this container with --privileged, or set KUBECONFIG to an existing cluster"
)

// NodesPossible returns nil if this machine can run nodes, or an error with the reason and a remedy. It
// builds nothing and leaves nothing behind.
func NodesPossible() error {
	if runtime.GOOS != "linux" {
		return errors.New("nodes require Linux: " + elsewhere)
	}
	if os.Geteuid() != 0 {
		return errors.New("nodes require root: use sudo, or set KUBECONFIG to an existing cluster")
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fmt.Errorf("nodes require /proc: %w", err)
	}
	if missing := missingCapabilities(string(status)); len(missing) > 0 {
		return fmt.Errorf("nodes require %s, which root does not have here: %s", strings.Join(missing, " and "), privileged)
	}
	if users, err := os.ReadFile("/proc/self/uid_map"); err == nil && len(strings.Fields(string(users))) == 3 && strings.Fields(string(users))[2] != allUsers {
		return errors.New("nodes require root of the machine, and this is root of a user namespace, as in rootless containers: " + elsewhere)
	}
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	for _, hidden := range nodeBinds {
		if strings.HasPrefix(cache, hidden.target+"/") {
			return fmt.Errorf("the cache folder %s is below %s, which nodes replace by their own: set XDG_CACHE_HOME to another folder", cache, hidden.target)
		}
	}
	child := exec.Command("true")
	child.SysProcAttr = newNamespaces()
	if err := child.Run(); err != nil {
		return fmt.Errorf("nodes require their own namespaces, and the kernel does not allow them (%w): %s", err, privileged)
	}
	if err := tryCgroup(); err != nil {
		return fmt.Errorf("nodes require cgroups, which are not writable here (%w): %s", err, privileged)
	}
	if err := trySysctl(); err != nil {
		return fmt.Errorf("nodes set kernel limits, which are not writable here (%w): %s", err, privileged)
	}
	if err := tryOverlay(cache); err != nil {
		return fmt.Errorf("containers require overlay mounts, which are refused in %s (%w): set XDG_CACHE_HOME to a folder on a local disk, or %s", cache, err, privileged)
	}
	return nil
}

// allUsers is the number of users in the machine's initial user namespace.
const allUsers = "4294967295"

// needed are the capabilities that nodes require, with their numbers.
var needed = []struct {
	name string
	bit  uint
}{{"CAP_NET_ADMIN", 12}, {"CAP_SYS_ADMIN", 21}, {"CAP_MKNOD", 27}}

// sysResource is the number of CAP_SYS_RESOURCE. Without it crun fails for every pod unless containerd
// is configured for that.
const sysResource = 24

var effective = regexp.MustCompile(`(?m)^CapEff:\s*([0-9a-f]+)$`)

// rootHas reports whether this process has a capability.
func rootHas(bit uint) bool {
	status, err := os.ReadFile("/proc/self/status")
	return err == nil && capabilities(string(status))&(1<<bit) != 0
}

// capabilities parses the effective capabilities in /proc/PID/status, as a bit mask.
func capabilities(status string) (have uint64) {
	if found := effective.FindStringSubmatch(status); found != nil {
		have, _ = strconv.ParseUint(found[1], 16, 64) // the kernel writes a valid number
	}
	return have
}

// missingCapabilities returns the needed capabilities that are missing in /proc/PID/status.
func missingCapabilities(status string) []string {
	have := capabilities(status)
	var missing []string
	for _, c := range needed {
		if have&(1<<c.bit) == 0 {
			missing = append(missing, c.name)
		}
	}
	return missing
}

func tryCgroup() error {
	path := filepath.Join(cgroupParent, fmt.Sprintf("try-%d", os.Getpid()))
	err := makeCgroup(path)
	if remains := removeCgroups(path); err == nil {
		err = remains
	}
	removeIfEmpty(cgroupParent)
	return err
}

// trySysctl opens a setting that kubelets write, and does not change it.
func trySysctl() error {
	file, err := os.OpenFile(sysctlFile(inotifyInstances), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return file.Close()
}
