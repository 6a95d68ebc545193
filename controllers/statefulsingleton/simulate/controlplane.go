package simulate

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
)

// controlPlaneMoves returns the moves of the scheduler, the node controller, the garbage collector, and the
// garbage collection of orphaned pods.
func (s *Simulation) controlPlaneMoves() (moves []Move) {
	s.findMachines()
	for _, m := range s.Machines {
		if node := s.Node(m.Name); node != nil && isReady(node) != (m.On && m.Reachable) {
			moves = append(moves, Move{"node" + m.Name, func() { s.turn(m) }})
		}
	}
	for _, p := range s.Pods() {
		if what, do := s.placement(p); do != nil {
			moves = append(moves, Move{what + string(p.UID), do})
		}
	}
	return append(moves, s.garbageMoves()...)
}

// garbageMoves returns the moves of the garbage collector. It deletes the dependents of controllers and pods, and not
// those of the object.
func (s *Simulation) garbageMoves() (moves []Move) {
	collector := simulation.Collector{Text: "is deleted with its owner", IsRead: isOwnerRead, Collects: func(obj client.Object) bool {
		return slices.ContainsFunc(obj.GetOwnerReferences(), isOwnerRead) && !s.isForeign(obj.GetUID(), obj.GetLabels())
	}}
	for _, m := range collector.Moves(s.Cluster) {
		moves = append(moves, Move(m))
	}
	return moves
}

// isOwnerRead reports whether an owner is in the cluster if it exists.
func isOwnerRead(owner metav1.OwnerReference) bool {
	if group, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && group.Group == appsv1.GroupName {
		return slices.Contains([]string{"Deployment", "ReplicaSet", "StatefulSet"}, owner.Kind)
	}
	return owner.APIVersion == "v1" && owner.Kind == "Pod"
}

// placement returns the next move of the control plane for a pod, and its name; nil if there is none.
func (s *Simulation) placement(p *corev1.Pod) (string, func()) {
	ends := podstate.Terminating(p)
	switch {
	case !podstate.Scheduled(p) && !ends:
		if s.freeNode(p) != "" {
			return "bind", func() { s.bind(p) }
		}
		if report := kubelet.Unschedulable(s.Cluster, p); report != nil && s.reports {
			return "unschedulable", report
		}
	case podstate.Scheduled(p) && s.OutOfService(p.Spec.NodeName) && !ends && !toleratesOutOfService(p):
		return "evict", func() {
			s.Say("    %s is evicted from %s, which is out of service", p.Name, p.Spec.NodeName)
			s.Disrupt(p, "DeletionByTaintManager")
			s.Delete(p)
		}
	case s.Machine(p.Spec.NodeName).Drained && s.evictable(p):
		return "drain", func() {
			s.Say("    the drain evicts %s", p.Name)
			s.Disrupt(p, "EvictionByEvictionAPI")
			s.Delete(s.PodOf(p.UID))
		}
	case s.orphaned(p) && (!podstate.Ended(p) || !ends || *p.DeletionGracePeriodSeconds > 0):
		return "collect", func() { s.Collect(p) }
	}
	return "", nil
}

// toleratesOutOfService reports whether a pod stays on a Node that is out of service.
func toleratesOutOfService(p *corev1.Pod) bool {
	return tolerates(p, &corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
}

// tolerates reports whether a pod tolerates a taint. A toleration with a value is compared with that of the taint.
func tolerates(p *corev1.Pod, taint *corev1.Taint) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		if t.Effect != "" && t.Effect != taint.Effect {
			return false
		}
		if t.Operator == corev1.TolerationOpExists {
			return t.Key == "" || t.Key == taint.Key
		}
		return t.Key == taint.Key && t.Value == taint.Value
	})
}

// evictable reports whether the API server allows a drain to evict a pod. The budget blocks
// the eviction of the Ready one.
func (s *Simulation) evictable(p *corev1.Pod) bool {
	if podstate.Terminating(p) || podstate.Ended(p) {
		return false
	}
	_, kept := s.All[objects.Key{Kind: "PodDisruptionBudget", Namespace: s.Key.Namespace, Name: children.BudgetName(s.Key.Name)}]
	return !kept || !podstate.Ready(p)
}

