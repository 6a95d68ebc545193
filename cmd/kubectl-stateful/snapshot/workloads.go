package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Workload is an owner of a StatefulSingleton's pods: the operator does not own them.
type Workload struct {
	// Object is a Deployment, a StatefulSet or a DaemonSet. It is nil if the owner has another kind
	// or is missing.
	Object client.Object
	// Kind and Name of the owner.
	Kind, Name string
}

// String returns the owner in kubectl's format.
func (w Workload) String() string { return strings.ToLower(w.Kind) + "/" + w.Name }

// Progress is the progress of a workload's rollout.
type Progress struct {
	// Seen reports whether the workload's controller has observed the present template.
	Seen            bool
	Wanted, Updated int32
}

// Progress returns the progress of the rollout, or false if the workload has no rollouts.
func (w Workload) Progress() (Progress, bool) {
	switch o := w.Object.(type) {
	case *appsv1.Deployment:
		return Progress{o.Status.ObservedGeneration >= o.Generation, ptr.Deref(o.Spec.Replicas, 1), o.Status.UpdatedReplicas}, true
	case *appsv1.StatefulSet:
		return Progress{o.Status.ObservedGeneration >= o.Generation, ptr.Deref(o.Spec.Replicas, 1), o.Status.UpdatedReplicas}, o.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType
	case *appsv1.DaemonSet:
		return Progress{o.Status.ObservedGeneration >= o.Generation, o.Status.DesiredNumberScheduled, o.Status.UpdatedNumberScheduled}, o.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType
	}
	return Progress{}, false
}

// readWorkloads reads the owners of the pods. A Deployment is found through its ReplicaSets.
func (s *Snapshot) readWorkloads(ctx context.Context, c client.Reader) error {
	for i := range s.Pods {
		ref := metav1.GetControllerOf(&s.Pods[i])
		if ref == nil {
			continue
		}
		w, err := workloadOf(ctx, c, &s.Pods[i], *ref)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(s.Workloads, func(known Workload) bool { return known.String() == w.String() }) {
			s.Workloads = append(s.Workloads, w)
		}
	}
	slices.SortFunc(s.Workloads, func(a, b Workload) int { return strings.Compare(a.String(), b.String()) })
	return nil
}

func workloadOf(ctx context.Context, c client.Reader, pod *corev1.Pod, ref metav1.OwnerReference) (Workload, error) {
	if ref.Kind == "ReplicaSet" {
		var set appsv1.ReplicaSet
		err := c.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: ref.Name}, &set)
		if client.IgnoreNotFound(err) != nil {
			return Workload{}, err
		}
		if above := metav1.GetControllerOf(&set); err == nil && above != nil {
			ref = *above
		}
	}
	w := Workload{Kind: ref.Kind, Name: ref.Name}
	object := map[string]client.Object{"Deployment": &appsv1.Deployment{}, "StatefulSet": &appsv1.StatefulSet{}, "DaemonSet": &appsv1.DaemonSet{}}[ref.Kind]
	if object == nil {
		return w, nil
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: ref.Name}, object)
	if apierrors.IsNotFound(err) {
		return w, nil
	}
	if err != nil {
		return w, fmt.Errorf("read the owner of pod %s: %w", pod.Name, err)
	}
	w.Object = object
	return w, nil
}
