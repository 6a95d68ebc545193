package causes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }

// V6: eleven pods that are not Ready, each with its own message. The message is stable while the
// kubelet alternates between reasons for the same cause.
func TestV6Explain(t *testing.T) {
	notReady := func(reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: at(0)}
	}
	waits := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	since := func(after time.Duration) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(after)}}
	}
	runs := since(time.Second)
	ended := func(code int32, reason string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}
	}
	with := func(c corev1.ContainerStatus) corev1.PodStatus {
		c.Name, c.Image = "web", "shop:9"
		return corev1.PodStatus{Conditions: []corev1.PodCondition{notReady("ContainersNotReady")}, ContainerStatuses: []corev1.ContainerStatus{c}}
	}
	const crashes = "CrashLoopBackOff: container web ended with code 1"
	for _, row := range []struct {
		name   string
		status corev1.PodStatus
		want   string
	}{
		{"no node has room", corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."}}},
			"Unschedulable: 0/3 nodes are available: 3 Insufficient cpu"},
		{"its claim has no StorageClass", corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: `pod has unbound immediate PersistentVolumeClaims`}}}, "Unschedulable: pod has unbound immediate PersistentVolumeClaims"},
		{"the image cannot be pulled", with(corev1.ContainerStatus{State: waits("ErrImagePull", "rpc error")}), "ImagePullBackOff: image shop:9 (container web)"},
		{"the image of a volume cannot be pulled", with(corev1.ContainerStatus{State: waits("ImagePullBackOff", `Back-off pulling image "tools:3": ErrImagePull: not found`)}), "ImagePullBackOff: image tools:3 (container web)"},
		{"the image pull is in backoff", with(corev1.ContainerStatus{State: waits("ImagePullBackOff", `Back-off pulling image "shop:9"`)}), "ImagePullBackOff: image shop:9 (container web)"},
		{"the image name is invalid", with(corev1.ContainerStatus{State: waits("InvalidImageName", "x")}), "InvalidImageName: image shop:9 (container web)"},
		{"a ConfigMap is missing", with(corev1.ContainerStatus{State: waits("CreateContainerConfigError", `configmap "settings" not found`)}),
			`CreateContainerConfigError: configmap "settings" not found`},
		{"the container crashed and the kubelet waits for the backoff", with(corev1.ContainerStatus{State: waits("CrashLoopBackOff", "back-off 10s"), LastTerminationState: ended(1, "Error")}), crashes},
		{"the container crashed and the kubelet has not reported a backoff yet", with(corev1.ContainerStatus{State: ended(1, "Error")}), crashes},
		{"the container crashed and is running again for a moment", with(corev1.ContainerStatus{State: runs, LastTerminationState: ended(1, "Error")}), crashes},
		{"the container crashed long ago and its probe fails now", with(corev1.ContainerStatus{State: since(-time.Second), LastTerminationState: ended(137, "OOMKilled")}),
			"it is running, and its readiness probe does not succeed"},
		{"the container is running for a moment since a crash made it unready", with(corev1.ContainerStatus{State: since(0), LastTerminationState: ended(1, "Error")}), crashes},
		{"the container exceeded its memory limit", with(corev1.ContainerStatus{State: runs, LastTerminationState: ended(137, "OOMKilled")}),
			"CrashLoopBackOff: container web ended with code 137 (OOMKilled)"},
		{"the program of the container is missing", with(corev1.ContainerStatus{State: waits("RunContainerError", "x"), LastTerminationState: ended(128, "StartError")}),
			"CrashLoopBackOff: container web ended with code 128 (StartError)"},
		{"the program of the container is missing at the first start", with(corev1.ContainerStatus{State: waits("RunContainerError", "x")}), "CrashLoopBackOff"},
		{"the readiness probe fails", with(corev1.ContainerStatus{State: runs}), "it is running, and its readiness probe does not succeed"},
		{"a readiness gate is not True", corev1.PodStatus{Conditions: []corev1.PodCondition{notReady("ReadinessGatesNotReady")},
			ContainerStatuses: []corev1.ContainerStatus{{State: runs}}}, "a readiness gate is not True"},
		{"the container is starting", with(corev1.ContainerStatus{State: waits("ContainerCreating", "")}), ""},
		{"the pod is Ready and crashed once", corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{State: runs, LastTerminationState: ended(1, "Error")}}}, ""},
		{"the pod has no status yet", corev1.PodStatus{}, ""},
	} {
		if got := Of(&corev1.Pod{Status: row.status}).String(); got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}
