package escalation

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startKubelets simulates the scheduler and kubelets: pods are bound to a Node, become Ready, and are removed
// after their deletion.
func (s site) startKubelets(t *testing.T) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	NewWithT(t).Expect(s.admin.Create(t.Context(), node)).To(Succeed())
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}}
	NewWithT(t).Expect(s.admin.Status().Update(t.Context(), node)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			var pods corev1.PodList
			if s.admin.List(ctx, &pods) == nil {
				for i := range pods.Items {
					s.play(ctx, &pods.Items[i], node.Name)
				}
			}
			time.Sleep(50 * time.Millisecond) // the poll interval; no assertion depends on it
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// play does the next step of a pod: removal, binding or start. The next call retries a failed step.
func (s site) play(ctx context.Context, pod *corev1.Pod, node string) {
	switch {
	case pod.DeletionTimestamp != nil:
		_ = s.admin.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	case pod.Spec.NodeName == "":
		_ = s.admin.SubResource("binding").Create(ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}})
	case pod.Status.Phase != corev1.PodRunning:
		running := pod.DeepCopy()
		running.Status.Phase, running.Status.PodIP = corev1.PodRunning, "192.0.2.1"
		for _, of := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
			running.Status.Conditions = append(running.Status.Conditions, corev1.PodCondition{Type: of, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
		}
		running.Status.InitContainerStatuses = statuses(pod.Spec.InitContainers, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
		running.Status.ContainerStatuses = statuses(pod.Spec.Containers, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
		_ = s.admin.Status().Patch(ctx, running, client.MergeFrom(pod))
	}
}

// statuses returns the statuses of containers in the given state.
func statuses(of []corev1.Container, state corev1.ContainerState) (all []corev1.ContainerStatus) {
	for i := range of {
		all = append(all, corev1.ContainerStatus{Name: of[i].Name, Image: of[i].Image, ImageID: of[i].Image, ContainerID: "played://" + of[i].Name,
			Ready: state.Running != nil, Started: ptr.To(state.Running != nil), State: state})
	}
	return all
}
