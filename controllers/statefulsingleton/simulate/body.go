package simulate

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// Body is the real state of a pod on its machine.
type Body struct {
	Pod  *corev1.Pod // as its kubelet last saw it
	Main State
	// Evicted is true if its kubelet evicts it.
	Evicted bool
	// Signalled is true if SIGTERM was sent.
	Signalled bool
	// Refused is true if a restarted kubelet does not accept the pod. Its running
	// containers keep running until the pod is deleted.
	Refused bool
	// Over is true if nothing runs, and nothing will.
	Over bool

	gone bool // its kubelet has seen that the pod was removed
	// passed is true if the init containers are done, including that of mode Init.
	passed   bool
	file     string // the grant, as the gate reads it
	begun    bool   // the program ran once
	restarts int32
	// asFound is true if the state has not changed since the start of the simulation. The kubelet
	// then reports the container statuses that were found.
	asFound bool
	// stuck is true if a container of the program did not start when the simulation started. It never starts.
	stuck bool
	// earlier are the restarts of each container before the simulation started.
	earlier map[string]int32
}

// State is the state of the program's container.
type State string

// The states.
const (
	NotStarted State = ""
	AtGate     State = "gate"
	AtWork     State = "program"
	Crashed    State = "crashed"
)

// CameHeld reports whether the pod was created with a gate.
func CameHeld(p *corev1.Pod) bool { return waitsWhole(p) || waitsInContainer(p) }

// waitsWhole reports whether the pod has the gate of mode Init.
func waitsWhole(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, children.IsWait)
}

// waitsInContainer reports whether a container of the pod has a gate.
func waitsInContainer(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return children.IsHeld(&c) })
}

// bodyOf returns the state of a pod that its status shows. A container that runs behind a gate runs its
// program if the pod may pass the gate.
func bodyOf(p *corev1.Pod, object *v1.StatefulSingleton, holdsLease bool) *Body {
	m := &facts.Member{Pod: p}
	m.Inspect(object)
	b := &Body{Pod: p, file: p.Annotations[v1.AnnotationGrant], asFound: true, Over: podstate.Ended(p), begun: m.Begun(), earlier: map[string]int32{}}
	for _, s := range p.Status.ContainerStatuses {
		b.earlier[s.Name] = s.RestartCount
	}
	mayPass := m.Granted() || holdsLease
	switch {
	case b.Over:
	case isWaiting(p):
		b.Main = AtGate
	case !programRuns(p, m.Program):
		b.stuck = m.StuckOn() != "" || hasTerminated(p, m.Program)
		b.passed = b.begun
	case waitsInContainer(p) && !mayPass:
		b.Main = AtGate
	default:
		b.Main, b.passed = AtWork, true
		b.asFound = isReadyInside(p) || podstate.Terminating(p) // a program that has just started becomes Ready
	}
	return b
}

// isWaiting reports whether the container of the gate of mode Init runs.
func isWaiting(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == v1.ContainerWait && s.State.Running != nil
	})
}

// programRuns reports whether all containers of the program run.
func programRuns(p *corev1.Pod, program []string) bool {
	running := 0
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Running != nil && slices.Contains(program, s.Name) {
			running++
		}
	}
	return running > 0 && running == len(program)
}

// hasTerminated reports whether a container of the program has terminated.
func hasTerminated(p *corev1.Pod, program []string) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Terminated != nil && slices.Contains(program, s.Name)
	})
}

// isReadyInside reports whether all containers of the pod are Ready.
func isReadyInside(p *corev1.Pod) bool {
	c := podstate.Condition(p, corev1.ContainersReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Status returns the status that the kubelet reports for a pod.
func (b *Body) Status(at time.Time, now *corev1.Pod) corev1.PodStatus {
	status := *now.Status.DeepCopy()
	if b.asFound && !b.Refused {
		b.setReadiness(at, &status, isReadyInside(now))
		return status
	}
	if b.Refused && !podstate.Terminating(b.Pod) {
		status.Phase, status.InitContainerStatuses, status.ContainerStatuses = corev1.PodFailed, nil, nil
		setContainersReady(at, &status, false)
		setReady(at, &status, false)
		return status
	}
	whole := b.setInits(at, &status)
	b.setContainers(at, &status, whole)
	// A phase that another client has set is accepted once the kubelet has seen it, and
	// overwritten until then.
	switch {
	case podstate.Ended(b.Pod):
		status.Phase = b.Pod.Status.Phase
	case b.Over:
		status.Phase = corev1.PodFailed
	case b.Main != NotStarted && !whole:
		status.Phase = corev1.PodRunning
	default:
		status.Phase = corev1.PodPending
	}
	ready := b.Main == AtWork && !b.Signalled
	sandbox := corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, ObservedGeneration: b.Pod.Generation}
	if !b.Over && b.Main != NotStarted {
		sandbox.Status = corev1.ConditionTrue
	}
	setPodCondition(at, &status, sandbox)
	if !b.Over || b.begun || !podstate.Terminating(b.Pod) { // otherwise the kubelet reports no more
		setContainersReady(at, &status, ready)
	}
	b.setReadiness(at, &status, ready)
	return status
}

// setReadiness sets condition Ready. It is True if the containers are Ready and the readiness gates are True.
func (b *Body) setReadiness(at time.Time, status *corev1.PodStatus, ready bool) {
	for _, g := range b.Pod.Spec.ReadinessGates {
		ready = ready && slices.ContainsFunc(b.Pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == g.ConditionType && c.Status == corev1.ConditionTrue
		})
	}
	setReady(at, status, ready)
}

