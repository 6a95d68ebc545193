package promises

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// What the pods of an application are made from.

// podChange changes the pods of an application; the first container is its
// program.
type podChange func(*corev1.PodTemplateSpec)

// behave sets a variable that tells the witness what to do.
func behave(name, value string) podChange {
	return func(t *corev1.PodTemplateSpec) {
		env := &t.Spec.Containers[0].Env
		*env = append(*env, corev1.EnvVar{Name: name, Value: value})
	}
}

// grace gives the program so many seconds to stop.
func grace(seconds int64) podChange {
	return func(t *corev1.PodTemplateSpec) { t.Spec.TerminationGracePeriodSeconds = &seconds }
}

// program changes the program's container.
func program(change func(*corev1.Container)) podChange {
	return func(t *corev1.PodTemplateSpec) { change(&t.Spec.Containers[0]) }
}

func (a *application) labels() map[string]string { return map[string]string{"app": a.name} }

const (
	witnessVolume = "witness"
	programName   = "program"
)

// template is the pods' template, with a witness as their program.
func (a *application) template(change ...podChange) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: a.labels()},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(2)),
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			Containers:                    []corev1.Container{a.witness(programName)},
		},
	}
	if a.Scribe == "" {
		t.Spec.Volumes = []corev1.Volume{{Name: witnessVolume, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: a.folder.Dir(), Type: new(corev1.HostPathDirectory)}}}}
	}
	for _, f := range append(a.change, change...) {
		f(&t)
	}
	return t
}

// witness is a container that runs one.
func (a *application) witness(name string, command ...string) corev1.Container {
	if len(command) == 0 {
		command = []string{"/witness"}
	}
	from := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	c := corev1.Container{
		Name: name, Image: a.Witness, Command: command,
		Env: []corev1.EnvVar{from("POD", "metadata.name"), from("POD_UID", "metadata.uid"), from("NODE", "spec.nodeName")},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("8Mi")}},
	}
	if a.Scribe == "" {
		c.VolumeMounts = []corev1.VolumeMount{{Name: witnessVolume, MountPath: "/witness.d"}}
	} else {
		c.Env = append(c.Env, corev1.EnvVar{Name: "WITNESS_TO", Value: a.scribed(a.folder.Dir())})
	}
	return c
}

// scribed is where the scribe keeps a folder, or a file, of Shared.
func (c *Cluster) scribed(path string) string {
	return testimony.Scheme + c.Scribe + strings.TrimPrefix(path, c.Shared)
}

// Strategies of a Deployment.

func surge() appsv1.DeploymentStrategy {
	return rolling(1, 0)
}

func rolling(surge, unavailable int) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxSurge: new(intstr.FromInt(surge)), MaxUnavailable: new(intstr.FromInt(unavailable))}}
}

func recreate() appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

// deploy creates a Deployment of the application.
func (a *application) deploy(ctx context.Context, replicas int32, strategy appsv1.DeploymentStrategy) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: a.Namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Strategy: strategy, Template: a.template(),
			Selector: &metav1.LabelSelector{MatchLabels: a.labels()},
		},
	}
	return d, a.Client.Create(ctx, d)
}

// statefulSet creates a StatefulSet of the application.
func (a *application) statefulSet(ctx context.Context) (*appsv1.StatefulSet, error) {
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: a.Namespace},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(1)), Template: a.template(), ServiceName: a.name,
			Selector:            &metav1.LabelSelector{MatchLabels: a.labels()},
			PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}
	return s, a.Client.Create(ctx, s)
}

// pod creates a pod that nothing owns. For a moment after its object was created
// the webhook does not know that, and the guard refuses the pod; owners try
// again, and so does this.
func (a *application) pod(ctx context.Context, name string, change ...podChange) (pod *corev1.Pod, err error) {
	return pod, until(ctx, "pod "+name+" to be taken", func(ctx context.Context) error {
		pod, err = a.tryPod(ctx, name, change...)
		return err
	})
}

// tryPod creates it, or says why that is refused.
func (a *application) tryPod(ctx context.Context, name string, change ...podChange) (*corev1.Pod, error) {
	t := a.template(change...)
	p := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	p.Name, p.Namespace = name, a.Namespace
	return p, a.Client.Create(ctx, p)
}

// change writes an object anew, again if somebody else wrote meanwhile.
func change[T client.Object](ctx context.Context, c *Cluster, object T, edit func(T)) error {
	return until(ctx, "the change to be taken", func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		edit(object)
		return c.Client.Update(ctx, object)
	})
}

// revise makes a new revision of a template.
func revise(t *corev1.PodTemplateSpec) {
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	t.Annotations["revised"] += "+"
}

// rollOut makes a new revision of the application's workload.
func (a *application) rollOut(ctx context.Context, workload client.Object) error {
	return a.revise(ctx, workload, func(*corev1.PodTemplateSpec) {})
}

// revise makes a new revision with this change.
func (a *application) revise(ctx context.Context, workload client.Object, edit podChange) error {
	both := func(t *corev1.PodTemplateSpec) {
		revise(t)
		edit(t)
	}
	switch w := workload.(type) {
	case *appsv1.Deployment:
		return change(ctx, a.Cluster, w, func(d *appsv1.Deployment) { both(&d.Spec.Template) })
	case *appsv1.StatefulSet:
		return change(ctx, a.Cluster, w, func(s *appsv1.StatefulSet) { both(&s.Spec.Template) })
	}
	return fmt.Errorf("a %T cannot be rolled out", workload)
}

// scale sets the replicas of the application's workload.
func (a *application) scale(ctx context.Context, workload client.Object, replicas int32) error {
	switch w := workload.(type) {
	case *appsv1.Deployment:
		return change(ctx, a.Cluster, w, func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
	case *appsv1.StatefulSet:
		return change(ctx, a.Cluster, w, func(s *appsv1.StatefulSet) { s.Spec.Replicas = &replicas })
	}
	return fmt.Errorf("a %T cannot be scaled", workload)
}

// rolledOut waits until Kubernetes says that the Deployment's rollout is done.
func (a *application) rolledOut(ctx context.Context, d *appsv1.Deployment) error {
	return until(ctx, "the rollout of "+d.Name+" to be done", func(ctx context.Context) error {
		if err := a.Client.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		s, want := d.Status, *d.Spec.Replicas
		if s.ObservedGeneration != d.Generation || s.Replicas != want || s.UpdatedReplicas != want || s.AvailableReplicas != 1 {
			return fmt.Errorf("%d pods, %d updated, %d available", s.Replicas, s.UpdatedReplicas, s.AvailableReplicas)
		}
		return nil
	})
}

// delete deletes the pod of a run, if it is there still.
func (a *application) delete(ctx context.Context, run testimony.Run, options ...client.DeleteOption) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: run.Pod, Namespace: a.Namespace}}
	err := a.Client.Delete(ctx, pod, append(options, client.Preconditions{UID: new(types.UID(run.UID))})...)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // another one of that name may be there
	}
	return err
}

// evict asks the API server to evict the pod of a run.
func (a *application) evict(ctx context.Context, run testimony.Run) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: run.Pod, Namespace: a.Namespace}}
	return client.IgnoreNotFound(a.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}))
}

// closed keeps new pods off a node, or ends that.
func (c *Cluster) closed(ctx context.Context, node string, on bool) error {
	return change(ctx, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) { n.Spec.Unschedulable = on })
}
