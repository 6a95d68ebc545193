package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// boot starts all programs, the slow ones in parallel.
func (c *Cluster) boot(ctx context.Context) error {
	if err := os.MkdirAll(c.path("logs"), 0o755); err != nil {
		return err
	}
	if err := c.chooseAddress(ctx); err != nil {
		return err
	}
	if err := c.choosePorts(); err != nil {
		return err
	}
	if err := c.save(); err != nil {
		return err
	}
	if c.state.Nodes > 0 {
		if err := keepSysctls(ctx, c.dir); err != nil {
			return err
		}
		if err := raiseLimits(); err != nil {
			return err
		}
	}
	if err := c.copyProgram(ctx); err != nil {
		return err
	}
	if err := c.makeCerts(); err != nil {
		return err
	}
	if err := os.WriteFile(c.path("audit-policy.yaml"), []byte(auditPolicy), 0o644); err != nil {
		return err
	}
	if c.state.Nodes > 0 {
		if err := c.makeBridge(ctx); err != nil {
			return err
		}
	}
	steps := []func() error{func() error { return c.bootControlPlane(ctx) }}
	if c.state.Nodes > 0 {
		steps = append(steps, func() error { return c.bootNodes(ctx) })
	}
	if err := parallel(steps...); err != nil {
		return err
	}
	return c.finish(ctx)
}

func (c *Cluster) bootControlPlane(ctx context.Context) error {
	c.say("starting etcd and the API server …")
	if err := c.startEtcd(); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	c.say("starting controller manager and scheduler …")
	if err := c.startControllers(); err != nil {
		return err
	}
	return c.start("volumes", c.path("cluster"), "volumes", c.dir)
}

// bootNodes prepares every node so that its kubelet can start.
func (c *Cluster) bootNodes(ctx context.Context) error {
	tars, err := c.baseImages(ctx)
	if err != nil {
		return err
	}
	c.say("starting %d nodes with containerd …", c.state.Nodes)
	var steps []func() error
	for _, n := range c.nodes() {
		steps = append(steps, func() error {
			if err := c.startNode(ctx, n); err != nil {
				return err
			}
			for _, tar := range tars {
				if err := c.importImage(ctx, n, tar); err != nil {
					return err
				}
			}
			return c.nameSamples(ctx, n)
		})
	}
	return parallel(steps...)
}

// finish runs the steps that need the API server and the nodes: it creates the cluster's objects,
// starts the kubelets and waits until the cluster is ready.
func (c *Cluster) finish(ctx context.Context) error {
	if err := c.makeObjects(ctx); err != nil {
		return err
	}
	if c.state.Nodes > 0 {
		if err := c.startDNS(); err != nil {
			return err
		}
		c.say("starting kubelet and kube-proxy on %d nodes …", c.state.Nodes)
		for _, n := range c.nodes() {
			if err := c.want(ctx, n, "containerd", "kubelet", "kube-proxy"); err != nil {
				return err
			}
		}
	}
	return c.waitReady(ctx)
}

// waitReady waits for Ready nodes, the default service account and DNS.
func (c *Cluster) waitReady(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	missing := errors.New("no request was sent yet")
	err = poll(ctx, 2*time.Minute, func() bool {
		missing = c.missing(ctx, client)
		return missing == nil || c.ended() != nil
	})
	if ended := c.ended(); ended != nil {
		return ended
	}
	if err != nil {
		return fmt.Errorf("the cluster does not become ready: %w", missing)
	}
	return nil
}

// ended returns an error if a program has ended that should run.
func (c *Cluster) ended() error {
	for _, name := range append(c.controlPlane(), c.Nodes()...) {
		if !c.process(name).alive() {
			return fmt.Errorf("%s ended; see %s", name, c.path("logs", name+".log"))
		}
	}
	return nil
}

// missing returns an error that names the first missing requirement of a pod.
func (c *Cluster) missing(ctx context.Context, client kubernetes.Interface) error {
	if _, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("service account default: %w", err)
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	ready := 0
	for _, n := range list.Items {
		if nodeReady(n) {
			ready++
		}
	}
	if ready < c.state.Nodes {
		return fmt.Errorf("%d of %d nodes are Ready", ready, c.state.Nodes)
	}
	if c.state.Nodes > 0 && !c.dnsAnswers() {
		return errors.New("CoreDNS is not ready")
	}
	return nil
}

func nodeReady(n corev1.Node) bool {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// copyProgram copies the program of cmd/cluster into the cluster's folder. It is the first process of
// each node and the volume provisioner, and must outlive the temporary binary of go run or go test.
func (c *Cluster) copyProgram(ctx context.Context) error {
	const program = modulePath + "/test/cluster/cmd/cluster"
	out := c.path("cluster")
	if info, ok := debug.ReadBuildInfo(); ok && info.Path == program {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		return run(ctx, "cp", self, out)
	}
	// Go does not link an up-to-date binary again.
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	kept := filepath.Join(cache, "cluster-program")
	unlock, err := lock(ctx, kept+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if err := Host(ctx, c.log, program, kept); err != nil {
		return err
	}
	return run(ctx, "cp", kept, out)
}
