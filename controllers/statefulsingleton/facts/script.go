package facts

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// ScriptFault returns why a container with the script does not start; "" if it does. After
// the grant, a container that ends may be the program.
func (m *Member) ScriptFault(s *corev1.ContainerStatus) string {
	if why := startError(s); why != "" {
		return why
	}
	if ended := s.LastTerminationState.Terminated; ended != nil && !m.Granted() {
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
