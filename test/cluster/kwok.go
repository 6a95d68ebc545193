package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Stages of nodes and pods that kwok ships. A pod is Running and Ready immediately.
var (
	nodeStages = []string{
		"node/fast/node-initialize.yaml",
		"node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	}
	podStages = []string{
		"pod/fast/pod-ready.yaml",
		"pod/fast/pod-complete.yaml",
		"pod/fast/pod-delete.yaml",
	}
)

// StartKwok adds simulated nodes kwok-1 … kwok-<nodes> and waits until they are Ready. Each allows 500
// pods. It is used for benchmarks with thousands of pods.
func (c *Cluster) StartKwok(ctx context.Context, nodes int) error {
	return c.startKwok(ctx, nodes, slices.Concat(nodeStages, podStages))
}

// StartSimulated is StartKwok with kubelets that keep pods at their gates, fail to pull missing images,
// and run commands; see package simulated. It is for trying the operator.
func (c *Cluster) StartSimulated(ctx context.Context, nodes int) error {
	if err := c.startKwok(ctx, nodes, nodeStages); err != nil || c.process("kubelets").alive() {
		return err
	}
	return c.start("kubelets", c.path("cluster"), "kubelets", c.dir, fmt.Sprint(nodes))
}

func (c *Cluster) startKwok(ctx context.Context, nodes int, stages []string) error {
	folders, err := Build(ctx, c.log, Kwok)
	if err != nil {
		return err
	}
	config, err := writeKwokConfig(ctx, c.path("kwok.yaml"), stages)
	if err != nil {
		return err
	}
	if !c.process("kwok").alive() {
		err := c.start("kwok", filepath.Join(folders[Kwok], "kwok"),
			"--kubeconfig="+c.Kubeconfig(),
			"--config="+config,
			"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
			"--node-lease-duration-seconds=40",
			"--cidr=10.128.0.0/12",
			"--node-ip=127.0.0.1",
			"--server-address=",
		)
		if err != nil {
			return err
		}
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	for i := 1; i <= nodes; i++ {
		if _, err := client.CoreV1().Nodes().Create(ctx, simulatedNode(i), metav1.CreateOptions{}); ignoreExisting(err) != nil {
			return fmt.Errorf("create simulated node %d: %w", i, err)
		}
	}
	err = poll(ctx, time.Minute, func() bool {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "type=kwok"})
		ready := 0
		for i := 0; err == nil && i < len(list.Items); i++ {
			if nodeReady(list.Items[i]) {
				ready++
			}
		}
		return ready >= nodes
	})
	if err != nil {
		return fmt.Errorf("simulated nodes do not become Ready; see %s: %w", c.path("logs", "kwok.log"), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Simulated = nodes
	return c.save()
}

// SimulatedNode returns the name of a simulated node. Numbers start at 1.
func SimulatedNode(number int) string { return fmt.Sprintf("kwok-%d", number) }

func simulatedNode(number int) *corev1.Node {
	name := SimulatedNode(number)
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1000"),
		corev1.ResourceMemory: resource.MustParse("1000Gi"),
		corev1.ResourcePods:   resource.MustParse("500"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				"type":                   "kwok",
				corev1.LabelHostname:     name,
				corev1.LabelOSStable:     "linux",
				corev1.LabelTopologyZone: "zone-" + string(rune('a'+(number-1)%3)),
			},
		},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
}

// kwokOptions let kwok process many pods at a time. The default is four, which would limit benchmarks.
const kwokOptions = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  podPlayStageParallelism: 32
  nodePlayStageParallelism: 4
  nodeLeaseParallelism: 4
`

// writeKwokConfig writes the options and the stages that the pinned version of kwok ships.
func writeKwokConfig(ctx context.Context, out string, stages []string) (string, error) {
	root, err := projectRoot()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", recipes[Kwok].module)
	cmd.Dir = filepath.Join(root, "tools", recipes[Kwok].folder)
	answer, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find the stages of kwok: %w", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(answer, &module); err != nil {
		return "", fmt.Errorf("find the stages of kwok: %w", err)
	}
	all := []byte(kwokOptions)
	for _, stage := range stages {
		content, err := os.ReadFile(filepath.Join(module.Dir, "kustomize", "stage", stage))
		if err != nil {
			return "", err
		}
		all = append(append(all, "---\n"...), content...)
	}
	return out, os.WriteFile(out, all, 0o644)
}
