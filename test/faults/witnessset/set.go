// Package witnessset creates workloads of witnesses (test/faults/witness), programs that log their
// runs, and triggers handovers between them.
package witnessset

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Program is the name of the witness's container.
const Program = "program"

// Change changes the pod template of a workload. The first container is the program.
type Change func(*corev1.PodTemplateSpec)

// Set is the configuration of a workload's pods.
type Set struct {
	// Name is the name of the workload and of its StatefulSingleton, and the value of its label app.
	Name, Namespace string
	Image           string
	// Folder is the witnesses' folder on every node, or "" if they use Scribe.
	Folder, Scribe string
	// Grace is the termination grace period in seconds.
	Grace int64
	// Requests are the resource requests of each program; nil is none.
	Requests corev1.ResourceList
	// Change is applied to the template last.
	Change []Change
}

// Labels returns the labels of the pods.
func (s Set) Labels() map[string]string { return map[string]string{"app": s.Name} }

func (s Set) about() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace}
}

func (s Set) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: s.Labels()}
}

const volume = "witness"

// Template returns the template of the pods.
func (s Set) Template() corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: s.Labels()},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &s.Grace,
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			Containers:                    []corev1.Container{s.Container(Program)},
		},
	}
	if s.Folder != "" {
		t.Spec.Volumes = []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: s.Folder, Type: new(corev1.HostPathDirectory)}}}}
	}
	for _, change := range s.Change {
		change(&t)
	}
	return t
}

// Container returns a container that runs a witness or another command of its image.
func (s Set) Container(name string, command ...string) corev1.Container {
	if len(command) == 0 {
		command = []string{"/witness"}
	}
	from := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	c := corev1.Container{
		Name: name, Image: s.Image, Command: command,
		Env:       []corev1.EnvVar{from("POD", "metadata.name"), from("POD_UID", "metadata.uid"), from("NODE", "spec.nodeName")},
		Resources: corev1.ResourceRequirements{Requests: s.Requests},
	}
	if s.Folder != "" {
		c.VolumeMounts = []corev1.VolumeMount{{Name: volume, MountPath: "/witness.d"}}
	} else {
		c.Env = append(c.Env, corev1.EnvVar{Name: "WITNESS_TO", Value: s.Scribe})
	}
	return c
}

// Pod returns a pod without an owner.
func (s Set) Pod(name string) *corev1.Pod {
	t := s.Template()
	pod := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	pod.Name, pod.Namespace = name, s.Namespace
	return pod
}

// Singleton returns the StatefulSingleton of the workload, with the grace period of the pods.
func (s Set) Singleton() *v1.StatefulSingleton {
	return &v1.StatefulSingleton{ObjectMeta: s.about(), Spec: v1.StatefulSingletonSpec{Selector: s.selector(), TerminationGracePeriod: new(int64(0))}}
}

// Deployment returns the workload as a Deployment.
func (s Set) Deployment(replicas int32, strategy appsv1.DeploymentStrategy) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: s.about(), Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Strategy: *strategy.DeepCopy(), Template: s.Template(), Selector: s.selector()}}
}

// StatefulSet returns the workload as a StatefulSet.
func (s Set) StatefulSet(replicas int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: s.about(), Spec: appsv1.StatefulSetSpec{
		Replicas: &replicas, ServiceName: s.Name, Template: s.Template(), Selector: s.selector()}}
}

// Rolling returns a Deployment's strategy with this maxSurge and maxUnavailable.
func Rolling(surge, unavailable int) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxSurge: new(intstr.FromInt(surge)), MaxUnavailable: new(intstr.FromInt(unavailable))}}
}

// Recreate returns the strategy that deletes all pods first.
func Recreate() appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

// RollOut creates a new revision of a workload.
func RollOut(ctx context.Context, c client.Client, workload client.Object) error {
	return c.Patch(ctx, workload, client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
		`{"spec":{"template":{"metadata":{"annotations":{"revised":"%d"}}}}}`, time.Now().UnixNano())))
}

// PodOf returns a pod with the name of a run's pod.
func (s Set) PodOf(run testimony.Run) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: run.Pod, Namespace: s.Namespace}}
}

// Delete deletes the pod of a run, with its UID as a precondition.
func (s Set) Delete(ctx context.Context, c client.Client, run testimony.Run, options ...client.DeleteOption) error {
	return c.Delete(ctx, s.PodOf(run), append(options, client.Preconditions{UID: new(types.UID(run.UID))})...)
}

// Evict creates an eviction for the pod of a run.
func (s Set) Evict(ctx context.Context, c client.Client, run testimony.Run) error {
	return c.SubResource("eviction").Create(ctx, s.PodOf(run), &policyv1.Eviction{})
}

// AtGate reports whether the gate runs in a pod: as an init container, or in all of its containers.
func AtGate(pod *corev1.Pod) bool {
	running := func(c corev1.ContainerStatus) bool { return c.State.Running != nil }
	if slices.ContainsFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == v1.ContainerWait && running(c) }) {
		return true
	}
	return len(pod.Status.ContainerStatuses) > 0 && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return !running(c) })
}
