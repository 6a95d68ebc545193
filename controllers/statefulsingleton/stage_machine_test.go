package statefulsingleton

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
)

// machine is the machine of a Node.
type machine struct {
	name string
	on   bool
	// wasOff reports whether it was ever off.
	wasOff bool
	// reachable reports whether its kubelet can reach the API server.
	reachable bool
	// missingSince is when its Node was deleted; zero while the Node exists.
	missingSince time.Time
	// drained is true while a drain evicts its pods.
	drained bool
}

// body is the real state of a pod on its machine.
type body struct {
	pod  *corev1.Pod // as its kubelet last saw it
	gone bool        // its kubelet has seen that the pod was removed
	main state
	// passed reports whether the init containers are done, including that of mode Init.
	passed   bool
	file     string // the grant, as the gate reads it
	begun    bool   // the program ran once
	restarts int32
	evicted  bool // its kubelet evicts it
	told     bool // SIGTERM was sent
	// refused is true if a restarted kubelet does not accept the pod. Its running
	// containers keep running until the pod is deleted.
	refused bool
	over    bool // nothing runs, and nothing will
}

// state is the state of the program's container.
type state string

const (
	nothing state = ""
	atGate  state = "gate"
	atWork  state = "program"
	crashed state = "crashed"
)

// badImage cannot be pulled.
const badImage = "bad"

func (s *stage) machine(name string) *machine {
	if i := slices.IndexFunc(s.machines, func(m *machine) bool { return m.name == name }); i >= 0 {
		return s.machines[i]
	}
	return &machine{}
}

// kubeletMoves returns the moves of the kubelets and their containers.
func (s *stage) kubeletMoves() (moves []move) {
	for _, p := range s.pods() {
		if s.bodies[p.UID] == nil && s.knows(p.Spec.NodeName) && podstate.Scheduled(p) {
			moves = append(moves, move{"look" + string(p.UID), func() { s.bodies[p.UID] = &body{pod: p} }})
		}
	}
	for _, uid := range s.uids() {
		b := s.bodies[uid]
		if !s.machine(b.pod.Spec.NodeName).on {
			continue
		}
		if s.knows(b.pod.Spec.NodeName) {
			moves = append(moves, s.speak(b)...)
		}
		moves = append(moves, s.run(b)...)
	}
	return moves
}

func (s *stage) uids() (uids []types.UID) {
	for uid := range s.bodies {
		uids = append(uids, uid)
	}
	slices.SortFunc(uids, func(a, b types.UID) int { return strings.Compare(string(a), string(b)) })
	return uids
}

func (s *stage) knows(node string) bool {
	m := s.machine(node)
	return m.on && m.reachable
}

// byUID returns a pod in the API; nil if it was removed.
func (s *stage) byUID(uid types.UID) *corev1.Pod {
	for _, p := range s.pods() {
		if p.UID == uid {
			return p
		}
	}
	return nil
}

// current returns the pod of a body in the API; nil if it was removed.
func (s *stage) current(b *body) *corev1.Pod {
	return s.byUID(b.pod.UID)
}

// speak returns the moves of a kubelet that involve the API server.
func (s *stage) speak(b *body) (moves []move) {
	now, uid := s.current(b), string(b.pod.UID)
	switch {
	case now == nil && !b.gone:
		return []move{{"look" + uid, func() { b.gone = true }}}
	case now == nil && b.over:
		return []move{{"forget" + uid, func() { delete(s.bodies, b.pod.UID) }}}
	case now == nil:
		return nil
	}
	if now.ResourceVersion != b.pod.ResourceVersion {
		moves = append(moves, move{"look" + uid, func() { b.pod = now }})
	}
	if status := b.status(s, now); !apiequality.Semantic.DeepEqual(status, now.Status) {
		return append(moves, move{"report" + uid, func() {
			edit(s, now, func(p *corev1.Pod) { p.Status = status })
		}})
	}
	if b.over && podstate.Terminating(now) && *now.DeletionGracePeriodSeconds > 0 {
		moves = append(moves, move{"final" + uid, func() { s.DeleteNow(now) }})
	}
	return moves
}

// run returns the moves on the machine.
func (s *stage) run(b *body) (moves []move) {
	uid, name := string(b.pod.UID), b.pod.Name
	does := func(what string, do func()) { moves = append(moves, move{what + uid, do}) }
	becomes := func(main state, what string) func() {
		return func() {
			b.main, b.begun = main, b.begun || main == atWork
			s.Say("    %s %s", name, what)
			s.invariant.lives(b)
		}
	}
	held := !b.passed && slices.ContainsFunc(b.pod.Spec.InitContainers, children.IsWait) || children.IsHeld(&b.pod.Spec.Containers[0])
	ends := b.gone || b.evicted || podstate.Terminating(b.pod) || podstate.Ended(b.pod) && !b.refused
	switch {
	case b.over:
		return nil
	case ends && !b.told:
		does("tell", func() { b.told = true })
		return moves
	case b.told:
		what := "stops"
		if b.main == nothing {
			what = "does not start"
		}
		does("exit", func() { b.over = true; becomes(nothing, what)() })
		return moves
	}
	if grant := b.pod.Annotations[v1.AnnotationGrant]; grant != b.file && !b.refused {
		does("file", func() { b.file = grant })
	}
	switch {
	case b.pod.Spec.Containers[0].Image == badImage:
	case b.main == atGate && strings.HasPrefix(b.file, uid+" "):
		does("pass", func() { b.passed = true; becomes(atWork, "runs its program")() })
	case b.refused:
	case b.main == nothing && held:
		does("start", becomes(atGate, "waits at its gate"))
	case b.main == crashed && held:
		does("start", func() { b.restarts++; becomes(atGate, "restarts, and waits at its gate")() })
	case b.main == nothing:
		does("start", becomes(atWork, "runs its program without a gate"))
	case b.main == crashed:
		does("start", func() { b.restarts++; becomes(atWork, "restarts")() })
	}
	return moves
}

