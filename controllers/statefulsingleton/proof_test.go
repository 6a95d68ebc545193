package statefulsingleton_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// Pod a runs and pod b waits. These tests check which observations prove that a has
// stopped.
var _ = Describe("the proof that a pod has stopped", func() {
	var ns string
	var op *operator
	var s *v1.StatefulSingleton
	var a, b *corev1.Pod
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		addNode(ctx, "of-"+ns)
		op = startOperator(operatorOptions{namespaces: []string{ns}})
		s = declare(ctx, newSingleton(ns))
		a = add(ctx, newPod(ns, "a", playing(playNode, "of-"+ns), func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "one", Command: []string{"help"}})
		}))
		activates(ctx, s, a)
		b = add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
	})
	waits := func(ctx SpecContext) {
		GinkgoHelper()
		look(ctx, s)
		Expect(granted(live(ctx, b))).To(BeFalse(), "the next pod starts without proof")
		Expect(s.Status.Holder.Name).To(Equal("a"))
		Expect(live(ctx, a).UID).To(Equal(a.UID))
	}

	It("is not a force deletion: the pod stays visible until the kubelet has stopped it", func(ctx SpecContext) {
		tell(ctx, a, playHang, "yes")
		remove(ctx, a, client.GracePeriodSeconds(0))
		waits(ctx)
		Expect(*live(ctx, a).DeletionGracePeriodSeconds).To(BeZero())
		tell(ctx, a, playHang, "")
		activates(ctx, s, b)
		gone(ctx, a)
	})

	It("is not a crash of a container, or repeated crashes", func(ctx SpecContext) {
		for restarts := int32(1); restarts <= 5; restarts++ {
			report(ctx, a, func(status *corev1.PodStatus) {
				for i := range status.ContainerStatuses {
					status.ContainerStatuses[i].State, status.ContainerStatuses[i].RestartCount = exited(a), restarts
				}
			})
		}
		waits(ctx)
		report(ctx, a, func(status *corev1.PodStatus) {
			status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		})
		waits(ctx)
		Expect(s.Status.Phase).To(Equal(v1.PhaseRunning), "the pod should run again")
	})

	It("is not another container that cannot start", func(ctx SpecContext) {
		report(ctx, a, func(status *corev1.PodStatus) {
			status.ContainerStatuses[1].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
		})
		waits(ctx)
	})

	It("is not phase Failed by pod garbage collection", func(ctx SpecContext) {
		report(ctx, a, func(status *corev1.PodStatus) {
			status.Phase = corev1.PodFailed
			status.Conditions = append(status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC"})
		})
		remove(ctx, a)
		waits(ctx)
		report(ctx, a, func(status *corev1.PodStatus) { status.InitContainerStatuses, status.ContainerStatuses = nil, nil })
		waits(ctx)
		theInvariant.off("of-" + ns) // no kubelet will ever end it
		taint(ctx, "of-"+ns)
		activates(ctx, s, b)
	})

	It("is not a terminal phase while a container runs", func(ctx SpecContext) {
		for _, phase := range []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded} {
			report(ctx, a, func(status *corev1.PodStatus) {
				status.Phase = phase
				status.ContainerStatuses[0].State = exited(a)
			})
			waits(ctx)
		}
		Expect(says(ctx, s, v1.ConditionProgressing, v1.ReasonWaitingForStop)).To(Equal("pod a may be running its program and was not asked to stop; waiting: b"))
		report(ctx, a, func(status *corev1.PodStatus) { status.ContainerStatuses[1].State = exited(a) })
		waits(ctx)
		report(ctx, a, spoken)
		activates(ctx, s, b)
	})

	It("is not an old deletion, and the condition lists the container that keeps running", func(ctx SpecContext) {
		tell(ctx, a, playHang, "yes")
		remove(ctx, a)
		op.forward(24 * time.Hour)
		report(ctx, a, func(status *corev1.PodStatus) { status.ContainerStatuses[0].State = exited(a) })
		waits(ctx)
		Expect(says(ctx, s, v1.ConditionProgressing, v1.ReasonWaitingForStop)).To(Equal("pod a is being deleted; still running: container side; waiting: b"))
		tell(ctx, a, playOff, "")
		tell(ctx, a, playHang, "")
		activates(ctx, s, b)
	})

	It("is not an unreachable Node", func(ctx SpecContext) {
		tell(ctx, a, playHang, "yes")
		setNodeReady(ctx, "of-"+ns, corev1.ConditionUnknown)
		remove(ctx, a)
		op.forward(time.Hour)
		Expect(says(ctx, s, v1.ConditionDegraded, v1.ReasonNodeLost)).To(Equal("pod a may be running its program on Node of-" + ns + ", which is unreachable, and no other pod starts until this one has stopped. If the machine is off, taint the Node: kubectl taint nodes of-" + ns + " node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"))
		waits(ctx)
		theInvariant.off("of-" + ns)
		taint(ctx, "of-"+ns)
		activates(ctx, s, b)
		Expect(says(ctx, s, v1.ConditionDegraded, v1.ReasonHealthy)).To(Equal("no problems detected"))
	})

	It("is a Node that has been missing for a minute", func(ctx SpecContext) {
		tell(ctx, a, playHang, "yes")
		Expect(user.Delete(ctx, &corev1.Node{ObjectMeta: named("of-" + ns)})).To(Succeed())
		remove(ctx, a)
		waits(ctx)
		op.forward(30 * time.Second)
		waits(ctx)
		addNode(ctx, "of-"+ns) // it was deleted by mistake, and its kubelet registers it again
		waits(ctx)
		op.forward(59 * time.Second)
		Expect(user.Delete(ctx, &corev1.Node{ObjectMeta: named("of-" + ns)})).To(Succeed())
		waits(ctx)
		op.forward(30 * time.Second)
		waits(ctx)
		theInvariant.off("of-" + ns)
		op.forward(31 * time.Second)
		edit(ctx, s, func(s *v1.StatefulSingleton) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, "wake", "up") })
		activates(ctx, s, b)
		Expect(live(ctx, a).Finalizers).To(BeEmpty()) // pod garbage collection deletes it
	})

	It("is the end of all its containers", func(ctx SpecContext) {
		tell(ctx, a, playEnd, "yes")
		activates(ctx, s, b)
		Expect(live(ctx, a).Finalizers).To(BeEmpty())
		Expect(meta.IsStatusConditionFalse(s.Status.Conditions, v1.ConditionProgressing)).To(BeTrue())
	})

	It("is not the loss of the holder's labels", func(ctx SpecContext) {
		stripped := live(ctx, a)
		stripped.Labels = nil
		Expect(user.Status().Update(ctx, stripped)).To(Succeed())
		Expect(live(ctx, a).Labels).To(BeEmpty())
		waits(ctx)
		remove(ctx, a)
		activates(ctx, s, b)
	})

	It("is required again for a new pod with the same name", func(ctx SpecContext) {
		tell(ctx, a, playHang, "yes")
		remove(ctx, a)
		waits(ctx)
		tell(ctx, a, playHang, "")
		gone(ctx, a)
		again := add(ctx, newPod(ns, "a"))
		activates(ctx, s, b, "a")
		Expect(granted(live(ctx, again))).To(BeFalse())
	})
})

