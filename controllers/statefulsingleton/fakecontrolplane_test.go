package statefulsingleton_test

import (
	"context"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// Annotations on a pod that control the fake control plane.
const (
	playNode    = "fake/node"    // the node to bind to; default node-1
	playPending = "fake/pending" // never scheduled
	playMount   = "fake/mount"   // its volumes cannot be mounted
	playHang    = "fake/hang"    // its program ignores the request to stop
	playEnd     = "fake/end"     // its program exits on its own
	playOff     = "fake/off"     // the fake control plane ignores it
)

func addNode(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(user.Create(ctx, &corev1.Node{ObjectMeta: named(name)})).To(Succeed())
	setNodeReady(ctx, name, corev1.ConditionTrue)
}

func setNodeReady(ctx context.Context, name string, status corev1.ConditionStatus) {
	GinkgoHelper()
	var n corev1.Node
	Expect(user.Get(ctx, client.ObjectKey{Name: name}, &n)).To(Succeed())
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.Now()}}
	Expect(user.Status().Update(ctx, &n)).To(Succeed())
}

// startFakeControlPlane simulates the scheduler and the kubelets for all pods until the
// suite ends. It processes each change of each pod after the invariant.
func startFakeControlPlane() {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	changes, err := user.Watch(ctx, &corev1.PodList{})
	Expect(err).NotTo(HaveOccurred())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for change := range changes.ResultChan() {
			p, ok := change.Object.(*corev1.Pod)
			if !ok {
				break
			}
			theInvariant.see(change.Type, p)
			if change.Type != watch.Deleted {
				play(ctx, p.DeepCopy())
			}
		}
		if ctx.Err() == nil {
			theInvariant.blind() // a test that saw nothing proves nothing
		}
	}()
	DeferCleanup(func() { cancel(); changes.Stop(); <-done })
}

// play performs the next step for a pod. If that fails because the pod has changed
// meanwhile, it is retried at that change.
func play(ctx context.Context, p *corev1.Pod) {
	var err error
	switch {
	case p.Annotations[playOff] != "":
	case p.DeletionTimestamp != nil && p.Annotations[playHang] != "":
	case p.DeletionTimestamp != nil && over(p):
		if *p.DeletionGracePeriodSeconds > 0 {
			err = user.Delete(ctx, p, client.GracePeriodSeconds(0), client.Preconditions{UID: &p.UID})
		}
	case p.Spec.NodeName == "":
		if p.DeletionTimestamp == nil && p.Annotations[playPending] == "" {
			err = schedule(ctx, p)
		}
	case over(p):
	case (p.DeletionTimestamp != nil || p.Annotations[playEnd] != "") && runs(p):
		shutDown(ctx, p)
	case p.DeletionTimestamp != nil || p.Annotations[playEnd] != "":
		err = show(ctx, p, stopped(p)) // its gate exits at once
	default:
		err = show(ctx, p, alive(p))
	}
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) && ctx.Err() == nil {
		GinkgoLogr.Error(err, "the fake control plane", "pod", p.Name)
	}
}

// shutdown is how long programs take to stop. It is longer than an operator needs to see
// that they were asked to stop.
const shutdown = 100 * time.Millisecond

// ending are the pods that were asked to stop.
var ending sync.Map

// shutDown reports a pod as stopped when its program has had time to stop.
func shutDown(ctx context.Context, p *corev1.Pod) {
	if _, already := ending.LoadOrStore(p.UID, true); already {
		return
	}
	time.AfterFunc(shutdown, func() {
		ending.Delete(p.UID)
		for user.Get(ctx, client.ObjectKeyFromObject(p), p) == nil && p.Annotations[playHang] == "" && p.Annotations[playOff] == "" {
			if !apierrors.IsConflict(show(ctx, p, stopped(p))) {
				return
			}
		}
	})
}

func schedule(ctx context.Context, p *corev1.Pod) error {
	node := p.Annotations[playNode]
	if node == "" {
		node = "node-1"
	}
	return user.SubResource("binding").Create(ctx, p, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: p.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: node}})
}

