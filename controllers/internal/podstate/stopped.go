package podstate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Stopped reports whether all containers of the pod have stopped and none will start again. ran is true
// if a relevant container is known to have run in it. The phase is not sufficient, because pod garbage
// collection sets it without confirmation by the kubelet. Container states are not sufficient either,
// because a crashed container in a running pod is terminated until its restart.
func Stopped(pod *corev1.Pod, ran bool) bool {
	if !Ended(pod) {
		return Terminating(pod) && !Scheduled(pod) // it will never be assigned to a Node
	}
	if Silent(pod) {
		// The kubelet rejected the pod before it ran, unless ran is true.
		return !Collected(pod) && !ran
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	if len(statuses) < len(pod.Spec.InitContainers)+len(pod.Spec.Containers) || !endedByKubelet(pod) {
		return false
	}
	statuses = append(statuses, pod.Status.EphemeralContainerStatuses...)
	return !slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return !over(&s) })
}

// Silent reports whether the status of the pod contains no container statuses.
func Silent(pod *corev1.Pod) bool {
	return len(pod.Status.InitContainerStatuses)+len(pod.Status.ContainerStatuses) == 0
}

// endedByKubelet reports whether the kubelet set the final phase of the pod. Only the kubelet writes
// these reasons (kubelet/status, GenerateContainersReadyCondition); the API has no constants for them.
// If another component set the phase, a container that was terminated before may have been restarted
// since.
//
// A pod that is deleted before its containers start ends without these reasons (kubelet/status,
// TerminatePod). In this case the kubelet reports that the pod has no sandbox, with an
// observedGeneration that includes the deletion. Without a sandbox, nothing runs. Kubernetes before
// 1.34 does not report this observedGeneration.
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

// over reports whether a container of an ended pod has terminated, or was never started.
func over(s *corev1.ContainerStatus) bool {
	if s.State.Terminated != nil {
		return true
	}
	return s.State.Waiting != nil && s.ContainerID == "" && s.RestartCount == 0 && s.LastTerminationState.Terminated == nil
}

// Collected reports whether pod garbage collection ended the pod. It does so when the kubelet is
// unreachable.
func Collected(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByPodGC"
	})
}
