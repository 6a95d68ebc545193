// Package podresize handles in-place resize of running pods (KEP-1287). A client writes the wanted
// resources to the pod's resize subresource, and the kubelet reports its progress in the status. The
// functions of this package have no side effects.
package podresize

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resized returns a copy of the pod with the resources of the given containers, matched by name. A
// limit without a request also sets the request, as in the API server. Other values in the pod are
// defaults, and are kept.
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

// setResources sets the quantities of want in have.
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
		if _, requested := want.Requests[k]; !requested {
			set(&have.Requests, k, v)
		}
	}
	for k, v := range want.Requests {
		set(&have.Requests, k, v)
	}
}

// KeepsResources reports whether all requests and limits in from still exist in to. Both lists have the
// same containers. A resize can change requests and limits, but cannot remove them.
func KeepsResources(from, to []corev1.Container) bool {
	for i := range from {
		was, now := &from[i].Resources, &to[i].Resources
		if !keeps(was.Requests, now.Requests) || !keeps(was.Limits, now.Limits) {
			return false
		}
	}
	return true
}

// keeps reports whether all resources in from exist in to.
func keeps(from, to corev1.ResourceList) bool {
	for k := range from {
		if _, stays := to[k]; !stays {
			return false
		}
	}
	return true
}

// Resizing reports whether a resize of the pod is pending or in progress.
func Resizing(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress
	})
}

// Infeasible reports whether the kubelet reports that the pod can never get the resources on its Node.
func Infeasible(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible
	})
}

// Unseen reports whether the kubelet has not observed the latest generation of the pod. It returns
// false before Kubernetes 1.33, because the status then has no observedGeneration.
func Unseen(pod *corev1.Pod) bool {
	observed := pod.Status.ObservedGeneration
	return observed > 0 && observed < pod.Generation
}

// Resizable are the resources that a resize can change.
var Resizable = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// Same reports whether two lists have the same quantity of a resource, or both have none.
func Same(a, b corev1.ResourceList, name corev1.ResourceName) bool {
	one, isIn := a[name]
	other, isToo := b[name]
	return isIn == isToo && one.Cmp(other) == 0
}

// Actual reports whether a running container has the resources in the pod's spec.
func Actual(pod *corev1.Pod, name string) bool {
	wants := Container(pod, name)
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == name })
	if wants == nil || i < 0 || pod.Status.ContainerStatuses[i].Resources == nil {
		return false // before Kubernetes 1.33, the kubelet does not report resources
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

// Container returns the container with the given name; nil if there is none.
func Container(pod *corev1.Pod, name string) *corev1.Container {
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &pod.Spec.Containers[i]
}

// Without returns a copy of a pod spec without the cpu and memory of its containers.
func Without(spec *corev1.PodSpec) *corev1.PodSpec {
	spec = spec.DeepCopy()
	for i := range spec.Containers {
		for _, name := range Resizable {
			delete(spec.Containers[i].Resources.Requests, name)
			delete(spec.Containers[i].Resources.Limits, name)
		}
	}
	return spec
}
