package statefulsingleton

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// maxWaiting is the max number of waiting pods in the status.
const maxWaiting = 32

// summarize returns the new status. Transition times of unchanged conditions are kept.
func summarize(f *facts) v1.StatefulSingletonStatus {
	s := f.object.Status.DeepCopy()
	now := metav1.NewTime(f.now)
	s.ObservedGeneration = f.object.Generation
	s.ActivePod = ""
	if f.active != nil {
		s.ActivePod = f.active.name()
	}
	s.WaitingCount = int32(len(f.waiting))
	s.Waiting = nil
	for _, m := range f.waiting[:min(len(f.waiting), maxWaiting)] {
		s.Waiting = append(s.Waiting, m.name())
	}
	timeHandover(f, s)
	s.Replaced = keptReplaced(f)
	s.Orders = releaseOrder{f.object}.orders(f.now)
	s.Phase = phaseOf(f)
	for _, c := range withKstatus(f, []metav1.Condition{available(f), progressing(f), degraded(f),
		unmanagedPod(f), selectorConflict(f), rolloutHeld(f), guardMissing(f)}) {
		c.ObservedGeneration, c.LastTransitionTime = f.object.Generation, now
		c.Message = excerpt.Of(c.Message, 4000) // trailing commands name up to 10 pods
		meta.SetStatusCondition(&s.Conditions, c)
	}
	s.Message = messageOf(f, s)
	return *s
}

// timeHandover sets when the handover began, and how long the last one took.
func timeHandover(f *facts, s *v1.StatefulSingletonStatus) {
	began := s.TransitionTimestamp
	if f.handover {
		if began == nil {
			s.TransitionTimestamp = ptr.To(metav1.NewTime(f.now))
		}
		return
	}
	if began == nil {
		return
	}
	if took, granted := handoverTook(s.Holder, began); granted && s.ActivePod != "" {
		s.LastTransitionSeconds = ptr.To(int64(took.Seconds()))
	}
	s.TransitionTimestamp = nil
}

// handoverTook returns the duration of a handover until the grant. granted is false if no
// grant ended it.
func handoverTook(holder *v1.Holder, began *metav1.Time) (took time.Duration, granted bool) {
	if holder == nil || holder.Since == nil {
		return 0, false
	}
	return max(holder.Since.Sub(began.Time), 0), true
}

func phaseOf(f *facts) v1.Phase {
	switch {
	case f.invalid != "", f.crowded, f.elder() != nil, f.several(), f.late:
		return v1.PhaseFailed
	case f.handover:
		return v1.PhaseTransitioning
	}
	return v1.PhaseRunning
}

// messageOf returns the message of the most important condition.
func messageOf(f *facts, s *v1.StatefulSingletonStatus) string {
	for _, kind := range []string{v1.ConditionSelectorConflict, v1.ConditionDegraded, v1.ConditionUnmanagedPod, v1.ConditionProgressing} {
		if c := meta.FindStatusCondition(s.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c.Message
		}
	}
	if len(f.blockers)+len(f.waiting) == 0 {
		return "No pods found"
	}
	return meta.FindStatusCondition(s.Conditions, v1.ConditionAvailable).Message
}

func available(f *facts) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionAvailable, Status: metav1.ConditionFalse}
	switch {
	case f.several():
		c.Reason, c.Message = v1.ReasonSeveralRunning, severalRun(f)
	case f.active != nil:
		c.Reason, c.Message = v1.ReasonNotReady, f.active.whyNotReady()
	case len(f.waiting) == 0:
		c.Reason, c.Message = v1.ReasonNoPods, "no pod matches the selector"
	default:
		c.Reason, c.Message = v1.ReasonNoneActive, "no pod may run its program yet"
	}
	if c.Message == "" {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1.ReasonActive, fmt.Sprintf("pod %s is running", f.active.name())
	}
	return c
}

// whyNotReady returns why the program of the active pod does not run, or may not run; "" if
// it runs.
func (m *member) whyNotReady() string {
	switch {
	case m.terminating():
		return fmt.Sprintf("pod %s is being deleted", m.name())
	case m.stuckOn() != "":
		return fmt.Sprintf("pod %s may run its program, but cannot start: %s; see: kubectl -n %s describe pod %s",
			m.name(), m.stuckOn(), m.pod.Namespace, m.name())
	case podstate.Scheduled(m.pod) && !m.node.Ready:
		return fmt.Sprintf("cannot determine whether pod %s is running: %s", m.name(), m.nodeTrouble())
	case !podstate.Ready(m.pod):
		return fmt.Sprintf("pod %s may run its program, but is not Ready yet", m.name())
	}
	return ""
}

