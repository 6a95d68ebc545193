package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/test/cluster/nodeinit"
)

// nodeBinds are the private folders of each node. So programs with fixed paths can run more than once
// and leave no files on this machine.
var nodeBinds = []struct{ target, folder string }{
	{"/var/lib", "lib"},
	{"/var/log", "log"},
	{"/run", ""}, // in memory, as after a boot
}

// unified is the mount of cgroup v2 in hybrid mode. It is hidden on nodes, because crun supports only
// one version at a time.
const unified = "/sys/fs/cgroup/unified"

// startNode creates the node's namespaces, connects it, and starts containerd.
func (c *Cluster) startNode(ctx context.Context, n node) error {
	if err := makeCgroup(n.cgroup); err != nil {
		return err
	}
	if err := c.writeNodeFiles(n); err != nil {
		return err
	}
	// The programs from before the power-off are outdated.
	if err := os.Remove(nodeinit.RunningFile(n.dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	p, err := startProcess(c.dir, n.name, []string{c.path("cluster"), "node-init", n.dir}, newNamespaces(), c.nodePath())
	if err != nil {
		return err
	}
	if err := c.record(n.name, p); err != nil {
		return err
	}
	if err := c.plug(ctx, n, p.PID); err != nil {
		return err
	}
	if err := c.want(ctx, n, "containerd"); err != nil {
		return err
	}
	return c.waitContainerd(ctx, n)
}

// nodePath returns a PATH in which containerd finds its shim and crun.
func (c *Cluster) nodePath() string {
	return "PATH=" + c.state.Sets[Containerd] + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

// waitContainerd waits until containerd's socket accepts connections. Without it a kubelet ends.
func (c *Cluster) waitContainerd(ctx context.Context, n node) error {
	socket := c.containerdSocket(n)
	err := poll(ctx, time.Minute, func() bool {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return !c.process(n.name).alive()
		}
		conn.Close()
		return true
	})
	if err != nil || !c.process(n.name).alive() {
		return fmt.Errorf("containerd of %s does not respond; see %s and %s", n.name, c.path("logs", n.name+".log"), c.nodeLog(n, "containerd"))
	}
	return nil
}

// containerdSocket returns the path of the socket through the node's own mounts.
func (c *Cluster) containerdSocket(n node) string {
	return fmt.Sprintf("/proc/%d/root/run/containerd/containerd.sock", c.process(n.name).PID)
}

func (c *Cluster) nodeLog(n node, program string) string {
	return c.path("logs", n.name+"-"+program+".log")
}

func (c *Cluster) writeNodeFiles(n node) error {
	crun, err := exec.LookPath("crun")
	if err != nil {
		return err
	}
	setup := nodeinit.Setup{
		Hostname: n.name,
		Binds:    map[string]string{},
		ReadOnly: []string{crun},
		Sysctls: map[string]string{
			"net.ipv4.ip_forward":                "1",
			"net.ipv4.conf.all.rp_filter":        "0",
			"net.bridge.bridge-nf-call-iptables": "1", // for a pod that calls itself through a Service
		},
	}
	for _, bind := range nodeBinds {
		if bind.folder == "" {
			continue
		}
		setup.Binds[bind.target] = filepath.Join(n.dir, bind.folder)
		if err := os.MkdirAll(setup.Binds[bind.target], 0o755); err != nil {
			return err
		}
	}
	if _, err := os.Stat("/proc/sys/net/ipv6/conf/all/disable_ipv6"); err == nil {
		// Services have no IPv6 addresses. With IPv6, kube-proxy would write its rules for both
		// versions. In Kubernetes 1.33 and earlier it does so in any case.
		setup.Sysctls["net.ipv6.conf.all.disable_ipv6"] = "1"
	}
	if _, err := os.Stat(unified); err == nil {
		setup.Binds[unified] = filepath.Join(n.dir, "nothing")
	}
	for _, folder := range []string{"volumes", staticPods, "nothing"} {
		if err := os.MkdirAll(filepath.Join(n.dir, folder), 0o755); err != nil {
			return err
		}
	}
	for path, content := range c.nodeConfigs(n) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(n.dir, "crun"), []byte(fmt.Sprintf(crunScript, crun)), 0o755); err != nil {
		return err
	}
	return nodeinit.WriteJSON(nodeinit.SetupFile(n.dir), setup)
}

// want makes the node run exactly these programs, and waits until it does.
func (c *Cluster) want(ctx context.Context, n node, names ...string) error {
	init := c.process(n.name)
	if !init.alive() {
		return fmt.Errorf("%s does not run", n.name)
	}
	var wanted nodeinit.Wanted
	_ = nodeinit.ReadJSON(nodeinit.WantedFile(n.dir), &wanted) // missing at the first start
	wanted.Generation++
	wanted.Programs = nil
	for _, name := range names {
		wanted.Programs = append(wanted.Programs, nodeinit.Program{Name: name, Args: c.nodeProgram(n, name), Log: c.nodeLog(n, name)})
	}
	if err := nodeinit.WriteJSON(nodeinit.WantedFile(n.dir), wanted); err != nil {
		return err
	}
	// The signal only saves time: the node polls the file. Before its first response it may have no
	// signal handler, and the signal would end it.
	if _, err := os.Stat(nodeinit.RunningFile(n.dir)); err == nil {
		_ = syscall.Kill(init.PID, syscall.SIGHUP)
	}
	err := poll(ctx, 30*time.Second, func() bool {
		var running nodeinit.Running
		_ = nodeinit.ReadJSON(nodeinit.RunningFile(n.dir), &running)
		return running.Generation == wanted.Generation || !init.alive()
	})
	if err != nil || !init.alive() {
		return fmt.Errorf("%s does not run %s; see %s", n.name, strings.Join(names, ", "), c.path("logs", n.name+".log"))
	}
	return nil
}

// staticPods is the folder of a node's static pod manifests, within the node's folder.
const staticPods = "static-pods"

// StaticPods returns the path of a node's static pod manifests.
func (c *Cluster) StaticPods(name string) (string, error) {
	n, err := c.node(name)
	return filepath.Join(n.dir, staticPods), err
}

// StopKubelet stops a node's kubelet. Its containers continue to run.
func (c *Cluster) StopKubelet(name string) error { return c.wantKubelet(name, false) }

// StartKubelet undoes StopKubelet.
func (c *Cluster) StartKubelet(name string) error { return c.wantKubelet(name, true) }

func (c *Cluster) wantKubelet(name string, on bool) error {
	n, err := c.node(name)
	if err != nil {
		return err
	}
	programs := []string{"containerd", "kubelet", "kube-proxy"}
	if !on {
		programs = slices.DeleteFunc(programs, func(p string) bool { return p == "kubelet" })
	}
	return c.want(context.Background(), n, programs...)
}

// Processes returns all processes of a node, including those of its containers.
func (c *Cluster) Processes(name string) ([]int, error) {
	n, err := c.node(name)
	if err != nil {
		return nil, err
	}
	root := c.process(n.name)
	if !root.alive() {
		return nil, fmt.Errorf("node %s does not run", name)
	}
	return descendants(root.PID)
}

// StopNode powers a node off: all its processes are killed.
func (c *Cluster) StopNode(name string) error {
	n, err := c.node(name)
	if err != nil {
		return err
	}
	if err := c.process(n.name).stop(context.Background(), 0); err != nil {
		return err
	}
	return removeCgroups(n.cgroup)
}

// StartNode boots a node that StopNode stopped. Its disk is unchanged.
func (c *Cluster) StartNode(name string) error {
	n, err := c.node(name)
	if err != nil {
		return err
	}
	if c.process(n.name).alive() {
		return nil
	}
	ctx := context.Background()
	if err := c.startNode(ctx, n); err != nil {
		return err
	}
	return c.want(ctx, n, "containerd", "kubelet", "kube-proxy")
}
