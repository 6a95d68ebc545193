package simulated

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	singletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

func aPod(change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"},
		Spec: corev1.PodSpec{NodeName: "kwok-1", RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "app", Image: "app:1"}}}}
	change(pod)
	return pod
}

func gated(pod *corev1.Pod) {
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: singletonv1.ReadinessGate}}
}

func grantedPod(pod *corev1.Pod) {
	gated(pod)
	pod.Annotations = map[string]string{singletonv1.AnnotationGrant: "uid 1"}
	pod.Status.Conditions = []corev1.PodCondition{{Type: singletonv1.ReadinessGate, Status: corev1.ConditionTrue}}
}

func waitsFirst(pod *corev1.Pod) {
	pod.Spec.InitContainers = []corev1.Container{{Name: singletonv1.ContainerWait, Image: "gate"}, {Name: "migrate", Image: "app:1"}}
}

// TestPodsAreShownAsAKubeletShowsThem writes the status of a pod as its phase, its container, and
// whether it is Ready.
func TestPodsAreShownAsAKubeletShowsThem(t *testing.T) {
	for name, row := range map[string]struct {
		pod    *corev1.Pod
		serves bool
		want   string
	}{
		"it runs":                                    {aPod(func(*corev1.Pod) {}), true, "Running running True"},
		"the readiness probe fails":                  {aPod(func(*corev1.Pod) {}), false, "Running running False"},
		"the image is missing":                       {aPod(func(p *corev1.Pod) { p.Spec.Containers[0].Image = NoImage }), true, "Pending ImagePullBackOff False"},
		"the gate blocks its container":              {aPod(gated), true, "Running running False"},
		"the gate is open":                           {aPod(grantedPod), true, "Running running True"},
		"the gate blocks the whole pod":              {aPod(func(p *corev1.Pod) { gated(p); waitsFirst(p) }), true, "Pending PodInitializing False"},
		"the gate blocked the whole pod and is open": {aPod(func(p *corev1.Pod) { grantedPod(p); waitsFirst(p) }), true, "Running running True"},
		"a pod of a Job":                             {aPod(func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }), true, "Succeeded ended False"},
		"a pod that was deleted before it started":   {aPod(func(p *corev1.Pod) { waitsFirst(p); p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }), true, "Succeeded ended False"},
	} {
		g := NewWithT(t)
		status := statusOf(row.pod, row.serves, metav1.Now())
		says := string(status.Phase) + " "
		switch state := status.ContainerStatuses[0].State; {
		case state.Running != nil:
			says += "running "
		case state.Waiting != nil:
			says += state.Waiting.Reason + " "
		default:
			says += "ended "
		}
		for _, c := range status.Conditions {
			if c.Type == corev1.PodReady {
				says += string(c.Status)
			}
		}
		g.Expect(says).To(Equal(row.want), name)
		row.pod.Status = *status
		g.Expect(statusOf(row.pod, row.serves, metav1.NewTime(time.Now().Add(time.Hour)))).To(Equal(status), "%s: nothing new is reported later", name)
	}
}

func TestAChangedImageIsAnotherContainer(t *testing.T) {
	g := NewWithT(t)
	pod := aPod(func(*corev1.Pod) {})
	pod.Status = *statusOf(pod, true, metav1.Now())
	pod.Spec.Containers[0].Image = "app:2"
	after := statusOf(pod, true, metav1.Now()).ContainerStatuses[0]
	g.Expect(after.RestartCount).To(BeEquivalentTo(1))
	g.Expect(after.ContainerID).NotTo(Equal(pod.Status.ContainerStatuses[0].ContainerID))
}

func TestTheApplicationHasARole(t *testing.T) {
	g := NewWithT(t)
	k, pod := newKubelets(nil), types.NamespacedName{Namespace: "ns", Name: "pod"}
	for _, row := range []struct {
		command string
		code    int
		role    string
	}{
		{"status", 7, ""}, {"seed", 0, Primary}, {"status", 8, Primary}, {"demote", 0, Secondary}, {"status", 0, Secondary},
		{"promote", 0, Primary}, {crash, 0, ""}, {"secondary", 0, Secondary}, {"sh", 127, Secondary}, {"stop", 0, ""},
	} {
		_, code := k.obey(pod, row.command)
		g.Expect(code).To(Equal(row.code), row.command)
		g.Expect(k.Role(pod)).To(Equal(row.role), row.command)
	}
	g.Expect(k.Since(time.Time{})).To(HaveLen(10))
}
