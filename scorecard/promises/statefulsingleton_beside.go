package promises

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// What runs beside what: pods from before the object, and pods that no Deployment
// makes.

// threeFromBefore makes the object when three programs run already, and does
// what it says.
func threeFromBefore(ctx context.Context, c *Cluster) error {
	a, err := c.application("beside")
	if err != nil {
		return err
	}
	defer a.folder.Close()
	if _, err := a.deploy(ctx, 3, surge()); err != nil {
		return err
	}
	if err := a.several(ctx, 3); err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	s, err := a.says(ctx, "that three run beside each other", func(s *v1.StatefulSingleton) bool {
		available := meta.FindStatusCondition(s.Status.Conditions, v1.ConditionAvailable)
		return isTrue(v1.ConditionDegraded, v1.ReasonSeveralRunning)(s) && s.Status.Phase == v1.PhaseFailed &&
			available != nil && available.Status == metav1.ConditionFalse && available.Reason == v1.ReasonSeveralRunning
	})
	if err != nil {
		return err
	}
	live, err := a.living()
	if err != nil {
		return err
	}
	for _, run := range live {
		if !strings.Contains(s.Status.Message, run.Pod) {
			return fmt.Errorf("it does not name %s: %s", run.Pod, s.Status.Message)
		}
	}
	if note, err := a.event(ctx, v1.EventSeveralRunning); err != nil || note != s.Status.Message {
		return errors.Join(err, fmt.Errorf("the event says %q, and the status %q", note, s.Status.Message))
	}
	if err := a.deletesAsTold(ctx, s.Status.Message, 2); err != nil {
		return err
	}
	left, err := a.one(ctx)
	if err != nil {
		return err
	}
	s, err = a.says(ctx, "that one runs, without the gate", func(s *v1.StatefulSingleton) bool {
		return isTrue(v1.ConditionAvailable, v1.ReasonActive)(s) && isTrue(v1.ConditionUnmanagedPod, v1.ReasonPodWithoutGate)(s) && s.Status.ActivePod == left.Pod
	})
	if err != nil {
		return err
	}
	if err := a.deletesAsTold(ctx, meta.FindStatusCondition(s.Status.Conditions, v1.ConditionUnmanagedPod).Message, 1); err != nil {
		return err
	}
	next, err := a.one(ctx, left)
	return errors.Join(err, a.active(ctx, next))
}

// several waits until so many programs run beside each other.
func (a *application) several(ctx context.Context, want int) error {
	return until(ctx, fmt.Sprintf("%d programs of %s to run", want, a.name), func(context.Context) error {
		live, err := a.living()
		if err == nil && len(live) != want {
			err = fmt.Errorf("%d do", len(live))
		}
		return err
	})
}

// deletesAsTold runs the command at the end of a message, which deletes so many
// pods.
func (a *application) deletesAsTold(ctx context.Context, message string, want int) error {
	_, names, _ := strings.Cut(message, "kubectl -n "+a.Namespace+" delete pod ")
	pods := strings.Fields(names)
	if len(pods) != want {
		return fmt.Errorf("it should say how to delete %d pods: %s", want, message)
	}
	for _, name := range pods {
		if err := a.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: name}}); err != nil {
			return fmt.Errorf("deleting pod %q: %w", name, err)
		}
	}
	return nil
}

// takeTurns has one of so many pods run, and another when that is deleted.
func (a *application) takeTurns(ctx context.Context, pods int) error {
	for range 2 {
		if _, err := a.held(ctx, pods-1); err != nil {
			return err
		}
		next, err := a.handover(ctx, "deletion", func(old testimony.Run) error { return a.delete(ctx, old) })
		if err != nil {
			return err
		}
		if err := errors.Join(a.active(ctx, next), a.ready(ctx, next)); err != nil {
			return err
		}
	}
	return nil
}

func daemonSet(ctx context.Context, c *Cluster) error {
	var nodes corev1.NodeList
	if err := c.Client.List(ctx, &nodes); err != nil {
		return err
	}
	a, err := c.application("daemons")
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	err = c.Client.Create(ctx, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: a.Namespace}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: a.labels()}, Template: a.template(),
		UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}}})
	if err != nil {
		return err
	}
	return a.takeTurns(ctx, len(nodes.Items))
}

