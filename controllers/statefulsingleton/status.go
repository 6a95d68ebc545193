package statefulsingleton

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// mostWaiting is how many waiting pods the status names.
const mostWaiting = 32

// summarize says what the operator sees. Times of conditions that did not
// change stay as they are.
func summarize(w *world, p *plan) v1.StatefulSingletonStatus {
	s := w.object.Status.DeepCopy()
	now := metav1.NewTime(w.now)
	s.ObservedGeneration = w.object.Generation
	s.ActivePod = ""
	if active := activePod(w, p); active != nil {
		s.ActivePod = active.name()
	}
	s.WaitingCount = int32(len(p.waiting))
	s.Waiting = nil
	for _, m := range p.waiting[:min(len(p.waiting), mostWaiting)] {
		s.Waiting = append(s.Waiting, m.name())
	}
	switch in := inTransition(p); {
	case in && s.TransitionTimestamp == nil:
		s.TransitionTimestamp = &now
	case !in && s.TransitionTimestamp != nil:
		if s.ActivePod != "" && s.Holder != nil && s.Holder.Since != nil {
			took := int64(max(s.Holder.Since.Sub(s.TransitionTimestamp.Time).Seconds(), 0))
			s.LastTransitionSeconds = &took
		}
		s.TransitionTimestamp = nil
	}
	s.Phase = phaseOf(w, p)
	for _, c := range []metav1.Condition{available(w, p), progressing(w, p), degraded(w, p),
		unmanagedPod(p), selectorConflict(w), rolloutHeld(p), guardMissing(w)} {
		if c.Status == "" {
			meta.RemoveStatusCondition(&s.Conditions, c.Type)
			continue
		}
		c.ObservedGeneration, c.LastTransitionTime = w.object.Generation, now
		c.Message = cut(c.Message, 4000) // commands at its end name up to 10 pods
		meta.SetStatusCondition(&s.Conditions, c)
	}
	s.Message = messageOf(p, s)
	return *s
}

// activePod is the pod that may run its program; nil if there is none.
func activePod(w *world, p *plan) *member {
	if i := slices.IndexFunc(p.blockers, w.isHolder); i >= 0 {
		return p.blockers[i]
	}
	if len(p.blockers) > 0 {
		return p.blockers[0]
	}
	return nil
}

func phaseOf(w *world, p *plan) v1.Phase {
	switch {
	case w.invalid != "", w.crowded, w.elder() != nil, len(together(p)) > 0, timedOut(w, p):
		return v1.PhaseFailed
	case inTransition(p):
		return v1.PhaseTransitioning
	}
	return v1.PhaseRunning
}

// messageOf is what is going on, in the words of the condition that says most.
func messageOf(p *plan, s *v1.StatefulSingletonStatus) string {
	for _, kind := range []string{v1.ConditionSelectorConflict, v1.ConditionDegraded, v1.ConditionUnmanagedPod, v1.ConditionProgressing} {
		if c := meta.FindStatusCondition(s.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c.Message
		}
	}
	if len(p.blockers)+len(p.waiting) == 0 {
		return "No pods found"
	}
	return meta.FindStatusCondition(s.Conditions, v1.ConditionAvailable).Message
}

func available(w *world, p *plan) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionAvailable, Status: metav1.ConditionFalse}
	active := activePod(w, p)
	switch {
	case len(together(p)) > 0:
		c.Reason, c.Message = v1.ReasonSeveralRunning, severalRun(p)
	case active == nil && len(p.waiting) == 0:
		c.Reason, c.Message = v1.ReasonNoPods, "no pod matches the selector"
	case active == nil:
		c.Reason, c.Message = v1.ReasonNoneActive, "no pod may run its program yet"
	case active.terminating():
		c.Reason, c.Message = v1.ReasonNotReady, fmt.Sprintf("pod %s is being deleted", active.name())
	case active.stuckOn() != "":
		c.Reason, c.Message = v1.ReasonNotReady, fmt.Sprintf("pod %s may run its program, and cannot start: %s; see: kubectl -n %s describe pod %s",
			active.name(), active.stuckOn(), active.pod.Namespace, active.name())
	case podstate.Scheduled(active.pod) && !active.node.Ready:
		c.Reason, c.Message = v1.ReasonNotReady, fmt.Sprintf("nobody can say whether pod %s runs: %s", active.name(), active.nodeTrouble())
	case !podstate.Ready(active.pod):
		c.Reason, c.Message = v1.ReasonNotReady, fmt.Sprintf("pod %s may run its program and is not Ready yet", active.name())
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1.ReasonActive, fmt.Sprintf("pod %s runs", active.name())
	}
	return c
}

