package status

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
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// maxWaiting is the max number of waiting pods in the status.
const maxWaiting = 32

// Summarize returns the new status. Transition times of unchanged conditions are kept.
func Summarize(f *facts.Facts) v1.StatefulSingletonStatus {
	s := f.Object.Status.DeepCopy()
	now := metav1.NewTime(f.Now)
	s.ObservedGeneration = f.Object.Generation
	s.ActivePod = ""
	if f.Active != nil {
		s.ActivePod = f.Active.Name()
	}
	s.WaitingCount = int32(len(f.Waiting))
	s.Waiting = nil
	for _, m := range f.Waiting[:min(len(f.Waiting), maxWaiting)] {
		s.Waiting = append(s.Waiting, m.Name())
	}
	timeHandover(f, s)
	s.Replaced = rules.KeptReplaced(f)
	s.Orders = spec.ReleaseOrder{Object: f.Object}.Orders(f.Now)
	s.Phase = PhaseOf(f)
	for _, c := range withKstatus(f, []metav1.Condition{available(f), progressing(f), Degraded(f),
		unmanagedPod(f), selectorConflict(f), rolloutHeld(f), guardMissing(f)}) {
		c.ObservedGeneration, c.LastTransitionTime = f.Object.Generation, now
		c.Message = excerpt.Of(c.Message, 4000) // trailing commands name up to 10 pods
		meta.SetStatusCondition(&s.Conditions, c)
	}
	s.Message = messageOf(f, s)
	return *s
}

// timeHandover sets when the handover began, and how long the last one took.
func timeHandover(f *facts.Facts, s *v1.StatefulSingletonStatus) {
	began := s.TransitionTimestamp
	if f.Handover {
		if began == nil {
			s.TransitionTimestamp = ptr.To(metav1.NewTime(f.Now))
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

// PhaseOf returns the phase of the object.
func PhaseOf(f *facts.Facts) v1.Phase {
	switch {
	case f.Invalid != "", f.BeyondLimit, f.OlderRival() != nil, f.Several(), f.Late:
		return v1.PhaseFailed
	case f.Handover:
		return v1.PhaseTransitioning
	}
	return v1.PhaseRunning
}

// messageOf returns the message of the most important condition.
func messageOf(f *facts.Facts, s *v1.StatefulSingletonStatus) string {
	for _, kind := range []string{v1.ConditionSelectorConflict, v1.ConditionDegraded, v1.ConditionUnmanagedPod, v1.ConditionProgressing} {
		if c := meta.FindStatusCondition(s.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c.Message
		}
	}
	if len(f.Blockers)+len(f.Waiting) == 0 {
		return "No pods found"
	}
	return meta.FindStatusCondition(s.Conditions, v1.ConditionAvailable).Message
}

// available returns condition Available.
func available(f *facts.Facts) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionAvailable, Status: metav1.ConditionFalse}
	switch {
	case f.Several():
		c.Reason, c.Message = v1.ReasonSeveralRunning, severalRun(f)
	case f.Active != nil:
		c.Reason, c.Message = v1.ReasonNotReady, whyNotReady(f.Active)
	case len(f.Waiting) == 0:
		c.Reason, c.Message = v1.ReasonNoPods, "no pod matches the selector"
	default:
		c.Reason, c.Message = v1.ReasonNoneActive, "no pod may run its program yet"
	}
	if c.Message == "" {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1.ReasonActive, fmt.Sprintf("pod %s is running", f.Active.Name())
	}
	return c
}

// whyNotReady returns why the program of the active pod does not run, or may not run; "" if
// it runs.
func whyNotReady(m *facts.Member) string {
	switch {
	case m.Terminating():
		return fmt.Sprintf("pod %s is being deleted", m.Name())
	case m.StuckOn() != "":
		return fmt.Sprintf("pod %s may run its program, but cannot start: %s; see: kubectl -n %s describe pod %s",
			m.Name(), m.StuckOn(), m.Pod.Namespace, m.Name())
	case podstate.Scheduled(m.Pod) && !m.Node.Ready:
		return fmt.Sprintf("cannot determine whether pod %s is running: %s", m.Name(), nodeTrouble(m))
	case !podstate.Ready(m.Pod):
		return fmt.Sprintf("pod %s may run its program, but is not Ready yet", m.Name())
	}
	return ""
}

// progressing returns condition Progressing.
func progressing(f *facts.Facts) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionProgressing, Status: metav1.ConditionTrue}
	switch {
	case f.Deleting() && rules.IsNeeded(f):
		c.Reason, c.Message = v1.ReasonReleasing, releasing(f)
	case !f.Handover:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1.ReasonSteady, "no handover in progress"
	case successorAwaited(f) != "":
		c.Reason, c.Message = v1.ReasonWaitingForPod, successorAwaited(f)
	case len(f.Blockers) > 0:
		c.Reason = v1.ReasonWaitingForStop
		c.Message = fmt.Sprintf("%s; waiting: %s", waitedFor(f), someOf(f.Waiting))
	default:
		c.Reason, c.Message = v1.ReasonWaitingForPod, hindrance(f, f.Waiting[0])
	}
	return c
}

// releasing returns what keeps a terminating object, and the command that ends that.
func releasing(f *facts.Facts) string {
	now := fmt.Sprintf("kubectl -n %s annotate statefulsingleton %s %s=true", f.Object.Namespace, f.Object.Name, v1.AnnotationReleaseNow)
	if len(f.Waiting) == 0 {
		return fmt.Sprintf("the StatefulSingleton is being deleted, and remains until no pod is stopping: %s. To delete it immediately, with the risk that two programs run at the same time: %s",
			waitedFor(f), now)
	}
	return fmt.Sprintf("the StatefulSingleton is being deleted, and remains until no pod waits for its turn: %s; %s. New pods wait as well: "+
		"scale their owner to one pod. To start all waiting pods at the same time: %s", someOf(f.Waiting), waitedFor(f), now)
}

// waitedFor returns what has to stop before the next pod starts.
func waitedFor(f *facts.Facts) string {
	active := f.Active
	if active == nil {
		return "no pod runs its program"
	}
	running := running(active)
	switch {
	case len(f.Blockers) > 1:
		return fmt.Sprintf("pods that may be running the program have to stop first: %s", listed(f.Blockers))
	case !active.Terminating() && active.StuckOn() != "":
		return fmt.Sprintf("pod %s has its turn, but cannot start: %s", active.Name(), active.StuckOn())
	case !active.Terminating():
		return fmt.Sprintf("pod %s may be running its program and was not asked to stop", active.Name())
	case len(running) == 0:
		return fmt.Sprintf("pod %s is being deleted, and the kubelet has not yet reported that its containers have stopped", active.Name())
	}
	return fmt.Sprintf("pod %s is being deleted; still running: container %s", active.Name(), strings.Join(running, ", "))
}

// running returns the names of the containers that the kubelet reports as running.
func running(m *facts.Member) []string {
	var names []string
	for _, s := range slices.Concat(m.Pod.Status.InitContainerStatuses, m.Pod.Status.ContainerStatuses) {
		if s.State.Running != nil {
			names = append(names, s.Name)
		}
	}
	return names
}

// hindrance returns why the next pod has not started although no program runs.
func hindrance(f *facts.Facts, next *facts.Member) string {
	switch {
	case f.MirrorMayReturn() > 0:
		return fmt.Sprintf("waiting up to %s for the kubelet to report a static pod again, which may still be running; pod %s is next", spec.MirrorReturns, next.Name())
	case f.SettlesIn() > 0:
		return fmt.Sprintf("the StatefulSingleton is new; pod %s starts in a moment", next.Name())
	case f.UnseenHolder() != "":
		return fmt.Sprintf("waiting until Lease %s has not changed for %s, because its holder cannot be observed; pod %s is next", children.LeaseName(f.Object.Name), f.LeaseDuration(), next.Name())
	case obstacle(next) != "":
		return fmt.Sprintf("pod %s is next, but %s", next.Name(), obstacle(next))
	}
	if granted, _ := rules.Next(f); granted == nil {
		return fmt.Sprintf("pod %s is next, and starts when it has reached its gate", next.Name())
	}
	return fmt.Sprintf("pod %s starts now", next.Name())
}

// Degraded returns condition Degraded with the most severe problem.
func Degraded(f *facts.Facts) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionDegraded, Status: metav1.ConditionTrue}
	found := engine.First(troubles, func(check func(*facts.Facts) engine.Notice) engine.Notice { return check(f) })
	if c.Reason, c.Message = found.Reason, found.Message; found.Message == "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1.ReasonHealthy, "no problems detected"
	}
	return withCauses(f, c)
}

// troubles are the checks for problems, most severe first. Each returns the reason and
// message of condition Degraded; an empty Notice if it finds no problem.
var troubles = []func(*facts.Facts) engine.Notice{
	notServed, notFenced, severalRunning, nodeLost, scriptFailing, writeRefused, writeUndone, tooLate, leaseNotRenewed, podFailing, endedByNode, containersMissing, notReplacedFirst,
}

// notServed reports an object that manages no pods.
func notServed(f *facts.Facts) engine.Notice {
	switch {
	case f.Invalid != "":
		return engine.Notice{Reason: v1.ReasonInvalidSpec, Message: "the spec is invalid, and no pod is started: " + f.Invalid}
	case f.BeyondLimit:
		return engine.Notice{Reason: v1.ReasonTooMany, Message: fmt.Sprintf("the namespace has more than %d StatefulSingletons, and this one starts no pod; delete some, or use another namespace", spec.MaxPerNamespace)}
	}
	return engine.Notice{}
}

// severalRunning reports that several pods may be running the program.
func severalRunning(f *facts.Facts) engine.Notice {
	if !f.Several() {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1.ReasonSeveralRunning, Message: severalRun(f) + ". " + allButOne(f)}
}

// notFenced reports that the Lease cannot be used.
func notFenced(f *facts.Facts) engine.Notice { return f.LeaseProblem }

// nodeLost reports a pod that may be running its program on a Node that is not Ready.
func nodeLost(f *facts.Facts) engine.Notice {
	m := onLostNode(f)
	if m == nil {
		return engine.Notice{}
	}
	node := m.Pod.Spec.NodeName
	if m.Node.Missing {
		return engine.Notice{Reason: v1.ReasonNodeLost, Message: fmt.Sprintf("pod %s may be running its program on Node %s, which no longer exists; another pod starts when the Node has been missing for %s",
			m.Name(), node, spec.FenceAfter)}
	}
	if m.HoldsLease {
		return engine.Notice{Reason: v1.ReasonNodeLost, Message: fmt.Sprintf("pod %s may be running its program on Node %s, which is unreachable; another pod starts when it has not renewed the Lease for %s",
			m.Name(), node, f.LeaseDuration())}
	}
	return engine.Notice{Reason: v1.ReasonNodeLost, Message: fmt.Sprintf("pod %s may be running its program on Node %s, which is unreachable, and no other pod starts until this one has stopped. "+
		"If the machine is off, taint the Node: kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", m.Name(), node, node)}
}

// onLostNode returns the first pod that has to stop and whose Node is unreachable or
// missing; nil if there is none.
func onLostNode(f *facts.Facts) *facts.Member {
	for _, m := range f.Blockers {
		if podstate.Scheduled(m.Pod) && !m.Node.Ready {
			return m
		}
	}
	return nil
}

// scriptFailing reports a pod in which the script of mode Script does not start.
func scriptFailing(f *facts.Facts) engine.Notice {
	m, why := scriptFails(f)
	if m == nil {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1.ReasonScriptFailing, Message: fmt.Sprintf("the script of gate mode Script does not start in pod %s: %s. It needs an image with a shell at /bin/sh; "+
		"set spec.gateMode to Auto, Binary or Init and delete the pod", m.Name(), why)}
}

// writeRefused reports the last write that the API server refused.
func writeRefused(f *facts.Facts) engine.Notice {
	if f.Refused == "" {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1.ReasonWriteRefused, Message: "the API server refuses a write, which will be retried: " + f.Refused}
}

// writeUndone reports writes that an admission webhook or policy reverts.
func writeUndone(f *facts.Facts) engine.Notice {
	message := f.Undone.Message()
	if message == "" {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1.ReasonWriteRefused, Message: message}
}

// tooLate reports a handover that has exceeded spec.maxTransitionTime.
func tooLate(f *facts.Facts) engine.Notice {
	if !f.Late {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1.ReasonTimeout, Message: lateText(f) + "; it continues as soon as this changes"}
}

// lateText returns the message about a handover that takes too long, and the reason.
func lateText(f *facts.Facts) string {
	late := fmt.Sprintf("the handover takes longer than maxTransitionTime (%d s): %s", *f.Object.Spec.MaxTransitionTime, waitReason(f))
	if len(f.Waiting) == 0 {
		return late
	}
	return late + "; waiting: " + someOf(f.Waiting)
}

// podFailing reports that the program of the active pod does not run.
func podFailing(f *facts.Facts) engine.Notice {
	why := failing(f)
	if why == "" {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1.ReasonPodFailing, Message: why}
}

// containersMissing reports a pod that waits, or waited, as a whole because it lacks a
// container of the program.
func containersMissing(f *facts.Facts) engine.Notice {
	i := slices.IndexFunc(f.Pods, func(m *facts.Member) bool { return m.Gated && len(m.Lacks) > 0 && !podstate.Ended(m.Pod) })
	if i < 0 {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1.ReasonContainersMissing, Message: fmt.Sprintf("pod %s has no container %s, which spec.containers lists as part of the program, and waits as a whole, as in gate mode Init; correct spec.containers or the template of the pod",
		f.Pods[i].Name(), strings.Join(f.Pods[i].Lacks, ", "))}
}

// failing returns why the program of the active pod does not run or keeps crashing; "" if
// it is healthy. A crash proves nothing, so the pod keeps its turn unless spec.onCrashLoop is Handover.
func failing(f *facts.Facts) string {
	active := f.Active
	if active == nil || active.Terminating() || podstate.Ready(active.Pod) {
		return ""
	}
	why := whyFailing(active)
	if why == "" {
		return ""
	}
	return fmt.Sprintf("pod %[2]s has its turn, but %[1]s; %[4]s. See: kubectl -n %[3]s describe pod %[2]s, and: kubectl -n %[3]s logs %[2]s --previous",
		why, active.Name(), active.Pod.Namespace, whenOtherStarts(f))
}

// whyFailing returns why the program of a pod does not run; "" if it is healthy.
func whyFailing(m *facts.Member) string {
	if stuck := m.StuckOn(); stuck != "" {
		return "its program cannot start: " + stuck
	}
	for i := range m.Pod.Status.ContainerStatuses {
		s := &m.Pod.Status.ContainerStatuses[i]
		if s.Ready || !slices.Contains(m.Program, s.Name) {
			continue
		}
		if ended := podstate.LastEnd(m.Pod, s); ended != nil {
			return fmt.Sprintf("its container %s ended with exit code %d and was restarted", s.Name, ended.ExitCode)
		}
	}
	return ""
}

// waitReason returns the message about the state that a handover waits for.
func waitReason(f *facts.Facts) string {
	switch {
	case successorAwaited(f) != "":
		return successorAwaited(f)
	case len(f.Blockers) > 0:
		return waitedFor(f)
	}
	return hindrance(f, f.Waiting[0])
}

