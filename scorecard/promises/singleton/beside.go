package singleton

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Pods that run at the same time: pods from before the object, and pods without a Deployment.

// threeFromBefore creates the object while three programs already run, and follows the instructions
// in its condition.
func threeFromBefore(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "beside")
	defer a.Folder.Close()
	a.deploy(ctx, 3, surge())
	a.several(ctx, 3)
	a.hold(ctx)
	s := a.says(ctx, "that three run at the same time", func(s *v1.StatefulSingleton) bool {
		available := meta.FindStatusCondition(s.Status.Conditions, v1.ConditionAvailable)
		return isTrue(v1.ConditionDegraded, v1.ReasonSeveralRunning)(s) && s.Status.Phase == v1.PhaseFailed &&
			available != nil && available.Status == metav1.ConditionFalse && available.Reason == v1.ReasonSeveralRunning
	})
	live := a.living()
	for _, run := range live {
		c.Expect(s.Status.Message).To(ContainSubstring(run.Pod), "it does not list %s: %s", run.Pod, s.Status.Message)
	}
	note := a.event(ctx, v1.EventSeveralRunning)
	c.Expect(note).To(Equal(s.Status.Message), "the event has %q, and the status %q", note, s.Status.Message)
	a.deletesAsTold(ctx, s.Status.Message, 2)
	left := a.one(ctx)
	s = a.says(ctx, "that one runs, without the gate", func(s *v1.StatefulSingleton) bool {
		return isTrue(v1.ConditionAvailable, v1.ReasonActive)(s) && isTrue(v1.ConditionUnmanagedPod, v1.ReasonPodWithoutGate)(s) && s.Status.ActivePod == left.Pod
	})
	a.deletesAsTold(ctx, meta.FindStatusCondition(s.Status.Conditions, v1.ConditionUnmanagedPod).Message, 1)
	next := a.one(ctx, left)
	a.active(ctx, next)
}

// deletesAsTold runs the command at the end of a message, which must delete that many pods.
func (a *application) deletesAsTold(ctx context.Context, message string, want int) {
	_, names, _ := strings.Cut(message, "kubectl -n "+a.Namespace+" delete pod ")
	pods := strings.Fields(names)
	a.Expect(len(pods)).To(Equal(want), "it should state how to delete %d pods: %s", want, message)
	for _, name := range pods {
		a.During(fmt.Sprintf("delete pod %q", name), func() {
			a.Remove(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name}})
		})
	}
}

// takeTurns checks that only one of that many pods runs, and another when it is deleted.
func (a *application) takeTurns(ctx context.Context, pods int) {
	for range 2 {
		a.held(ctx, pods-1)
		next := a.handover(ctx, "deletion", func(old testimony.Run) { a.delete(ctx, old) })
		a.active(ctx, next)
		a.ready(ctx, next)
	}
}

func daemonSet(ctx context.Context, c *kit.Cluster) {
	var nodes corev1.NodeList
	c.List(ctx, &nodes)
	a := newApplication(c, "daemons")
	a.hold(ctx)
	c.Put(ctx, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: a.Name, Namespace: a.Namespace}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: a.set().Labels()}, Template: a.set().Template(),
		UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}}})
	a.takeTurns(ctx, len(nodes.Items))
}

func parallelSet(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "parallel")
	a.hold(ctx)
	s := a.set().StatefulSet(3)
	s.Spec.PodManagementPolicy, s.Spec.UpdateStrategy.Type = appsv1.ParallelPodManagement, appsv1.OnDeleteStatefulSetStrategyType
	c.Put(ctx, s)
	a.takeTurns(ctx, 3)
}

// nativeSidecar has a sidecar that is stopped after the program, which takes 6 seconds. The
// program's pod has not ended before that.
func nativeSidecar(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "sidecar", grace(30))
	a.change = append(a.change, func(t *corev1.PodTemplateSpec) {
		side := a.set().Container("side")
		side.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		side.Env = append(side.Env, corev1.EnvVar{Name: "WITNESS_DIR", Value: "/witness.d/side"}, corev1.EnvVar{Name: "WITNESS_STOP_AFTER", Value: "6s"})
		t.Spec.InitContainers = append(t.Spec.InitContainers, side)
	})
	c.Check(os.MkdirAll(filepath.Join(a.Folder.Dir(), "side"), 0o777))
	a.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.GateMode = v1.GateBinary })
	a.deploy(ctx, 2, surge())
	a.held(ctx, 1)
	old := a.one(ctx)
	a.delete(ctx, old)
	a.none(ctx)
	a.says(ctx, "that the sidecar is waited for", func(s *v1.StatefulSingleton) bool {
		progress := meta.FindStatusCondition(s.Status.Conditions, v1.ConditionProgressing)
		return progress != nil && strings.Contains(progress.Message, "still running: container side")
	})
	next := a.one(ctx, old)
	a.active(ctx, next)
}

// staticPod makes a kubelet run a static pod that matches, before any other.
func staticPod(ctx context.Context, c *kit.Cluster) {
	a := newApplication(c, "static")
	var nodes corev1.NodeList
	a.hold(ctx)
	c.List(ctx, &nodes)
	node := nodes.Items[0].Name
	folder, err := c.Nodes.StaticPods(node)
	c.Check(err)
	t := a.set().Template()
	manifest, err := json.Marshal(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "fixed", Namespace: a.Namespace, Labels: t.Labels}, Spec: t.Spec})
	c.Check(err)
	file := filepath.Join(folder, a.Namespace+".json")
	defer func() { _ = os.Remove(file) }()
	c.Check(os.WriteFile(file, manifest, 0o644))
	static := a.one(ctx)
	mirror := &corev1.Pod{}
	c.Until(ctx, "the API server to show the static pod", func(ctx context.Context) {
		c.Check(c.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: "fixed-" + node}, mirror))
	})
	a.deploy(ctx, 1, surge())
	a.held(ctx, 1)
	want := "remove the manifest of static pod " + mirror.Name + " from the kubelet's manifest directory on Node " + node
	a.says(ctx, "how to stop a static pod", func(s *v1.StatefulSingleton) bool {
		unmanaged := meta.FindStatusCondition(s.Status.Conditions, v1.ConditionUnmanagedPod)
		return unmanaged != nil && strings.Contains(unmanaged.Message, want)
	})
	a.stays(static)
	// The program runs although its mirror pod is missing, until the kubelet recreates the mirror
	// pod.
	c.Remove(ctx, mirror, client.GracePeriodSeconds(0))
	c.Until(ctx, "the kubelet to show the static pod again", func(ctx context.Context) {
		again := &corev1.Pod{}
		c.Check(c.Client.Get(ctx, client.ObjectKeyFromObject(mirror), again))
		c.Expect(again.UID).NotTo(Equal(mirror.UID), "it is the same pod")
	})
	a.stays(static)
	next := a.handover(ctx, "removal of the manifest", func(testimony.Run) { c.Check(os.Remove(file)) })
	a.active(ctx, next)
}