// setInits sets the statuses of the init containers, and reports whether the pod waits as a whole.
func (b *Body) setInits(at time.Time, status *corev1.PodStatus) (whole bool) {
	before := status.InitContainerStatuses
	status.InitContainerStatuses = nil
	for _, c := range b.Pod.Spec.InitContainers {
		serves := ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
		st := containerStatus(before, c.Name)
		switch {
		case b.Main == NotStarted && !b.Over && !b.passed:
			wait(&st, "PodInitializing")
		case children.IsWait(c) && b.Main == AtGate && !b.Over && !b.passed:
			start(&st, at, c.Name)
			whole = true
		case serves && !b.Over:
			start(&st, at, c.Name)
		default:
			end(&st, c.Name)
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, st)
	}
	return whole
}

// setContainers sets the statuses of the containers. whole is true if the pod waits as a whole.
func (b *Body) setContainers(at time.Time, status *corev1.PodStatus, whole bool) {
	before := status.ContainerStatuses
	status.ContainerStatuses = nil
	for _, c := range b.Pod.Spec.Containers {
		st := containerStatus(before, c.Name)
		count := b.earlier[c.Name] + b.restarts
		if st.RestartCount != count {
			st.RestartCount, st.ContainerID = count, ""
		}
		id := fmt.Sprintf("%s-%d", c.Name, count)
		switch {
		case b.Over || b.Main == Crashed:
			end(&st, id)
		case c.Image == kubelet.BadImage:
			wait(&st, "ErrImagePull")
		case b.Main == NotStarted || whole:
			wait(&st, "PodInitializing")
		default:
			start(&st, at, id)
		}
		status.ContainerStatuses = append(status.ContainerStatuses, st)
	}
	for i := range status.EphemeralContainerStatuses {
		if st := &status.EphemeralContainerStatuses[i]; b.Over {
			end(st, st.Name)
		}
	}
}

// containerStatus returns the status of a container, or a new one.
func containerStatus(statuses []corev1.ContainerStatus, name string) corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return statuses[i]
		}
	}
	return corev1.ContainerStatus{Name: name}
}

// start makes a container run, unless it runs.
func start(st *corev1.ContainerStatus, at time.Time, id string) {
	if st.State.Running == nil {
		st.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at.Truncate(time.Second))}}
	}
	if st.ContainerID == "" {
		st.ContainerID = id
	}
}

// end makes a container terminated, unless it is.
func end(st *corev1.ContainerStatus, id string) {
	if st.State.Terminated == nil {
		st.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}
	}
	if st.ContainerID == "" {
		st.ContainerID = id
	}
}

// wait makes a container wait for a reason.
func wait(st *corev1.ContainerStatus, reason string) {
	if st.State.Waiting == nil || st.State.Waiting.Reason != reason {
		st.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	st.ContainerID = ""
}

// setContainersReady sets the condition whose reason shows that the phase is the kubelet's
// own.
func setContainersReady(at time.Time, status *corev1.PodStatus, ready bool) {
	c := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}
	switch {
	case status.Phase == corev1.PodSucceeded:
		c.Reason = "PodCompleted"
	case status.Phase == corev1.PodFailed:
		c.Reason = "PodFailed"
	case ready:
		c.Status, c.Reason = corev1.ConditionTrue, ""
	}
	setPodCondition(at, status, c)
}

// setReady sets condition Ready, unless it has that status.
func setReady(at time.Time, status *corev1.PodStatus, ready bool) {
	c := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	if ready {
		c.Status = corev1.ConditionTrue
	}
	i := slices.IndexFunc(status.Conditions, func(have corev1.PodCondition) bool { return have.Type == c.Type })
	if i < 0 || status.Conditions[i].Status != c.Status {
		setPodCondition(at, status, c)
	}
}

// setPodCondition sets a condition, unless it is the same.
func setPodCondition(at time.Time, status *corev1.PodStatus, c corev1.PodCondition) {
	c.LastTransitionTime = metav1.NewTime(at.Truncate(time.Second))
	i := slices.IndexFunc(status.Conditions, func(have corev1.PodCondition) bool { return have.Type == c.Type })
	switch {
	case i < 0:
		status.Conditions = append(status.Conditions, c)
	case status.Conditions[i].Status != c.Status || status.Conditions[i].Reason != c.Reason || status.Conditions[i].ObservedGeneration != c.ObservedGeneration:
		status.Conditions[i] = c
	}
}
