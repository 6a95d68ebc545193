// Package podstate asks pods questions. Nothing here has an effect, and time
// is always given.
package podstate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Ready reports whether the pod's Ready condition is True.
func Ready(pod *corev1.Pod) bool {
	c := Condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Since is when the condition of that type last changed its status, and never
// earlier than the pod was created: whoever wrote the condition may have left
// the time out. It is false, with the time of creation, when the pod has no such
// condition, as PodScheduled of a pod that was created with the name of its node.
func Since(pod *corev1.Pod, kind corev1.PodConditionType) (time.Time, bool) {
	created := pod.CreationTimestamp.Time
	c := Condition(pod, kind)
	if c == nil || c.LastTransitionTime.Time.Before(created) {
		return created, c != nil
	}
	return c.LastTransitionTime.Time, true
}

// Available reports whether the pod has been Ready for that long, as apps/v1
// counts minReadySeconds; if it is Ready but not long enough, wait is what is
// missing.
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

// WasReady reports whether the pod is or was Ready. The kubelet sets the Ready
// condition of a pod together with its start time; a Ready condition that
// turned False more than a second later must have been True in between (times
// in the API have a resolution of one second).
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

// Ended reports whether the pod will never run again.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// Terminating reports whether somebody deleted the pod.
func Terminating(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// DeletedAt is when somebody deleted the pod; zero for one that is not
// terminating.
func DeletedAt(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp == nil {
		return time.Time{}
	}
	var grace time.Duration // the API counts it into the deletionTimestamp
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	return pod.DeletionTimestamp.Add(-grace)
}

// Scheduled reports whether the pod has a node.
func Scheduled(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }

// UnschedulableSince is when the scheduler first found no node for the pod;
// false when it has one, or was not looked at yet.
func UnschedulableSince(pod *corev1.Pod) (time.Time, bool) {
	c := Condition(pod, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
		return time.Time{}, false
	}
	return Since(pod, corev1.PodScheduled)
}

// Evicted reports whether the pod goes because of an eviction through the API.
func Evicted(pod *corev1.Pod) bool { return disrupted(pod, "EvictionByEvictionAPI") }

// TaintEvicted reports whether the pod goes because of a NoExecute taint, as the
// control plane evicts pods from a Node that is not Ready.
func TaintEvicted(pod *corev1.Pod) bool {
	return disrupted(pod, "DeletionByTaintManager")
}

// Disrupted reports whether the pod goes, or went, because of something that is no
// delete of this very pod by a user: an eviction of any kind, preemption, a shutdown of
// its node, or a Node that is gone.
func Disrupted(pod *corev1.Pod) bool {
	c := Condition(pod, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue
}

// EndedByNode reports whether the pod ended, and not because its program did: the kubelet
// evicted it, shut down, or refused it. The kubelet gives a reason for each of these, but
// loses it where the program ends by itself before it is killed. A pod whose containers are
// always restarted ends for nothing else.
func EndedByNode(pod *corev1.Pod) bool {
	switch {
	case !Ended(pod), pod.Status.Reason == "DeadlineExceeded": // its own activeDeadlineSeconds
		return false
	case Disrupted(pod), pod.Status.Reason != "":
		return true
	}
	return AlwaysRestarts(pod)
}

// AlwaysRestarts reports whether each container of the pod is restarted whenever it ends.
func AlwaysRestarts(pod *corev1.Pod) bool {
	return pod.Spec.RestartPolicy == corev1.RestartPolicyAlways &&
		!slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
			return (c.RestartPolicy != nil && *c.RestartPolicy != corev1.ContainerRestartPolicyAlways) || len(c.RestartPolicyRules) > 0
		})
}

// disrupted compares with the reasons that the eviction API and the taint
// eviction controller write; the API package has no constants for them.
func disrupted(pod *corev1.Pod, reason string) bool {
	c := Condition(pod, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue && c.Reason == reason
}

// Condition returns the condition of that type; nil if the pod has none.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