func progressing(w *world, p *plan) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionProgressing, Status: metav1.ConditionTrue}
	switch {
	case w.deleting() && len(p.waiting) > 0:
		c.Reason = v1.ReasonReleasing
		c.Message = fmt.Sprintf("the StatefulSingleton is being deleted, and pods still wait for their turn: %s; %s. To start them all at once, together: "+
			"kubectl -n %s annotate statefulsingleton %s %s=true", someOf(p.waiting), waitedFor(w, p), w.object.Namespace, w.object.Name, v1.AnnotationReleaseNow)
	case !inTransition(p):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1.ReasonSteady, "no handover is on its way"
	case comingUp(w, p) != "":
		c.Reason, c.Message = v1.ReasonWaitingForPod, comingUp(w, p)
	case len(p.blockers) > 0:
		c.Reason = v1.ReasonWaitingForStop
		c.Message = fmt.Sprintf("%s; waiting: %s", waitedFor(w, p), someOf(p.waiting))
	default:
		c.Reason, c.Message = v1.ReasonWaitingForPod, hindrance(w, p.waiting[0])
	}
	return c
}

// waitedFor says what has to stop before the next pod starts.
func waitedFor(w *world, p *plan) string {
	active := activePod(w, p)
	if active == nil {
		return "no pod runs its program"
	}
	running := active.running()
	switch {
	case len(p.blockers) > 1:
		return fmt.Sprintf("these pods may be running the program, and have to stop first: %s", standing(p.blockers))
	case !active.terminating() && active.stuckOn() != "":
		return fmt.Sprintf("pod %s has its turn and cannot start: %s", active.name(), active.stuckOn())
	case !active.terminating():
		return fmt.Sprintf("pod %s may be running its program and was not told to stop", active.name())
	case len(running) == 0:
		return fmt.Sprintf("pod %s is being deleted, and the kubelet has not said yet that its containers have stopped", active.name())
	}
	return fmt.Sprintf("pod %s is being deleted; still running: container %s", active.name(), strings.Join(running, ", "))
}

// running are the containers that the kubelet does not show as terminated.
func (m *member) running() []string {
	var names []string
	for _, s := range slices.Concat(m.pod.Status.InitContainerStatuses, m.pod.Status.ContainerStatuses) {
		if s.State.Running != nil {
			names = append(names, s.Name)
		}
	}
	return names
}

// hindrance says why the next pod has not started although nobody runs.
func hindrance(w *world, next *member) string {
	switch {
	case w.mirrorMayReturn() > 0:
		return fmt.Sprintf("a static pod is not shown any more, and if it runs its kubelet shows it again; else pod %s starts in %s", next.name(), mirrorReturns)
	case w.settled() > 0:
		return fmt.Sprintf("the StatefulSingleton is new; pod %s starts in a moment", next.name())
	case next.obstacle() != "":
		return fmt.Sprintf("pod %s is next, and %s", next.name(), next.obstacle())
	}
	return fmt.Sprintf("pod %s starts now", next.name())
}

