// Package podstate evaluates the state of pods. Its functions have no side effects, and take the
// current time as an argument.
package podstate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Ready reports whether condition Ready of the pod is True.
func Ready(pod *corev1.Pod) bool {
	c := Condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Since returns the last transition time of a condition. The result is never before the creation of the
// pod, because the time may be missing in the condition. If the pod has no such condition, Since
// returns the creation time and false. One example is PodScheduled in a pod that was created with a
// node name.
func Since(pod *corev1.Pod, kind corev1.PodConditionType) (time.Time, bool) {
	created := pod.CreationTimestamp.Time
	c := Condition(pod, kind)
	if c == nil || c.LastTransitionTime.Time.Before(created) {
		return created, c != nil
	}
	return c.LastTransitionTime.Time, true
}

// Available reports whether the pod has been Ready for minReady, with the semantics of minReadySeconds
// in apps/v1. If the pod is Ready but not for long enough, wait is the remaining time.
func Available(pod *corev1.Pod, minReady time.Duration, now time.Time) (ok bool, wait time.Duration) {
	if !Ready(pod) {
		return false, 0
	}
	since, _ := Since(pod, corev1.PodReady)
	if missing := since.Add(minReady).Sub(now); minReady > 0 && missing > 0 {
		return false, missing
	}
	return true, 0
}

// WasReady reports whether the pod is Ready or was Ready before. The kubelet sets condition Ready
// together with the start time of the pod. If the condition became False more than a second later, it
// must have been True in between. Times in the API have a resolution of one second.
func WasReady(pod *corev1.Pod) bool {
	c := Condition(pod, corev1.PodReady)
	switch {
	case c == nil:
		return false
	case c.Status == corev1.ConditionTrue:
		return true
	case pod.Status.StartTime == nil:
		return false
	}
	return c.LastTransitionTime.Sub(pod.Status.StartTime.Time) > time.Second
}

// Ended reports whether the pod has succeeded or failed, and will never run again.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// Terminating reports whether the pod is being deleted.
func Terminating(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// DeletedAt returns when the pod was deleted; zero if it is not terminating.
func DeletedAt(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp == nil {
		return time.Time{}
	}
	var grace time.Duration // the deletionTimestamp includes it
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	return pod.DeletionTimestamp.Add(-grace)
}

// Scheduled reports whether the pod is assigned to a node.
func Scheduled(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }

// UnschedulableSince returns when the scheduler first found no node for the pod. It returns false if
// the pod is scheduled, or if the scheduler has not processed it yet.
func UnschedulableSince(pod *corev1.Pod) (time.Time, bool) {
	c := Condition(pod, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
		return time.Time{}, false
	}
	return Since(pod, corev1.PodScheduled)
}

// Evicted reports whether the pod is terminating because of the eviction API.
func Evicted(pod *corev1.Pod) bool { return disrupted(pod, "EvictionByEvictionAPI") }

// TaintEvicted reports whether the pod is terminating because of a NoExecute taint. The control plane
// evicts pods this way from a Node that is not Ready.
func TaintEvicted(pod *corev1.Pod) bool {
	return disrupted(pod, "DeletionByTaintManager")
}

// Disrupted reports whether the pod is terminating, or has ended, because of a disruption and not
// because a user deleted this pod. Disruptions are evictions of any kind, preemption, node shutdown,
// and deletion of the Node.
func Disrupted(pod *corev1.Pod) bool {
	c := Condition(pod, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue
}

// EndedByNode reports whether the pod ended because the kubelet evicted or rejected it, or shut down,
// and not because its containers exited. The kubelet sets a reason in these cases. It loses the reason
// if the containers exit before they are killed. A pod whose containers are always restarted has no
// other way to end.
func EndedByNode(pod *corev1.Pod) bool {
	switch {
	case !Ended(pod), pod.Status.Reason == "DeadlineExceeded": // due to its activeDeadlineSeconds
		return false
	case Disrupted(pod), pod.Status.Reason != "":
		return true
	}
	return AlwaysRestarts(pod)
}

// AlwaysRestarts reports whether all containers of the pod are always restarted.
func AlwaysRestarts(pod *corev1.Pod) bool {
	return pod.Spec.RestartPolicy == corev1.RestartPolicyAlways &&
		!slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
			return (c.RestartPolicy != nil && *c.RestartPolicy != corev1.ContainerRestartPolicyAlways) || len(c.RestartPolicyRules) > 0
		})
}

// disrupted compares the reason with those of the eviction API and the taint eviction controller. The
// API package has no constants for these reasons.
func disrupted(pod *corev1.Pod, reason string) bool {
	c := Condition(pod, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue && c.Reason == reason
}

// Condition returns the condition of the given type; nil if there is none.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
