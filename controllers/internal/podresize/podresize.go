// Package podresize is about the resources of a pod that runs, which can be changed
// (KEP-1287): a client writes what it wants by the pod's resize subresource, and the kubelet
// says how far it is. Nothing here has an effect.
package podresize

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resized is a copy of a pod that has the resources of those containers, by their names. A
// limit without a request is the request too, as the API server makes of it. Other values
// in the pod are defaults that others set, and stay.
func Resized(pod *corev1.Pod, containers []corev1.Container) *corev1.Pod {
	sized := pod.DeepCopy()
	for i := range containers {
		for j := range sized.Spec.Containers {
			if sized.Spec.Containers[j].Name == containers[i].Name {
				setResources(&sized.Spec.Containers[j].Resources, containers[i].Resources)
			}
		}
	}
	return sized
}

func setResources(have *corev1.ResourceRequirements, want corev1.ResourceRequirements) {
	set := func(in *corev1.ResourceList, k corev1.ResourceName, v resource.Quantity) {
		if *in == nil {
			*in = corev1.ResourceList{}
		}
		if now, there := (*in)[k]; !there || now.Cmp(v) != 0 {
			(*in)[k] = v
		}
	}
	for k, v := range want.Limits {
		set(&have.Limits, k, v)
		if _, said := want.Requests[k]; !said {
			set(&have.Requests, k, v)
		}
	}
	for k, v := range want.Requests {
		set(&have.Requests, k, v)
	}
}

// KeepsResources reports whether no request and no limit goes from one list of containers
// to another, which has the same ones: a resize can change them, but not take them away.
func KeepsResources(from, to []corev1.Container) bool {
	for i := range from {
		was, now := &from[i].Resources, &to[i].Resources
		if !keeps(was.Requests, now.Requests) || !keeps(was.Limits, now.Limits) {
			return false
		}
	}
	return true
}

func keeps(from, to corev1.ResourceList) bool {
	for k := range from {
		if _, stays := to[k]; !stays {
			return false
		}
	}
	return true
}

// Resizing reports whether the kubelet has a resize of the pod still to do.
func Resizing(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress
	})
}

// Infeasible reports whether the kubelet says that the pod can never have the
// resources on its Node.
func Infeasible(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible
	})
}

// Unseen reports whether the kubelet says that it has not seen the last change of the pod.
// Before Kubernetes 1.33 it says nothing.
func Unseen(pod *corev1.Pod) bool {
	seen := pod.Status.ObservedGeneration
	return seen > 0 && seen < pod.Generation
}

// Resizable are the resources that a resize can change.
var Resizable = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// Same reports whether two lists say the same of a resource.
func Same(a, b corev1.ResourceList, name corev1.ResourceName) bool {
	one, isIn := a[name]
	other, isToo := b[name]
	return isIn == isToo && one.Cmp(other) == 0
}

// Actual reports whether a container has what its pod says.
func Actual(pod *corev1.Pod, name string) bool {
	wants := Container(pod, name)
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == name })
	if wants == nil || i < 0 || pod.Status.ContainerStatuses[i].Resources == nil {
		return false // a kubelet before Kubernetes 1.33 says nothing
	}
	status := &pod.Status.ContainerStatuses[i]
	for _, resource := range Resizable {
		if !Same(wants.Resources.Requests, status.Resources.Requests, resource) || !Same(wants.Resources.Limits, status.Resources.Limits, resource) {
			return false
		}
		if status.AllocatedResources != nil && !Same(wants.Resources.Requests, status.AllocatedResources, resource) {
			return false
		}
	}
	return true
}

// Container is the container of that name of a pod; nil if there is none.
func Container(pod *corev1.Pod, name string) *corev1.Container {
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &pod.Spec.Containers[i]
}