func progressing(f *facts) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionProgressing, Status: metav1.ConditionTrue}
	switch {
	case f.deleting() && f.isNeeded():
		c.Reason, c.Message = v1.ReasonReleasing, releasing(f)
	case !f.handover:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1.ReasonSteady, "no handover in progress"
	case comingUp(f) != "":
		c.Reason, c.Message = v1.ReasonWaitingForPod, comingUp(f)
	case len(f.blockers) > 0:
		c.Reason = v1.ReasonWaitingForStop
		c.Message = fmt.Sprintf("%s; waiting: %s", waitedFor(f), someOf(f.waiting))
	default:
		c.Reason, c.Message = v1.ReasonWaitingForPod, hindrance(f, f.waiting[0])
	}
	return c
}

// releasing returns what keeps a terminating object, and the command that ends that.
func releasing(f *facts) string {
	now := fmt.Sprintf("kubectl -n %s annotate statefulsingleton %s %s=true", f.object.Namespace, f.object.Name, v1.AnnotationReleaseNow)
	if len(f.waiting) == 0 {
		return fmt.Sprintf("the StatefulSingleton is being deleted, and remains until no pod is stopping: %s. To delete it immediately, with the risk that two programs run at the same time: %s",
			waitedFor(f), now)
	}
	return fmt.Sprintf("the StatefulSingleton is being deleted, and remains until no pod waits for its turn: %s; %s. New pods wait as well: "+
		"scale their owner to one pod. To start all waiting pods at the same time: %s", someOf(f.waiting), waitedFor(f), now)
}

// waitedFor returns what has to stop before the next pod starts.
func waitedFor(f *facts) string {
	active := f.active
	if active == nil {
		return "no pod runs its program"
	}
	running := active.running()
	switch {
	case len(f.blockers) > 1:
		return fmt.Sprintf("pods that may be running the program have to stop first: %s", listed(f.blockers))
	case !active.terminating() && active.stuckOn() != "":
		return fmt.Sprintf("pod %s has its turn, but cannot start: %s", active.name(), active.stuckOn())
	case !active.terminating():
		return fmt.Sprintf("pod %s may be running its program and was not asked to stop", active.name())
	case len(running) == 0:
		return fmt.Sprintf("pod %s is being deleted, and the kubelet has not yet reported that its containers have stopped", active.name())
	}
	return fmt.Sprintf("pod %s is being deleted; still running: container %s", active.name(), strings.Join(running, ", "))
}

// running returns the names of the containers that the kubelet reports as running.
func (m *member) running() []string {
	var names []string
	for _, s := range slices.Concat(m.pod.Status.InitContainerStatuses, m.pod.Status.ContainerStatuses) {
		if s.State.Running != nil {
			names = append(names, s.Name)
		}
	}
	return names
}

// hindrance returns why the next pod has not started although no program runs.
func hindrance(f *facts, next *member) string {
	switch {
	case f.mirrorMayReturn() > 0:
		return fmt.Sprintf("waiting up to %s for the kubelet to report a static pod again, which may still be running; pod %s is next", mirrorReturns, next.name())
	case f.settlesIn() > 0:
		return fmt.Sprintf("the StatefulSingleton is new; pod %s starts in a moment", next.name())
	case next.obstacle() != "":
		return fmt.Sprintf("pod %s is next, but %s", next.name(), next.obstacle())
	}
	if granted, _ := f.next(); granted == nil {
		return fmt.Sprintf("pod %s is next, and starts when it has reached its gate", next.name())
	}
	return fmt.Sprintf("pod %s starts now", next.name())
}

// degraded returns condition Degraded with the most severe problem.
func degraded(f *facts) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionDegraded, Status: metav1.ConditionTrue}
	for _, trouble := range troubles {
		if c.Reason, c.Message = trouble(f); c.Reason != "" {
			return withCauses(f, c)
		}
	}
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1.ReasonHealthy, "no problems detected"
	return withCauses(f, c)
}

// troubles are the checks for problems, most severe first. Each returns the reason and
// message of condition Degraded; "" if it finds no problem.
var troubles = []func(*facts) (reason, message string){
	notServed, severalRunning, nodeLost, scriptFailing, writeRefused, writeUndone, tooLate, podFailing, endedByNode, containersMissing, notReplacedFirst,
}

func notServed(f *facts) (reason, message string) {
	switch {
	case f.invalid != "":
		return v1.ReasonInvalidSpec, "the spec is invalid, and no pod is started: " + f.invalid
	case f.crowded:
		return v1.ReasonTooMany, fmt.Sprintf("the namespace has more than %d StatefulSingletons, and this one starts no pod; delete some, or use another namespace", MaxPerNamespace)
	}
	return "", ""
}