func degraded(w *world, p *plan) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionDegraded, Status: metav1.ConditionTrue}
	lost := slices.IndexFunc(p.blockers, func(m *member) bool { return podstate.Scheduled(m.pod) && !m.node.Ready })
	unscripted, why := scriptFails(w)
	switch {
	case w.invalid != "":
		c.Reason, c.Message = v1.ReasonInvalidSpec, "the spec cannot be served, and no pod is started: "+w.invalid
	case w.crowded:
		c.Reason = v1.ReasonTooMany
		c.Message = fmt.Sprintf("the namespace has more than %d StatefulSingletons, and this one starts no pod; delete some, or use another namespace", MaxPerNamespace)
	case len(together(p)) > 0:
		c.Reason, c.Message = v1.ReasonSeveralRunning, severalRun(p)+". "+allButOne(w, p)
	case lost >= 0 && p.blockers[lost].node.Missing:
		c.Reason = v1.ReasonNodeLost
		c.Message = fmt.Sprintf("pod %s may be running its program on Node %s, which does not exist any more; another pod starts when it has been gone for %s",
			p.blockers[lost].name(), p.blockers[lost].pod.Spec.NodeName, fenceAfter)
	case lost >= 0:
		m := p.blockers[lost]
		c.Reason = v1.ReasonNodeLost
		c.Message = fmt.Sprintf("pod %s may be running its program on Node %s, which does not answer, and no other pod starts until it has stopped. "+
			"If that machine is off, say so: kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", m.name(), m.pod.Spec.NodeName, m.pod.Spec.NodeName)
	case unscripted != nil:
		c.Reason = v1.ReasonScriptFailing
		c.Message = fmt.Sprintf("the script of gate mode Script does not start in pod %s: %s. It needs an image with a shell at /bin/sh; "+
			"set spec.gateMode to Auto, Binary or Init and delete the pod", unscripted.name(), why)
	case w.refused != "":
		c.Reason, c.Message = v1.ReasonWriteRefused, "the API server refuses what has to be written, and it is tried again: "+w.refused
	case timedOut(w, p):
		c.Reason = v1.ReasonTimeout
		c.Message = fmt.Sprintf("the handover takes longer than maxTransitionTime (%d s): %s; waiting: %s; it goes on as soon as that changes",
			*w.object.Spec.MaxTransitionTime, whatHolds(w, p), someOf(p.waiting))
	case failing(w, p) != "":
		c.Reason, c.Message = v1.ReasonPodFailing, failing(w, p)
	case incomplete(w) != nil:
		m := incomplete(w)
		c.Reason = v1.ReasonContainersMissing
		c.Message = fmt.Sprintf("pod %s has no container %s, which spec.containers says is the program, and waits as a whole, as in gate mode Init; correct spec.containers, or the pod's template",
			m.name(), strings.Join(m.lacks, ", "))
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1.ReasonHealthy, "nothing needs a person"
	}
	return c
}

// incomplete is a pod that waits, or waited, as a whole because it lacks a container of
// the program; nil if there is none.
func incomplete(w *world) *member {
	i := slices.IndexFunc(w.pods, func(m *member) bool { return m.gated && len(m.lacks) > 0 && !podstate.Ended(m.pod) })
	if i < 0 {
		return nil
	}
	return w.pods[i]
}

// failing says that the program of the active pod does not run, or ends again
// and again; "" if it does well. The pod keeps its turn: a crash proves nothing.
func failing(w *world, p *plan) string {
	active := activePod(w, p)
	if active == nil || active.terminating() || podstate.Ready(active.pod) {
		return ""
	}
	why := ""
	if stuck := active.stuckOn(); stuck != "" {
		why = "its program cannot start: " + stuck
	}
	for i := range active.pod.Status.ContainerStatuses {
		s := &active.pod.Status.ContainerStatuses[i]
		if ended := podstate.LastEnd(active.pod, s); why == "" && ended != nil && !s.Ready && slices.Contains(active.program, s.Name) {
			why = fmt.Sprintf("its container %s ended with exit code %d and was started again", s.Name, ended.ExitCode)
		}
	}
	if why == "" {
		return ""
	}
	return fmt.Sprintf("pod %[2]s has its turn, and %[1]s; no other pod starts until it is deleted. See: kubectl -n %[3]s describe pod %[2]s, and: kubectl -n %[3]s logs %[2]s --previous",
		why, active.name(), active.pod.Namespace)
}

func whatHolds(w *world, p *plan) string {
	switch {
	case comingUp(w, p) != "":
		return comingUp(w, p)
	case len(p.blockers) > 0:
		return waitedFor(w, p)
	}
	return hindrance(w, p.waiting[0])
}

