package podstate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// CrashLoop is the kubelet's word for a container that ends and is started again.
const CrashLoop = "CrashLoopBackOff"

// hindrances are the reasons why a container waits that a person must act on,
// those that last before the one that comes and goes.
var hindrances = []string{"ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError", CrashLoop}

// inTurn are reasons that the kubelet reports in turn with one of hindrances,
// which stands for them: what flips is written again and again.
var inTurn = map[string]string{"ErrImagePull": "ImagePullBackOff", "RegistryUnavailable": "ImagePullBackOff",
	"SignatureValidationFailed": "ImagePullBackOff", "RunContainerError": CrashLoop}

// Hindrance is what keeps a pod from running until a person acts; "" if
// nothing is known to.
func Hindrance(pod *corev1.Pod) string {
	word, _ := hindrance(pod)
	return word
}

// hindrance also gives the container that waits; nil if none does.
func hindrance(pod *corev1.Pod) (string, *corev1.ContainerStatus) {
	if _, yes := UnschedulableSince(pod); yes && !Scheduled(pod) {
		return corev1.PodReasonUnschedulable, nil
	}
	gravest, which := len(hindrances), (*corev1.ContainerStatus)(nil)
	containers := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for i := range containers {
		s := &containers[i]
		if s.State.Waiting == nil {
			continue
		}
		if n := slices.Index(hindrances, cmp.Or(inTurn[s.State.Waiting.Reason], s.State.Waiting.Reason)); n >= 0 && n < gravest {
			gravest, which = n, s
		}
	}
	if which == nil {
		return "", nil
	}
	return hindrances[gravest], which
}

// Explain says why a pod is not Ready in words that stay the same while the cause
// does: that of Hindrance, and what the kubelet or the scheduler adds to it. "" if
// nothing is known, as of one that starts.
func Explain(pod *corev1.Pod) string {
	word, waits := hindrance(pod)
	switch {
	case Ready(pod):
		return ""
	case word == corev1.PodReasonUnschedulable:
		// What follows is about claims of devices and preemption.
		text, _, _ := strings.Cut(condition(pod, corev1.PodScheduled).Message, ". ")
		return withDetail(word, strings.TrimSuffix(text, "."))
	case word == "ImagePullBackOff" || word == "InvalidImageName":
		return withDetail(word, cmp.Or(waits.Image, "container "+waits.Name)) // the rest of what is said flips
	case word != "" && word != CrashLoop:
		return withDetail(word, waits.State.Waiting.Message)
	}
	return cmp.Or(explainCrash(crashed(pod)), word, unready(pod))
}

// ExplainCrash says in the words of Explain that a container of a pod ended and was started
// again, also of a pod that is Ready: one without a readiness probe is, for as long as its
// program runs. "" if none did.
func ExplainCrash(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.LastTerminationState.Terminated != nil {
			return explainCrash(s.Name, s.LastTerminationState.Terminated)
		}
	}
	return ""
}

func explainCrash(container string, ended *corev1.ContainerStateTerminated) string {
	if ended == nil {
		return ""
	}
	return withDetail(CrashLoop, fmt.Sprintf("container %s ended with code %d%s", container, ended.ExitCode, besides(ended.Reason)))
}

func withDetail(word, detail string) string {
	if detail == "" {
		return word
	}
	return word + ": " + detail
}

// besides is a reason that says more than the code.
func besides(reason string) string {
	if reason == "" || reason == "Error" || reason == "Completed" {
		return ""
	}
	return " (" + reason + ")"
}

// crashed is a container that ended and is started again, by its name, and how it
// ended last. In a pod that is not Ready that is said also while it runs for a moment.
// An init container that ended well is through.
func crashed(pod *corev1.Pod) (string, *corev1.ContainerStateTerminated) {
	for i, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		ended := s.State.Terminated
		if ended == nil {
			ended = LastEnd(pod, &s)
		}
		if ended != nil && (ended.ExitCode != 0 || i >= len(pod.Status.InitContainerStatuses)) {
			return s.Name, ended
		}
	}
	return "", nil
}

// LastEnd is how a container of a pod that is not Ready ended before it was started
// again; nil if it never did, or if that is no reason: it was started again while the
// pod was Ready, and runs since.
func LastEnd(pod *corev1.Pod, s *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	ready := condition(pod, corev1.PodReady)
	if s.State.Running != nil && ready != nil && s.State.Running.StartedAt.Before(&ready.LastTransitionTime) {
		return nil
	}
	return s.LastTerminationState.Terminated
}

// unready says what a pod lacks whose containers run.
func unready(pod *corev1.Pod) string {
	c := condition(pod, corev1.PodReady)
	runs := func(s corev1.ContainerStatus) bool { return s.State.Running != nil }
	switch {
	case c == nil || len(pod.Status.ContainerStatuses) == 0:
		return ""
	case c.Reason == "ReadinessGatesNotReady": // the API package has no constant
		return "a readiness gate is not True"
	case c.Reason == "ContainersNotReady" && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return !runs(s) }):
		return "it runs, and its readiness probe does not succeed"
	}
	return ""
}
