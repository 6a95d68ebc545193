package causes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

const (
	// Patience is how long a pod has to be kept from Ready before its object says so: what
	// passes by itself mostly does before. kstatus waits for 15 s for a pod without a Node.
	Patience = time.Minute
	// linger is how long a cause counts of a pod that another of its name replaced: what the
	// kubelet refuses is created again at once, and has no cause for a moment.
	linger = 15 * time.Second
	// CrashesInVain is how often a container was restarted before it counts as one that does
	// not start, about half a minute.
	CrashesInVain = 3
	// sandboxIn is how long a pod may be without containers before its events are read.
	sandboxIn = 20 * time.Second
)

// Trail remembers, by name, what keeps the pods of an object from being Ready: also where one
// is replaced by another again and again, or is not created.
type Trail map[string]trace

type trace struct {
	cause       Cause
	since, last time.Time
}

// Found is what keeps a pod from being Ready, and whether that lasts.
type Found struct {
	Cause
	Lasts bool
	// Again is when to look again, should nothing happen; zero: it need not be.
	Again time.Duration
}

// Follow returns what keeps the pod of a name from being Ready. pod is nil where there is none.
// told is what else is known, as from events; it counts where the pod does not say.
func (t Trail) Follow(name string, pod *corev1.Pod, told Cause, now time.Time) Found {
	found, before := told, t[name]
	known := before.cause.Known()
	if pod != nil {
		found = ofAny(pod, told, now)
	}
	if !found.Known() {
		if !known || !now.Before(before.last.Add(linger)) || isWell(pod, before.last) {
			delete(t, name)
			return Found{Again: waitFor(pod, now)}
		}
		return before.judge(pod, now, before.last.Add(linger).Sub(now))
	}
	next := trace{cause: found, since: sinceWhen(pod, now), last: now}
	if known && before.since.Before(next.since) {
		next.since = before.since
	}
	t[name] = next
	return next.judge(pod, now, 0)
}

// Find returns what keeps the pod of a name from being Ready, as Follow does, or from being gone.
// ours are finalizers that the operator takes off itself.
func (t Trail) Find(name string, pod *corev1.Pod, told Cause, now time.Time, ours ...string) Found {
	if pod != nil {
		if c := Stuck(pod, now, ours...); c.Known() {
			return Found{Cause: c, Lasts: true}
		}
	}
	found := t.Follow(name, pod, told, now)
	if pod != nil && pod.DeletionTimestamp != nil && !found.Known() {
		found.Again = max(0, pod.DeletionTimestamp.Add(Patience).Sub(now))
	}
	return found
}

// Forget drops the pods that are not among these.
func (t Trail) Forget(keep func(name string) bool) {
	for name := range t {
		if !keep(name) {
			delete(t, name)
		}
	}
}

func (known trace) judge(pod *corev1.Pod, now time.Time, again time.Duration) Found {
	wait := known.since.Add(Patience).Sub(now)
	lasts := wait <= 0 || (pod != nil && known.cause.Word == CrashLoop && restarts(pod) >= CrashesInVain)
	if !lasts && (again <= 0 || wait < again) {
		again = wait
	}
	return Found{Cause: known.cause, Lasts: lasts, Again: again}
}

// ofAny returns why a pod is not Ready, or only between crashes, or does not go.
func ofAny(pod *corev1.Pod, told Cause, now time.Time) Cause {
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
	if neverLookedAt(pod, now) {
		return Cause{Word: notLookedAt}
	}
	if HasNoContainers(pod) {
		return told
	}
	return Cause{}
}

// notLookedAt is the cause of a pod that no scheduler looks at.
const notLookedAt = "NotScheduled"

// neverLookedAt reports whether no scheduler has said anything about a pod since it was
// created.
func neverLookedAt(pod *corev1.Pod, now time.Time) bool {
	if podstate.Scheduled(pod) || podstate.Condition(pod, corev1.PodScheduled) != nil {
		return false
	}
	return !now.Before(pod.CreationTimestamp.Add(sandboxIn))
}

// HasNoContainers reports whether a pod has a Node, and none of its containers was created
// yet, nor says why.
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

// started reports whether a pod is past its start. The cache has no containers of one that is
// Ready.
func started(pod *corev1.Pod) bool {
	return podstate.Ready(pod) || podstate.Ended(pod) || podstate.Terminating(pod)
}

// Hangs reports whether a pod has had no containers for so long that its events are worth
// reading, and else how long it still may.
func Hangs(pod *corev1.Pod, now time.Time) (yes bool, wait time.Duration) {
	if !HasNoContainers(pod) {
		return false, 0
	}
	since, _ := podstate.Since(pod, corev1.PodScheduled)
	wait = since.Add(sandboxIn).Sub(now)
	return wait <= 0, wait
}

// Stuck returns why a pod that was deleted is still there, long after it should have ended;
// ours are finalizers that the operator takes off itself.
func Stuck(pod *corev1.Pod, now time.Time, ours ...string) Cause {
	if !podstate.Terminating(pod) || now.Before(pod.DeletionTimestamp.Add(Patience)) {
		return Cause{}
	}
	if podstate.Scheduled(pod) && !podstate.Stopped(pod, true) {
		return Cause{Terminating, "its Node " + pod.Spec.NodeName + " has not said that its containers have ended"}
	}
	for _, f := range pod.Finalizers {
		if !slices.Contains(ours, f) {
			return Cause{Terminating, "it has finalizer " + f}
		}
	}
	return Cause{}
}

// isWell reports whether a pod is Ready, or has been there for so long that what another of
// its name suffered from does not count.
func isWell(pod *corev1.Pod, last time.Time) bool {
	return pod != nil && (podstate.Ready(pod) || pod.CreationTimestamp.Time.Before(last.Add(-linger)))
}

// sinceWhen is since when a pod has not been Ready.
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

// waitFor is when to look again at a pod that no scheduler has looked at.
func waitFor(pod *corev1.Pod, now time.Time) time.Duration {
	if pod == nil || podstate.Scheduled(pod) || podstate.Condition(pod, corev1.PodScheduled) != nil {
		return 0
	}
	return max(0, pod.CreationTimestamp.Add(sandboxIn).Sub(now))
}

// restarts is how often the container of a pod was started again that was most often.
func restarts(pod *corev1.Pod) (most int32) {
	for _, s := range containersOf(pod) {
		most = max(most, s.RestartCount)
	}
	return most
}

// justStarted reports whether a container of a pod that crashed runs for no longer than
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
