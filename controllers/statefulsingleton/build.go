package statefulsingleton

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// grantOf is the text that lets the pod of that UID start its program.
func grantOf(uid types.UID, epoch int64) string { return fmt.Sprintf("%s %d", uid, epoch) }

// buildWrapper builds the ConfigMap that a namespace's StatefulSingletons share.
// It belongs to all of them, so that the garbage collector deletes it with the
// last one.
func buildWrapper(namespace, script string, owners []v1.StatefulSingleton) *corev1.ConfigMap {
	wrapper := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: v1.ConfigMapWrapper, Namespace: namespace, Labels: ownLabels()},
		Data:       map[string]string{v1.FileScript: script},
	}
	for i := range owners {
		wrapper.OwnerReferences = append(wrapper.OwnerReferences, metav1.OwnerReference{
			APIVersion: v1.GroupVersion.String(), Kind: "StatefulSingleton", Name: owners[i].Name, UID: owners[i].UID})
	}
	slices.SortFunc(wrapper.OwnerReferences, func(a, b metav1.OwnerReference) int { return strings.Compare(a.Name, b.Name) })
	return wrapper
}

func ownLabels() map[string]string {
	return map[string]string{v1.LabelPartOf: v1.PartOf, v1.LabelManagedBy: v1.ManagedBy}
}

// The volumes.

func signalVolume() corev1.Volume {
	file := func(path, fieldPath string) corev1.DownwardAPIVolumeFile {
		return corev1.DownwardAPIVolumeFile{Path: path, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: fieldPath}}
	}
	return corev1.Volume{Name: v1.VolumeSignal, VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{file(v1.FileSignal, grantField), file(v1.FilePodUID, uidField)},
	}}}
}

const (
	grantField = "metadata.annotations['" + v1.AnnotationGrant + "']"
	uidField   = "metadata.uid"
)

// gateVolume is on disk and not in memory, where it would count against the
// memory of a container.
func gateVolume() corev1.Volume {
	return corev1.Volume{Name: v1.VolumeGate, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("16Mi"))}}}
}

func scriptsVolume() corev1.Volume {
	return corev1.Volume{Name: v1.VolumeScripts, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: v1.ConfigMapWrapper}, DefaultMode: ptr.To(int32(0o755))}}}
}

func mounted(volume, path string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: volume, MountPath: path, ReadOnly: true}
}

// The containers. None sets a user: the operator's image names one, and
// OpenShift gives each namespace a range of its own.

var (
	installCommand = []string{v1.GateInImage, "install", v1.PathGate}
	waitCommand    = []string{v1.GateInImage, "wait"}
	idleCommand    = []string{v1.GateInImage, "idle"}
	touchCommand   = []string{v1.GateInPod, "touch"}
)

// installContainer copies the gate to where the containers of the pod find it.
func installContainer(pod *corev1.Pod, image string) corev1.Container {
	c := gateContainer(pod, v1.ContainerInstall, image, installCommand)
	c.VolumeMounts = []corev1.VolumeMount{{Name: v1.VolumeGate, MountPath: v1.PathGate}}
	c.Resources = likeProgram(pod)
	return c
}

// waitContainer ends when the pod is granted the start.
func waitContainer(pod *corev1.Pod, image string) corev1.Container {
	c := gateContainer(pod, v1.ContainerWait, image, waitCommand)
	c.VolumeMounts = []corev1.VolumeMount{mounted(v1.VolumeSignal, v1.PathSignal)}
	c.Resources = likeProgram(pod)
	return c
}

// sidecarContainer answers where the pod stands.
func sidecarContainer(pod *corev1.Pod, image string) corev1.Container {
	c := gateContainer(pod, v1.ContainerSidecar, image, idleCommand)
	c.VolumeMounts = []corev1.VolumeMount{mounted(v1.VolumeSignal, v1.PathSignal)}
	c.Resources = corev1.ResourceRequirements{Requests: cpuAndMemory("10m", "32Mi"), Limits: cpuAndMemory("20m", "64Mi")}
	if guaranteed(pod) { // and stays so
		c.Resources.Limits = cpuAndMemory("10m", "32Mi")
	}
	return c
}

