package extendedstatefulset_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// badImage never becomes Ready.
const badImage = "bad"

// startFakeControlPlane simulates the StatefulSet and Job controllers, the scheduler and the kubelets
// in one namespace.
func startFakeControlPlane(namespace string) {
	GinkgoHelper()
	server.Play(namespace, func(ctx context.Context) error { return play(ctx, namespace) }, &appsv1.StatefulSetList{}, &corev1.PodList{}, &batchv1.JobList{})
}

// play takes the next step for each object.
func play(ctx context.Context, namespace string) error {
	var sets appsv1.StatefulSetList
	var pods corev1.PodList
	var jobs batchv1.JobList
	for _, list := range []client.ObjectList{&sets, &pods, &jobs} {
		if err := user.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	living := map[string]bool{}
	for i := range sets.Items {
		living[sets.Items[i].Name] = true
		if err := control(ctx, &sets.Items[i], pods.Items); err != nil {
			return err
		}
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if owner := metav1.GetControllerOf(pod); owner != nil && !living[owner.Name] && pod.DeletionTimestamp == nil {
			if err := user.Delete(ctx, pod); err != nil { // like the garbage collector
				return err
			}
		}
		if err := run(ctx, pod); err != nil {
			return err
		}
	}
	for i := range jobs.Items {
		if err := work(ctx, &jobs.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// control creates and deletes the pods of a StatefulSet.
func control(ctx context.Context, set *appsv1.StatefulSet, pods []corev1.Pod) error {
	if set.Status.ObservedGeneration != set.Generation {
		set.Status.ObservedGeneration = set.Generation
		if err := user.Status().Update(ctx, set); err != nil {
			return err
		}
	}
	start, have := int32(0), map[string]bool{}
	if set.Spec.Ordinals != nil {
		start = set.Spec.Ordinals.Start
	}
	for i := range pods {
		pod := &pods[i]
		if have[pod.Name] = true; !metav1.IsControlledBy(pod, set) || pod.DeletionTimestamp != nil {
			continue
		}
		ordinal, _ := strconv.ParseInt(strings.TrimPrefix(pod.Name, set.Name+"-"), 10, 32)
		if int32(ordinal) < start || int32(ordinal) >= start+*set.Spec.Replicas {
			if err := user.Delete(ctx, pod); err != nil {
				return err
			}
		}
	}
	for o := start; o < start+*set.Spec.Replicas && set.DeletionTimestamp == nil; o++ {
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Name, pod.Namespace = fmt.Sprintf("%s-%d", set.Name, o), set.Namespace
		pod.Labels[appsv1.PodIndexLabel], pod.Labels[appsv1.StatefulSetPodNameLabel] = strconv.Itoa(int(o)), pod.Name
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		if have[pod.Name] {
			continue
		}
		if err := user.Create(ctx, pod); apierrors.IsForbidden(err) {
			return failedCreate(ctx, set, pod.Name, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// failedCreate creates the event that the StatefulSet controller creates for a denied pod.
func failedCreate(ctx context.Context, set *appsv1.StatefulSet, pod string, why error) error {
	return client.IgnoreAlreadyExists(user.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: pod + ".refused", Namespace: set.Namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: set.Namespace, Name: set.Name, UID: set.UID},
		Type:           corev1.EventTypeWarning, Reason: "FailedCreate", LastTimestamp: metav1.Now(), Count: 1,
		Message: fmt.Sprintf("Create Pod %s in StatefulSet %s failed error: %v", pod, set.Name, why),
	}))
}

// run binds a pod, runs it, and ends it after its deletion.
func run(ctx context.Context, pod *corev1.Pod) error {
	switch {
	case pod.DeletionTimestamp != nil && pod.Spec.NodeName != "":
		return user.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	case pod.DeletionTimestamp != nil:
		return nil
	case pod.Spec.NodeName == "":
		return user.SubResource("binding").Create(ctx, pod, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-1"}})
	case pod.Status.Phase == corev1.PodRunning || pod.Spec.Containers[0].Image == badImage:
		return nil
	}
	now := metav1.Now()
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Ready: true,
			ContainerID: "fake://" + string(pod.UID), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}})
	}
	return user.Status().Update(ctx, pod)
}

// hangingImage never ends in a Job.
const hangingImage = "hangs"

// work completes a Job that is not suspended. A Job with the bad image fails.
func work(ctx context.Context, job *batchv1.Job) error {
	image := job.Spec.Template.Spec.Containers[0].Image
	if ptr.Deref(job.Spec.Suspend, false) || len(job.Status.Conditions) > 0 || image == hangingImage {
		return nil
	}
	now := metav1.Now()
	ends := func(kinds ...batchv1.JobConditionType) {
		for _, kind := range kinds {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
	}
	job.Status.StartTime = &now
	switch good := image != badImage; {
	case !good:
		ends(batchv1.JobFailureTarget, batchv1.JobFailed)
	case server.AtLeast("1.32"):
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
		ends(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
	default: // older API servers accept SuccessCriteriaMet only for Jobs with a success policy
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
		ends(batchv1.JobComplete)
	}
	return user.Status().Update(ctx, job)
}
