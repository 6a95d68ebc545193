package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/stateful-operator/stateful-operator/test/cluster/nodeinit"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status prints which parts of the cluster run.
func (c *Cluster) Status(ctx context.Context, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "cluster %s\t%s\n", c.state.Name, c.endpoint())
	for _, name := range c.controlPlane() {
		state := "stopped"
		if p := c.process(name); p.alive() {
			state = fmt.Sprintf("runs (pid %d)", p.PID)
		}
		fmt.Fprintf(w, "%s\t%s\n", name, state)
	}
	ready := map[string]string{}
	if client, err := c.client(); err == nil && c.answers(ctx) {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, n := range list.Items {
			ready[n.Name] = "NotReady"
			if nodeReady(n) {
				ready[n.Name] = "Ready"
			}
		}
	}
	for _, n := range c.nodes() {
		fmt.Fprintf(w, "%s (%s)\t%s\n", n.name, n.zone, c.nodeStatus(n, ready[n.name]))
	}
	if c.state.Simulated > 0 {
		fmt.Fprintf(w, "kwok\t%d simulated nodes\n", c.state.Simulated)
	}
	fmt.Fprintf(w, "kubeconfig\t%s\nlogs\t%s\n", c.Kubeconfig(), c.path("logs"))
	return w.Flush()
}

func (c *Cluster) nodeStatus(n node, ready string) string {
	if !c.process(n.name).alive() {
		return strings.TrimSpace("powered off " + ready)
	}
	words := []string{ready, n.address}
	if state, err := os.ReadFile(filepath.Join("/sys/class/net", n.link, "operstate")); err != nil || strings.TrimSpace(string(state)) != "up" {
		words = append(words, "cut off the network")
	}
	var running nodeinit.Running
	if err := nodeinit.ReadJSON(nodeinit.RunningFile(n.dir), &running); err == nil && running.PIDs["kubelet"] == 0 {
		words = append(words, "kubelet stopped")
	}
	return strings.Join(words, ", ")
}
