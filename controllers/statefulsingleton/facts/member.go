package facts

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// Name returns the name of the pod.
func (m *Member) Name() string { return m.Pod.Name }

// Terminating reports whether the pod is being deleted.
func (m *Member) Terminating() bool { return podstate.Terminating(m.Pod) }

// Lives reports whether the pod is neither being deleted nor has ended. The API server
// accepts grants only for such pods.
func (m *Member) Lives() bool {
	return !m.Terminating() && !podstate.Ended(m.Pod)
}

// Granted reports whether the gate of this pod lets its program start.
func (m *Member) Granted() bool {
	uid, _, ok := strings.Cut(m.Pod.Annotations[v1.AnnotationGrant], " ")
	return ok && uid == string(m.Pod.UID)
}

// HasTurn reports whether the pod has been started: it has the grant, or the Lease names it.
func (m *Member) HasTurn() bool { return m.Granted() || m.HoldsLease }

// Epoch returns the epoch of the pod's grant; 0 without a grant.
func (m *Member) Epoch() int64 {
	_, text, _ := strings.Cut(m.Pod.Annotations[v1.AnnotationGrant], " ")
	epoch, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !m.Granted() {
		return 0
	}
	return epoch
}

// Protected reports whether the pod has our finalizer.
func (m *Member) Protected() bool {
	return controllerutil.ContainsFinalizer(m.Pod, v1.FinalizerPod)
}

// protectedForItself reports whether the pod has the finalizer, and the operator added it to
// this pod. Then the pod counts as granted. The finalizer of a copy was copied.
func (m *Member) protectedForItself() bool {
	if m.Gated && m.IsCopy() {
		return false
	}
	return m.Protected()
}

// IsCopy reports whether the pod was created from the manifest of another pod, including
// its grant. The finalizer was copied as well, so it proves nothing.
func (m *Member) IsCopy() bool {
	return m.Pod.Annotations[v1.AnnotationGrant] != "" && !m.Granted()
}

// IsUnmanaged reports whether nothing held back the program of the pod.
func (m *Member) IsUnmanaged() bool {
	return !m.Gated && !m.Granted()
}

// Ready reports whether our readiness gate of the pod is True.
func (m *Member) Ready() bool {
	return slices.ContainsFunc(m.Pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == v1.ReadinessGate && c.Status == corev1.ConditionTrue
	})
}

// AtGate reports whether the gate of the pod is running, so that its program would start at
// once.
func (m *Member) AtGate() bool {
	if wait := statusOf(m.Pod.Status.InitContainerStatuses, v1.ContainerWait); wait != nil {
		return wait.State.Running != nil
	}
	running := 0
	for _, s := range m.programStatuses() {
		if s.State.Running != nil {
			running++
		}
	}
	return running > 0 && running == len(m.Program)
}

// RunsSince returns when the container of a leased pod has started; zero if it does not run.
func (m *Member) RunsSince() time.Time {
	for _, s := range m.programStatuses() {
		if s.State.Running != nil {
			return s.State.Running.StartedAt.Time
		}
	}
	return time.Time{}
}

// statusOf returns the status of the named container; nil if the kubelet has reported none.
func statusOf(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &statuses[i]
}

// GateLasts reports whether the gate of the pod keeps running until the grant. The script of
// mode Script may not: in an image without a shell it ends shortly after it is reported as
// running. So a pod with the script is granted only when its gate is steady. After the grant,
// the program could be the cause of such an end.
func (m *Member) GateLasts() bool {
	return m.GateSteady || !slices.ContainsFunc(m.Pod.Spec.Containers, RunsScript)
}

// RunsScript reports whether the container runs the script of mode Script.
func RunsScript(c corev1.Container) bool {
	return len(c.Command) > 0 && c.Command[0] == v1.ScriptInPod
}

// Eligible reports whether a waiting pod could start its program now: its Node is Ready,
// the kubelet has reported container statuses, and no container fails to start.
func (m *Member) Eligible() bool {
	switch {
	case !podstate.Scheduled(m.Pod), podstate.Silent(m.Pod):
		return false
	case !m.Node.Ready, m.Node.OutOfService:
		return false
	}
	return m.StuckOn() == ""
}

// StuckOn returns why a waiting pod cannot reach its gate; "" if nothing blocks it. The
// program has not run yet, so it is not the cause.
func (m *Member) StuckOn() string {
	for _, s := range m.Pod.Status.InitContainerStatuses {
		if why := stuckStart(&s); why != "" {
			return why
		}
	}
	for _, s := range m.Pod.Status.ContainerStatuses {
		if why := stuckStart(&s); why != "" && slices.Contains(m.Program, s.Name) {
			return why
		}
	}
	return ""
}

// stuckStart returns why a container does not start; "" if it has started or is being
// created.
func stuckStart(s *corev1.ContainerStatus) string {
	if s.State.Waiting == nil {
		return ""
	}
	switch reason := s.State.Waiting.Reason; reason {
	case "", "PodInitializing", "ContainerCreating":
		return ""
	default:
		return reason + " of container " + s.Name
	}
}

// Begun reports whether a container of the program has ever started. If the pod has no
// container named in spec.containers, any container counts.
func (m *Member) Begun() bool {
	return slices.ContainsFunc(m.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		if len(m.Program) > 0 && !slices.Contains(m.Program, s.Name) {
			return false
		}
		return s.ContainerID != "" || s.State.Running != nil || s.State.Terminated != nil
	})
}

