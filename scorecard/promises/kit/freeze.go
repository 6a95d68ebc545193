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
	var all []int
	for i := range pods {
		for _, s := range pods[i].Status.ContainerStatuses {
			_, id, _ := strings.Cut(s.ContainerID, "://")
			pids, err := processesOf(id)
			c.Check(err)
			all = append(all, pids...)
		}
	}
	return c.stop(all)
}

// FreezeNode stops all processes of a node, like a paused virtual machine, until thaw is called.
func (c *Cluster) FreezeNode(node string) (thaw func()) {
	all, err := c.Nodes.Processes(node)
	c.Check(err)
	return c.stop(all)
}

// stop stops processes until thaw is called, at the latest at the end.
func (c *Cluster) stop(all []int) (thaw func()) {
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
	c.During(fmt.Sprintf("stop processes %v", all), func() {
		for _, pid := range all {
			if err := syscall.Kill(pid, syscall.SIGSTOP); !errors.Is(err, syscall.ESRCH) { // it may just have ended
				c.Check(err)
				stopped = append(stopped, pid)
			}
		}
	})
	c.Expect(stopped).NotTo(BeEmpty(), "no process was found")
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
