package statefulsingleton_test

import (
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

var _ = Describe("a StatefulSingleton", func() {
	var ns string
	var op *operator
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		op = startOperator(operatorOptions{namespaces: []string{ns}})
	})

	It("S27 reports that there are no pods", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		Expect(says(ctx, s, v1.ConditionAvailable, v1.ReasonNoPods)).To(Equal("no pod matches the selector"))
		Expect(s.Status.Phase).To(Equal(v1.PhaseRunning))
		Expect(s.Status.Message).To(Equal("No pods found"))
		Expect(s.Status.ActivePod).To(BeEmpty())
	})

	for _, m := range []v1.GateMode{v1.GateBinary, v1.GateInit, v1.GateScript} {
		It("S7 starts the first pod in mode "+string(m), func(ctx SpecContext) {
			s := declare(ctx, newSingleton(ns, mode(m)))
			p := add(ctx, newPod(ns, "a"))
			activates(ctx, s, p)
			Expect(s.Status.Holder.Epoch).To(BeEquivalentTo(1))
			Expect(s.Status.Holder.Node).To(Equal("node-1"))
			Expect(s.Status.Message).To(Equal("pod a is running"))
			Eventually(func() []string { return notes(ctx, s, v1.EventPodStarted) }).Should(Equal([]string{"Normal: pod a may run its program"}))
		})
	}

	It("S8 hands over only after the previous pod has stopped", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		a := add(ctx, newPod(ns, "a", playing(playHang, "yes")))
		activates(ctx, s, a)
		b := add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
		Expect(readiness(live(ctx, b))).NotTo(Equal(corev1.ConditionTrue))
		remove(ctx, a)
		Expect(says(ctx, s, v1.ConditionProgressing, v1.ReasonWaitingForStop)).To(Equal("pod a is being deleted; still running: container app; waiting: b"))
		status := look(ctx, s)
		Expect(status.Phase).To(Equal(v1.PhaseTransitioning))
		Expect(status.TransitionTimestamp).NotTo(BeNil())
		Expect(granted(live(ctx, b))).To(BeFalse())
		tell(ctx, a, playHang, "")
		activates(ctx, s, b)
		gone(ctx, a)
		Expect(s.Status.Holder.Epoch).To(BeEquivalentTo(2))
		Expect(s.Status.LastTransitionSeconds).NotTo(BeNil())
		Eventually(func() []string { return notes(ctx, s, v1.EventPodTransition) }).Should(Equal([]string{"Normal: pod b may run its program, and no other pod may"}))
	})

	It("S15 runs one of several pods, and starts the oldest standby next", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		a := add(ctx, newPod(ns, "a"))
		activates(ctx, s, a)
		b, c := add(ctx, newPod(ns, "b")), add(ctx, newPod(ns, "c"))
		activates(ctx, s, a, "b", "c")
		for _, p := range []*corev1.Pod{b, c} {
			Expect(granted(live(ctx, p))).To(BeFalse())
		}
		remove(ctx, c) // a waiting pod makes no difference
		gone(ctx, c)
		activates(ctx, s, a, "b")
		d := add(ctx, newPod(ns, "d"))
		activates(ctx, s, a, "b", "d")
		remove(ctx, a)
		activates(ctx, s, b, "d")
		remove(ctx, b)
		activates(ctx, s, d)
	})

	It("S17 does not start an orphan, or a pod with the grant of another pod, while the active pod runs", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		a := add(ctx, newPod(ns, "a"))
		activates(ctx, s, a)
		copied := live(ctx, a).Annotations[v1.AnnotationGrant]
		orphan := add(ctx, newPod(ns, "orphan", playing(v1.AnnotationGrant, copied)))
		status := look(ctx, s)
		Expect(status.ActivePod).To(Equal("a"))
		Expect(granted(live(ctx, orphan))).To(BeFalse())
		activates(ctx, s, a, "orphan")
		remove(ctx, a)
		activates(ctx, s, orphan)
	})

	It("S13 reports a late handover once, and completes it when possible", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns, func(s *v1.StatefulSingleton) { s.Spec.MaxTransitionTime = ptr.To[int32](60) }))
		a := add(ctx, newPod(ns, "a", playing(playHang, "yes")))
		activates(ctx, s, a)
		b := add(ctx, newPod(ns, "b"))
		remove(ctx, a)
		says(ctx, s, v1.ConditionProgressing, v1.ReasonWaitingForStop)
		op.forward(30 * time.Second)
		Expect(look(ctx, s).Phase).To(Equal(v1.PhaseTransitioning))
		op.forward(31 * time.Second)
		for range 3 {
			Expect(look(ctx, s).Phase).To(Equal(v1.PhaseFailed))
		}
		const text = "the handover takes longer than maxTransitionTime (60 s): pod a is being deleted; still running: container app; waiting: b"
		Expect(says(ctx, s, v1.ConditionDegraded, v1.ReasonTimeout)).To(Equal(text + "; it continues as soon as this changes"))
		Eventually(func() []string { return notes(ctx, s, v1.EventTransitionTimeout) }).Should(Equal([]string{"Warning: " + text}))
		Expect(granted(live(ctx, b))).To(BeFalse())
		tell(ctx, a, playHang, "")
		activates(ctx, s, b)
		says(ctx, s, v1.ConditionDegraded, v1.ReasonHealthy)
		Expect(notes(ctx, s, v1.EventTransitionTimeout)).To(HaveLen(1))
	})

	deletesOld := func(s *v1.StatefulSingleton) {
		s.Spec.OnTimeout, s.Spec.MaxTransitionTime = v1.TimeoutDeletesOld, ptr.To[int32](60)
	}

	It("S13 with onTimeout DeleteOld, deletes the old pod after maxTransitionTime, without force", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns, deletesOld))
		a := add(ctx, newPod(ns, "a", playing(playMount, "yes"), playing(playHang, "yes"))) // it cannot start its program
		Eventually(func() string { return look(ctx, s).ActivePod }).Should(Equal("a"))
		b := add(ctx, newPod(ns, "b"))
		says(ctx, s, v1.ConditionProgressing, v1.ReasonWaitingForStop)
		op.forward(30 * time.Second)
		Expect(look(ctx, s).Phase).To(Equal(v1.PhaseTransitioning))
		Expect(live(ctx, a).DeletionTimestamp).To(BeNil())
		op.forward(31 * time.Second)
		Expect(look(ctx, s).Phase).To(Equal(v1.PhaseFailed))
		Expect(live(ctx, a).DeletionTimestamp).NotTo(BeNil())
		Expect(*live(ctx, a).DeletionGracePeriodSeconds).To(BeEquivalentTo(30))
		Expect(granted(live(ctx, b))).To(BeFalse())
		Eventually(func() []string { return notes(ctx, s, v1.EventPodDeleted) }).Should(Equal([]string{"Normal: pod a: the handover takes longer than maxTransitionTime"}))
		Eventually(func() []string { return notes(ctx, s, v1.EventTransitionTimeout) }).Should(HaveLen(1))
		tell(ctx, a, playHang, "")
		activates(ctx, s, b)
	})

	It("deletes no pod that is older than the object, even with onTimeout DeleteOld", func(ctx SpecContext) {
		a := add(ctx, newPod(ns, "a"))
		s := declare(ctx, newSingleton(ns, deletesOld))
		b := add(ctx, newPod(ns, "b"))
		says(ctx, s, v1.ConditionProgressing, v1.ReasonWaitingForStop)
		op.forward(61 * time.Second)
		Expect(says(ctx, s, v1.ConditionUnmanagedPod, v1.ReasonPodWithoutGate)).To(ContainSubstring("To continue: kubectl -n " + ns + " delete pod a"))
		Expect(look(ctx, s).Phase).To(Equal(v1.PhaseFailed))
		Consistently(func() bool { return live(ctx, a).DeletionTimestamp == nil && !granted(live(ctx, b)) }, time.Second).Should(BeTrue())
		Expect(notes(ctx, s, v1.EventPodDeleted)).To(BeEmpty())
		remove(ctx, a)
		activates(ctx, s, b)
	})

	It("holds back a pod that lacks a container of the program, and reports it", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns, func(s *v1.StatefulSingleton) { s.Spec.Containers = []string{"no-such"} }))
		a := add(ctx, newPod(ns, "a"))
		Expect(a.Spec.InitContainers).To(ContainElement(HaveField("Name", v1.ContainerWait)))
		activates(ctx, s, a)
		Expect(says(ctx, s, v1.ConditionDegraded, v1.ReasonContainersMissing)).To(Equal(
			"pod a has no container no-such, which spec.containers lists as part of the program, and waits as a whole, as in gate mode Init; correct spec.containers or the template of the pod"))
		b := add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
		remove(ctx, a)
		activates(ctx, s, b)
	})

	It("S24 repairs a wrong readiness condition", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		a := add(ctx, newPod(ns, "a"))
		activates(ctx, s, a)
		b := add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
		for p, is := range map[*corev1.Pod]corev1.ConditionStatus{a: corev1.ConditionFalse, b: corev1.ConditionTrue} {
			p = live(ctx, p)
			changed := p.DeepCopy()
			changed.Status.Conditions = []corev1.PodCondition{{Type: v1.ReadinessGate, Status: is}}
			Expect(user.Status().Patch(ctx, changed, client.StrategicMergeFrom(p))).To(Succeed())
		}
		Eventually(func() corev1.ConditionStatus { return readiness(live(ctx, a)) }).Should(Equal(corev1.ConditionTrue))
		Eventually(func() corev1.ConditionStatus { return readiness(live(ctx, b)) }).Should(Equal(corev1.ConditionFalse))
		activates(ctx, s, a, "b")
	})

	It("writes nothing at rest", func(ctx SpecContext) {
		op.stop()
		var writes atomic.Int32
		startOperator(operatorOptions{namespaces: []string{ns}, rest: func(c *rest.Config) {
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return tripper(func(r *http.Request) (*http.Response, error) {
					if r.Method != http.MethodGet {
						writes.Add(1)
					}
					return next.RoundTrip(r)
				})
			})
		}})
		s := declare(ctx, newSingleton(ns))
		a := add(ctx, newPod(ns, "a"))
		activates(ctx, s, a)
		add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
		Eventually(func() []string { return notes(ctx, s, v1.EventPodStarted) }).Should(HaveLen(1)) // events are written asynchronously
		Eventually(func() string { return live(ctx, a).Annotations[v1.AnnotationReminder] }).ShouldNot(BeEmpty(), "the kubelet should get one reminder, 2 s after the grant")
		look(ctx, s)
		before := writes.Load()
		tell(ctx, a, "wake", "up")
		Consistently(writes.Load, 500*time.Millisecond).Should(Equal(before))
	})
})