// scriptFails finds a pod whose image has no shell for the script.
func scriptFails(w *world) (*member, string) {
	for _, m := range w.pods {
		if podstate.Ended(m.pod) {
			continue
		}
		for i := range m.pod.Status.ContainerStatuses {
			s := &m.pod.Status.ContainerStatuses[i]
			scripted := slices.ContainsFunc(m.pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == s.Name && runsScript(c) })
			why := startError(s)
			if ended := s.LastTerminationState.Terminated; why == "" && ended != nil && !m.granted() {
				why = fmt.Sprintf("it ended with code %d before its turn came", ended.ExitCode)
			}
			if scripted && why != "" {
				return m, why
			}
		}
	}
	return nil, ""
}

// startError is why the runtime could not start a container; "" if it could.
// The reasons are the kubelet's and containerd's, which have no constants.
func startError(s *corev1.ContainerStatus) string {
	if waiting := s.State.Waiting; waiting != nil && waiting.Reason == "RunContainerError" {
		return waiting.Message
	}
	for _, ended := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
		if ended != nil && (ended.Reason == "StartError" || ended.Reason == "ContainerCannotRun") {
			return ended.Message
		}
	}
	return ""
}

func unmanagedPod(p *plan) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionUnmanagedPod}
	found := slices.DeleteFunc(slices.Clone(p.blockers), func(m *member) bool { return m.gated || m.granted() })
	if len(found) > 0 {
		c.Status, c.Reason = metav1.ConditionTrue, v1.ReasonPodWithoutGate
		c.Message = fmt.Sprintf("these pods match and may be running the program without the gate, because they were made before the StatefulSingleton, without its webhook, or before spec.containers named their containers, or came through a gate that is not the operator's: %s. "+
			"No other pod starts until they have stopped", standing(found))
		if how := howToStop(found); how != "" {
			c.Message += ". To go on: " + how
		}
	}
	return c
}

func selectorConflict(w *world) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionSelectorConflict}
	if len(w.rivals) == 0 {
		return c
	}
	c.Status, c.Reason = metav1.ConditionTrue, v1.ReasonSelectorsOverlap
	c.Message = overlapText(w.rivals[0]) + "; this one is the older and decides about the pods of both"
	if elder := w.elder(); elder != nil {
		c.Message = overlapText(elder) + "; that one is the older, and this one starts no pod"
	}
	return c
}

func rolloutHeld(p *plan) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionRolloutHeld}
	for _, m := range p.waiting {
		if m.family.wanted > 1 {
			c.Status, c.Reason = metav1.ConditionTrue, v1.ReasonStandbysNotReady
			c.Message = fmt.Sprintf("%s wants %d pods Ready before its rollout goes on, and one at most can be: the others wait for their turn. "+
				"Set maxUnavailable of a Deployment to one less than its replicas; a StatefulSet with more than one replica needs podManagementPolicy Parallel and updateStrategy OnDelete",
				m.family.name, m.family.wanted)
		}
	}
	return c
}

func guardMissing(w *world) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionGuardMissing}
	if w.unguarded != "" {
		c.Status, c.Reason = metav1.ConditionTrue, v1.ReasonPolicyNotInstalled
		if w.unguarded == noPolicyAPI {
			c.Reason = v1.ReasonNoPolicyAPI
		}
		c.Message = w.unguarded + "; a pod that is created while the operator's webhook is away runs its program at once"
	}
	return c
}

// noPolicyAPI is why there is no guard on an old API server.
const noPolicyAPI = "the API server has no ValidatingAdmissionPolicy, which needs Kubernetes 1.30"

// mostNamed is how many pods a message names.
const mostNamed = 10

// someOf names up to 10 pods.
func someOf(members []*member) string { return list(members, (*member).name) }

// standing names them, and says which are being deleted.
func standing(members []*member) string {
	return list(members, func(m *member) string {
		if m.terminating() {
			return m.name() + " (being deleted)"
		}
		return m.name()
	})
}

func list(members []*member, name func(*member) string) string {
	names := make([]string, 0, mostNamed)
	for _, m := range members[:min(len(members), mostNamed)] {
		names = append(names, name(m))
	}
	text := strings.Join(names, ", ")
	if more := len(members) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// short fits a text into an event, whose note may have 1 kB.
func short(text string) string { return cut(text, 1000) }

func cut(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }
