package causes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

const (
	// Patience is how long a pod must be not Ready before its object reports the cause. Temporary
	// causes usually end earlier. kstatus waits for 15 s for a pod without a Node.
	Patience = time.Minute
	// linger is how long the cause of a pod counts after the pod was replaced by another one of the
	// same name. A pod that the kubelet rejects is recreated immediately, and the new pod has no cause
	// for a moment.
	linger = 15 * time.Second
	// CrashesInVain is the number of restarts after which a container counts as failing to start. They
	// take about half a minute.
	CrashesInVain = 3
	// sandboxIn is how long a pod may be without containers before its events are read. A scheduler must
	// process a pod in the same time.
	sandboxIn = 20 * time.Second
)

// Trail records, by pod name, why the pods of an object are not Ready, and since when. It covers pods
// that are replaced again and again, and pods that cannot be created.
type Trail map[string]trace

// trace is the record of one pod name.
type trace struct {
	cause Cause
	since time.Time // when the pod, or the first of several pods with the name, became not Ready
	last  time.Time // when the cause was last found
}

// Found is why a pod is not Ready, and whether this has lasted for long.
type Found struct {
	Cause
	Lasts bool
	// Again is the requeue delay; 0 means no requeue.
	Again time.Duration
}

// Follow returns why the pod with the given name is not Ready. pod is nil if it does not exist. other is
// a cause from another source, such as events. It is used if the pod itself contains no cause.
func (t Trail) Follow(name string, pod *corev1.Pod, other Cause, now time.Time) Found {
	found, before := other, t[name]
	recorded := before.cause.Known()
	if pod != nil {
		found = ofAny(pod, other, now)
	}
	if !found.Known() {
		if !recorded || !now.Before(before.last.Add(linger)) || isWell(pod, before.last) {
			delete(t, name)
			return Found{Again: waitFor(pod, now)}
		}
		return before.judge(pod, now, before.last.Add(linger).Sub(now))
	}
	next := trace{cause: found, since: sinceWhen(pod, now), last: now}
	if recorded && before.since.Before(next.since) {
		next.since = before.since
	}
	t[name] = next
	return next.judge(pod, now, 0)
}

// Find returns why the pod with the given name is not Ready, as Follow does, or why it is not deleted.
// ours are finalizers that the operator itself removes.
func (t Trail) Find(name string, pod *corev1.Pod, other Cause, now time.Time, ours ...string) Found {
	if pod != nil {
		if c := Stuck(pod, now, ours...); c.Known() {
			return Found{Cause: c, Lasts: true}
		}
	}
	found := t.Follow(name, pod, other, now)
	if pod != nil && pod.DeletionTimestamp != nil && !found.Known() {
		found.Again = max(0, pod.DeletionTimestamp.Add(Patience).Sub(now))
	}
	return found
}

// Forget removes the records of all pods for which keep returns false.
func (t Trail) Forget(keep func(name string) bool) {
	for name := range t {
		if !keep(name) {
			delete(t, name)
		}
	}
}

// judge returns the cause, and whether it has lasted for long. again is the requeue delay if that is
// shorter than the time until the cause has lasted for long; 0 means none.
func (t trace) judge(pod *corev1.Pod, now time.Time, again time.Duration) Found {
	wait := t.since.Add(Patience).Sub(now)
	lasts := wait <= 0 || (pod != nil && t.cause.Word == CrashLoop && restarts(pod) >= CrashesInVain)
	if !lasts && (again <= 0 || wait < again) {
		again = wait
	}
	return Found{Cause: t.cause, Lasts: lasts, Again: again}
}

// ofAny returns why a pod is not Ready, or is Ready only between crashes. It returns no cause for a
// terminating pod. other is as in Follow.
func ofAny(pod *corev1.Pod, other Cause, now time.Time) Cause {
	if podstate.Terminating(pod) {
		return Cause{}
	}
	if podstate.Ready(pod) {
		if restarts(pod) >= CrashesInVain && justStarted(pod, now) {
			return OfCrash(pod)
		}
		return Cause{}
	}
	if c := Of(pod); c.Known() {
		return c
	}
	if isUnprocessed(pod, now) {
		return Cause{Word: unprocessed}
	}
	if HasNoContainers(pod) {
		return other
	}
	return Cause{}
}

