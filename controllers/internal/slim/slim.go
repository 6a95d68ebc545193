// Package slim cuts objects down to what decisions need before they enter the
// cache, so that a managed pod costs little memory.
package slim

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// Kept is what stays of an object's metadata beside its identity, its times and
// its owners.
type Kept struct {
	Labels, Annotations []string // keys
	// Containers reports whether the states of a pod's containers stay; nil is no.
	Containers func(*corev1.Pod) bool
	// Images reports whether the images of a pod's containers stay; nil is no.
	Images func(*corev1.Pod) bool
	// Causes keeps, with the containers, what podstate.Explain says of a pod that is
	// not Ready.
	Causes bool
	// Volumes tells which volumes stay; nil is none.
	Volumes func(*corev1.Volume) bool
}

// mostReason bounds what is kept of status.reason, which holds one word.
const mostReason = 64

// Pod is a cache transform. It keeps of a pod its metadata, its node and the
// conditions and container states that decisions and the status of its owner
// ask about. Patches must not be made from a pod cut down like this: read it
// live first.
func (k Kept) Pod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	slim := &corev1.Pod{ObjectMeta: k.metadata(&pod.ObjectMeta)}
	slim.Spec.NodeName = pod.Spec.NodeName
	if podstate.AlwaysRestarts(pod) { // without the containers, their own policies are not known
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
	slim.Status.Reason = pod.Status.Reason[:min(len(pod.Status.Reason), mostReason)]
	slim.Status.Conditions = cutConditions(pod.Status.Conditions)
	if k.Containers != nil && k.Containers(pod) {
		cutContainers(slim, pod)
	}
	if k.Causes {
		keepCauses(slim, pod)
	}
	return slim, nil
}

// Metadata is a cache transform of what is cached as metadata only.
func (k Kept) Metadata(obj any) (any, error) {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta, ObjectMeta: k.metadata(&m.ObjectMeta)}, nil
}

func (k Kept) metadata(m *metav1.ObjectMeta) metav1.ObjectMeta {
	slim := metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Generation: m.Generation, CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		DeletionGracePeriodSeconds: m.DeletionGracePeriodSeconds, OwnerReferences: m.OwnerReferences,
		Labels: keep(m.Labels, k.Labels), Annotations: m.Annotations,
	}
	Bounded(&slim, k.Annotations...)
	for _, owner := range slim.OwnerReferences { // what is said twice is kept once
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

func cutConditions(all []corev1.PodCondition) []corev1.PodCondition {
	kept := make([]corev1.PodCondition, 0, 3) // mostly PodReadyToStartContainers, PodScheduled and Ready
	for _, c := range all {
		switch c.Type {
		case corev1.PodReadyToStartContainers, corev1.PodReady, corev1.PodScheduled, corev1.DisruptionTarget, corev1.PodResizePending, corev1.PodResizeInProgress:
			kept = append(kept, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return kept
}

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

// cutWaiting keeps why a container waits; nil if it does not.
func cutWaiting(w *corev1.ContainerStateWaiting) *corev1.ContainerStateWaiting {
	if w == nil {
		return nil
	}
	return &corev1.ContainerStateWaiting{Reason: w.Reason}
}

// keepCauses keeps what is said of a pod that is not Ready: the scheduler's words, and
// of each container that waits or ended before its image, what is missing and how it
// ended last. Of a pod that the kubelet refused or ended, what it said. Of one that is being
// deleted, its finalizers.
func keepCauses(slim, pod *corev1.Pod) {
	slim.Status.Message = pod.Status.Message
	if pod.DeletionTimestamp != nil {
		slim.Finalizers = pod.Finalizers[:min(len(pod.Finalizers), mostFinalizers)]
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
		if kept.Image = s.Image; strings.HasPrefix(s.State.Waiting.Reason, "CreateContainer") { // short, and always the same
			kept.State.Waiting.Message = s.State.Waiting.Message
		}
	}
}

// MostConditions is how many conditions of an object stay, and have figures. No kind of ours
// has more; who may write a status can write many.
const MostConditions = 16

// Conditions keeps of an object's conditions what metrics tell: types, statuses and reasons.
func Conditions(all []metav1.Condition) []metav1.Condition {
	kept := make([]metav1.Condition, 0, min(len(all), MostConditions))
	for _, c := range all[:cap(kept)] {
		kept = append(kept, metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason})
	}
	return kept
}

// Node is a cache transform that keeps identity, machine, taints, cordons and the Ready condition.
func Node(obj any) (any, error) {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	slim := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID,
		ResourceVersion: n.ResourceVersion, CreationTimestamp: n.CreationTimestamp}}
	slim.Spec.Taints, slim.Spec.Unschedulable = n.Spec.Taints, n.Spec.Unschedulable
	slim.Status.NodeInfo.MachineID, slim.Status.NodeInfo.SystemUUID = n.Status.NodeInfo.MachineID, n.Status.NodeInfo.SystemUUID
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			slim.Status.Conditions = append(slim.Status.Conditions,
				corev1.NodeCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return slim, nil
}

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