// successorAwaited returns the message of a handover that waits until the successor of the
// running pod is at its gate, in a rollout or while the pod has to leave its Node; "" if the
// handover does not wait for that.
func successorAwaited(f *facts.Facts) string {
	if len(f.Blockers) != 1 || !f.Blockers[0].Lives() {
		return ""
	}
	old := f.Blockers[0]
	next := nextFor(f, old)
	switch {
	case next == nil && old != f.Leaving:
		return ""
	case next == nil:
		return fmt.Sprintf("%s until its ReplicaSet has created a pod that waits on another Node; see: kubectl -n %s describe replicaset %s",
			runsOn(f, old), old.Pod.Namespace, old.Family.ReplicaSet) + toStay(f, old)
	case obstacle(next) != "":
		return fmt.Sprintf("%s; pod %s will replace it, but %s", runsOn(f, old), next.Name(), obstacle(next)) + toStay(f, old)
	case !next.GateSteady:
		return fmt.Sprintf("%s until its replacement, pod %s, waits at its gate", runsOn(f, old), next.Name()) + toStay(f, old)
	}
	return ""
}

// nextFor returns the successor of an old pod; nil if there is none. In a rollout only the pod
// that starts next counts.
func nextFor(f *facts.Facts, old *facts.Member) *facts.Member {
	found := f.Successors(old)
	if len(found) == 0 || (old != f.Leaving && found[0] != f.Waiting[0]) {
		return nil
	}
	return found[0]
}

// scriptFails returns a pod in which the script of mode Script does not start, and the
// reason; nil if there is none.
func scriptFails(f *facts.Facts) (*facts.Member, string) {
	for _, m := range f.Pods {
		if podstate.Ended(m.Pod) {
			continue
		}
		for i := range m.Pod.Status.ContainerStatuses {
			s := &m.Pod.Status.ContainerStatuses[i]
			scripted := slices.ContainsFunc(m.Pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == s.Name && facts.RunsScript(c) })
			if why := m.ScriptFault(s); scripted && why != "" {
				return m, why
			}
		}
	}
	return nil, ""
}

// obstacle returns what keeps a waiting pod from its gate; "" if nothing does.
func obstacle(m *facts.Member) string {
	switch {
	case !podstate.Scheduled(m.Pod):
		return fmt.Sprintf("has no Node yet; see: kubectl -n %s describe pod %s", m.Pod.Namespace, m.Name())
	case !m.Node.Ready, m.Node.OutOfService:
		return nodeTrouble(m)
	case m.StuckOn() != "":
		return fmt.Sprintf("cannot start: %s; see: kubectl -n %s describe pod %s", m.StuckOn(), m.Pod.Namespace, m.Name())
	}
	return ""
}

// nodeTrouble returns why the Node of the pod does not report its state.
func nodeTrouble(m *facts.Member) string {
	if m.Node.Missing {
		return fmt.Sprintf("its Node %s no longer exists", m.Pod.Spec.NodeName)
	}
	return fmt.Sprintf("its Node %s is unreachable", m.Pod.Spec.NodeName)
}

// unlessFound returns the condition for the case that nothing of its kind is found.
func unlessFound(kind, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: v1.ReasonHealthy, Message: message}
}

