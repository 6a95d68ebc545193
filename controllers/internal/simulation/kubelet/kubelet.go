// Package kubelet simulates the scheduler and kubelets in a simulated cluster.
package kubelet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
)

// BadImage is an image whose pods never become Ready.
const BadImage = "bad"

// Disrupt deletes a pod with the given reason in condition DisruptionTarget, as an eviction or a taint
// does.
func Disrupt(c *simulation.Cluster, pod *corev1.Pod, reason string) {
	edit(c, pod, func(p *corev1.Pod) {
		setCondition(c, p, corev1.DisruptionTarget, corev1.ConditionTrue, reason)
	})
	c.Delete(pod)
}

// Turn makes a node Ready or not ready, and creates it if it does not exist. The pods of a node that is
// not ready do not change.
func Turn(c *simulation.Cluster, name string, ready bool) {
	status := corev1.ConditionTrue
	if !ready {
		status = corev1.ConditionUnknown
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_ = c.Get(context.Background(), client.ObjectKey{Name: name}, node) // on an error, node is a new one
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(c.Now)}}
	c.Put(node)
	for _, p := range Pods(c) {
		if p.Spec.NodeName == name && !ready && podstate.Ready(p) {
			edit(c, p, func(p *corev1.Pod) { setCondition(c, p, corev1.PodReady, corev1.ConditionFalse, "NodeLost") })
		}
	}
}

// Cordon cordons or uncordons a node.
func Cordon(c *simulation.Cluster, name string, on bool) {
	var node corev1.Node
	if c.Get(context.Background(), client.ObjectKey{Name: name}, &node) == nil {
		node.Spec.Unschedulable = on
		c.Put(&node)
	}
}

// Moves returns all steps that the scheduler and kubelets could take now.
func Moves(c *simulation.Cluster) (moves []func()) {
	for _, p := range Pods(c) {
		if move := next(c, p); move != nil {
			moves = append(moves, move)
		}
	}
	return moves
}

func next(c *simulation.Cluster, p *corev1.Pod) func() {
	step := func(what string, change func(*corev1.Pod)) func() {
		return func() {
			c.Say("    %s %s", p.Name, what)
			edit(c, p, change)
		}
	}
	image := p.Spec.Containers[0].Image
	switch {
	case podstate.Scheduled(p) && !up(c, p.Spec.NodeName):
		return nil
	case podstate.Terminating(p):
		return func() {
			c.Say("    %s is gone", p.Name)
			c.Remove(p)
		}
	case !podstate.Scheduled(p):
		switch _, said := podstate.UnschedulableSince(p); {
		case len(c.Claims(p)) < mounts(p):
			return nil // like the scheduler, wait for the claim
		case freeNode(c) == "" && said:
			return nil
		case freeNode(c) == "":
			return step("finds no node", func(p *corev1.Pod) {
				setCondition(c, p, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable)
			})
		}
		return func() { // other pods may have been bound meanwhile
			node := freeNode(c)
			step("is bound to "+node, func(p *corev1.Pod) {
				p.Spec.NodeName = node
				setCondition(c, p, corev1.PodScheduled, corev1.ConditionTrue, "")
			})()
		}
	case len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].Image != image:
		return step("runs "+image, func(p *corev1.Pod) { run(c, p, image) })
	case !podstate.Ready(p) && image != BadImage:
		return step("is Ready", func(p *corev1.Pod) { setCondition(c, p, corev1.PodReady, corev1.ConditionTrue, "") })
	case p.Status.ObservedGeneration != p.Generation:
		return step("is seen by its kubelet", func(p *corev1.Pod) { p.Status.ObservedGeneration = p.Generation })
	}
	return nil
}

// run starts or restarts the container with the given image. As in a real kubelet, Ready keeps its
// status when the image changes, but not with a bad image.
func run(c *simulation.Cluster, p *corev1.Pod, image string) {
	status := corev1.ContainerStatus{Name: p.Spec.Containers[0].Name, Image: image}
	if len(p.Status.ContainerStatuses) > 0 {
		status.RestartCount = p.Status.ContainerStatuses[0].RestartCount + 1
	} else {
		now := metav1.NewTime(c.Now)
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &now
		setCondition(c, p, corev1.PodReady, corev1.ConditionFalse, "")
	}
	if image == BadImage {
		setCondition(c, p, corev1.PodReady, corev1.ConditionFalse, "")
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}
	} else {
		status.ImageID, status.ContainerID = "id-of-"+image, fmt.Sprintf("%s-%d", p.UID, status.RestartCount)
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.Now)}
	}
	p.Status.ContainerStatuses, p.Status.ObservedGeneration = []corev1.ContainerStatus{status}, p.Generation
}

func setCondition(c *simulation.Cluster, p *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) {
	now := corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(c.Now)}
	for i, have := range p.Status.Conditions {
		if have.Type == kind {
			if have.Status != status {
				p.Status.Conditions[i] = now
			}
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, now)
}

func edit(c *simulation.Cluster, p *corev1.Pod, change func(*corev1.Pod)) {
	next := &corev1.Pod{}
	if c.Get(context.Background(), client.ObjectKeyFromObject(p), next) == nil {
		change(next)
		c.Put(next)
	}
}

// Pods returns all pods, sorted by name.
func Pods(c *simulation.Cluster) []*corev1.Pod {
	var list corev1.PodList
	_ = c.List(context.Background(), &list) // the fake never fails
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods
}

func mounts(p *corev1.Pod) (n int) {
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			n++
		}
	}
	return n
}

func up(c *simulation.Cluster, name string) bool {
	var node corev1.Node
	return c.Get(context.Background(), client.ObjectKey{Name: name}, &node) == nil && node.Status.Conditions[0].Status == corev1.ConditionTrue
}

// freeNode returns the Ready node with the fewest pods that is not cordoned.
func freeNode(c *simulation.Cluster) (best string) {
	load := map[string]int{}
	for _, p := range Pods(c) {
		load[p.Spec.NodeName]++
	}
	var nodes corev1.NodeList
	_ = c.List(context.Background(), &nodes) // the fake never fails
	for _, n := range nodes.Items {
		free := up(c, n.Name) && !n.Spec.Unschedulable
		if free && (best == "" || load[n.Name] < load[best]) {
			best = n.Name
		}
	}
	return best
}
