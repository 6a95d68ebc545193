package statefulsingleton

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// TestAPodThatCameThroughItsGateIsSeen checks pods with a gate of their author's own, which
// starts the program without a grant. If the kubelet's status shows that, the pod counts as
// running.
func TestAPodThatCameThroughItsGateIsSeen(t *testing.T) {
	well := &corev1.ContainerStateTerminated{Reason: "Completed"}
	told := &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 143}
	probed := container("app").command("serve").with(func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{} })
	for _, r := range []struct {
		name   string
		pod    *podFixture
		mode   v1.GateMode
		status func(*corev1.PodStatus)
		want   bool // the program started
	}{
		{"one that waits", pod(), v1.GateBinary, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, Started: ptr.To(true), Ready: true}}
		}, false},
		{"one that was told to stop while it waited", pod(), v1.GateBinary, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: told}}}
		}, false},
		{"one whose program has ended well", pod(), v1.GateBinary, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: well}}}
		}, true},
		{"one whose program ended well, and runs again", pod(), v1.GateScript, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", LastTerminationState: corev1.ContainerState{Terminated: well}}}
		}, true},
		{"one whose container beside the program has ended well", pod(app(), container("log").command("ship")), v1.GateBinary, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "other", State: corev1.ContainerState{Terminated: well}}}
		}, false},
		{"one whose probe waits for the grant", pod(probed), v1.GateBinary, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Started: ptr.To(false)}}
		}, false},
		{"one whose probe says that the grant is there", pod(probed), v1.GateBinary, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Started: ptr.To(true)}}
		}, true},
		{"one that waits as a whole", pod(), v1.GateInit, func(s *corev1.PodStatus) {
			s.InitContainerStatuses = []corev1.ContainerStatus{{Name: v1.ContainerInstall, State: corev1.ContainerState{Terminated: well}},
				{Name: v1.ContainerWait, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}, false},
		{"one whose wait is over", pod(), v1.GateInit, func(s *corev1.PodStatus) {
			s.InitContainerStatuses = []corev1.ContainerStatus{{Name: v1.ContainerWait, State: corev1.ContainerState{Terminated: well}}}
		}, true},
	} {
		p := injected(t, &r.pod.Pod, singleton("db").mode(r.mode))
		p.UID = "one"
		r.status(&p.Status)
		look := func() *member {
			m := &member{pod: p}
			m.lookAt(withDefaults(&singleton("db").StatefulSingleton))
			return m
		}
		if m := look(); m.gated == r.want {
			t.Errorf("%s: it counts as held: %v", r.name, m.gated)
		}
		p.Annotations[v1.AnnotationGrant] = grantOf(p.UID, 1)
		if !look().gated {
			t.Errorf("%s: with a grant it may", r.name)
		}
	}
}
