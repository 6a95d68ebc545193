package podstate

import corev1 "k8s.io/api/core/v1"

// LastEnd returns the last termination state of a container in a pod that is not Ready; nil if there is
// none. It also returns nil if the container has been running since before the last transition of
// condition Ready: its last termination then is not the reason.
func LastEnd(pod *corev1.Pod, s *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	ready := Condition(pod, corev1.PodReady)
	if s.State.Running != nil && ready != nil && s.State.Running.StartedAt.Before(&ready.LastTransitionTime) {
		return nil
	}
	return s.LastTerminationState.Terminated
}
