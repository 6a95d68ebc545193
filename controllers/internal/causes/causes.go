// Package causes determines why a pod is missing, does not run, or is not deleted. All kinds report a
// cause with the same text and the same command to resolve it. The table also contains the Jobs of an
// upgrade, which only ExtendedStatefulSet reports.
package causes

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/kstatus"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// maxDetail is the max number of bytes of messages from other components.
const maxDetail = 300

// Cause is why a pod is missing, does not run, or is not deleted. Its text is stable while the cause
// exists. It is empty if there is no known cause, for example while a pod starts.
type Cause struct {
	// Word identifies the cause in the table. It is usually the reason that kubectl get displays.
	Word string
	// Detail is the message of the kubelet, the scheduler or the API server.
	Detail string
}

// Known reports whether there is a cause.
func (c Cause) Known() bool { return c.Word != "" }

// String returns the word and the detail.
func (c Cause) String() string {
	switch {
	case c.Word == running:
		return c.Detail
	case c.Detail == "":
		return c.Word
	}
	return c.Word + ": " + c.Detail
}

// Effect returns the effect of the cause on clients that wait for the pod.
func (c Cause) Effect() kstatus.Effect {
	if r := c.row(); r != nil {
		return r.Effect
	}
	return kstatus.Passes
}

// NeedsPerson reports whether the cause requires manual intervention.
func (c Cause) NeedsPerson() bool { return c.Effect() == kstatus.NeedsPerson }

// Help returns how to resolve the cause for a pod, with a command.
func (c Cause) Help(namespace, pod string) string {
	r := c.row()
	if r == nil {
		return ""
	}
	return r.Advice + ": " + strings.NewReplacer("{n}", namespace, "{p}", pod).Replace(r.Command)
}

// Tell returns a message about a pod with the cause: what fails, why, and a command to resolve it. what
// describes the pod, such as "member db-1".
func (c Cause) Tell(what, namespace, pod string) string {
	r := c.row()
	if r == nil {
		return ""
	}
	why := c.String()
	if r.Verb == notCreated {
		why = c.Detail
	}
	return fmt.Sprintf("%s %s: %s; %s", what, r.Verb, excerpt.Of(why, maxDetail), c.Help(namespace, pod))
}

// Refused returns why a pod or claim cannot be created, from a message of the API server.
func Refused(text string) Cause {
	for i := range Rows {
		if r := &Rows[i]; r.Seen == seenInEvents && r.says(text) {
			return Cause{Word: r.Word, Detail: text}
		}
	}
	return Cause{Word: failedCreate, Detail: text}
}

// RunsUnready reports whether the containers of the pod run, but the pod is not Ready.
func (c Cause) RunsUnready() bool { return c.Word == running }

// hindrances are the waiting reasons of containers that require manual intervention. Permanent ones
// come first, and CrashLoopBackOff, which alternates with running, is last.
var hindrances = []string{imagePull, invalidImage, neverPull, configError, createError, CrashLoop}

// inTurn maps reasons that alternate with one of the hindrances to that one. Otherwise conditions would
// be rewritten each time that the reason changes.
var inTurn = map[string]string{"ErrImagePull": imagePull, "RegistryUnavailable": imagePull,
	"SignatureValidationFailed": imagePull, "RunContainerError": CrashLoop, "PostStartHookError": CrashLoop}

// Of returns why a pod is not Ready.
func Of(pod *corev1.Pod) Cause {
	switch {
	case podstate.Ended(pod):
		return ofEnded(pod)
	case podstate.Ready(pod):
		return Cause{}
	}
	if c := unscheduled(pod); c.Known() {
		return c
	}
	word, waits := waiting(pod)
	switch {
	case word == imagePull || word == invalidImage || word == neverPull:
		return Cause{word, image(waits)} // the rest of the message alternates
	case word != "" && word != CrashLoop:
		return Cause{word, waits.State.Waiting.Message}
	}
	if crash := crashed(pod); crash.Known() {
		return crash
	}
	if word != "" {
		return Cause{Word: word}
	}
	return unready(pod)
}