// mayHaveStarted reports whether the program of a blocker has started, or may have started
// because its kubelet has not reported.
func (m *Member) mayHaveStarted() bool {
	if m.Begun() {
		return true
	}
	reported := !podstate.Scheduled(m.Pod) || !podstate.Silent(m.Pod)
	return !reported && (!m.Node.Ready || podstate.Ended(m.Pod))
}

// NeedsClaimOf reports whether the pod cannot reach its gate because another pod uses its
// volume: the pod is on a different Node, or it is unscheduled because the claim has mode
// ReadWriteOncePod.
func (m *Member) NeedsClaimOf(other *Member) bool {
	switch {
	case !podstate.Scheduled(m.Pod):
		return m.sharesClaim(other, corev1.ReadWriteOncePod)
	case m.AtGate(), !m.Eligible(), m.Pod.Spec.NodeName == other.Pod.Spec.NodeName:
		return false
	}
	return m.sharesClaim(other, corev1.ReadWriteOnce)
}

// sharesClaim reports whether both pods mount a claim of that mode.
func (m *Member) sharesClaim(other *Member, as corev1.PersistentVolumeAccessMode) bool {
	for name, mode := range m.Claims {
		if _, shared := other.Claims[name]; shared && mode == as {
			return true
		}
	}
	return false
}

// Inspect sets Gated, Lacks and Program from the spec of the pod. If the object is gone, the
// containers with a gate count as the program.
func (m *Member) Inspect(object *v1.StatefulSingleton) {
	if object == nil {
		object = spec.WithDefaults(&v1.StatefulSingleton{})
		object.Name = m.Pod.Labels[v1.LabelSingleton]
		for i := range m.Pod.Spec.Containers {
			if children.IsHeld(&m.Pod.Spec.Containers[i]) {
				object.Spec.Containers = append(object.Spec.Containers, m.Pod.Spec.Containers[i].Name)
			}
		}
	}
	hasGate := children.HasGate(m.Pod, object)
	m.Leased = hasGate && children.IsLeased(m.Pod, object)
	m.Gated = hasGate && !m.passedGate()
	m.Lacks = children.Lacking(m.Pod, object)
	for _, c := range children.Program(m.Pod, object) {
		m.Program = append(m.Program, c.Name)
	}
}

// CrashLooped reports whether another pod was named to take over, because the program of this one ended again and
// again.
func (m *Member) CrashLooped() bool {
	return m.Pod.Annotations[v1.AnnotationCrashLooped] == string(m.Pod.UID)
}

// isInBackOff reports whether the kubelet pauses before it restarts the program, which has ended by itself.
func (m *Member) isInBackOff() bool {
	return slices.ContainsFunc(m.programStatuses(), func(s *corev1.ContainerStatus) bool {
		return s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff" && !endedByAgent(s)
	})
}

// endedByAgent reports whether the agent ended the container the last time, because it could not renew the Lease.
func endedByAgent(s *corev1.ContainerStatus) bool {
	last := s.LastTerminationState.Terminated
	return last != nil && last.ExitCode == fencing.ExitFenced
}

// isStuck reports whether a container of the program does not start.
func (m *Member) isStuck() bool {
	return slices.ContainsFunc(m.programStatuses(), func(s *corev1.ContainerStatus) bool { return stuckStart(s) != "" })
}

// programStatuses returns the statuses of the program's containers.
func (m *Member) programStatuses() []*corev1.ContainerStatus {
	var found []*corev1.ContainerStatus
	for _, name := range m.Program {
		if s := statusOf(m.Pod.Status.ContainerStatuses, name); s != nil {
			found = append(found, s)
		}
	}
	return found
}

// NeedsFinalizer reports whether a blocker still needs our finalizer.
func (m *Member) NeedsFinalizer() bool {
	switch {
	case m.Protected():
		return false
	case m.Terminating(): // the API server rejects new finalizers on it
		return false
	case IsMirror(m.Pod): // it belongs to its kubelet
		return false
	case m.Holder && !m.HasTurn(): // the finalizer is added with the grant
		return false
	}
	return true
}

// MayMissGrant reports whether the kubelet may have missed the pod's grant, because it has
// not been reminded of it (rule remind).
func (m *Member) MayMissGrant() bool {
	if !m.Gated || !m.Granted() || !m.Lives() {
		return false
	}
	return m.Pod.Annotations[v1.AnnotationReminder] != m.Reminder()
}

// Reminder returns the value of the annotation that reminds of the pod's grant.
func (m *Member) Reminder() string {
	return strconv.FormatInt(m.Epoch(), 10)
}

// RefusedAfterItRan reports whether a kubelet refused a pod that it may have run before.
func (m *Member) RefusedAfterItRan() bool {
	if !podstate.Ended(m.Pod) || podstate.Collected(m.Pod) {
		return false
	}
	return podstate.Silent(m.Pod) && m.Protected()
}

// IsMirror reports whether the pod is the mirror of a static pod, which a kubelet runs
// anyway. The guard admits it too: it must be visible, so that no other pod starts while it
// runs.
func IsMirror(pod metav1.Object) bool {
	_, ok := pod.GetAnnotations()[corev1.MirrorPodAnnotationKey]
	return ok
}