// imageContainer brings the image of a container to the pod's node. It runs as
// that container does: whoever runs a container as a user of its own does it for
// this image too, and what the namespace allows there it allows here.
func imageContainer(like *corev1.Container, name string) corev1.Container {
	c := corev1.Container{
		Name: name, Image: like.Image, ImagePullPolicy: like.ImagePullPolicy,
		Command:         touchCommand,
		VolumeMounts:    []corev1.VolumeMount{mounted(v1.VolumeGate, v1.PathGate)},
		Resources:       cpuAndMemoryOf(like),
		SecurityContext: restricted(),
	}
	if own := like.SecurityContext; own != nil {
		c.SecurityContext.RunAsUser, c.SecurityContext.RunAsGroup = own.RunAsUser, own.RunAsGroup
		c.SecurityContext.RunAsNonRoot = own.RunAsNonRoot
		c.SecurityContext.SELinuxOptions = own.SELinuxOptions
	}
	return c
}

// gateContainer runs the gate from the operator's image, whose user is not root;
// a pod whose user is root contradicts that, and then it runs as root.
func gateContainer(pod *corev1.Pod, name, image string, command []string) corev1.Container {
	c := corev1.Container{Name: name, Image: image, Command: command, SecurityContext: restricted()}
	if own := pod.Spec.SecurityContext; own == nil || ptr.Deref(own.RunAsUser, 1) != 0 {
		c.SecurityContext.RunAsNonRoot = ptr.To(true)
	}
	return c
}

// restricted is what the Pod Security standard of that name asks of a container,
// except for the user.
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// likeProgram gives an init container what the pod's first container has. That
// costs nothing, because init containers run before it and not beside it; it
// keeps the pod's QoS class, and what a LimitRange says; and the gate is not
// slowed down by a limit that the program does not have.
func likeProgram(pod *corev1.Pod) corev1.ResourceRequirements {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; !isOurs(c) {
			return cpuAndMemoryOf(c)
		}
	}
	return corev1.ResourceRequirements{}
}

func cpuAndMemoryOf(c *corev1.Container) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: onlyCPUAndMemory(c.Resources.Requests), Limits: onlyCPUAndMemory(c.Resources.Limits)}
}

func onlyCPUAndMemory(list corev1.ResourceList) corev1.ResourceList {
	var only corev1.ResourceList
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if quantity, ok := list[name]; ok {
			if only == nil {
				only = corev1.ResourceList{}
			}
			only[name] = quantity.DeepCopy()
		}
	}
	return only
}

func cpuAndMemory(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// guaranteed tells whether all containers of the pod but ours have limits for
// CPU and memory that equal their requests, which is QoS class Guaranteed.
func guaranteed(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if c := &list[i]; !isOurs(c) && !isGuaranteed(c) {
				return false
			}
		}
	}
	return true
}

func isGuaranteed(c *corev1.Container) bool {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, limited := c.Resources.Limits[name]
		request, asked := c.Resources.Requests[name]
		if !limited || asked && request.Cmp(limit) != 0 {
			return false
		}
	}
	return true
}

// startupProbe keeps the kubelet from looking at a program that waits: other
// probes begin when this one has succeeded, which is with the grant.
func startupProbe(command []string) *corev1.Probe {
	const always = 1<<31 - 1
	return &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}},
		PeriodSeconds:  1,
		TimeoutSeconds: 10,
		// A pod may wait for as long as the one before it lives.
		FailureThreshold: always,
	}
}

var (
	binaryProbe = []string{v1.GateInPod, "status"}
	scriptProbe = []string{"/bin/sh", "-c", `read -r uid epoch <` + v1.PathSignal + `/` + v1.FileSignal +
		`; read -r pod <` + v1.PathSignal + `/` + v1.FilePodUID + `; [ -n "$uid" ] && [ "$uid" = "$pod" ]`}
)