// orphaned reports whether pod garbage collection deletes a pod: its Node has been missing
// for 40 seconds, or the pod is terminating and its Node is out of service.
func (s *Simulation) orphaned(p *corev1.Pod) bool {
	missing := s.Machine(p.Spec.NodeName).MissingSince
	if podstate.Scheduled(p) && !missing.IsZero() && s.Now.Sub(missing) >= 40*time.Second {
		return true
	}
	node := s.Node(p.Spec.NodeName)
	return podstate.Terminating(p) && node != nil && s.OutOfService(node.Name) && !isReady(node)
}

// Collect deletes a pod as pod garbage collection does, without asking the kubelet.
func (s *Simulation) Collect(p *corev1.Pod) {
	s.Say("    %s is deleted by pod garbage collection", p.Name)
	if !podstate.Ended(p) {
		s.Disrupt(p, "DeletionByPodGC")
		Edit(s.Cluster, p, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	}
	s.DeleteNow(p)
}

// Disrupt sets condition DisruptionTarget of a pod.
func (s *Simulation) Disrupt(p *corev1.Pod, reason string) {
	Edit(s.Cluster, p, func(p *corev1.Pod) {
		p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
		setPodCondition(s.Now, &p.Status, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason})
	})
}

// bind assigns a pod to a Node.
func (s *Simulation) bind(p *corev1.Pod) {
	node := s.freeNode(p)
	s.Say("    %s is bound to %s", p.Name, node)
	Edit(s.Cluster, p, func(p *corev1.Pod) {
		p.Spec.NodeName = node
		setPodCondition(s.Now, &p.Status, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	})
}

// freeNode returns the Ready Node with the fewest pods that accepts a pod. A Node on which another pod mounts the same
// claim comes first.
func (s *Simulation) freeNode(pod *corev1.Pod) (best string) {
	load, near := map[string]int{}, map[string]bool{}
	for _, p := range Every[corev1.Pod](s.Cluster) {
		load[p.Spec.NodeName]++
		near[p.Spec.NodeName] = near[p.Spec.NodeName] || (p.UID != pod.UID && sharesClaim(p, pod))
	}
	better := func(a, b string) bool {
		if near[a] != near[b] {
			return near[a]
		}
		return load[a] < load[b]
	}
	for _, n := range Every[corev1.Node](s.Cluster) {
		if accepts(s.Cluster, n, pod) && (best == "" || better(n.Name, best)) {
			best = n.Name
		}
	}
	return best
}

// sharesClaim reports whether two pods mount the same claim.
func sharesClaim(a, b *corev1.Pod) bool {
	return slices.ContainsFunc(claimsOf(a), func(name string) bool { return slices.Contains(claimsOf(b), name) })
}

// claimsOf returns the names of the claims that a pod mounts.
func claimsOf(p *corev1.Pod) (names []string) {
	for i := range p.Spec.Volumes {
		if claim := p.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			names = append(names, claim.ClaimName)
		}
	}
	return names
}

// accepts reports whether a Node accepts a new pod.
func accepts(c *simulation.Cluster, n *corev1.Node, p *corev1.Pod) bool {
	is := nodestate.Of(n)
	return is.Ready && !is.OutOfService && kubelet.Accepts(c, n, p)
}

// Node returns the Node of that name; nil if there is none.
func (s *Simulation) Node(name string) *corev1.Node {
	node, _ := s.All[objects.Key{Kind: "Node", Name: name}].(*corev1.Node)
	return node
}

// isReady reports whether a Node is Ready.
func isReady(n *corev1.Node) bool { return nodestate.Of(n).Ready }

// OutOfService reports whether a Node has the taint out-of-service.
func (s *Simulation) OutOfService(name string) bool {
	node := s.Node(name)
	return node != nil && nodestate.Of(node).OutOfService
}

// turn updates the Node to the state of its machine.
func (s *Simulation) turn(m *Machine) {
	status, what := corev1.ConditionTrue, "Ready"
	if !m.On || !m.Reachable {
		status, what = corev1.ConditionUnknown, "not Ready"
	}
	s.Say("    %s is %s", m.Name, what)
	Edit(s.Cluster, s.Node(m.Name), func(n *corev1.Node) {
		for i := range n.Status.Conditions {
			if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
				c.Status = status
			}
		}
	})
	for _, p := range s.Pods() {
		if p.Spec.NodeName == m.Name && what != "Ready" && podstate.Ready(p) {
			Edit(s.Cluster, p, func(p *corev1.Pod) { setReady(s.Now, &p.Status, false) })
		}
	}
}
