// Package kubelet simulates the scheduler and kubelets in a simulated cluster.
package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
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

// annotationFits is set on nodes that have all labels that a pod requires.
const annotationFits = "simulation/fits"

// Turn makes a node Ready or not ready, and creates it if it does not exist. A created node has all labels that
// pods require. The pods of a node that is not ready do not change.
func Turn(c *simulation.Cluster, name string, ready bool) {
	status := corev1.ConditionTrue
	if !ready {
		status = corev1.ConditionUnknown
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotationFits: "any"}}}
	_ = c.Get(context.Background(), client.ObjectKey{Name: name}, node) // on an error, node is a new one
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(c.Now)}}
	c.Put(node)
	for _, p := range Pods(c) {
		if p.Spec.NodeName == name && !ready && podstate.Ready(p) {
			edit(c, p, func(p *corev1.Pod) { setCondition(c, p, corev1.PodReady, corev1.ConditionFalse, "NodeLost") })
		}
	}
}

// FittingNode returns a Ready Node that any pod can be bound to.
func FittingNode(name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotationFits: "any"}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return node
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
	for _, p := range stored(c) {
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
	switch {
	case podstate.Scheduled(p) && !up(c, p.Spec.NodeName), waitsForFinalizer(p):
		return nil
	case podstate.Terminating(p):
		return func() {
			c.Say("    %s is gone", p.Name)
			c.DeleteNow(p)
		}
	case !podstate.Scheduled(p):
		return schedule(c, p, step)
	case len(outdated(p)) > 0:
		return step("runs "+strings.Join(outdated(p), " and "), func(p *corev1.Pod) { run(c, p) })
	case !podstate.Ready(p) && !hasBadImage(p):
		return step("is Ready", func(p *corev1.Pod) { setCondition(c, p, corev1.PodReady, corev1.ConditionTrue, "") })
	case p.Status.ObservedGeneration != p.Generation:
		return step("is seen by its kubelet", func(p *corev1.Pod) { p.Status.ObservedGeneration = p.Generation })
	}
	return nil
}

// schedule returns the next step of the scheduler for a pod. step returns a change of the pod as a step.
func schedule(c *simulation.Cluster, p *corev1.Pod, step func(what string, change func(*corev1.Pod)) func()) func() {
	if len(c.Claims(p)) < mounts(p) {
		return nil // like the scheduler, wait for the claim
	}
	if freeNode(c, p) == "" {
		return Unschedulable(c, p)
	}
	return func() { // other pods may have been bound meanwhile
		node := freeNode(c, p)
		step("is bound to "+node, func(p *corev1.Pod) {
			p.Spec.NodeName = node
			setCondition(c, p, corev1.PodScheduled, corev1.ConditionTrue, "")
		})()
	}
}

// Unschedulable returns the step that reports that a pod cannot be bound to any node; nil if that is reported.
func Unschedulable(c *simulation.Cluster, p *corev1.Pod) func() {
	if _, isReported := podstate.UnschedulableSince(p); isReported {
		return nil
	}
	return func() {
		c.Say("    %s finds no node", p.Name)
		edit(c, p, func(p *corev1.Pod) {
			setCondition(c, p, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable)
		})
	}
}

// waitsForFinalizer reports whether a pod has ended, and exists only because of its finalizers.
func waitsForFinalizer(p *corev1.Pod) bool {
	return podstate.Terminating(p) && len(p.Finalizers) > 0 && ptr.Deref(p.DeletionGracePeriodSeconds, 0) == 0
}

// outdated returns the images of the containers that do not run their image.
func outdated(p *corev1.Pod) (images []string) {
	for _, container := range p.Spec.Containers {
		if status := statusOf(p, container.Name); status == nil || status.Image != container.Image {
			images = append(images, container.Image)
		}
	}
	return images
}

func statusOf(p *corev1.Pod, container string) *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].Name == container {
			return &p.Status.ContainerStatuses[i]
		}
	}
	return nil
}

func hasBadImage(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Image == BadImage })
}

// run starts the containers of a pod, or restarts those whose image has changed. As in a real kubelet, Ready
// keeps its status when an image changes, but not with a bad image.
func run(c *simulation.Cluster, p *corev1.Pod) {
	if len(p.Status.ContainerStatuses) == 0 {
		now := metav1.NewTime(c.Now)
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &now
		setCondition(c, p, corev1.PodReady, corev1.ConditionFalse, "")
	}
	if hasBadImage(p) {
		setCondition(c, p, corev1.PodReady, corev1.ConditionFalse, "")
	}
	for i, container := range p.Spec.Containers {
		have := statusOf(p, container.Name)
		if have == nil {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, started(c, p, i, 0))
		} else if have.Image != container.Image {
			*have = started(c, p, i, have.RestartCount+1)
		}
	}
	p.Status.ObservedGeneration = p.Generation
}

// started returns the status of the ith container of a pod after it was started.
func started(c *simulation.Cluster, p *corev1.Pod, i int, restarts int32) corev1.ContainerStatus {
	container := p.Spec.Containers[i]
	status := corev1.ContainerStatus{Name: container.Name, Image: container.Image, RestartCount: restarts}
	if container.Image == BadImage {
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}
		return status
	}
	status.ImageID, status.ContainerID = "id-of-"+container.Image, fmt.Sprintf("%s-%d", p.UID, restarts)
	if i > 0 {
		status.ContainerID = fmt.Sprintf("%s-%s", status.ContainerID, container.Name)
	}
	status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.Now)}
	return status
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

// stored returns all pods, sorted by name. They are not copies, and must not be changed.
func stored(c *simulation.Cluster) (pods []*corev1.Pod) {
	for _, obj := range c.All {
		if pod, isPod := obj.(*corev1.Pod); isPod {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
	})
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
	return c.Get(context.Background(), client.ObjectKey{Name: name}, &node) == nil && ready(&node)
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// freeNode returns the Ready node with the fewest pods that a pod can be bound to, or "".
func freeNode(c *simulation.Cluster, p *corev1.Pod) (best string) {
	load := map[string]int{}
	for _, obj := range c.All {
		if pod, isPod := obj.(*corev1.Pod); isPod {
			load[pod.Spec.NodeName]++
		}
	}
	var nodes corev1.NodeList
	_ = c.List(context.Background(), &nodes) // the fake never fails
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if Accepts(c, n, p) && (best == "" || load[n.Name] < load[best]) {
			best = n.Name
		}
	}
	return best
}

// reaches reports whether a node can mount the bound volumes of a pod. A volume that is not in the cluster can be
// mounted on any node.
func reaches(c *simulation.Cluster, n *corev1.Node, p *corev1.Pod) bool {
	if n.Annotations[annotationFits] != "" {
		return true
	}
	for _, claim := range c.Claims(p) {
		pv, exists := c.All[objects.Key{Kind: "PersistentVolume", Name: claim.Spec.VolumeName}].(*corev1.PersistentVolume)
		if exists && volume.CheckNodeAffinity(pv, n.Labels) != nil {
			return false
		}
	}
	return true
}

// Accepts reports whether a pod can be bound to a node. It checks the state of the node, its taints, node affinity, and
// the nodes of bound volumes, but no resources, ports or affinity to pods.
func Accepts(c *simulation.Cluster, n *corev1.Node, p *corev1.Pod) bool {
	if !ready(n) || n.Spec.Unschedulable || !reaches(c, n, p) {
		return false
	}
	fits, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n)
	_, isTainted := scheduling.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, p.Spec.Tolerations,
		func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }, true)
	return err == nil && (fits || n.Annotations[annotationFits] != "") && !isTainted
}
