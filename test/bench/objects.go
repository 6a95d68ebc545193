package main

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// All contestants create these pods and claims. The bare pool also creates a revision and a disruption
// budget for each set, as the operator does.
//
// Every pod sets its node, and every claim a volume that does not exist. So neither the scheduler nor
// the volume controllers take part. They would take most of the time, and the same time for all
// contestants. kwok makes the pods Ready.

const (
	claimName    = "data"
	absentVolume = "absent"
	generation   = "GENERATION" // the variable that a rolling update changes
	quarter      = "25%"
)

// shape is a number of sets of equal size.
type shape struct{ sets, members int }

func (s shape) pods() int { return s.sets * s.members }

func setName(i int) string { return fmt.Sprintf("set-%d", i) }

func setLabels(i int) map[string]string { return map[string]string{"app": setName(i)} }

func podTemplate(i int) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: setLabels(i)},
		Spec: corev1.PodSpec{
			NodeName:                     cluster.SimulatedNode(1 + i%simulatedNodes),
			AutomountServiceAccountToken: ptr.To(false),
			// kwok deletes pods by name and could delete the next pod of the same name. With a grace
			// period of 0 the API server deletes the pod itself.
			TerminationGracePeriodSeconds: ptr.To(int64(0)),
			Containers: []corev1.Container{{
				Name: "main", Image: "example.com/main:1",
				Env:          []corev1.EnvVar{{Name: generation, Value: "1"}},
				VolumeMounts: []corev1.VolumeMount{{Name: claimName, MountPath: "/data"}},
			}},
		},
	}
}

func claimTemplate() corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claimName},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: ptr.To(""),
			VolumeName:       absentVolume,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func statefulCluster(namespace string, i, members int) client.Object {
	return &v1alpha1.StatefulCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: setName(i)},
		Spec: v1alpha1.StatefulClusterSpec{
			Replicas:             ptr.To(int32(members)),
			Selector:             &metav1.LabelSelector{MatchLabels: setLabels(i)},
			Template:             podTemplate(i),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claimTemplate()},
			PodManagementPolicy:  v1alpha1.ParallelPodManagement,
			UpdateStrategy: v1alpha1.UpdateStrategy{Type: v1alpha1.RollingUpdateStrategy,
				RollingUpdate: &v1alpha1.RollingUpdate{MaxUnavailable: ptr.To(intstr.FromString(quarter))}},
		},
	}
}

func statefulSet(namespace string, i, members int) client.Object {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: setName(i)},
		Spec: appsv1.StatefulSetSpec{
			Replicas:             ptr.To(int32(members)),
			Selector:             &metav1.LabelSelector{MatchLabels: setLabels(i)},
			Template:             podTemplate(i),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claimTemplate()},
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: ptr.To(intstr.FromString(quarter))}},
		},
	}
}

// barePod and bareClaim return the objects that the bare pool creates for member m of set i. Their
// labels, owner and names have the same number and length as those of a StatefulCluster.
func barePod(owner metav1.OwnerReference, i, m int) *corev1.Pod {
	template := podTemplate(i)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = bareName(i, m)
	bareLabels(pod.Labels, owner, m)
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = setName(i) + "-5d4b9c7f6b"
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	pod.Spec.Volumes = []corev1.Volume{{Name: claimName, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName + "-" + pod.Name}}}}
	return pod
}

func bareClaim(owner metav1.OwnerReference, i, m int) *corev1.PersistentVolumeClaim {
	claim := claimTemplate()
	claim.Name, claim.Labels = claimName+"-"+bareName(i, m), setLabels(i)
	bareLabels(claim.Labels, owner, m)
	return &claim
}

func bareRevision(owner metav1.OwnerReference, i int) *appsv1.ControllerRevision {
	template, _ := json.Marshal(podTemplate(i)) // every field can be encoded
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: bareName(i, 0), Labels: setLabels(i), OwnerReferences: []metav1.OwnerReference{owner}},
		Data:       runtime.RawExtension{Raw: template}, Revision: 1,
	}
}

func bareBudget(owner metav1.OwnerReference, i int) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: setName(i), Labels: setLabels(i), OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromString(quarter)),
			Selector: &metav1.LabelSelector{MatchLabels: setLabels(i)}},
	}
}

func bareLabels(labels map[string]string, owner metav1.OwnerReference, m int) {
	labels["example.com/set"], labels["example.com/set-uid"] = owner.Name, string(owner.UID)
	labels["example.com/member"] = bareID(m)
}

func bareID(m int) string      { return fmt.Sprintf("%016x", m) }
func bareName(i, m int) string { return setName(i) + "-" + bareID(m) }