// unscheduled returns why a pod has no Node.
func unscheduled(pod *corev1.Pod) Cause {
	c := podstate.Condition(pod, corev1.PodScheduled)
	switch {
	case podstate.Scheduled(pod), c == nil, c.Status != corev1.ConditionFalse:
		return Cause{}
	case c.Reason == corev1.PodReasonSchedulingGated:
		return Cause{Word: SchedulingGated}
	case c.Reason != corev1.PodReasonUnschedulable:
		return Cause{} // an error of the scheduler itself; it retries
	}
	// The rest of the message is about resource claims and preemption.
	text, _, _ := strings.Cut(c.Message, ". ")
	return Cause{Unschedulable, strings.TrimSuffix(text, ".")}
}

// waiting returns the most severe reason for which a container waits, and that container.
func waiting(pod *corev1.Pod) (string, *corev1.ContainerStatus) {
	gravest, which := len(hindrances), (*corev1.ContainerStatus)(nil)
	containers := containersOf(pod)
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

// containersOf returns the statuses of the init containers and containers of a pod.
func containersOf(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// image describes the image for which a container waits, and the container. It can be the image of a volume.
func image(s *corev1.ContainerStatus) string {
	name := s.Image
	if found := pulledImage.FindStringSubmatch(s.State.Waiting.Message); found != nil {
		name = found[1]
	}
	if name == "" {
		return "container " + s.Name
	}
	return fmt.Sprintf("image %s (container %s)", name, s.Name)
}

// pulledImage finds the image in the kubelet's message, which contains it while the kubelet waits for a retry.
var pulledImage = regexp.MustCompile(`^Back-off pulling image "([^"]+)"`)

// OfCrash returns a cause if a container of a pod has terminated and was restarted. This includes pods
// that are Ready, because a pod without a readiness probe is Ready while its containers run.
func OfCrash(pod *corev1.Pod) Cause {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.LastTerminationState.Terminated != nil {
			return crash("container "+s.Name, s.LastTerminationState.Terminated)
		}
	}
	return Cause{}
}

// crash returns the cause of a container that terminated.
func crash(container string, ended *corev1.ContainerStateTerminated) Cause {
	return Cause{CrashLoop, fmt.Sprintf("%s ended with code %d%s", container, ended.ExitCode, besides(ended.Reason))}
}

// besides returns a termination reason that adds information to the exit code; "" if it adds none.
func besides(reason string) string {
	if reason == "" || reason == "Error" || reason == "Completed" {
		return ""
	}
	return " (" + reason + ")"
}

// crashed returns the last termination of a container that is restarted. In a pod that is not Ready,
// this includes a container that currently runs. It ignores init containers that succeeded.
func crashed(pod *corev1.Pod) Cause {
	inits := len(pod.Status.InitContainerStatuses)
	for i, s := range containersOf(pod) {
		ended := s.State.Terminated
		if ended == nil {
			ended = podstate.LastEnd(pod, &s)
		}
		switch {
		case ended == nil:
		case i >= inits:
			return crash("container "+s.Name, ended)
		case ended.ExitCode != 0:
			return crash("init container "+s.Name, ended)
		}
	}
	return Cause{}
}

// unready returns why a pod with running containers is not Ready.
func unready(pod *corev1.Pod) Cause {
	c := podstate.Condition(pod, corev1.PodReady)
	runs := func(s corev1.ContainerStatus) bool { return s.State.Running != nil }
	switch {
	case c == nil || len(pod.Status.ContainerStatuses) == 0:
		return Cause{}
	case c.Reason == "ReadinessGatesNotReady": // the API package has no constant for it
		return Cause{running, "a readiness gate is not True"}
	case c.Reason == "ContainersNotReady" && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return !runs(s) }):
		return Cause{running, "it is running, and its readiness probe does not succeed"}
	}
	return Cause{}
}

// ofEnded returns why a pod failed, or why the kubelet rejected it.
func ofEnded(pod *corev1.Pod) Cause {
	if pod.Status.Reason != "" {
		c := Cause{pod.Status.Reason, strings.TrimPrefix(pod.Status.Message, "Pod was rejected: ")}
		if c.row() == nil {
			return Cause{ended, c.String()}
		}
		return c
	}
	for _, s := range containersOf(pod) {
		if t := cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated); t != nil && t.ExitCode != 0 {
			return Cause{ended, crash("container "+s.Name, t).Detail}
		}
	}
	return Cause{Word: ended, Detail: fmt.Sprintf("it terminated with phase %s", pod.Status.Phase)}
}

// Situation returns the situation of the cause in the table; "" if it is not in the table.
func (c Cause) Situation() string {
	if r := c.row(); r != nil {
		return r.Situation
	}
	return ""
}
