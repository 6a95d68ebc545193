package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/eviction"
)

// Drain returns the change that cordons a Node, and evicts its pods as `kubectl drain` does: it requests an
// eviction of each pod again and again until the pod is gone. Pods of DaemonSets stay.
func Drain(node string) Change {
	return Change{
		Drains: node,
		Do: func(c *simulation.Cluster) {
			var n corev1.Node
			if c.Get(context.Background(), client.ObjectKey{Name: node}, &n) == nil {
				n.Spec.Unschedulable = true
				c.Put(&n)
			}
		},
		Others: func(c *simulation.Cluster) (moves []func()) {
			for _, pod := range podsOn(c, node) {
				if eviction.Refusal(c, pod) == "" {
					moves = append(moves, func() { eviction.Evict(c, pod) })
				}
			}
			return moves
		},
		Blocked: func(members []*corev1.Pod, c *simulation.Cluster) (sentences []string) {
			for _, pod := range on(node, members) {
				sentences = append(sentences, fmt.Sprintf("pod %s is not evicted: %s", pod.Name, eviction.Refusal(c, pod)))
			}
			return sentences
		},
	}
}

// podsOn returns the pods on a Node that a drain evicts.
func podsOn(c *simulation.Cluster, node string) []*corev1.Pod {
	var list corev1.PodList
	_ = c.List(context.Background(), &list) // the fake never fails
	all := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return on(node, all)
}

// on returns the pods on a Node that a drain evicts, sorted by name.
func on(node string, all []*corev1.Pod) (pods []*corev1.Pod) {
	for _, pod := range all {
		if pod.Spec.NodeName == node && !podstate.Terminating(pod) && !isDaemon(pod) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

func isDaemon(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}
