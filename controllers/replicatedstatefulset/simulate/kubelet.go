package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// Machines returns the possible next steps of the StatefulSet controller, the garbage collector, the scheduler and the
// kubelets.
func (s *Simulation) Machines() (moves []func()) {
	if set := s.StatefulSet(); set != nil {
		moves = append(moves, s.controllerMoves(set)...)
	}
	moves = append(moves, s.garbage()...)
	exists := map[types.UID]bool{}
	for _, p := range s.Pods() {
		exists[p.UID] = true
		if move := s.KubeletMove(p); move != nil {
			moves = append(moves, move)
		}
	}
	ends := func(c *Container) func() {
		return func() {
			s.Say("    %s of a deleted pod ends", c.ID)
			s.DB.Kill(c)
		}
	}
	for _, g := range s.DB.Ghosts { // force-deleted pods
		if s.Up(g.Node) {
			moves = append(moves, ends(g))
		}
	}
	for _, name := range sorted(s.DB.Containers) {
		if c := s.DB.Containers[name]; !exists[c.UID] && s.Up(c.Node) {
			moves = append(moves, ends(c))
		}
	}
	return moves
}

// Up reports whether a Node is Ready.
func (s *Simulation) Up(node string) bool {
	n, exists := s.All[objects.Key{Kind: "Node", Name: node}].(*corev1.Node)
	if !exists {
		return false
	}
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// IsCordoned reports whether a Node is cordoned.
func (s *Simulation) IsCordoned(node string) bool {
	n, exists := s.All[objects.Key{Kind: "Node", Name: node}].(*corev1.Node)
	return exists && n.Spec.Unschedulable
}

// place returns the node of a new pod, or "" if there is none. A pod with a claim returns to its node.
func (s *Simulation) place(p *corev1.Pod) (best string) {
	if s.Place != nil {
		return s.Place(p)
	}
	for _, claim := range claimsOf(p) {
		home, exists := s.All[objects.Key{Kind: "Node", Name: s.homes[claim]}].(*corev1.Node)
		if exists && kubelet.Accepts(s.Cluster, home, p) {
			return home.Name
		}
	}
	load := map[string]int{}
	for _, p := range s.Pods() {
		load[p.Spec.NodeName]++
	}
	var nodes corev1.NodeList
	if err := s.List(context.Background(), &nodes); err != nil {
		panic(err) // lists of a simulated cluster never fail
	}
	for _, n := range nodes.Items {
		if kubelet.Accepts(s.Cluster, &n, p) && (best == "" || load[n.Name] < load[best]) {
			best = n.Name
		}
	}
	return best
}

// bind binds a pod and its claims to a node.
func (s *Simulation) bind(p *corev1.Pod) {
	node := s.place(p) // other pods may have been bound meanwhile
	if node == "" {
		return
	}
	s.Edit(p, func(p *corev1.Pod) {
		p.Spec.NodeName = node
		p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	})
	for _, claim := range claimsOf(p) {
		s.homes[claim] = node
	}
}

// scheduling returns the next step of the scheduler for a pod.
func (s *Simulation) scheduling(p *corev1.Pod) func() {
	switch {
	case podstate.Terminating(p):
		return nil
	case s.place(p) != "":
		return func() { s.bind(p) }
	case s.Place == nil:
		return kubelet.Unschedulable(s.Cluster, p)
	}
	return nil
}

// KubeletMove returns the next step of a pod: first the change on its node, then, as another step,
// its report in the API.
func (s *Simulation) KubeletMove(p *corev1.Pod) func() {
	c := s.DB.Container(p)
	switch {
	case !podstate.Scheduled(p):
		return s.scheduling(p)
	case !s.Up(p.Spec.NodeName):
		return nil
	case podstate.Terminating(p):
		return s.endMove(p, c)
	case podstate.Ended(p):
		return nil
	case c == nil && ShowsRunning(p): // it crashed
		return func() { s.Edit(p, func(p *corev1.Pod) { s.crashed(p, mainStatus(p)) }) }
	case c == nil:
		return func() {
			if s.podOf(p.UID) != nil && s.DB.Container(p) == nil {
				s.DB.Begin(p)
			}
		}
	case !shows(p, c), !podstate.Ready(p): // its node may have been reported as missing
		return func() { s.Edit(p, func(p *corev1.Pod) { s.runs(p, c) }) }
	case s.isSizedSince(p):
		return nil
	case p.Status.ObservedGeneration != p.Generation, s.hasRoom(p) && !IsSized(p):
		return func() { s.Edit(p, s.sizes) }
	}
	return nil
}

// endMove returns the next step of a terminating pod.
func (s *Simulation) endMove(p *corev1.Pod, c *Container) func() {
	switch {
	case c != nil && s.Now.Before(podstate.DeletedAt(p).Add(hookOf(p))):
		return nil
	case c != nil:
		return func() {
			s.Say("    %s ends", c.ID)
			s.DB.Kill(c)
		}
	case !podstate.Ended(p):
		return func() { s.Edit(p, s.ended) }
	case *p.DeletionGracePeriodSeconds == 0:
		return nil // it waits for a finalizer
	}
	return func() {
		s.Say("    %s is removed by its kubelet", p.Name)
		s.DeleteNow(p)
	}
}

// hookOf returns how long the preStop hook of a pod sleeps, if the pod has a grace period.
func hookOf(p *corev1.Pod) (longest time.Duration) {
	if *p.DeletionGracePeriodSeconds == 0 {
		return 0
	}
	for i := range p.Spec.Containers {
		hook := p.Spec.Containers[i].Lifecycle
		if hook != nil && hook.PreStop != nil && hook.PreStop.Sleep != nil {
			longest = max(longest, time.Duration(hook.PreStop.Sleep.Seconds)*time.Second)
		}
	}
	return longest
}

// mainOf returns the name of the container in which commands run.
func mainOf(p *corev1.Pod) string {
	if name := p.Annotations[v1alpha1.AnnotationContainer]; name != "" {
		return name
	}
	return p.Spec.Containers[0].Name
}

// statusOf returns the status of a container of a pod. It returns nil if there is none.
func statusOf(p *corev1.Pod, container string) *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if c := &p.Status.ContainerStatuses[i]; c.Name == container {
			return c
		}
	}
	return nil
}

