package facts_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

func TestUnmanagedPods(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"S16 a pod without the gate blocks, and gets the finalizer", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a"), fixture.Waiting("b")), []string{"patch pod a: Protect"}},
		{"S16 a pod without the gate that has the finalizer blocks", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Protect(), fixture.Waiting("b")), nil},
		{"S16 a pod without the gate that has no Node yet blocks", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Unscheduled().Protect(), fixture.Waiting("b")), nil},
		{"a terminating pod without the gate blocks, and gets no finalizer", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Deleted(), fixture.Waiting("b")), nil},
		{"a terminating pod without the gate that has no Node does not block", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Unscheduled().Deleted().Protect(), fixture.Waiting("b")),
			[]string{fixture.ReleaseA, "patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"H3 an ended pod without the gate does not block", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Ended(), fixture.Waiting("b")),
			[]string{"patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"a pod without the gate that its kubelet rejected does not block", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Silent().Phase(corev1.PodFailed), fixture.Waiting("b")),
			[]string{"patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"a pod without the gate that ran, and has phase Failed without container statuses, blocks", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Protect().Silent().Phase(corev1.PodFailed), fixture.Waiting("b")), []string{fixture.AskA}},
		{"a static pod blocks, and is left to its kubelet", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").With(func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}), fixture.Waiting("b")), nil},
	})
}