var _ = Describe("S23 a machine that an administrator has declared off", func() {
	It("starts no program when it is switched on again", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		addNode(ctx, "of-"+ns)
		startOperator(operatorOptions{namespaces: []string{ns}})
		s := declare(ctx, newSingleton(ns))
		a := add(ctx, newPod(ns, "a", playing(playNode, "of-"+ns)))
		activates(ctx, s, a)
		b := add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
		tell(ctx, a, playOff, "yes")
		theInvariant.off("of-" + ns)
		taint(ctx, "of-"+ns)
		activates(ctx, s, b)
		Expect(live(ctx, a).DeletionTimestamp).NotTo(BeNil(), "it would start again while the other program runs")
		theInvariant.on("of-" + ns)
		edit(ctx, &corev1.Node{ObjectMeta: named("of-" + ns)}, func(n *corev1.Node) { n.Spec.Taints = nil })
		setNodeReady(ctx, "of-"+ns, corev1.ConditionTrue)
		tell(ctx, a, playOff, "")
		gone(ctx, a)
		activates(ctx, s, b)
	})

	It("has its pods without a gate deleted, because they would start again", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		addNode(ctx, "of-"+ns)
		old := add(ctx, newPod(ns, "old", playing(playNode, "of-"+ns)))
		startOperator(operatorOptions{namespaces: []string{ns}})
		s := declare(ctx, newSingleton(ns))
		b := add(ctx, newPod(ns, "b"))
		says(ctx, s, v1.ConditionUnmanagedPod, v1.ReasonPodWithoutGate)
		tell(ctx, old, playHang, "yes")
		theInvariant.off("of-" + ns)
		taint(ctx, "of-"+ns)
		activates(ctx, s, b)
		Expect(live(ctx, old).DeletionTimestamp).NotTo(BeNil())
	})
})

// taint declares an unreachable machine to be off.
func taint(ctx SpecContext, name string) {
	GinkgoHelper()
	setNodeReady(ctx, name, corev1.ConditionUnknown)
	n := &corev1.Node{ObjectMeta: named(name)}
	edit(ctx, n, func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	})
}
