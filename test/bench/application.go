package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/observer"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// application is a workload whose program must not run twice at a time. The
// program is a witness: what is measured is what it did.
type application struct {
	*nodes
	name   string // and that of its namespace
	pods   int    // how many it has, of which one runs
	gate   v1.GateMode
	folder *observer.Folder
}

// newApplication makes a namespace, the StatefulSingleton unless the gate is "",
// and then the workload, and waits until its program runs.
func (n *nodes) newApplication(ctx context.Context, name string, gate v1.GateMode, pods int, workload func(*application) client.Object) (*application, error) {
	if err := n.makeNamespace(ctx, name); err != nil {
		return nil, err
	}
	folder, err := observer.Open(filepath.Join(n.cluster.Dir(), "witness", name))
	if err != nil {
		return nil, err
	}
	a := &application{nodes: n, name: name, pods: pods, gate: gate, folder: folder}
	n.open = append(n.open, a)
	if gate != "" {
		if err := a.hold(ctx); err != nil {
			return nil, err
		}
	}
	if err := n.client.Create(ctx, workload(a)); err != nil {
		return nil, err
	}
	return a, a.settled(ctx)
}

// hold makes the StatefulSingleton, and waits until pods that match come out of
// admission with the gate in them: the webhook's cache lags by some
// milliseconds, and the guard would refuse a pod that came before.
func (a *application) hold(ctx context.Context) error {
	err := a.client.Create(ctx, &v1.StatefulSingleton{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: a.name},
		Spec: v1.StatefulSingletonSpec{
			Selector:               &metav1.LabelSelector{MatchLabels: a.labels()},
			GateMode:               a.gate,
			TerminationGracePeriod: new(int64(0)), // the pods' own
		},
	})
	if err != nil {
		return err
	}
	return waitFor(ctx, time.Minute, "the gate to be put into pods", func() (bool, string, error) {
		t := a.template()
		pod := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
		pod.Name, pod.Namespace = "try", a.name
		err := a.client.Create(ctx, pod, client.DryRunAll)
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) { // the guard, or a namespace without its account
			return false, err.Error(), nil
		}
		return err == nil && pod.Labels[v1.LabelManaged] == v1.True, "", err
	})
}

func (a *application) labels() map[string]string { return map[string]string{"app": a.name} }

func (a *application) template() corev1.PodTemplateSpec {
	from := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	const volume = "testimony"
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: a.labels()},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(5)),
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			Containers: []corev1.Container{{
				Name: "program", Image: a.witness, Command: []string{"/witness"},
				Env: []corev1.EnvVar{{Name: "WITNESS_DIR", Value: "/" + volume},
					from("POD", "metadata.name"), from("POD_UID", "metadata.uid"), from("NODE", "spec.nodeName")},
				VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: "/" + volume}},
			}},
			Volumes: []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: a.folder.Dir()}}}},
		},
	}
}

// Workloads.

func deployment(strategy appsv1.DeploymentStrategy) func(*application) client.Object {
	return func(a *application) client.Object {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: a.name},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(a.pods)), Strategy: strategy, Template: a.template(),
				Selector: &metav1.LabelSelector{MatchLabels: a.labels()}, RevisionHistoryLimit: new(int32(1)),
			},
		}
	}
}

func surge() appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0))}}
}

func recreate() appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

func setOfOne(a *application) client.Object {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: a.name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(a.pods)), Template: a.template(), ServiceName: a.name,
			Selector: &metav1.LabelSelector{MatchLabels: a.labels()}, RevisionHistoryLimit: new(int32(1)),
		},
	}
}

// What ends the program.

// rollOut makes a new revision of the workload.
func rollOut(ctx context.Context, a *application, _ testimony.Run) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
		`{"spec":{"template":{"metadata":{"annotations":{"revised":"%d"}}}}}`, time.Now().UnixNano()))
	named := metav1.ObjectMeta{Name: a.name, Namespace: a.name}
	err := a.client.Patch(ctx, &appsv1.Deployment{ObjectMeta: named}, patch)
	if client.IgnoreNotFound(err) == nil && err != nil {
		err = a.client.Patch(ctx, &appsv1.StatefulSet{ObjectMeta: named}, patch)
	}
	return err
}

func deletePod(ctx context.Context, a *application, old testimony.Run) error {
	return a.client.Delete(ctx, a.podOf(old), client.Preconditions{UID: new(types.UID(old.UID))})
}

// drain is what `kubectl drain` does with this pod.
func drain(ctx context.Context, a *application, old testimony.Run) error {
	if err := a.changeNode(ctx, old.Node, func(node *corev1.Node) { node.Spec.Unschedulable = true }); err != nil {
		return err
	}
	return a.client.SubResource("eviction").Create(ctx, a.podOf(old), &policyv1.Eviction{})
}

func uncordon(ctx context.Context, a *application, old testimony.Run) error {
	return a.changeNode(ctx, old.Node, func(node *corev1.Node) { node.Spec.Unschedulable = false })
}

func (a *application) podOf(run testimony.Run) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: run.Pod, Namespace: a.name}}
}

// What is the case.

// alive is the run that goes on; false if there is not exactly one.
func (a *application) alive() (testimony.Run, bool, error) {
	runs, err := a.folder.Runs()
	live := slices.DeleteFunc(runs, func(r testimony.Run) bool { return !r.Alive() })
	if err != nil || len(live) != 1 {
		return testimony.Run{}, false, err
	}
	return live[0], true, nil
}

// next waits for the run after another one, and gives that with its end too.
func (a *application) next(ctx context.Context, before testimony.Run) (old, next testimony.Run, err error) {
	err = waitFor(ctx, 3*time.Minute, "the next program of "+a.name, func() (bool, string, error) {
		runs, err := a.folder.Runs()
		if err != nil {
			return false, "", err
		}
		at := slices.IndexFunc(runs, func(r testimony.Run) bool { return r.ID == before.ID })
		if at < 0 {
			return false, "", errors.New("a run is not in its diary")
		}
		if at == len(runs)-1 || runs[at].Alive() {
			return false, "", nil
		}
		old, next = runs[at], runs[at+1]
		return true, "", nil
	})
	return old, next, err
}

// settled waits until one program runs in a Ready pod, the other pods of the
// application wait at their gates, and there are no more: then a handover is as
// good as it can be.
func (a *application) settled(ctx context.Context) error {
	return waitFor(ctx, 5*time.Minute, a.name+" to be at rest", func() (bool, string, error) {
		var pods corev1.PodList
		if err := a.client.List(ctx, &pods, client.InNamespace(a.name)); err != nil {
			return false, "", err
		}
		run, one, err := a.alive()
		if err != nil || !one || len(pods.Items) != a.pods {
			return false, fmt.Sprintf("(%d pods)", len(pods.Items)), err
		}
		ours := 0
		for i := range pods.Items {
			pod := &pods.Items[i]
			switch runs := string(pod.UID) == run.UID; {
			case pod.DeletionTimestamp != nil, runs && !ready(pod), !runs && !atGate(pod):
				return false, "(pod " + pod.Name + " is not as wanted)", nil
			case runs:
				ours++
			}
		}
		return ours == 1, "", nil
	})
}

// atGate tells whether the gate runs: as an init container, or in all containers.
func atGate(pod *corev1.Pod) bool {
	running := func(c corev1.ContainerStatus) bool { return c.State.Running != nil }
	if slices.ContainsFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == v1.ContainerWait && running(c) }) {
		return true
	}
	all := pod.Status.ContainerStatuses
	return len(all) > 0 && !slices.ContainsFunc(all, func(c corev1.ContainerStatus) bool { return !running(c) })
}
