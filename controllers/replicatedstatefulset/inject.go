package replicatedstatefulset

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// This file adds the operator's parts to the user's pod template. They need no additional rights:
// all Pod Security levels allow them.

// Names and mount paths of the operator's volumes.
const (
	volumePodInfo   = "podinfo"
	volumePeerTLS   = "tls-peer"
	volumeServerTLS = "tls-server"

	pathPodInfo   = "/etc/podinfo"
	pathPeerTLS   = "/etc/rss/tls/peer"
	pathServerTLS = "/etc/rss/tls/server"
	pathSecrets   = "/etc/rss/secrets/"
)

func secretVolumeName(secret string) string { return "secret-" + secret }

// secretMount is a Secret with its volume and mount path.
type secretMount struct{ volume, secret, path string }

// secretMounts returns the Secrets that the pods get: those of spec.secrets and spec.TLS.
func secretMounts(spec *v1alpha1.ReplicatedStatefulSetSpec) []secretMount {
	var mounts []secretMount
	for _, name := range spec.Secrets {
		mounts = append(mounts, secretMount{secretVolumeName(name), name, pathSecrets + name})
	}
	if spec.TLS == nil || spec.TLS.Static == nil {
		return mounts
	}
	member := ptr.Deref(spec.TLS.Static.Member, v1alpha1.MemberTLS{})
	if member.PeerSecret != "" {
		mounts = append(mounts, secretMount{volumePeerTLS, member.PeerSecret, pathPeerTLS})
	}
	if member.ServerSecret != "" {
		mounts = append(mounts, secretMount{volumeServerTLS, member.ServerSecret, pathServerTLS})
	}
	return mounts
}

// ownVolumes returns the volumes that the operator adds. They follow the user's, so that an index
// such as volumes[2] in an API server error refers to the user's volume.
func ownVolumes(spec *v1alpha1.ReplicatedStatefulSetSpec) []corev1.Volume {
	file := func(path, field string) corev1.DownwardAPIVolumeFile {
		return corev1.DownwardAPIVolumeFile{Path: path, FieldRef: fieldRef(field)}
	}
	volumes := []corev1.Volume{{Name: volumePodInfo, VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{file("labels", "metadata.labels"), file("annotations", "metadata.annotations")}}}}}
	for _, m := range secretMounts(spec) {
		volumes = append(volumes, corev1.Volume{Name: m.volume, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: m.secret}}})
	}
	return volumes
}

// ownMounts returns the operator's mounts in every container.
func ownMounts(spec *v1alpha1.ReplicatedStatefulSetSpec) []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{{Name: volumePodInfo, MountPath: pathPodInfo, ReadOnly: true}}
	for _, m := range secretMounts(spec) {
		mounts = append(
			mounts,
			corev1.VolumeMount{Name: m.volume, MountPath: m.path, ReadOnly: true},
		)
	}
	return mounts
}

// ownEnv returns the operator's environment variables in every container.
func ownEnv(set *v1alpha1.ReplicatedStatefulSet) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "SERVICE_NAME", Value: serviceName(set)},
		{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: fieldRef("metadata.name")}},
		{
			Name:      "POD_NAMESPACE",
			ValueFrom: &corev1.EnvVarSource{FieldRef: fieldRef("metadata.namespace")},
		},
	}
	if level := int(ptr.Deref(set.Spec.ChaosLevel, 0)); level > 0 {
		env = append(env,
			corev1.EnvVar{Name: "CHAOS_LEVEL", Value: strconv.Itoa(level)},
			corev1.EnvVar{Name: "CHAOS_MODULO", Value: strconv.Itoa(20 - level)})
	}
	return env
}

// fieldRef sets the API version, as the API server's default does.
func fieldRef(path string) *corev1.ObjectFieldSelector {
	return &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}
}

// injectContainers adds environment variables and mounts to every container. The commands'
// container also gets spec.resources and the preStop command if it does not set them.
func injectContainers(set *v1alpha1.ReplicatedStatefulSet, pod *corev1.PodSpec) {
	env, mounts := ownEnv(set), ownMounts(&set.Spec)
	for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			injectContainer(&list[i], env, mounts)
		}
	}
	main := &pod.Containers[commandContainer(&set.Spec.Pod)]
	if r := &main.Resources; set.Spec.Resources != nil && len(r.Requests)+len(r.Limits)+len(r.Claims) == 0 {
		main.Resources = *set.Spec.Resources.DeepCopy()
	}
	if preStop, ok := set.Spec.Pod.Commands[v1alpha1.CommandPreStop]; ok && !hasPreStop(main) {
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

// commandContainer returns the index of the container in which commands run.
func commandContainer(pod *v1alpha1.PodPolicy) int {
	return max(
		0,
		slices.IndexFunc(
			pod.Containers,
			func(c corev1.Container) bool { return c.Name == pod.Container },
		),
	)
}

// commandsIn returns the name of the container in which commands run.
func commandsIn(pod *v1alpha1.PodPolicy) string { return pod.Containers[commandContainer(pod)].Name }

func hasPreStop(c *corev1.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PreStop != nil }

// affinity returns the user's affinity. With pod.antiAffinity it adds a term: no two members on one
// Node.
func affinity(set *v1alpha1.ReplicatedStatefulSet) *corev1.Affinity {
	wanted := set.Spec.Affinity.DeepCopy()
	if !set.Spec.Pod.AntiAffinity {
		return wanted
	}
	apart := corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: ownLabels(set)},
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
