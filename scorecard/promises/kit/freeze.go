package kit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// Freeze stops the processes of the containers of pods (SIGSTOP) until thaw is called, at the latest at the end. They
// run on this machine, in containers of its nodes.
func (c *Cluster) Freeze(pods ...corev1.Pod) (thaw func()) {
	var stopped []int
	thaw = func() {
		var err error
		for _, pid := range stopped {
			// A kubelet may have ended the process meanwhile.
			if e := syscall.Kill(pid, syscall.SIGCONT); e != nil && !errors.Is(e, syscall.ESRCH) {
				err = errors.Join(err, fmt.Errorf("resume process %d: %w", pid, e))
			}
		}
		stopped = nil
		c.Check(err)
	}
	c.Cleanup(thaw)
	for i := range pods {
		for _, s := range pods[i].Status.ContainerStatuses {
			_, id, _ := strings.Cut(s.ContainerID, "://")
			pids, err := processesOf(id)
			c.Check(err)
			for _, pid := range pids {
				c.During(fmt.Sprintf("stop process %d of %s", pid, pods[i].Name), func() { c.Check(syscall.Kill(pid, syscall.SIGSTOP)) })
				stopped = append(stopped, pid)
			}
		}
	}
	c.Expect(stopped).NotTo(BeEmpty(), "no process of %d pods was found", len(pods))
	c.Log("processes %v are stopped", stopped)
	return thaw
}

// processesOf returns the processes of a container. The names of their cgroups contain its ID.
func processesOf(container string) (pids []int, err error) {
	if container == "" {
		return nil, nil
	}
	all, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), container) {
			continue // the process may just have ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