// unprocessed is the cause of a pod that no scheduler has processed.
const unprocessed = "NotScheduled"

// isUnprocessed reports whether no scheduler has processed a pod within sandboxIn after its creation.
func isUnprocessed(pod *corev1.Pod, now time.Time) bool {
	if podstate.Scheduled(pod) || podstate.Condition(pod, corev1.PodScheduled) != nil {
		return false
	}
	return !now.Before(pod.CreationTimestamp.Add(sandboxIn))
}

// HasNoContainers reports whether a pod is scheduled, but no container has been created and no reason
// is reported.
func HasNoContainers(pod *corev1.Pod) bool {
	if !podstate.Scheduled(pod) || started(pod) {
		return false
	}
	for _, s := range containersOf(pod) {
		waits := s.State.Waiting != nil && (s.State.Waiting.Reason == "ContainerCreating" || s.State.Waiting.Reason == "PodInitializing")
		if !waits {
			return false
		}
	}
	return true
}

// started reports whether a pod has started. The cache contains no containers of a pod that is Ready.
func started(pod *corev1.Pod) bool {
	return podstate.Ready(pod) || podstate.Ended(pod) || podstate.Terminating(pod)
}

// Hangs reports whether a pod has had no containers for so long that its events should be read. If not,
// wait is the remaining time.
func Hangs(pod *corev1.Pod, now time.Time) (yes bool, wait time.Duration) {
	if !HasNoContainers(pod) {
		return false, 0
	}
	since, _ := podstate.Since(pod, corev1.PodScheduled)
	wait = since.Add(sandboxIn).Sub(now)
	return wait <= 0, wait
}

// Stuck returns why a deleted pod still exists long after it should have ended. ours are finalizers
// that the operator itself removes.
func Stuck(pod *corev1.Pod, now time.Time, ours ...string) Cause {
	if !podstate.Terminating(pod) || now.Before(pod.DeletionTimestamp.Add(Patience)) {
		return Cause{}
	}
	if podstate.Scheduled(pod) && !podstate.Stopped(pod, true) {
		return Cause{Terminating, "its Node " + pod.Spec.NodeName + " has not reported that its containers have ended"}
	}
	for _, f := range pod.Finalizers {
		if !slices.Contains(ours, f) {
			return Cause{Terminating, "it has finalizer " + f}
		}
	}
	return Cause{}
}

// isWell reports whether a pod is Ready, or has existed for so long that the cause of an earlier pod of
// the same name does not count.
func isWell(pod *corev1.Pod, last time.Time) bool {
	return pod != nil && (podstate.Ready(pod) || pod.CreationTimestamp.Time.Before(last.Add(-linger)))
}

// sinceWhen returns since when a pod has not been Ready.
func sinceWhen(pod *corev1.Pod, now time.Time) time.Time {
	if pod == nil {
		return now
	}
	since, _ := podstate.Since(pod, corev1.PodReady)
	if since.After(now) || since.IsZero() {
		return now
	}
	return since
}

// waitFor returns the requeue delay for a pod that no scheduler has processed; 0 for other pods.
func waitFor(pod *corev1.Pod, now time.Time) time.Duration {
	if pod == nil || podstate.Scheduled(pod) || podstate.Condition(pod, corev1.PodScheduled) != nil {
		return 0
	}
	return max(0, pod.CreationTimestamp.Add(sandboxIn).Sub(now))
}

// restarts returns the max restart count of the containers of a pod.
func restarts(pod *corev1.Pod) (most int32) {
	for _, s := range containersOf(pod) {
		most = max(most, s.RestartCount)
	}
	return most
}

// justStarted reports whether a container that has crashed before has been running for less than
// Patience.
func justStarted(pod *corev1.Pod, now time.Time) bool {
	for _, s := range pod.Status.ContainerStatuses {
		ended := s.LastTerminationState.Terminated != nil
		if ended && s.State.Running != nil && now.Before(s.State.Running.StartedAt.Add(Patience)) {
			return true
		}
	}
	return false
}
