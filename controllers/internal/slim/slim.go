// Package slim cuts objects down to what decisions need before they enter the
// cache, so that a managed pod costs little memory.
package slim

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kept is what stays of an object's metadata beside its identity, its times and
// its owners.
type Kept struct {
	Labels, Annotations []string // keys
	// Containers tells whether the states of a pod's containers stay; nil is no.
	Containers func(*corev1.Pod) bool
	// Volumes tells which volumes stay; nil is none.
	Volumes func(*corev1.Volume) bool
}

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
	for i := range pod.Spec.Volumes {
		if k.Volumes != nil && k.Volumes(&pod.Spec.Volumes[i]) {
			slim.Spec.Volumes = append(slim.Spec.Volumes, pod.Spec.Volumes[i])
		}
	}
	slim.Status.Phase, slim.Status.StartTime = pod.Status.Phase, pod.Status.StartTime
	slim.Status.ObservedGeneration = pod.Status.ObservedGeneration
	slim.Status.Conditions = cutConditions(pod.Status.Conditions)
	if k.Containers != nil && k.Containers(pod) {
		cutContainers(slim, pod)
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
		Labels: keep(m.Labels, k.Labels), Annotations: keep(m.Annotations, k.Annotations),
	}
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
	kept := make([]corev1.PodCondition, 0, 2) // mostly PodScheduled and Ready
	for _, c := range all {
		switch c.Type {
		case corev1.PodReady, corev1.PodScheduled, corev1.DisruptionTarget, corev1.PodResizePending, corev1.PodResizeInProgress:
			one := corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime}
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				one.Message = c.Message
			}
			kept = append(kept, one)
		}
	}
	return kept
}

func cutContainers(slim, pod *corev1.Pod) {
	for _, s := range pod.Status.InitContainerStatuses {
		slim.Status.InitContainerStatuses = append(slim.Status.InitContainerStatuses, corev1.ContainerStatus{
			Name: s.Name, ContainerID: s.ContainerID, RestartCount: s.RestartCount, Image: imageOf(&s), LastTerminationState: cutEnd(&s),
			State: corev1.ContainerState{Waiting: cutWaiting(s.State.Waiting)}})
	}
	for _, s := range pod.Status.ContainerStatuses {
		slim.Status.ContainerStatuses = append(slim.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: s.Name, ImageID: s.ImageID, ContainerID: s.ContainerID, RestartCount: s.RestartCount,
			Image: imageOf(&s), LastTerminationState: cutEnd(&s),
			State: corev1.ContainerState{Running: s.State.Running, Waiting: cutWaiting(s.State.Waiting)}})
	}
}

// cutWaiting keeps why a container waits; nil if it does not. What the kubelet adds
// stays the same, and is short, where it says what is missing.
func cutWaiting(w *corev1.ContainerStateWaiting) *corev1.ContainerStateWaiting {
	if w == nil {
		return nil
	}
	kept := &corev1.ContainerStateWaiting{Reason: w.Reason}
	if strings.HasPrefix(w.Reason, "CreateContainer") {
		kept.Message = w.Message
	}
	return kept
}

// imageOf keeps the image of a container that waits, perhaps for it.
func imageOf(s *corev1.ContainerStatus) string {
	if s.State.Waiting == nil {
		return ""
	}
	return s.Image
}

// cutEnd keeps how a container that was started again had ended.
func cutEnd(s *corev1.ContainerStatus) corev1.ContainerState {
	if ended := s.LastTerminationState.Terminated; ended != nil {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: ended.ExitCode, Reason: ended.Reason}}
	}
	return corev1.ContainerState{}
}

// Node is a cache transform that keeps identity, taints and the Ready condition.
func Node(obj any) (any, error) {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	slim := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID,
		ResourceVersion: n.ResourceVersion, CreationTimestamp: n.CreationTimestamp}}
	slim.Spec.Taints = n.Spec.Taints
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
