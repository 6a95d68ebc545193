// Package slim removes unneeded fields from objects before they enter the cache, so that a managed pod
// uses little memory.
package slim

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// Kept specifies the fields that are kept in addition to identity, timestamps and owner references.
type Kept struct {
	Labels, Annotations []string // keys
	// Containers reports whether the container states of a pod are kept; nil means no.
	Containers func(*corev1.Pod) bool
	// Images reports whether the container images of a pod are kept; nil means no.
	Images func(*corev1.Pod) bool
	// Causes additionally keeps the fields from which package causes explains why a pod is not Ready.
	// It applies to the kept containers.
	Causes bool
	// Volumes reports whether a volume is kept; nil means none.
	Volumes func(*corev1.Volume) bool
}

// maxReason is the max number of bytes that are kept of status.reason, which normally is one word.
const maxReason = 64

// Pod is a cache transform. It keeps the metadata and node of a pod, and those conditions and container
// states that decisions and the owner's status use. Patches must not be based on such a pod: read the
// live pod first.
func (k Kept) Pod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	slim := &corev1.Pod{ObjectMeta: k.metadata(&pod.ObjectMeta)}
	slim.Spec.NodeName = pod.Spec.NodeName
	if podstate.AlwaysRestarts(pod) { // without the containers, their own restart policies are unknown
		slim.Spec.RestartPolicy = pod.Spec.RestartPolicy
	}
	for i := range pod.Spec.Volumes {
		if k.Volumes != nil && k.Volumes(&pod.Spec.Volumes[i]) {
			slim.Spec.Volumes = append(slim.Spec.Volumes, pod.Spec.Volumes[i])
		}
	}
	if k.Images != nil && k.Images(pod) {
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			slim.Spec.Containers = append(slim.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
		}
	}
	slim.Status.Phase, slim.Status.StartTime = pod.Status.Phase, pod.Status.StartTime
	slim.Status.ObservedGeneration = pod.Status.ObservedGeneration
	slim.Status.Reason = pod.Status.Reason[:min(len(pod.Status.Reason), maxReason)]
	slim.Status.Conditions = cutConditions(pod.Status.Conditions)
	if k.Containers != nil && k.Containers(pod) {
		cutContainers(slim, pod)
	}
	if k.Causes {
		keepCauses(slim, pod)
	}
	return slim, nil
}

// Metadata is a cache transform for objects that are cached as metadata only.
func (k Kept) Metadata(obj any) (any, error) {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta, ObjectMeta: k.metadata(&m.ObjectMeta)}, nil
}

// metadata returns the kept metadata of an object.
func (k Kept) metadata(m *metav1.ObjectMeta) metav1.ObjectMeta {
	slim := metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Generation: m.Generation, CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		DeletionGracePeriodSeconds: m.DeletionGracePeriodSeconds, OwnerReferences: m.OwnerReferences,
		Labels: keep(m.Labels, k.Labels), Annotations: m.Annotations,
	}
	Bounded(&slim, k.Annotations...)
	for _, owner := range slim.OwnerReferences { // share strings that occur in both
		for key, value := range slim.Labels {
			switch value {
			case owner.Name:
				slim.Labels[key] = owner.Name
			case string(owner.UID):
				slim.Labels[key] = string(owner.UID)
			}
		}
	}
	return slim
}

