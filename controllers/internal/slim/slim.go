// Package slim cuts objects down to what decisions need before they enter the
// cache, so that a managed pod costs little memory.
package slim

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pod returns a cache transform. It keeps of a pod its identity, its owner, its
// node, the conditions and container states that decisions and the status of its
// owner ask about, and the labels and annotations of these keys. Patches must not be made from a pod
// cut down like this: read it live first.
func Pod(labels, annotations []string) func(any) (any, error) {
	return func(obj any) (any, error) {
		pod, ok := obj.(*corev1.Pod)
		if !ok {
			return obj, nil
		}
		return cutPod(pod, labels, annotations), nil
	}
}

func cutPod(pod *corev1.Pod, labels, annotations []string) *corev1.Pod {
	meta := metav1.ObjectMeta{
		Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		Generation: pod.Generation, CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds, OwnerReferences: pod.OwnerReferences,
	}
	meta.Labels, meta.Annotations = keep(pod.Labels, labels), keep(pod.Annotations, annotations)
	slim := &corev1.Pod{ObjectMeta: meta}
	slim.Spec.NodeName = pod.Spec.NodeName
	slim.Status.Phase, slim.Status.StartTime = pod.Status.Phase, pod.Status.StartTime
	slim.Status.ObservedGeneration = pod.Status.ObservedGeneration
	for _, c := range pod.Status.Conditions {
		switch c.Type {
		case corev1.PodReady, corev1.PodScheduled, corev1.DisruptionTarget, corev1.PodResizePending, corev1.PodResizeInProgress:
			slim.Status.Conditions = append(slim.Status.Conditions,
				corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
		}
	}
	for _, s := range pod.Status.InitContainerStatuses {
		slim.Status.InitContainerStatuses = append(slim.Status.InitContainerStatuses, corev1.ContainerStatus{
			ContainerID: s.ContainerID, State: corev1.ContainerState{Waiting: cutWaiting(s.State.Waiting)}})
	}
	for _, s := range pod.Status.ContainerStatuses {
		slim.Status.ContainerStatuses = append(slim.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: s.Name, ImageID: s.ImageID, ContainerID: s.ContainerID, RestartCount: s.RestartCount,
			State: corev1.ContainerState{Running: s.State.Running, Waiting: cutWaiting(s.State.Waiting)}})
	}
	return slim
}

// cutWaiting keeps why a container waits; nil if it does not.
func cutWaiting(w *corev1.ContainerStateWaiting) *corev1.ContainerStateWaiting {
	if w == nil {
		return nil
	}
	return &corev1.ContainerStateWaiting{Reason: w.Reason}
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
