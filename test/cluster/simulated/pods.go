package simulated

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	singletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// NoImage is an image that no node can pull. All other images exist.
const NoImage = "localhost/no-such-image:1"

// Run simulates all pods of a cluster with only simulated nodes, until ctx ends. dir is the folder of
// the cluster.
func Run(ctx context.Context, config *rest.Config, dir string, nodes int) error {
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	sets, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	k, err := Serve(ctx, admin, dir, nodes)
	if err != nil {
		return err
	}
	defer k.Close()
	k.Name = func(ctx context.Context, pod types.NamespacedName, argv []string) string {
		return k.look(ctx, sets, pod, argv)
	}
	k.Watch(ctx, metav1.NamespaceAll, k.Play)
	<-ctx.Done()
	return nil
}

// look returns the name of a command in the ReplicatedStatefulSet of a pod.
func (k *Kubelets) look(ctx context.Context, sets client.Reader, pod types.NamespacedName, argv []string) string {
	obj, _, _ := k.pods.GetByKey(pod.String())
	if p, known := obj.(*corev1.Pod); known {
		var set v1alpha1.ReplicatedStatefulSet
		if isMember(p) && sets.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: p.Labels[v1alpha1.LabelApp]}, &set) == nil {
			for name, command := range set.Spec.Pod.Commands {
				// The name of another member may follow.
				if n := len(command.Command); len(argv) >= n && slices.Equal(command.Command, argv[:n]) {
					return name
				}
			}
		}
	}
	return argv[0]
}

// replay handles a pod again after its application has changed.
func (k *Kubelets) replay(pod types.NamespacedName) {
	if k.pods == nil {
		return
	}
	if obj, known, _ := k.pods.GetByKey(pod.String()); known {
		go k.see(context.Background(), obj.(*corev1.Pod))
	}
}

// Play does the next step for a pod. A step that fails because the pod has changed is repeated for the
// change.
func (k *Kubelets) Play(ctx context.Context, pod *corev1.Pod) {
	pods := k.admin.CoreV1().Pods(pod.Namespace)
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case pod.Spec.NodeName == "":
	case ended && pod.DeletionTimestamp != nil && *pod.DeletionGracePeriodSeconds > 0:
		_ = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	case ended:
	default:
		if pod.DeletionTimestamp != nil {
			k.forget(nameOf(pod))
		}
		if status := statusOf(pod, !probed(pod) || k.Role(nameOf(pod)) != "", metav1.Now()); !apiequality.Semantic.DeepEqual(&pod.Status, status) {
			shown := pod.DeepCopy()
			shown.Status = *status
			_, _ = pods.UpdateStatus(ctx, shown, metav1.UpdateOptions{})
		}
	}
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// isMember reports whether the pod belongs to a ReplicatedStatefulSet.
func isMember(pod *corev1.Pod) bool { return pod.Labels[v1alpha1.LabelManaged] == "true" }

// probed reports whether the pod is Ready only while its application runs.
func probed(pod *corev1.Pod) bool {
	return isMember(pod) && slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.ReadinessProbe != nil })
}