// mainStatus returns the status of the container in which commands run. It returns nil if there is none.
func mainStatus(p *corev1.Pod) *corev1.ContainerStatus { return statusOf(p, mainOf(p)) }

// ShowsRunning reports whether the API shows that the container in which commands run is running.
func ShowsRunning(p *corev1.Pod) bool {
	c := mainStatus(p)
	return c != nil && c.State.Running != nil
}

func shows(p *corev1.Pod, c *Container) bool {
	return ShowsRunning(p) && mainStatus(p).ContainerID == c.ID
}

// runs reports that the containers of a pod run.
func (s *Simulation) runs(p *corev1.Pod, c *Container) {
	s.Say("    %s runs", c.ID)
	p.Status.ObservedGeneration = p.Generation
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
	var statuses []corev1.ContainerStatus
	for i := range p.Spec.Containers {
		container := &p.Spec.Containers[i]
		status := corev1.ContainerStatus{Name: container.Name, ContainerID: c.ID, RestartCount: int32(c.number), Resources: container.Resources.DeepCopy(),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.started)}}}
		if container.Name != mainOf(p) {
			status.ContainerID += "-" + container.Name
			if have := statusOf(p, container.Name); have != nil && have.State.Running != nil {
				status = *have
			}
		}
		statuses = append(statuses, status)
	}
	p.Status.ContainerStatuses = statuses
	p.Status.InitContainerStatuses = initStatuses(p, false)
}

// initStatuses returns the statuses of the init containers of a pod that runs or has ended. Sidecars run as long as the
// pod.
func initStatuses(p *corev1.Pod, hasEnded bool) (statuses []corev1.ContainerStatus) {
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		id := fmt.Sprintf("c-%s-%s", p.UID, c.Name)
		isSidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: id}}
		if isSidecar && !hasEnded {
			state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}
		statuses = append(statuses, corev1.ContainerStatus{Name: c.Name, ContainerID: id, State: state})
	}
	return statuses
}

// crashed reports that containers of a pod have ended.
func (s *Simulation) crashed(p *corev1.Pod, containers ...*corev1.ContainerStatus) {
	for _, c := range containers {
		s.Say("    %s has ended, as its kubelet reports", c.ContainerID)
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: c.ContainerID, ExitCode: 137}}
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
}

// ended reports that a pod has ended.
func (s *Simulation) ended(p *corev1.Pod) {
	var all []*corev1.ContainerStatus
	for i := range p.Status.ContainerStatuses {
		all = append(all, &p.Status.ContainerStatuses[i])
	}
	s.crashed(p, all...)
	p.Status.Phase = corev1.PodFailed
	for _, c := range p.Spec.Containers {
		if statusOf(p, c.Name) == nil {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses,
				corev1.ContainerStatus{Name: c.Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}})
		}
	}
	p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses = initStatuses(p, true), nil
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodFailed"})
}

// maxRoom is the cpu of an empty node.
const maxRoom = 8

// IsSized reports whether all containers of a pod have the resources that the pod requests. The statuses of older
// clusters do not show them.
func IsSized(p *corev1.Pod) bool {
	return !slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
		status := statusOf(p, c.Name)
		return status != nil && status.Resources != nil && !apiequality.Semantic.DeepEqual(*status.Resources, c.Resources)
	})
}

// isSizedSince reports whether a pod had the wanted resources when the simulation began, and has not been changed since.
func (s *Simulation) isSizedSince(p *corev1.Pod) bool {
	generation, isKnown := s.sized[p.UID]
	return isKnown && generation == p.Generation
}

// isResizing reports whether a resize of a pod has not ended.
func isResizing(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress
	})
}

func cpuOf(p *corev1.Pod) (sum int64) {
	for i := range p.Spec.Containers {
		sum += p.Spec.Containers[i].Resources.Requests.Cpu().MilliValue()
	}
	return sum
}

// hasRoom reports whether the node of a pod has the cpu that the pod requests.
func (s *Simulation) hasRoom(p *corev1.Pod) bool { return s.Room == 0 || cpuOf(p) <= s.Room*1000 }

// sizes resizes a changed pod as a kubelet does.
func (s *Simulation) sizes(p *corev1.Pod) {
	p.Status.ObservedGeneration = p.Generation
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
	asked := p.Spec.Containers[0].Resources.Requests.Cpu().String()
	switch {
	case IsSized(p):
		return
	case s.hasRoom(p):
		s.Say("    %s has %s cpu, as its kubelet reports", p.Name, asked)
		for i := range p.Spec.Containers {
			if status := statusOf(p, p.Spec.Containers[i].Name); status != nil {
				status.Resources = p.Spec.Containers[i].Resources.DeepCopy()
			}
		}
		return
	}
	reason := corev1.PodReasonDeferred
	if cpuOf(p) > maxRoom*1000 {
		reason = corev1.PodReasonInfeasible
	}
	s.Say("    %s cannot have %s cpu: %s", p.Name, asked, reason)
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason})
}