// comesHeld reports whether the pod was created with a gate.
func comesHeld(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, children.IsWait) || children.IsHeld(&p.Spec.Containers[0])
}

// status returns the status that the kubelet reports for a pod.
func (b *body) status(s *stage, now *corev1.Pod) corev1.PodStatus {
	status := *now.Status.DeepCopy()
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waits := func(why string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: why}}
	}
	whole := false // the pod waits as a whole
	for _, c := range b.pod.Spec.InitContainers {
		st := corev1.ContainerStatus{Name: c.Name, State: ended, ContainerID: c.Name}
		switch {
		case b.over || b.passed:
		case children.IsWait(c) && b.main == atGate:
			st.State, whole = running, true
		case b.main == nothing:
			st.State, st.ContainerID = waits("PodInitializing"), ""
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, st)
	}
	for _, c := range b.pod.Spec.Containers {
		st := corev1.ContainerStatus{Name: c.Name, RestartCount: b.restarts, ContainerID: fmt.Sprintf("%s-%d", c.Name, b.restarts), State: running}
		switch {
		case b.over || b.main == crashed:
			st.State = ended
		case c.Image == badImage:
			st.State, st.ContainerID = waits("ErrImagePull"), ""
		case b.main == nothing || whole:
			st.State, st.ContainerID = waits("PodInitializing"), ""
		}
		status.ContainerStatuses = append(status.ContainerStatuses, st)
	}
	if b.refused && !podstate.Terminating(b.pod) {
		status.Phase, status.InitContainerStatuses, status.ContainerStatuses = corev1.PodFailed, nil, nil
		setContainersReady(s, &status, false)
		setReady(s, &status, false)
		return status
	}
	// A phase that another client has set is accepted once the kubelet has seen it, and
	// overwritten until then.
	switch {
	case podstate.Ended(b.pod):
		status.Phase = b.pod.Status.Phase
	case b.over:
		status.Phase = corev1.PodFailed
	case b.main != nothing && !whole:
		status.Phase = corev1.PodRunning
	default:
		status.Phase = corev1.PodPending
	}
	ready := b.main == atWork && !b.told
	sandbox := corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, ObservedGeneration: b.pod.Generation}
	if !b.over && b.main != nothing {
		sandbox.Status = corev1.ConditionTrue
	}
	setPodCondition(s, &status, sandbox)
	if !b.over || b.begun || !podstate.Terminating(b.pod) { // otherwise the kubelet reports no more
		setContainersReady(s, &status, ready)
	}
	for _, g := range b.pod.Spec.ReadinessGates {
		ready = ready && slices.ContainsFunc(b.pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == g.ConditionType && c.Status == corev1.ConditionTrue
		})
	}
	setReady(s, &status, ready)
	return status
}

// setContainersReady sets the condition whose reason shows that the phase is the kubelet's
// own.
func setContainersReady(s *stage, status *corev1.PodStatus, ready bool) {
	c := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}
	switch {
	case status.Phase == corev1.PodSucceeded:
		c.Reason = "PodCompleted"
	case status.Phase == corev1.PodFailed:
		c.Reason = "PodFailed"
	case ready:
		c.Status, c.Reason = corev1.ConditionTrue, ""
	}
	setPodCondition(s, status, c)
}

func setReady(s *stage, status *corev1.PodStatus, ready bool) {
	c := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	if ready {
		c.Status = corev1.ConditionTrue
	}
	setPodCondition(s, status, c)
}

func setPodCondition(s *stage, status *corev1.PodStatus, c corev1.PodCondition) {
	c.LastTransitionTime = metav1.NewTime(s.Now.Truncate(time.Second))
	i := slices.IndexFunc(status.Conditions, func(have corev1.PodCondition) bool { return have.Type == c.Type })
	switch {
	case i < 0:
		status.Conditions = append(status.Conditions, c)
	case status.Conditions[i].Status != c.Status || status.Conditions[i].Reason != c.Reason || status.Conditions[i].ObservedGeneration != c.ObservedGeneration:
		status.Conditions[i] = c
	}
}

// crash crashes the program of a pod. Its kubelet restarts it in place.
func (s *stage) crash(b *body) {
	b.main = crashed
	s.Say("    %s crashes", b.pod.Name)
}

// off switches a machine off.
func (s *stage) off(m *machine) {
	m.on, m.wasOff = false, true
	for _, b := range s.bodies {
		if b.pod.Spec.NodeName != m.name || b.over {
			continue
		}
		// The disk still has the record of the pod. Its init containers run again after the
		// start.
		b.main, b.passed, b.file, b.told = nothing, false, "", false
		b.restarts++
	}
}

// boot switches the machine on. The kubelet runs nothing before it has reached the API
// server.
func (s *stage) boot(m *machine) {
	m.on, m.reachable = true, true
	for uid, b := range s.bodies {
		if b.pod.Spec.NodeName != m.name {
			continue
		}
		if now := s.current(b); now != nil {
			b.pod = now
		} else {
			delete(s.bodies, uid)
		}
	}
}