// statusOf returns the status that a kubelet would report for the pod. serves is the result of its
// readiness probe. Programs end immediately on termination, and programs of a Job complete immediately.
func statusOf(pod *corev1.Pod, serves bool, now metav1.Time) *corev1.PodStatus {
	s := pod.Status.DeepCopy()
	if s.StartTime == nil {
		s.StartTime = &now
		sum := sha256.Sum256([]byte(pod.UID))
		s.PodIP = netip.AddrFrom4([4]byte{10, 128 | sum[0], sum[1], sum[2]}).String()
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
	s.ObservedGeneration = pod.Generation
	over := pod.DeletionTimestamp != nil || pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
	before := slices.Concat(s.InitContainerStatuses, s.ContainerStatuses)
	s.InitContainerStatuses, s.ContainerStatuses = nil, nil
	held := false // an init container has not ended
	for i := range pod.Spec.InitContainers {
		c := container{pod, &pod.Spec.InitContainers[i], before, now}
		switch stays := c.RestartPolicy != nil; {
		case held && !over:
			s.InitContainerStatuses = append(s.InitContainerStatuses, c.waits("PodInitializing"))
		case c.Image == NoImage && !over:
			s.InitContainerStatuses, held = append(s.InitContainerStatuses, c.waits("ImagePullBackOff")), true
		case stays && !over || c.Name == singletonv1.ContainerWait && !granted(pod) && !over:
			s.InitContainerStatuses, held = append(s.InitContainerStatuses, c.runs()), !stays
		default:
			s.InitContainerStatuses = append(s.InitContainerStatuses, c.ended())
		}
	}
	s.Phase = corev1.PodRunning
	if over {
		s.Phase = corev1.PodSucceeded
	}
	for i := range pod.Spec.Containers {
		c := container{pod, &pod.Spec.Containers[i], before, now}
		switch {
		case over:
			s.ContainerStatuses = append(s.ContainerStatuses, c.ended())
		case held:
			s.ContainerStatuses, s.Phase = append(s.ContainerStatuses, c.waits("PodInitializing")), corev1.PodPending
		case c.Image == NoImage:
			s.ContainerStatuses, s.Phase = append(s.ContainerStatuses, c.waits("ImagePullBackOff")), corev1.PodPending
		default:
			status := c.runs()
			status.Ready = serves
			s.ContainerStatuses = append(s.ContainerStatuses, status)
		}
	}
	setConditions(pod, s, held, over, now)
	return s
}

func setConditions(pod *corev1.Pod, s *corev1.PodStatus, held, over bool, now metav1.Time) {
	reason := "ContainersNotReady"
	if over {
		reason = "PodCompleted" // shows the operator that a kubelet ended the pod
	}
	ready := !held && !over && !slices.ContainsFunc(s.ContainerStatuses, func(c corev1.ContainerStatus) bool { return !c.Ready })
	open := !slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return !slices.ContainsFunc(s.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == g.ConditionType && c.Status == corev1.ConditionTrue
		})
	})
	set := func(kind corev1.PodConditionType, yes bool, reason string) {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now, ObservedGeneration: pod.Generation}
		if !yes {
			c.Status, c.Reason = corev1.ConditionFalse, reason
		}
		at := slices.IndexFunc(s.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
		if at < 0 {
			s.Conditions = append(s.Conditions, c)
			return
		}
		if s.Conditions[at].Status == c.Status {
			c.LastTransitionTime = s.Conditions[at].LastTransitionTime
		}
		s.Conditions[at] = c
	}
	set(corev1.PodInitialized, !held, "ContainersNotInitialized")
	set(corev1.ContainersReady, ready, reason)
	if ready && !open {
		reason = "ReadinessGatesNotReady"
	}
	set(corev1.PodReady, ready && open, reason)
}

// granted reports whether the gate of a StatefulSingleton would let the program start.
func granted(pod *corev1.Pod) bool {
	return strings.HasPrefix(pod.Annotations[singletonv1.AnnotationGrant], string(pod.UID)+" ")
}

// container is a container of a pod, with the previous statuses of all containers.
type container struct {
	pod *corev1.Pod
	*corev1.Container
	before []corev1.ContainerStatus
	now    metav1.Time
}

func (c container) status() corev1.ContainerStatus {
	for _, b := range c.before {
		if b.Name == c.Name {
			return b
		}
	}
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image}
}

func (c container) waits(why string) corev1.ContainerStatus {
	s := c.status()
	s.Image, s.Ready, s.State = c.Image, false, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: why}}
	if why != "PodInitializing" {
		s.State.Waiting.Message = fmt.Sprintf("Back-off pulling image %q", c.Image)
	}
	return s
}

// runs returns the status of a running container. If the image was changed in place, it is a new
// container.
func (c container) runs() corev1.ContainerStatus {
	s := c.status()
	if s.State.Running != nil && s.Image == c.Image {
		s.Ready = true
		return s
	}
	if s.ContainerID != "" {
		s.RestartCount++
	}
	s.Image, s.ImageID, s.Ready, s.Started = c.Image, c.Image, true, new(true)
	s.ContainerID = fmt.Sprintf("simulated://%s-%s-%d", c.pod.UID, c.Name, s.RestartCount)
	s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: c.now}}
	return s
}

func (c container) ended() corev1.ContainerStatus {
	s := c.status()
	if s.State.Terminated == nil {
		ended := &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: c.now, FinishedAt: c.now, ContainerID: s.ContainerID}
		if s.State.Running != nil {
			ended.StartedAt = s.State.Running.StartedAt
		}
		s.Ready, s.Started, s.State = false, new(false), corev1.ContainerState{Terminated: ended}
	}
	return s
}
