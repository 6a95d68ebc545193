package fencing

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Limits of the duration of a Lease, in seconds.
const (
	MinSeconds = 10
	MaxSeconds = 600
)

// The flags of the agent.
const (
	LeaseFlag    = "--lease="
	DurationFlag = "--duration="

	// DurationPattern matches the flag of a duration within the limits.
	DurationPattern = "^" + DurationFlag + "([1-9][0-9]|[1-5][0-9]{2}|600)s$"
)

var durationPattern = regexp.MustCompile(DurationPattern)

// DurationArgument returns the argument of the agent with the duration of the Lease, within the limits.
func DurationArgument(seconds int32) string {
	return fmt.Sprintf("%s%ds", DurationFlag, min(max(seconds, MinSeconds), MaxSeconds))
}

// DurationOf returns the duration in an argument of the agent; 0 if there is none within the limits.
func DurationOf(argument string) time.Duration {
	if !durationPattern.MatchString(argument) {
		return 0
	}
	d, err := time.ParseDuration(strings.TrimPrefix(argument, DurationFlag))
	if err != nil {
		return 0
	}
	return d
}

// Identity returns the holderIdentity of a pod in its Lease.
func Identity(pod *corev1.Pod) string { return IdentityOf(pod.Name, pod.UID) }

// IdentityOf returns the holderIdentity of the pod with that name and UID.
func IdentityOf(name string, uid types.UID) string { return name + "_" + string(uid) }

// AccountOf returns the name of the service account of a pod.
func AccountOf(pod *corev1.PodSpec) string { return cmp.Or(pod.ServiceAccountName, "default") }

// Path is the mount path of the volume with the identity of the pod and its credentials for the Lease.
const Path = "/var/run/fencing"

// The files of that volume.
const (
	TokenFile = "token"
	// TokenSeconds is how long a token is valid. The kubelet renews it before.
	TokenSeconds = 3600
	// CAConfigMap is the ConfigMap that Kubernetes creates in each namespace.
	CAConfigMap = "kube-root-ca.crt"
	CAFile      = "ca.crt"
	// FileMode is the mode of the files.
	FileMode = 0o644
)

// Fields returns the files with the identity of the pod.
func Fields() []corev1.DownwardAPIVolumeFile {
	file := func(path, fieldPath string) corev1.DownwardAPIVolumeFile {
		return corev1.DownwardAPIVolumeFile{Path: path, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: fieldPath}}
	}
	return []corev1.DownwardAPIVolumeFile{
		file("namespace", "metadata.namespace"), file("pod-name", "metadata.name"), file("pod-uid", "metadata.uid"),
	}
}

// Volume returns the volume with the identity of the pod and its credentials for the Lease. Defaults of the API
// server are set explicitly, so that the volumes of pods can be compared with it.
func Volume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To(int32(FileMode)), Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: TokenFile, ExpirationSeconds: ptr.To(int64(TokenSeconds))}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: CAConfigMap},
				Items: []corev1.KeyToPath{{Key: CAFile, Path: CAFile}}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: Fields()}},
		},
	}}}
}

// ExitFenced is the exit code of the agent, and of its container, if it could not renew the Lease.
const ExitFenced = 125
