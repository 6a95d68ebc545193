package singleton

import (
	"context"
	"slices"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
	"github.com/stateful-operator/stateful-operator/test/faults/witnessset"
)

// Templates of an application's pods.

// podChange changes the pods of an application. The first container is its program.
type podChange = witnessset.Change

// behave sets a variable that controls the witness.
func behave(name, value string) podChange {
	return func(t *corev1.PodTemplateSpec) {
		env := &t.Spec.Containers[0].Env
		*env = append(*env, corev1.EnvVar{Name: name, Value: value})
	}
}

// grace sets the grace period of the program.
func grace(seconds int64) podChange {
	return func(t *corev1.PodTemplateSpec) { t.Spec.TerminationGracePeriodSeconds = &seconds }
}

// program changes the program's container.
func program(change func(*corev1.Container)) podChange {
	return func(t *corev1.PodTemplateSpec) { change(&t.Spec.Containers[0]) }
}

// set returns the template of the application's pods. These changes are applied after the
// application's own.
func (a *application) set(change ...podChange) witnessset.Set {
	s := witnessset.Set{
		Name: a.Name, Namespace: a.Namespace, Image: a.Witness, Grace: 2,
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("8Mi")},
		Change:   slices.Concat(a.change, change),
	}
	if a.Scribe == "" {
		s.Folder = a.Folder.Dir()
	} else {
		s.Scribe = a.AtScribe(a.Folder.Dir())
	}
	return s
}

// surge returns a Deployment strategy with max surge 1 and max unavailable 0.
func surge() appsv1.DeploymentStrategy { return witnessset.Rolling(1, 0) }

// deploy creates a Deployment of the application.
func (a *application) deploy(ctx context.Context, replicas int32, strategy appsv1.DeploymentStrategy) *appsv1.Deployment {
	d := a.set().Deployment(replicas, strategy)
	a.Put(ctx, d)
	return d
}

// statefulSet creates a StatefulSet of the application with one pod.
func (a *application) statefulSet(ctx context.Context) *appsv1.StatefulSet {
	s := a.set().StatefulSet(1)
	s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	a.Put(ctx, s)
	return s
}

// pod creates a pod without an owner. Shortly after the creation of the object, the webhook may not
// know it yet, and the guard refuses the pod. Pod owners retry that, and so does this function.
func (a *application) pod(ctx context.Context, name string, change ...podChange) (pod *corev1.Pod) {
	a.Until(ctx, "pod "+name+" to be accepted", func(ctx context.Context) {
		var err error
		pod, err = a.tryPod(ctx, name, change...)
		a.Check(err)
	})
	return pod
}

// tryPod creates the pod, or returns the error.
func (a *application) tryPod(ctx context.Context, name string, change ...podChange) (*corev1.Pod, error) {
	p := a.set(change...).Pod(name)
	return p, a.Client.Create(ctx, p)
}

// revise creates a new revision of a template.
func revise(t *corev1.PodTemplateSpec) {
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	t.Annotations["revised"] += "+"
}

// rollOut creates a new revision of the application's workload.
func (a *application) rollOut(ctx context.Context, workload client.Object) {
	a.revise(ctx, workload, func(*corev1.PodTemplateSpec) {})
}

// revise creates a new revision with this change.
func (a *application) revise(ctx context.Context, workload client.Object, edit podChange) {
	a.shape(ctx, workload, func(_ **int32, t *corev1.PodTemplateSpec) {
		revise(t)
		edit(t)
	})
}

// scale sets the replicas of the application's workload.
func (a *application) scale(ctx context.Context, workload client.Object, replicas int32) {
	a.shape(ctx, workload, func(r **int32, _ *corev1.PodTemplateSpec) { *r = &replicas })
}

// shape changes a workload of either kind.
func (a *application) shape(ctx context.Context, workload client.Object, edit func(replicas **int32, t *corev1.PodTemplateSpec)) {
	kit.Change(ctx, a.Cluster, workload, func(o client.Object) {
		switch w := o.(type) {
		case *appsv1.Deployment:
			edit(&w.Spec.Replicas, &w.Spec.Template)
		case *appsv1.StatefulSet:
			edit(&w.Spec.Replicas, &w.Spec.Template)
		}
	})
}

// rolledOut waits until the Deployment's status reports that the rollout is done.
func (a *application) rolledOut(ctx context.Context, d *appsv1.Deployment) {
	a.Until(ctx, "the rollout of "+d.Name+" to complete", func(ctx context.Context) {
		a.Read(ctx, d)
		s, want := d.Status, *d.Spec.Replicas
		a.Expect(s.ObservedGeneration).To(Equal(d.Generation), "%d pods, %d updated, %d available", s.Replicas, s.UpdatedReplicas, s.AvailableReplicas)
		a.Expect(s.Replicas).To(Equal(want), "%d pods, %d updated, %d available", s.Replicas, s.UpdatedReplicas, s.AvailableReplicas)
		a.Expect(s.UpdatedReplicas).To(Equal(want), "%d pods, %d updated, %d available", s.Replicas, s.UpdatedReplicas, s.AvailableReplicas)
		a.Expect(s.AvailableReplicas).To(BeNumerically("==", 1), "%d pods, %d updated, %d available", s.Replicas, s.UpdatedReplicas, s.AvailableReplicas)
	})
}

// delete deletes the pod of a run, if it still exists.
func (a *application) delete(ctx context.Context, run testimony.Run, options ...client.DeleteOption) {
	err := a.set().Delete(ctx, a.Client, run, options...)
	if !apierrors.IsConflict(err) { // another pod may have that name
		a.Check(client.IgnoreNotFound(err))
	}
}

// evict evicts the pod of a run.
func (a *application) evict(ctx context.Context, run testimony.Run) {
	a.Check(client.IgnoreNotFound(a.set().Evict(ctx, a.Client, run)))
}
