package facts_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// TestAPodThatCameThroughItsGateIsSeen checks pods with a gate of their author's own, which
// starts the program without a grant. If the kubelet's status shows that, the pod counts as
// running.
func TestAPodThatCameThroughItsGateIsSeen(t *testing.T) {
	well := &corev1.ContainerStateTerminated{Reason: "Completed"}
	told := &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 143}
	probed := fixture.Container("app").WithCommand("serve").With(func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{} })
	for _, r := range []struct {
		name   string
		pod    *fixture.PodFixture
		mode   v1.GateMode
		status func(*corev1.PodStatus)
		want   bool // the program started
	}{
		{"a pod that waits", fixture.Pod(), v1.GateBinary, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, Started: ptr.To(true), Ready: true}}
		}, false},
		{"a pod that got a stop signal while it waited", fixture.Pod(), v1.GateBinary, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: told}}}
		}, false},
		{"a pod whose program ended with 0", fixture.Pod(), v1.GateBinary, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: well}}}
		}, true},
		{"a pod whose program ended with 0 and was restarted", fixture.Pod(), v1.GateScript, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", LastTerminationState: corev1.ContainerState{Terminated: well}}}
		}, true},
		{"a pod whose other container ended with 0", fixture.Pod(fixture.App(), fixture.Container("log").WithCommand("ship")), v1.GateBinary, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "other", State: corev1.ContainerState{Terminated: well}}}
		}, false},
		{"a pod whose probe waits for the grant", fixture.Pod(probed), v1.GateBinary, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Started: ptr.To(false)}}
		}, false},
		{"a pod whose probe has observed the grant", fixture.Pod(probed), v1.GateBinary, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Started: ptr.To(true)}}
		}, true},
		{"a pod that waits as a whole", fixture.Pod(), v1.GateInit, func(s *corev1.PodStatus) {
			s.InitContainerStatuses = []corev1.ContainerStatus{{Name: v1.ContainerInstall, State: corev1.ContainerState{Terminated: well}},
				{Name: v1.ContainerWait, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}, false},
		{"a pod that no longer waits as a whole", fixture.Pod(), v1.GateInit, func(s *corev1.PodStatus) {
			s.InitContainerStatuses = []corev1.ContainerStatus{{Name: v1.ContainerWait, State: corev1.ContainerState{Terminated: well}}}
		}, true},
	} {
		p := fixture.Injected(t, &r.pod.Pod, fixture.Singleton("db").Mode(r.mode))
		p.UID = "one"
		r.status(&p.Status)
		look := func() *facts.Member {
			m := &facts.Member{Pod: p}
			m.Inspect(spec.WithDefaults(&fixture.Singleton("db").StatefulSingleton))
			return m
		}
		if m := look(); m.Gated == r.want {
			t.Errorf("%s: held back is %v", r.name, m.Gated)
		}
		p.Annotations[v1.AnnotationGrant] = children.GrantOf(p.UID, 1)
		if !look().Gated {
			t.Errorf("%s: with a grant, the pod may run", r.name)
		}
	}
}