func severalRunning(f *facts) (reason, message string) {
	if !f.several() {
		return "", ""
	}
	return v1.ReasonSeveralRunning, severalRun(f) + ". " + allButOne(f)
}

func nodeLost(f *facts) (reason, message string) {
	m := onLostNode(f)
	if m == nil {
		return "", ""
	}
	node := m.pod.Spec.NodeName
	if m.node.Missing {
		return v1.ReasonNodeLost, fmt.Sprintf("pod %s may be running its program on Node %s, which no longer exists; another pod starts when the Node has been missing for %s",
			m.name(), node, fenceAfter)
	}
	return v1.ReasonNodeLost, fmt.Sprintf("pod %s may be running its program on Node %s, which is unreachable, and no other pod starts until this one has stopped. "+
		"If the machine is off, taint the Node: kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", m.name(), node, node)
}

// onLostNode returns the first pod that has to stop and whose Node is unreachable or
// missing; nil if there is none.
func onLostNode(f *facts) *member {
	for _, m := range f.blockers {
		if podstate.Scheduled(m.pod) && !m.node.Ready {
			return m
		}
	}
	return nil
}

func scriptFailing(f *facts) (reason, message string) {
	m, why := scriptFails(f)
	if m == nil {
		return "", ""
	}
	return v1.ReasonScriptFailing, fmt.Sprintf("the script of gate mode Script does not start in pod %s: %s. It needs an image with a shell at /bin/sh; "+
		"set spec.gateMode to Auto, Binary or Init and delete the pod", m.name(), why)
}

func writeRefused(f *facts) (reason, message string) {
	if f.refused == "" {
		return "", ""
	}
	return v1.ReasonWriteRefused, "the API server refuses a write, which will be retried: " + f.refused
}

// writeUndone reports writes that an admission webhook or policy reverts.
func writeUndone(f *facts) (reason, message string) {
	if message = f.undone.Message(); message == "" {
		return "", ""
	}
	return v1.ReasonWriteRefused, message
}

func tooLate(f *facts) (reason, message string) {
	if !f.late {
		return "", ""
	}
	return v1.ReasonTimeout, lateText(f) + "; it continues as soon as this changes"
}

// lateText returns the message about a handover that takes too long, and the reason.
func lateText(f *facts) string {
	late := fmt.Sprintf("the handover takes longer than maxTransitionTime (%d s): %s", *f.object.Spec.MaxTransitionTime, whatHolds(f))
	if len(f.waiting) == 0 {
		return late
	}
	return late + "; waiting: " + someOf(f.waiting)
}

func podFailing(f *facts) (reason, message string) {
	why := failing(f)
	if why == "" {
		return "", ""
	}
	return v1.ReasonPodFailing, why
}

// containersMissing reports a pod that waits, or waited, as a whole because it lacks a
// container of the program.
func containersMissing(f *facts) (reason, message string) {
	i := slices.IndexFunc(f.pods, func(m *member) bool { return m.gated && len(m.lacks) > 0 && !podstate.Ended(m.pod) })
	if i < 0 {
		return "", ""
	}
	return v1.ReasonContainersMissing, fmt.Sprintf("pod %s has no container %s, which spec.containers lists as part of the program, and waits as a whole, as in gate mode Init; correct spec.containers or the template of the pod",
		f.pods[i].name(), strings.Join(f.pods[i].lacks, ", "))
}

// failing returns why the program of the active pod does not run or keeps crashing; "" if
// it is healthy. The pod keeps its turn, because a crash proves nothing.
func failing(f *facts) string {
	active := f.active
	if active == nil || active.terminating() || podstate.Ready(active.pod) {
		return ""
	}
	why := active.whyFailing()
	if why == "" {
		return ""
	}
	return fmt.Sprintf("pod %[2]s has its turn, but %[1]s; no other pod starts until it is deleted. See: kubectl -n %[3]s describe pod %[2]s, and: kubectl -n %[3]s logs %[2]s --previous",
		why, active.name(), active.pod.Namespace)
}

// whyFailing returns why the program of a pod does not run; "" if it is healthy.
func (m *member) whyFailing() string {
	if stuck := m.stuckOn(); stuck != "" {
		return "its program cannot start: " + stuck
	}
	for i := range m.pod.Status.ContainerStatuses {
		s := &m.pod.Status.ContainerStatuses[i]
		if s.Ready || !slices.Contains(m.program, s.Name) {
			continue
		}
		if ended := podstate.LastEnd(m.pod, s); ended != nil {
			return fmt.Sprintf("its container %s ended with exit code %d and was restarted", s.Name, ended.ExitCode)
		}
	}
	return ""
}

