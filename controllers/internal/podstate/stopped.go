package podstate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Stopped reports whether nothing of the pod runs, and nothing will. ran is true of
// one in which something ran that matters, as far as is known. The phase is not
// enough, since pod garbage collection sets it without asking the kubelet;
// nor are the containers, since one that crashed in a living pod has terminated
// for a moment, and starts again.
func Stopped(pod *corev1.Pod, ran bool) bool {
	if !Ended(pod) {
		return Terminating(pod) && !Scheduled(pod) // no Node will get it
	}
	if Silent(pod) {
		// The kubelet refused it before it ran, unless it ran once.
		return !Collected(pod) && !ran
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	if len(statuses) < len(pod.Spec.InitContainers)+len(pod.Spec.Containers) || !endedByKubelet(pod) {
		return false
	}
	statuses = append(statuses, pod.Status.EphemeralContainerStatuses...)
	return !slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return !over(&s) })
}

// Silent reports whether nobody has said anything about the pod's containers.
func Silent(pod *corev1.Pod) bool {
	return len(pod.Status.InitContainerStatuses)+len(pod.Status.ContainerStatuses) == 0
}

// endedByKubelet reports whether it was the kubelet that gave the pod its last
// phase: it alone writes these reasons (kubelet/status, GenerateContainersReadyCondition),
// which have no constants in the API. A container that was seen terminated before
// somebody else set the phase may have been started again where nobody looked.
//
// A pod that is deleted before its program started ends without them (kubelet/status,
// TerminatePod). Of that one the kubelet says that it has no sandbox any more, and
// that it knew of the deletion when it said so; without a sandbox nothing runs.
// Kubernetes before 1.34 does not say what it knew.
func endedByKubelet(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		switch c.Type {
		case corev1.ContainersReady:
			return c.Reason == "PodCompleted" || c.Reason == "PodFailed"
		case corev1.PodReadyToStartContainers:
			return Terminating(pod) && c.Status == corev1.ConditionFalse && c.ObservedGeneration > 0 && c.ObservedGeneration == pod.Generation
		}
		return false
	})
}

// over reports whether a container of an ended pod has ended, or never started.
func over(s *corev1.ContainerStatus) bool {
	if s.State.Terminated != nil {
		return true
	}
	return s.State.Waiting != nil && s.ContainerID == "" && s.RestartCount == 0 && s.LastTerminationState.Terminated == nil
}

// Collected reports whether pod garbage collection ended the pod, which it does
// when the kubelet does not answer.
func Collected(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByPodGC"
	})
}
