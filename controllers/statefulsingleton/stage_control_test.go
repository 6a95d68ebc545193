package statefulsingleton

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
)

// controlPlaneMoves returns the moves of the scheduler, the node controller, and the
// garbage collection of orphaned pods.
func (s *stage) controlPlaneMoves() (moves []move) {
	for _, m := range s.machines {
		if node := s.node(m.name); node != nil && isReady(node) != (m.on && m.reachable) {
			moves = append(moves, move{"node" + m.name, func() { s.turn(m) }})
		}
	}
	for _, p := range s.pods() {
		uid := string(p.UID)
		switch {
		case !podstate.Scheduled(p) && !podstate.Terminating(p):
			if free := s.freeNode(); free != "" {
				moves = append(moves, move{"bind" + uid, func() { s.bind(p) }})
			}
		case podstate.Scheduled(p) && s.outOfService(p.Spec.NodeName) && !podstate.Terminating(p) && len(p.Spec.Tolerations) == 0:
			moves = append(moves, move{"evict" + uid, func() {
				s.Say("    %s is evicted from %s, which is out of service", p.Name, p.Spec.NodeName)
				s.disrupt(p, "DeletionByTaintManager")
				s.Delete(p)
			}})
		case s.machine(p.Spec.NodeName).drained && s.evictable(p):
			moves = append(moves, move{"drain" + uid, func() {
				s.Say("    the drain evicts %s", p.Name)
				s.disrupt(p, "EvictionByEvictionAPI")
				s.Delete(s.byUID(p.UID))
			}})
		case s.orphaned(p) && (!podstate.Ended(p) || !podstate.Terminating(p) || *p.DeletionGracePeriodSeconds > 0):
			moves = append(moves, move{"collect" + uid, func() { s.collect(p) }})
		}
	}
	return moves
}

// evictable reports whether the API server allows a drain to evict a pod. The budget blocks
// the eviction of the Ready one.
func (s *stage) evictable(p *corev1.Pod) bool {
	if podstate.Terminating(p) || podstate.Ended(p) {
		return false
	}
	_, kept := s.All[objects.Key{Kind: "PodDisruptionBudget", Namespace: "ns", Name: children.BudgetName("db")}]
	return !kept || !podstate.Ready(p)
}

// orphaned reports whether pod garbage collection deletes a pod: its Node has been missing
// for 40 seconds, or the pod is terminating and its Node is out of service.
func (s *stage) orphaned(p *corev1.Pod) bool {
	missing := s.machine(p.Spec.NodeName).missingSince
	if podstate.Scheduled(p) && !missing.IsZero() && s.Now.Sub(missing) >= 40*time.Second {
		return true
	}
	node := s.node(p.Spec.NodeName)
	return podstate.Terminating(p) && node != nil && s.outOfService(node.Name) && !isReady(node)
}

// collect deletes a pod as pod garbage collection does, without asking the kubelet.
func (s *stage) collect(p *corev1.Pod) {
	s.Say("    %s is deleted by pod garbage collection", p.Name)
	if !podstate.Ended(p) {
		s.disrupt(p, "DeletionByPodGC")
		edit(s, p, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	}
	s.DeleteNow(p)
}

func (s *stage) disrupt(p *corev1.Pod, reason string) {
	edit(s, p, func(p *corev1.Pod) {
		p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
		setPodCondition(s, &p.Status, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason})
	})
}

func (s *stage) bind(p *corev1.Pod) {
	node := s.freeNode()
	s.Say("    %s is bound to %s", p.Name, node)
	edit(s, p, func(p *corev1.Pod) {
		p.Spec.NodeName = node
		setPodCondition(s, &p.Status, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	})
}

// freeNode returns the Ready Node with the fewest pods.
func (s *stage) freeNode() (best string) {
	load := map[string]int{}
	for _, p := range s.pods() {
		load[p.Spec.NodeName]++
	}
	for _, n := range every[corev1.Node](s) {
		if isReady(n) && len(n.Spec.Taints) == 0 && !n.Spec.Unschedulable && (best == "" || load[n.Name] < load[best]) {
			best = n.Name
		}
	}
	return best
}

func (s *stage) node(name string) *corev1.Node {
	node, _ := s.All[objects.Key{Kind: "Node", Name: name}].(*corev1.Node)
	return node
}

func isReady(n *corev1.Node) bool { return nodestate.Of(n).Ready }

func (s *stage) outOfService(name string) bool {
	node := s.node(name)
	return node != nil && nodestate.Of(node).OutOfService
}

func (s *stage) putNode(name string, ready corev1.ConditionStatus) {
	s.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}})
}

// turn updates the Node to the state of its machine.
func (s *stage) turn(m *machine) {
	status, what := corev1.ConditionTrue, "Ready"
	if !m.on || !m.reachable {
		status, what = corev1.ConditionUnknown, "not Ready"
	}
	s.Say("    %s is %s", m.name, what)
	edit(s, s.node(m.name), func(n *corev1.Node) { n.Status.Conditions[0].Status = status })
	for _, p := range s.pods() {
		if p.Spec.NodeName == m.name && what != "Ready" && podstate.Ready(p) {
			edit(s, p, func(p *corev1.Pod) { setReady(s, &p.Status, false) })
		}
	}
}