func whatHolds(f *facts) string {
	switch {
	case comingUp(f) != "":
		return comingUp(f)
	case len(f.blockers) > 0:
		return waitedFor(f)
	}
	return hindrance(f, f.waiting[0])
}

// comingUp returns why the old pod of a rollout, or a pod that has to leave its Node, keeps
// running: its successor has not reached its gate. It returns "" if the handover does not
// wait for that.
func comingUp(f *facts) string {
	if len(f.blockers) != 1 || !f.blockers[0].lives() {
		return ""
	}
	old := f.blockers[0]
	next := f.nextFor(old)
	switch {
	case next == nil && old != f.leaving:
		return ""
	case next == nil:
		return fmt.Sprintf("%s until its ReplicaSet has created a pod that waits on another Node; see: kubectl -n %s describe replicaset %s",
			f.runsOn(old), old.pod.Namespace, old.family.replicaSet) + f.toStay(old)
	case next.obstacle() != "":
		return fmt.Sprintf("%s; pod %s will replace it, but %s", f.runsOn(old), next.name(), next.obstacle()) + f.toStay(old)
	case !next.rests:
		return fmt.Sprintf("%s until its replacement, pod %s, waits at its gate", f.runsOn(old), next.name()) + f.toStay(old)
	}
	return ""
}

// nextFor returns the successor of an old pod; nil if there is none. In a rollout the
// successor has to be the next pod.
func (f *facts) nextFor(old *member) *member {
	found := f.successors(old)
	if len(found) == 0 || (old != f.leaving && found[0] != f.waiting[0]) {
		return nil
	}
	return found[0]
}

// scriptFails returns a pod in which the script of mode Script does not start, and the
// reason; nil if there is none.
func scriptFails(f *facts) (*member, string) {
	for _, m := range f.pods {
		if podstate.Ended(m.pod) {
			continue
		}
		for i := range m.pod.Status.ContainerStatuses {
			s := &m.pod.Status.ContainerStatuses[i]
			scripted := slices.ContainsFunc(m.pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == s.Name && runsScript(c) })
			if why := m.scriptFault(s); scripted && why != "" {
				return m, why
			}
		}
	}
	return nil, ""
}

// scriptFault returns why a container with the script does not start; "" if it does. After
// the grant, a container that ends may be the program.
func (m *member) scriptFault(s *corev1.ContainerStatus) string {
	if why := startError(s); why != "" {
		return why
	}
	if ended := s.LastTerminationState.Terminated; ended != nil && !m.granted() {
		return fmt.Sprintf("it ended with exit code %d before its turn", ended.ExitCode)
	}
	return ""
}

// startError returns why the runtime could not start a container; "" if it could. The
// reasons come from the kubelet and containerd, which have no constants for them.
func startError(s *corev1.ContainerStatus) string {
	if waiting := s.State.Waiting; waiting != nil && waiting.Reason == "RunContainerError" {
		return waiting.Message
	}
	for _, ended := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
		if ended == nil {
			continue
		}
		switch ended.Reason {
		case "StartError", "ContainerCannotRun":
			return ended.Message
		}
	}
	return ""
}

// obstacle returns what keeps a waiting pod from its gate; "" if nothing does.
func (m *member) obstacle() string {
	switch {
	case !podstate.Scheduled(m.pod):
		return fmt.Sprintf("has no Node yet; see: kubectl -n %s describe pod %s", m.pod.Namespace, m.name())
	case !m.node.Ready, m.node.OutOfService:
		return m.nodeTrouble()
	case m.stuckOn() != "":
		return fmt.Sprintf("cannot start: %s; see: kubectl -n %s describe pod %s", m.stuckOn(), m.pod.Namespace, m.name())
	}
	return ""
}

// nodeTrouble returns why the Node of the pod does not report its state.
func (m *member) nodeTrouble() string {
	if m.node.Missing {
		return fmt.Sprintf("its Node %s no longer exists", m.pod.Spec.NodeName)
	}
	return fmt.Sprintf("its Node %s is unreachable", m.pod.Spec.NodeName)
}

// unlessFound returns the condition for the case that nothing of its kind is found.
func unlessFound(kind, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: v1.ReasonHealthy, Message: message}
}