func show(ctx context.Context, p *corev1.Pod, status *corev1.PodStatus) error {
	if apiequality.Semantic.DeepEqual(&p.Status, status) {
		return nil
	}
	p.Status = *status
	return user.Status().Update(ctx, p)
}

// granted reports whether the gate in the pod would let the program start.
func granted(p *corev1.Pod) bool {
	text := p.Annotations[v1.AnnotationGrant]
	return len(text) > len(p.UID)+1 && text[:len(p.UID)+1] == string(p.UID)+" "
}

// gated reports whether the pod has the operator's gate.
func gated(p *corev1.Pod) bool { return p.Annotations[v1.AnnotationManaged] != "" }

// alive returns the status of a pod whose program runs or whose gate waits.
func alive(p *corev1.Pod) *corev1.PodStatus {
	status := p.Status.DeepCopy()
	status.Phase = corev1.PodRunning
	status.StartTime = &p.CreationTimestamp
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
	waits := p.Annotations[playMount] != ""
	if waits {
		status.Phase = corev1.PodPending
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		state := exited(p)
		switch {
		case waits:
			state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
		case c.Name == v1.ContainerWait && !granted(p):
			state, waits = running(p), true
			status.Phase = corev1.PodPending
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, statusOf(p, c, state))
	}
	ready := corev1.ConditionTrue
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		state := running(p)
		switch {
		case c.Image == "bad":
			state, ready = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}, corev1.ConditionFalse
		case waits:
			state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, statusOf(p, c, state))
	}
	if waits || gated(p) && !granted(p) || !gatesOpen(p) {
		ready = corev1.ConditionFalse
	}
	setCondition(p, status, corev1.PodScheduled, corev1.ConditionTrue)
	setCondition(p, status, corev1.PodReady, ready)
	return status
}

// stopped returns the status of a pod whose containers have all ended.
func stopped(p *corev1.Pod) *corev1.PodStatus {
	status := p.Status.DeepCopy()
	status.Phase = corev1.PodSucceeded
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
	for i := range p.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, statusOf(p, &p.Spec.InitContainers[i], exited(p)))
	}
	for i := range p.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, statusOf(p, &p.Spec.Containers[i], exited(p)))
	}
	setCondition(p, status, corev1.PodReady, corev1.ConditionFalse)
	spoken(status)
	return status
}

// spoken adds the condition that marks the phase as set by the kubelet.
func spoken(status *corev1.PodStatus) {
	status.Conditions = append(slices.DeleteFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.ContainersReady }),
		corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodCompleted"})
}

// over reports whether the kubelet has reported that no container of the pod runs any more.
func over(p *corev1.Pod) bool {
	if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		return false
	}
	all := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	return len(all) > 0 && !slices.ContainsFunc(all, func(s corev1.ContainerStatus) bool { return s.State.Terminated == nil })
}

func running(p *corev1.Pod) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: p.CreationTimestamp}}
}

func exited(p *corev1.Pod) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: p.CreationTimestamp, FinishedAt: p.CreationTimestamp}}
}

func statusOf(p *corev1.Pod, c *corev1.Container, state corev1.ContainerState) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state, Ready: state.Running != nil}
	if state.Waiting == nil {
		s.ImageID, s.ContainerID = "id-of-"+c.Image, "fake://"+string(p.UID)+"/"+c.Name
	}
	return s
}

func gatesOpen(p *corev1.Pod) bool {
	return !slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == g.ConditionType && c.Status == corev1.ConditionTrue
		})
	})
}

func setCondition(p *corev1.Pod, status *corev1.PodStatus, kind corev1.PodConditionType, is corev1.ConditionStatus) {
	c := corev1.PodCondition{Type: kind, Status: is, LastTransitionTime: p.CreationTimestamp}
	if i := slices.IndexFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind }); i >= 0 {
		status.Conditions[i] = c
		return
	}
	status.Conditions = append(status.Conditions, c)
}