func parallelSet(ctx context.Context, c *Cluster) error {
	a, err := c.application("parallel")
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	err = c.Client.Create(ctx, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: a.Namespace}, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(3)), ServiceName: a.name, Template: a.template(), Selector: &metav1.LabelSelector{MatchLabels: a.labels()},
		PodManagementPolicy: appsv1.ParallelPodManagement,
		UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}}})
	if err != nil {
		return err
	}
	return a.takeTurns(ctx, 3)
}

// nativeSidecar has a sidecar that is stopped after the program, and takes 6
// seconds for it. The program's pod has not ended before.
func nativeSidecar(ctx context.Context, c *Cluster) error {
	a, err := c.application("sidecar", grace(30))
	if err != nil {
		return err
	}
	a.change = append(a.change, func(t *corev1.PodTemplateSpec) {
		side := a.witness("side")
		side.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		side.Env = append(side.Env, corev1.EnvVar{Name: "WITNESS_DIR", Value: "/witness.d/side"}, corev1.EnvVar{Name: "WITNESS_STOP_AFTER", Value: "6s"})
		t.Spec.InitContainers = append(t.Spec.InitContainers, side)
	})
	if err := os.MkdirAll(filepath.Join(a.folder.Dir(), "side"), 0o777); err != nil {
		return err
	}
	if err := a.hold(ctx, func(s *v1.StatefulSingletonSpec) { s.GateMode = v1.GateBinary }); err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 2, surge()); err != nil {
		return err
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	old, err := a.one(ctx)
	if err != nil {
		return err
	}
	if err := a.delete(ctx, old); err != nil {
		return err
	}
	if err := a.none(ctx); err != nil {
		return err
	}
	_, err = a.says(ctx, "that the sidecar is waited for", func(s *v1.StatefulSingleton) bool {
		progress := meta.FindStatusCondition(s.Status.Conditions, v1.ConditionProgressing)
		return progress != nil && strings.Contains(progress.Message, "still running: container side")
	})
	if err != nil {
		return err
	}
	next, err := a.one(ctx, old)
	return errors.Join(err, a.active(ctx, next))
}

// staticPod has a kubelet run a pod that matches by itself, before any other.
func staticPod(ctx context.Context, c *Cluster) (err error) {
	a, err := c.application("static")
	if err != nil {
		return err
	}
	var nodes corev1.NodeList
	if err := errors.Join(a.hold(ctx), c.Client.List(ctx, &nodes)); err != nil {
		return err
	}
	node := nodes.Items[0].Name
	folder, err := c.Nodes.StaticPods(node)
	if err != nil {
		return err
	}
	t := a.template()
	manifest, err := json.Marshal(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "fixed", Namespace: a.Namespace, Labels: t.Labels}, Spec: t.Spec})
	if err != nil {
		return err
	}
	file := filepath.Join(folder, a.Namespace+".json")
	defer func() { _ = os.Remove(file) }()
	if err := os.WriteFile(file, manifest, 0o644); err != nil {
		return err
	}
	static, err := a.one(ctx)
	if err != nil {
		return err
	}
	mirror := &corev1.Pod{}
	err = until(ctx, "the API server to show the static pod", func(ctx context.Context) error {
		return c.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: "fixed-" + node}, mirror)
	})
	if err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 1, surge()); err != nil {
		return err
	}
	if _, err := a.held(ctx, 1); err != nil {
		return err
	}
	want := "take the manifest of static pod " + mirror.Name + " out of the kubelet's folder on Node " + node
	_, err = a.says(ctx, "how a static pod is stopped", func(s *v1.StatefulSingleton) bool {
		unmanaged := meta.FindStatusCondition(s.Status.Conditions, v1.ConditionUnmanagedPod)
		return unmanaged != nil && strings.Contains(unmanaged.Message, want)
	})
	if err := errors.Join(err, a.stays(static)); err != nil {
		return err
	}
	// Without it nobody would know that the program runs, until its kubelet says so.
	if err := c.Client.Delete(ctx, mirror, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	err = until(ctx, "the kubelet to show the static pod again", func(ctx context.Context) error {
		again := &corev1.Pod{}
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(mirror), again); err != nil {
			return err
		}
		if again.UID == mirror.UID {
			return errors.New("it is the same")
		}
		return nil
	})
	if err := errors.Join(err, a.stays(static)); err != nil {
		return err
	}
	next, err := a.handover(ctx, "removal of the manifest", func(testimony.Run) error { return os.Remove(file) })
	return errors.Join(err, a.active(ctx, next))
}