// cutConditions returns the conditions that decisions use, without messages.
func cutConditions(all []corev1.PodCondition) []corev1.PodCondition {
	kept := make([]corev1.PodCondition, 0, 3) // usually PodReadyToStartContainers, PodScheduled and Ready
	for _, c := range all {
		switch c.Type {
		case corev1.PodReadyToStartContainers, corev1.PodReady, corev1.PodScheduled, corev1.DisruptionTarget, corev1.PodResizePending, corev1.PodResizeInProgress:
			kept = append(kept, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return kept
}

// cutContainers copies the fields of container statuses that decisions use from pod to slim.
func cutContainers(slim, pod *corev1.Pod) {
	for _, s := range pod.Status.InitContainerStatuses {
		slim.Status.InitContainerStatuses = append(slim.Status.InitContainerStatuses, corev1.ContainerStatus{
			ContainerID: s.ContainerID, RestartCount: s.RestartCount, State: corev1.ContainerState{Waiting: cutWaiting(s.State.Waiting)}})
	}
	for _, s := range pod.Status.ContainerStatuses {
		slim.Status.ContainerStatuses = append(slim.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: s.Name, ImageID: s.ImageID, ContainerID: s.ContainerID, RestartCount: s.RestartCount,
			State: corev1.ContainerState{Running: s.State.Running, Waiting: cutWaiting(s.State.Waiting)}})
	}
}

// cutWaiting returns only the reason of a waiting state. It returns nil if the container is not
// waiting.
func cutWaiting(w *corev1.ContainerStateWaiting) *corev1.ContainerStateWaiting {
	if w == nil {
		return nil
	}
	return &corev1.ContainerStateWaiting{Reason: w.Reason}
}

// keepCauses keeps the fields that explain why a pod is not Ready. These are the scheduler's message
// and the status message of the pod. For each container that is waiting or has terminated before, they
// are its name, image, waiting message and last termination state. For a terminating pod, they include
// its finalizers.
func keepCauses(slim, pod *corev1.Pod) {
	slim.Status.Message = pod.Status.Message
	if pod.DeletionTimestamp != nil {
		slim.Finalizers = pod.Finalizers[:min(len(pod.Finalizers), maxFinalizers)]
	}
	for i := range slim.Status.Conditions {
		kept := &slim.Status.Conditions[i]
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && kept.Type == c.Type && c.Status == corev1.ConditionFalse {
				kept.Message = c.Message
			}
		}
	}
	keepContainerCauses(slim.Status.InitContainerStatuses, pod.Status.InitContainerStatuses)
	keepContainerCauses(slim.Status.ContainerStatuses, pod.Status.ContainerStatuses)
}

// keepContainerCauses adds the fields of container statuses that explain why a pod is not Ready. Both
// lists have the same containers.
func keepContainerCauses(slim, full []corev1.ContainerStatus) {
	for i := range slim {
		kept, s := &slim[i], &full[i]
		ended := s.State.Terminated
		if ended == nil {
			ended = s.LastTerminationState.Terminated
		}
		if s.State.Waiting == nil && ended == nil {
			continue
		}
		if kept.Name = s.Name; ended != nil {
			kept.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: ended.ExitCode, Reason: ended.Reason}
		}
		if s.State.Waiting == nil {
			continue
		}
		if kept.Image = s.Image; strings.HasPrefix(s.State.Waiting.Reason, "CreateContainer") { // short and constant
			kept.State.Waiting.Message = s.State.Waiting.Message
		}
	}
}

// MaxConditions is the max number of conditions of an object that are kept and exported as metrics.
// Our kinds have at most that many, but a user who can write the status can add more.
const MaxConditions = 16

// Conditions keeps only the fields of conditions that metrics use: type, status and reason.
func Conditions(all []metav1.Condition) []metav1.Condition {
	kept := make([]metav1.Condition, 0, min(len(all), MaxConditions))
	for _, c := range all[:cap(kept)] {
		kept = append(kept, metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason})
	}
	return kept
}

// Node is a cache transform that keeps identity, machine, taints, cordons and condition Ready.
func Node(obj any) (any, error) {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	slim := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID,
		ResourceVersion: n.ResourceVersion, CreationTimestamp: n.CreationTimestamp}}
	slim.Spec.Taints, slim.Spec.Unschedulable = n.Spec.Taints, n.Spec.Unschedulable
	slim.Status.NodeInfo = corev1.NodeSystemInfo{MachineID: n.Status.NodeInfo.MachineID, SystemUUID: n.Status.NodeInfo.SystemUUID,
		KubeletVersion: n.Status.NodeInfo.KubeletVersion, ContainerRuntimeVersion: n.Status.NodeInfo.ContainerRuntimeVersion}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			slim.Status.Conditions = append(slim.Status.Conditions,
				corev1.NodeCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return slim, nil
}

// keep returns the entries with the given keys.
func keep(all map[string]string, keys []string) map[string]string {
	var kept map[string]string
	for _, k := range keys {
		if v, ok := all[k]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[k] = v
		}
	}
	return kept
}