func unmanagedPod(f *facts) metav1.Condition {
	c := unlessFound(v1.ConditionUnmanagedPod, "no pod may be running the program without the gate")
	found := slices.DeleteFunc(slices.Clone(f.blockers), func(m *member) bool { return !m.isUnmanaged() })
	if len(found) > 0 {
		c.Status, c.Reason = metav1.ConditionTrue, v1.ReasonPodWithoutGate
		c.Message = fmt.Sprintf("these pods match the selector and may be running the program without the gate, because they were created before the StatefulSingleton, without its webhook, before spec.containers listed their containers, or with a gate that is not the operator's: %s. "+
			"No other pod starts until they have stopped", listed(found))
		if how := howToStop(found); how != "" {
			c.Message += ". To continue: " + how
		}
	}
	return c
}

func selectorConflict(f *facts) metav1.Condition {
	c := unlessFound(v1.ConditionSelectorConflict, "no pod can match another StatefulSingleton as well")
	if len(f.rivals) == 0 {
		return c
	}
	c.Status, c.Reason = metav1.ConditionTrue, v1.ReasonSelectorsOverlap
	c.Message = overlapText(f.rivals[0]) + "; this one is older and controls the pods of both"
	if elder := f.elder(); elder != nil {
		c.Message = overlapText(elder) + "; that one is older, and this one starts no pod"
	}
	return c
}

func rolloutHeld(f *facts) metav1.Condition {
	c := unlessFound(v1.ConditionRolloutHeld, "no rollout is blocked by pods that wait for their turn")
	ownerUnknown(f, &c)
	for _, m := range f.waiting {
		if m.family.wanted > 1 {
			c.Status, c.Reason = metav1.ConditionTrue, v1.ReasonStandbysNotReady
			c.Message = fmt.Sprintf("%s wants %d Ready pods before its rollout continues, but at most one can be Ready: the others wait for their turn. "+
				"Set maxUnavailable of a Deployment to one less than its replicas; a StatefulSet with more than one replica needs podManagementPolicy Parallel and updateStrategy OnDelete",
				m.family.name, m.family.wanted)
		}
	}
	return c
}

func guardMissing(f *facts) metav1.Condition {
	c := unlessFound(v1.ConditionGuardMissing, "the API server refuses pods without the gate")
	if f.unguarded.Message != "" {
		c.Status, c.Reason = metav1.ConditionTrue, f.unguarded.Reason
		c.Message = f.unguarded.Message + "; a pod that is created while the operator's webhook is unavailable runs its program immediately"
	}
	return c
}

func severalRun(f *facts) string {
	return fmt.Sprintf("%d pods may be running the program at the same time, but at most one should: %s", len(f.started), listed(f.started))
}

// allButOne returns how to stop all pods that may be running except one: the holder, or the
// oldest pod that is not terminating.
func allButOne(f *facts) string {
	stay := slices.DeleteFunc(slices.Clone(f.started), (*member).terminating)
	if i := slices.IndexFunc(stay, func(m *member) bool { return m.holder }); i > 0 {
		stay[0], stay[i] = stay[i], stay[0]
	}
	if len(stay) < 2 {
		return "Wait until the pods that are being deleted have stopped"
	}
	return "Stop all but one: " + howToStop(stay[1:])
}

// howToStop returns the command that stops pods. A static pod is stopped on its Node.
func howToStop(members []*member) string {
	var ways, names []string
	for _, m := range members {
		switch {
		case isMirror(m.pod):
			ways = append(ways, fmt.Sprintf("remove the manifest of static pod %s from the kubelet's manifest directory on Node %s", m.name(), m.pod.Spec.NodeName))
		case !m.terminating() && len(names) < maxNamed:
			names = append(names, m.name())
		}
	}
	if len(names) > 0 {
		ways = slices.Insert(ways, 0, fmt.Sprintf("kubectl -n %s delete pod %s", members[0].pod.Namespace, strings.Join(names, " ")))
	}
	return strings.Join(ways[:min(len(ways), maxNamed)], "; ")
}

// maxNamed is the max number of pods in a message.
const maxNamed = 10

// someOf returns the names of up to 10 pods.
func someOf(members []*member) string { return list(members, (*member).name) }

// listed returns the names of up to 10 pods, and marks those that are terminating.
func listed(members []*member) string {
	return list(members, func(m *member) string {
		if m.terminating() {
			return m.name() + " (being deleted)"
		}
		return m.name()
	})
}

func list(members []*member, name func(*member) string) string {
	names := make([]string, 0, maxNamed)
	for _, m := range members[:min(len(members), maxNamed)] {
		names = append(names, name(m))
	}
	text := strings.Join(names, ", ")
	if more := len(members) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
