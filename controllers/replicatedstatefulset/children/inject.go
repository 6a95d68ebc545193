package children

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// This file adds the operator's parts to the user's pod template. They need no additional rights:
// all Pod Security levels allow them.

// ownEnv returns the operator's environment variables in every container.
func ownEnv(set *v1alpha1.ReplicatedStatefulSet) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "SERVICE_NAME", Value: spec.ServiceName(set)},
		{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: spec.FieldRef("metadata.name")}},
		{
			Name:      "POD_NAMESPACE",
			ValueFrom: &corev1.EnvVarSource{FieldRef: spec.FieldRef("metadata.namespace")},
		},
	}
	if level := int(ptr.Deref(set.Spec.ChaosLevel, 0)); level > 0 {
		env = append(env,
			corev1.EnvVar{Name: "CHAOS_LEVEL", Value: strconv.Itoa(level)},
			corev1.EnvVar{Name: "CHAOS_MODULO", Value: strconv.Itoa(20 - level)})
	}
	return env
}

// injectContainers adds environment variables and mounts to every container. The container in which
// commands run also gets spec.resources and the preStop command if it does not set them.
func injectContainers(set *v1alpha1.ReplicatedStatefulSet, pod *corev1.PodSpec) {
	env, mounts := ownEnv(set), spec.OwnMounts(&set.Spec)
	for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			injectContainer(&list[i], env, mounts)
		}
	}
	main := &pod.Containers[set.Spec.Pod.CommandContainer()]
	if r := &main.Resources; set.Spec.Resources != nil && len(r.Requests)+len(r.Limits)+len(r.Claims) == 0 {
		main.Resources = *set.Spec.Resources.DeepCopy()
	}
	if preStop, ok := set.Spec.Pod.Commands[v1alpha1.CommandPreStop]; ok && !spec.HasPreStop(main) {
		main.Lifecycle = ptr.To(ptr.Deref(main.Lifecycle, corev1.Lifecycle{}))
		main.Lifecycle.PreStop = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: slices.Clone(preStop.Command)}}
	}
}

// injectContainer puts the operator's environment variables first, so that those of the container
// can refer to them. It skips names that the container sets, because a strategic merge patch treats
// duplicate names as one entry.
func injectContainer(c *corev1.Container, env []corev1.EnvVar, mounts []corev1.VolumeMount) {
	ours := slices.DeleteFunc(slices.Clone(env), func(e corev1.EnvVar) bool {
		return slices.ContainsFunc(
			c.Env,
			func(own corev1.EnvVar) bool { return own.Name == e.Name },
		)
	})
	c.Env = append(ours, c.Env...)
	c.VolumeMounts = append(c.VolumeMounts, mounts...)
}

// Affinity returns the user's affinity. With pod.antiAffinity it adds a term: no two members on one
// Node.
func Affinity(set *v1alpha1.ReplicatedStatefulSet) *corev1.Affinity {
	wanted := set.Spec.Affinity.DeepCopy()
	if !set.Spec.Pod.AntiAffinity {
		return wanted
	}
	apart := corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: spec.OwnLabels(set)},
		TopologyKey:   corev1.LabelHostname,
	}
	if wanted == nil {
		wanted = &corev1.Affinity{}
	}
	if wanted.PodAntiAffinity == nil {
		wanted.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	required := &wanted.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if !slices.ContainsFunc(*required, func(t corev1.PodAffinityTerm) bool { return apiequality.Semantic.DeepEqual(t, apart) }) {
		*required = append(*required, apart)
	}
	return wanted
}

// Sleeps reports whether a container has a preStop hook that sleeps.
func Sleeps(c *corev1.Container) bool { return spec.HasPreStop(c) && c.Lifecycle.PreStop.Sleep != nil }
