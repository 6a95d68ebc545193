package statefulcluster_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotations of the template control what the fake control plane does with a pod.
const (
	playNode    = "fake/node"    // the node to bind to; node-1 by default, or while it is cordoned
	playPending = "fake/pending" // never scheduled
	playUnready = "fake/unready" // runs and is never Ready
	playHang    = "fake/hang"    // a deleted pod stays, as on a lost node
)

func addNode(ctx context.Context, name string) {
	GinkgoHelper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(client.IgnoreAlreadyExists(user.Create(ctx, n))).To(Succeed())
	setNodeReady(ctx, name, corev1.ConditionTrue)
}

func setNodeReady(ctx context.Context, name string, status corev1.ConditionStatus) {
	GinkgoHelper()
	var n corev1.Node
	Expect(user.Get(ctx, client.ObjectKey{Name: name}, &n)).To(Succeed())
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100"), corev1.ResourceMemory: resource.MustParse("100Gi")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.Now()}}
	Expect(user.Status().Update(ctx, &n)).To(Succeed())
}

// startFakeControlPlane simulates scheduler and kubelet for a namespace until the test ends.
func startFakeControlPlane(namespace string) {
	GinkgoHelper()
	server.Play(namespace, func(ctx context.Context) error { return play(ctx, namespace) }, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{})
}

// play processes every pod once. Errors of writes are ignored until the next call, because pods may be
// deleted at any time.
func play(ctx context.Context, namespace string) error {
	var pods corev1.PodList
	if err := user.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		switch {
		case p.DeletionTimestamp != nil:
			if p.Annotations[playHang] == "" {
				_ = user.Delete(ctx, p, client.GracePeriodSeconds(0), client.Preconditions{UID: &p.UID})
			}
		case p.Spec.NodeName == "":
			schedule(ctx, p)
		case p.Status.Phase == corev1.PodPending || imageChanged(p):
			run(ctx, p)
		case p.Status.ObservedGeneration < p.Generation:
			p.Status.ObservedGeneration = p.Generation
			_ = user.Status().Update(ctx, p)
		}
	}
	return nil
}

func schedule(ctx context.Context, p *corev1.Pod) {
	if p.Annotations[playPending] != "" {
		if len(p.Status.Conditions) == 0 {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.Now()}}
			_ = user.Status().Update(ctx, p)
		}
		return
	}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			var c corev1.PersistentVolumeClaim
			if user.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: v.PersistentVolumeClaim.ClaimName}, &c) != nil {
				return // like the scheduler, wait for the claim
			}
		}
	}
	node := p.Annotations[playNode]
	var n corev1.Node
	if node == "" || user.Get(ctx, client.ObjectKey{Name: node}, &n) != nil || n.Spec.Unschedulable {
		node = "node-1"
	}
	_ = user.SubResource("binding").Create(ctx, p, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: p.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: node}})
}

func imageChanged(p *corev1.Pod) bool {
	for _, s := range p.Status.ContainerStatuses {
		for _, c := range p.Spec.Containers {
			if s.Name == c.Name && s.Image != c.Image {
				return true
			}
		}
	}
	return false
}

func run(ctx context.Context, p *corev1.Pod) {
	ready, now := corev1.ConditionTrue, metav1.Now()
	restarts := int32(0)
	if len(p.Status.ContainerStatuses) > 0 {
		restarts = p.Status.ContainerStatuses[0].RestartCount + 1
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	for _, c := range p.Spec.Containers {
		if c.Image == "bad" {
			ready = corev1.ConditionFalse
			running = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
		}
	}
	if p.Annotations[playUnready] != "" {
		ready = corev1.ConditionFalse
	}
	if p.Status.StartTime == nil {
		p.Status.StartTime = &now
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.ObservedGeneration = p.Generation
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.PodReady, Status: ready, LastTransitionTime: now},
	}
	p.Status.ContainerStatuses = nil
	for _, c := range p.Spec.Containers {
		s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, RestartCount: restarts, State: running, Ready: ready == corev1.ConditionTrue}
		if running.Running != nil {
			s.ImageID, s.ContainerID = "id-of-"+c.Image, "fake://"+string(p.UID)
			s.Resources = c.Resources.DeepCopy() // reported by kubelets that support in-place resize
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, s)
	}
	_ = user.Status().Update(ctx, p)
}

// crash sets the number of container restarts in the status of a pod.
func crash(ctx context.Context, p *corev1.Pod, times int32) {
	GinkgoHelper()
	Eventually(func() error {
		if err := user.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		for i := range p.Status.ContainerStatuses {
			p.Status.ContainerStatuses[i].RestartCount = times
		}
		return user.Status().Update(ctx, p)
	}).Should(Succeed())
}

// setReady changes a running pod's Ready condition, with a transition time that long ago.
func setReady(ctx context.Context, p *corev1.Pod, ready corev1.ConditionStatus, ago time.Duration) {
	GinkgoHelper()
	Eventually(func() error {
		if err := user.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		for i := range p.Status.Conditions {
			if p.Status.Conditions[i].Type == corev1.PodReady {
				p.Status.Conditions[i].Status = ready
				p.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-ago))
			}
		}
		start := metav1.NewTime(time.Now().Add(-ago - time.Hour))
		p.Status.StartTime = &start
		return user.Status().Update(ctx, p)
	}).Should(Succeed())
}
