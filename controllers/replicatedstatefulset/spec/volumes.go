package spec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
)

// Names and mount paths of the operator's volumes.
const (
	volumePodInfo   = "podinfo"
	volumePeerTLS   = "tls-peer"
	volumeServerTLS = "tls-server"

	pathPodInfo = "/etc/podinfo"
	pathPeerTLS = "/etc/rss/tls/peer"
	pathSecrets = "/etc/rss/secrets/"
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
		mounts = append(mounts, secretMount{volumeServerTLS, member.ServerSecret, application.PathServerTLS})
	}
	return mounts
}

// OwnVolumes returns the volumes that the operator adds. They follow the user's, so that an index
// such as volumes[2] in an API server error refers to the user's volume.
func OwnVolumes(spec *v1alpha1.ReplicatedStatefulSetSpec) []corev1.Volume {
	file := func(path, field string) corev1.DownwardAPIVolumeFile {
		return corev1.DownwardAPIVolumeFile{Path: path, FieldRef: FieldRef(field)}
	}
	volumes := []corev1.Volume{{Name: volumePodInfo, VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{file("labels", "metadata.labels"), file("annotations", "metadata.annotations")}}}}}
	for _, m := range secretMounts(spec) {
		volumes = append(volumes, corev1.Volume{Name: m.volume, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: m.secret}}})
	}
	return volumes
}

// OwnMounts returns the operator's mounts in every container.
func OwnMounts(spec *v1alpha1.ReplicatedStatefulSetSpec) []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{{Name: volumePodInfo, MountPath: pathPodInfo, ReadOnly: true}}
	for _, m := range secretMounts(spec) {
		mounts = append(
			mounts,
			corev1.VolumeMount{Name: m.volume, MountPath: m.path, ReadOnly: true},
		)
	}
	return mounts
}

// FieldRef sets the API version, as the API server's default does.
func FieldRef(path string) *corev1.ObjectFieldSelector {
	return &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}
}

// PodOfConfig returns the part of the pod spec of members that refers to ConfigMaps and Secrets. It
// works for invalid objects too. Image pull secrets are excluded: no program sees them, and
// registries with short-lived tokens renew them every few hours.
func PodOfConfig(set *v1alpha1.ReplicatedStatefulSet) *corev1.PodSpec {
	whole, pod, _ := WithTemplate(set)
	pod.InitContainers = whole.Spec.Pod.InitContainers
	pod.Containers = whole.Spec.Pod.Containers
	pod.Volumes = slices.Concat(whole.Spec.Pod.Volumes, OwnVolumes(&whole.Spec))
	pod.ImagePullSecrets = nil
	return &pod
}
