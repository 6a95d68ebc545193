package podstate

import corev1 "k8s.io/api/core/v1"

// LastEnd is how a container of a pod that is not Ready ended before it was started
// again; nil if it never did, or if that is no reason: it was started again while the
// pod was Ready, and runs since.
func LastEnd(pod *corev1.Pod, s *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	ready := Condition(pod, corev1.PodReady)
	if s.State.Running != nil && ready != nil && s.State.Running.StartedAt.Before(&ready.LastTransitionTime) {
		return nil
	}
	return s.LastTerminationState.Terminated
}