// unmanagedPod returns condition UnmanagedPod.
func unmanagedPod(f *facts.Facts) metav1.Condition {
	c := unlessFound(v1.ConditionUnmanagedPod, "no pod may be running the program without the gate")
	found := slices.DeleteFunc(slices.Clone(f.Blockers), func(m *facts.Member) bool { return !m.IsUnmanaged() })
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

// selectorConflict returns condition SelectorConflict.
func selectorConflict(f *facts.Facts) metav1.Condition {
	c := unlessFound(v1.ConditionSelectorConflict, "no pod can match another StatefulSingleton as well")
	if len(f.Rivals) == 0 {
		return c
	}
	c.Status, c.Reason = metav1.ConditionTrue, v1.ReasonSelectorsOverlap
	c.Message = spec.OverlapText(f.Rivals[0]) + "; this one is older and controls the pods of both"
	if older := f.OlderRival(); older != nil {
		c.Message = spec.OverlapText(older) + "; that one is older, and this one starts no pod"
	}
	return c
}

// rolloutHeld returns condition RolloutHeld.
func rolloutHeld(f *facts.Facts) metav1.Condition {
	c := unlessFound(v1.ConditionRolloutHeld, "no rollout is blocked by pods that wait for their turn")
	ownerUnknown(f, &c)
	for _, m := range f.Waiting {
		if m.Family.Wanted > 1 {
			c.Status, c.Reason = metav1.ConditionTrue, v1.ReasonStandbysNotReady
			c.Message = fmt.Sprintf("%s wants %d Ready pods before its rollout continues, but at most one can be Ready: the others wait for their turn. "+
				"Set maxUnavailable of a Deployment to one less than its replicas; a StatefulSet with more than one replica needs podManagementPolicy Parallel and updateStrategy OnDelete",
				m.Family.Name, m.Family.Wanted)
		}
	}
	crashLooped(f, &c)
	return c
}

// guardMissing returns condition GuardMissing.
func guardMissing(f *facts.Facts) metav1.Condition {
	c := unlessFound(v1.ConditionGuardMissing, "the API server refuses pods without the gate")
	if f.Unguarded.Message != "" {
		c.Status, c.Reason = metav1.ConditionTrue, f.Unguarded.Reason
		c.Message = f.Unguarded.Message + "; a pod that is created while the operator's webhook is unavailable runs its program immediately"
	}
	return c
}

// severalRun returns the message that several pods may be running the program.
func severalRun(f *facts.Facts) string {
	return fmt.Sprintf("%d pods may be running the program at the same time, but at most one should: %s", len(f.Started), listed(f.Started))
}

// allButOne returns how to stop all pods that may be running except one: the holder, or the
// oldest pod that is not terminating.
func allButOne(f *facts.Facts) string {
	stay := slices.DeleteFunc(slices.Clone(f.Started), (*facts.Member).Terminating)
	if i := slices.IndexFunc(stay, func(m *facts.Member) bool { return m.Holder }); i > 0 {
		stay[0], stay[i] = stay[i], stay[0]
	}
	if len(stay) < 2 {
		return "Wait until the pods that are being deleted have stopped"
	}
	return "Stop all but one: " + howToStop(stay[1:])
}

// howToStop returns the command that stops pods. A static pod is stopped on its Node.
func howToStop(members []*facts.Member) string {
	var ways, names []string
	for _, m := range members {
		switch {
		case facts.IsMirror(m.Pod):
			ways = append(ways, fmt.Sprintf("remove the manifest of static pod %s from the kubelet's manifest directory on Node %s", m.Name(), m.Pod.Spec.NodeName))
		case !m.Terminating() && len(names) < MaxNamed:
			names = append(names, m.Name())
		}
	}
	if len(names) > 0 {
		ways = slices.Insert(ways, 0, fmt.Sprintf("kubectl -n %s delete pod %s", members[0].Pod.Namespace, strings.Join(names, " ")))
	}
	return strings.Join(ways[:min(len(ways), MaxNamed)], "; ")
}

// MaxNamed is the max number of pods in a message.
const MaxNamed = 10

// someOf returns the names of up to 10 pods.
func someOf(members []*facts.Member) string { return list(members, (*facts.Member).Name) }

// listed returns the names of up to 10 pods, and marks those that are terminating.
func listed(members []*facts.Member) string {
	return list(members, func(m *facts.Member) string {
		if m.Terminating() {
			return m.Name() + " (being deleted)"
		}
		return m.Name()
	})
}

// list returns the names of up to MaxNamed pods, and the number of the others.
func list(members []*facts.Member, name func(*facts.Member) string) string {
	names := make([]string, 0, MaxNamed)
	for _, m := range members[:min(len(members), MaxNamed)] {
		names = append(names, name(m))
	}
	text := strings.Join(names, ", ")
	if more := len(members) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
