// Package ledgerset creates ReplicatedStatefulSets of ledgers (test/faults/ledger) that write their
// journals into a folder shared by all nodes.
package ledgerset

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

const (
	// Port is the port for members and clients.
	Port = 7070
	// Evidence is the mount path of the folder in a container.
	Evidence = "/evidence"
	// Timeout is the timeout of each command.
	Timeout = 20 * time.Second
)

// MakeFolder creates the folder of a set.
func MakeFolder(folder string) error {
	return errors.Join(os.MkdirAll(Journals(folder), 0o777), os.MkdirAll(Knobs(folder), 0o777))
}

// Journals returns the folder of the members' journals.
func Journals(folder string) string { return filepath.Join(folder, "journals") }

// Knobs returns the folder of the members' knobs, which inject faults.
func Knobs(folder string) string { return filepath.Join(folder, "knobs") }

// Spec returns the spec of a set with one primary, a volume for each member, and at most one member per
// node.
func Spec(image, folder string, replicas int32) v1alpha1.ReplicatedStatefulSetSpec {
	return v1alpha1.ReplicatedStatefulSetSpec{
		Replicas: &replicas, Primaries: ptr.To[int32](1),
		ServicePorts: []corev1.ServicePort{{Name: "ledger", Port: Port}},
		Pod: v1alpha1.PodPolicy{
			Commands:                      commands(),
			TerminationGracePeriodSeconds: ptr.To[int64](5),
			AutomountServiceAccountToken:  ptr.To(false),
			AntiAffinity:                  true,
			Containers:                    []corev1.Container{member(image, replicas)},
			Volumes:                       []corev1.Volume{Volume(folder)},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}},
				},
			}},
		},
	}
}

// commands returns all commands. Each is a subcommand of the program.
func commands() map[string]v1alpha1.Command {
	all := map[string]v1alpha1.Command{}
	for _, name := range []string{"sequence", "status", "stop", "seed", "primary", "secondary", "promote", "demote"} {
		all[name] = v1alpha1.Command{Command: []string{"/ledger", name}, Timeout: v1alpha1.Duration(Timeout.String())}
	}
	return all
}

func member(image string, replicas int32) corev1.Container {
	uid := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}
	return corev1.Container{
		Name: "ledger", Image: image, Command: []string{"/ledger", "supervise"},
		Env: []corev1.EnvVar{
			{Name: "LEDGER_MEMBERS", Value: strconv.Itoa(int(replicas))}, {Name: "POD_UID", ValueFrom: uid},
			{Name: "LEDGER_JOURNAL", Value: Journals(Evidence)}, {Name: "LEDGER_KNOBS", Value: Knobs(Evidence)},
		},
		Ports: []corev1.ContainerPort{{ContainerPort: Port}},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/role", Port: intstr.FromInt32(Port)}}},
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "evidence", MountPath: Evidence}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("8Mi")}},
	}
}

// Volume returns the volume of the folder for a pod.
func Volume(folder string) corev1.Volume {
	return corev1.Volume{Name: "evidence", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}}}
}
