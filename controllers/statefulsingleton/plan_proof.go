package statefulsingleton

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// stopped tells whether nothing of the pod runs, and nothing will. The phase is
// not enough, since pod garbage collection sets it without asking the kubelet;
// nor are the containers, since one that crashed in a living pod has terminated
// for a moment, and starts again.
func stopped(pod *corev1.Pod) bool {
	if !podstate.Ended(pod) {
		return podstate.Terminating(pod) && !podstate.Scheduled(pod) // no Node will get it
	}
	if silent(pod) {
		// The kubelet refused it before it ran, unless it ran once: then it had
		// our finalizer.
		return !collected(pod) && !controllerutil.ContainsFinalizer(pod, v1.FinalizerPod)
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	if len(statuses) < len(pod.Spec.InitContainers)+len(pod.Spec.Containers) || !endedByKubelet(pod) {
		return false
	}
	statuses = append(statuses, pod.Status.EphemeralContainerStatuses...)
	return !slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return !over(&s) })
}

// silent tells whether nobody has said anything about the pod's containers.
func silent(pod *corev1.Pod) bool {
	return len(pod.Status.InitContainerStatuses)+len(pod.Status.ContainerStatuses) == 0
}

// endedByKubelet tells whether it was the kubelet that gave the pod its last
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
			return podstate.Terminating(pod) && c.Status == corev1.ConditionFalse && c.ObservedGeneration > 0 && c.ObservedGeneration == pod.Generation
		}
		return false
	})
}

// over tells whether a container of an ended pod has ended, or never started.
func over(s *corev1.ContainerStatus) bool {
	if s.State.Terminated != nil {
		return true
	}
	return s.State.Waiting != nil && s.ContainerID == "" && s.RestartCount == 0 && s.LastTerminationState.Terminated == nil
}

// collected tells whether pod garbage collection ended the pod, which it does
// when the kubelet does not answer.
func collected(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByPodGC"
	})
}

// endRefused deletes pods that are Failed without a word about their containers:
// a kubelet that restarts refuses pods so that it ran before. Told to delete
// them, it ends what runs and says so; the finalizer waits for that.
func endRefused(w *world, p *plan) {
	if !w.serves() || w.deleting() {
		return
	}
	var chains []action.Chain
	for _, m := range p.blockers {
		if podstate.Ended(m.pod) && silent(m.pod) && !collected(m.pod) && m.protected() && !m.terminating() && m.node.ready {
			chains = append(chains, action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reasonRejected,
				Detail: "its kubelet refused it and does not say whether it runs"}})
		}
	}
	p.do(chains...)
}
