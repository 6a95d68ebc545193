package observe_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
)

func TestWhichNodeRanAPod(t *testing.T) {
	at := func(minutes int) metav1.Time {
		return metav1.NewTime(fixture.Noon.Add(time.Duration(minutes) * time.Minute))
	}
	machine := func(made int) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: at(made)}}
	}
	bound := func(made, bound int) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(made)}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(bound)}}
		return p
	}
	unbound := bound(10, 11)
	unbound.Status.Conditions = nil
	for _, r := range []struct {
		name string
		pod  *corev1.Pod
		node *corev1.Node
		gone bool
	}{
		{"no Node with that name exists", bound(10, 11), nil, true},
		{"the Node existed when the pod was bound", bound(10, 11), machine(0), false},
		{"a new Node has the name", bound(10, 11), machine(12), true},
		{"the Node was created between the creation and the binding of the pod", bound(9, 11), machine(10), false},
		{"the template sets nodeName, so no scheduler bound the pod", unbound, machine(12), false},
	} {
		if got := new(observe.Reader).NodeOf(r.pod, r.node, fixture.Noon).Gone; got != r.gone {
			t.Errorf("%s: gone is %t, want %t", r.name, got, r.gone)
		}
	}
}

func TestANodeThatWasCreatedAgain(t *testing.T) {
	at := func(minutes int) metav1.Time {
		return metav1.NewTime(fixture.Noon.Add(time.Duration(minutes) * time.Minute))
	}
	object := func(made int, id, uuid string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: at(made)}}
		n.Status.NodeInfo.MachineID, n.Status.NodeInfo.SystemUUID = id, uuid
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return n
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(10)}, Spec: corev1.PodSpec{NodeName: "n1"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(10)}}
	running := pod.DeepCopy()
	running.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(11)}}}}
	sandbox := func(since int) *corev1.Pod {
		p := pod.DeepCopy()
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: at(since)})
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(30)}}}}
		return p
	}
	for _, r := range []struct {
		name string
		pod  *corev1.Pod
		now  *corev1.Node
		gone bool
	}{
		{"W2 a recreated Node with the same machine ID", pod, object(20, "m", "x"), false},
		{"W2 a recreated Node with the same system UUID", pod, object(20, "x", "u"), false},
		{"W2 a recreated Node of another machine", pod, object(20, "x", "x"), true},
		{"W2 a recreated Node without machine ID and system UUID", pod, object(20, "", ""), true},
		{"W2 a recreated Node whose pod has older containers", running, object(20, "x", "x"), false},
		{"W2 a recreated Node whose pod has an older sandbox and restarted containers", sandbox(11), object(20, "x", "x"), false},
		{"W2 a recreated Node whose pod has a new sandbox", sandbox(21), object(20, "x", "x"), true},
	} {
		read := &observe.Reader{}
		read.NodeOf(r.pod, object(0, "m", "u"), fixture.Noon)
		read.NodeOf(r.pod, nil, fixture.Noon)
		if got := read.NodeOf(r.pod, r.now, fixture.Noon); got.Gone != r.gone || !got.GoneSince.Equal(at(20).Time) {
			t.Errorf("%s: gone is %t since %s, want %t", r.name, got.Gone, got.GoneSince, r.gone)
		}
	}
}
