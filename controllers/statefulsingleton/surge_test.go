package statefulsingleton_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

var _ = Describe("a rollout", func() {
	var ns string
	var op *operator
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		op = startOperator(operatorOptions{namespaces: []string{ns}})
	})

	for _, m := range []v1.GateMode{v1.GateBinary, v1.GateInit} {
		It("S8 with surge deletes the old pod only after the new one has reached its gate, in mode "+string(m), func(ctx SpecContext) {
			s := declare(ctx, newSingleton(ns, mode(m)))
			d := newDeployment(ns, 1)
			Expect(user.Create(ctx, d)).To(Succeed())
			one := revision(ctx, d, "9")
			a := add(ctx, newPod(ns, "a", madeBy(one), playing(playHang, "yes")))
			activates(ctx, s, a)
			two := revision(ctx, d, "10")
			b := add(ctx, newPod(ns, "b", madeBy(two), playing(playPending, "yes")))
			look(ctx, s)
			Expect(live(ctx, a).DeletionTimestamp).To(BeNil(), "the new pod has not reached its gate")
			tell(ctx, b, playPending, "")
			Eventually(func() *metav1.Time { return live(ctx, a).DeletionTimestamp }).ShouldNot(BeNil())
			Eventually(func() []string { return notes(ctx, s, v1.EventPodDeleted) }).Should(Equal([]string{"Normal: pod a: a pod of the newest revision waits for it"}))
			look(ctx, s)
			Expect(granted(live(ctx, b))).To(BeFalse())
			c := add(ctx, newPod(ns, "c", madeBy(one))) // the old ReplicaSet creates another pod
			tell(ctx, a, playHang, "")
			activates(ctx, s, b, "c")
			Expect(granted(live(ctx, c))).To(BeFalse())
			remove(ctx, c) // the Deployment scales down
			activates(ctx, s, b)
			Expect(live(ctx, b).DeletionTimestamp).To(BeNil())
		})
	}

	It("W15 of an unknown owner is reported, and completed by onTimeout DeleteOld", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		owner := metav1.OwnerReference{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: "web", UID: "uid-of-web", Controller: ptr.To(true)}
		set := func(name string) *appsv1.ReplicaSet {
			d := newDeployment(ns, 1)
			labels := map[string]string{"app": "db", "rollouts-pod-template-hash": name}
			made := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns, OwnerReferences: []metav1.OwnerReference{owner}},
				Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: d.Spec.Template.Spec}}}
			Expect(user.Create(ctx, made)).To(Succeed())
			return made
		}
		one := set("one")
		a := add(ctx, newPod(ns, "a", madeBy(one)))
		activates(ctx, s, a)
		var two *appsv1.ReplicaSet
		Eventually(func() bool { // its creation time has a resolution of one second
			Expect(client.IgnoreNotFound(user.Delete(ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "two"}}))).To(Succeed())
			two = set("two")
			return one.CreationTimestamp.Before(&two.CreationTimestamp)
		}).Should(BeTrue())
		b := add(ctx, newPod(ns, "b", madeBy(two)))
		activates(ctx, s, a, "b")
		op.forward(61 * time.Second)
		look(ctx, s)
		Expect(says(ctx, s, v1.ConditionRolloutHeld, v1.ReasonOwnerUnknown)).To(Equal("pod b waits at its gate for pod a to stop, and the operator cannot determine whether it is a replacement or a standby: " +
			"it is owned by Rollout web, and the operator does not support this kind of owner. To hand over: kubectl -n " + ns + " delete pod a. If it is a standby, no action is needed"))
		Expect(live(ctx, a).DeletionTimestamp).To(BeNil())
		edit(ctx, s, func(s *v1.StatefulSingleton) {
			s.Spec.OnTimeout, s.Spec.MaxTransitionTime = v1.TimeoutDeletesOld, ptr.To[int32](60)
		})
		says(ctx, s, v1.ConditionProgressing, v1.ReasonWaitingForStop)
		Expect(live(ctx, a).DeletionTimestamp).To(BeNil())
		op.forward(61 * time.Second)
		gone(ctx, a)
		activates(ctx, s, b)
		add(ctx, newPod(ns, "c", madeBy(one))) // the old ReplicaSet recreates it
		activates(ctx, s, b, "c")
		op.forward(61 * time.Second)
		activates(ctx, s, b, "c")
		Expect(look(ctx, s).Replaced).To(HaveExactElements(HaveField("Name", "a")))
		Expect(says(ctx, s, v1.ConditionRolloutHeld, v1.ReasonOwnersCompete)).To(MatchRegexp("^pod c of Rollout web waits at its gate for pod b of Rollout web to stop, and spec.onTimeout deletes no pod for it: " +
			"the operator deleted pod a of the same owner and revision for pod b at .*, and the owner recreated it, so both are wanted at the same time"))
	})

	It("S8 whose image cannot be pulled does not delete the old pod", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		d := newDeployment(ns, 1)
		Expect(user.Create(ctx, d)).To(Succeed())
		a := add(ctx, newPod(ns, "a", madeBy(revision(ctx, d, "1"))))
		activates(ctx, s, a)
		add(ctx, newPod(ns, "b", madeBy(revision(ctx, d, "2")), func(p *corev1.Pod) { p.Spec.Containers[0].Image = "bad" }))
		Eventually(func() []string { return look(ctx, s).Waiting }).Should(Equal([]string{"b"}))
		Expect(live(ctx, a).DeletionTimestamp).To(BeNil())
	})

	DescribeTable("S22 deletes the old pod if its volume blocks the new one", func(ctx SpecContext, access corev1.PersistentVolumeAccessMode, hindrance func(*corev1.Pod), deletes bool) {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: ns}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{access},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
		Expect(user.Create(ctx, claim)).To(Succeed())
		mounting := func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		}
		s := declare(ctx, newSingleton(ns))
		d := newDeployment(ns, 1)
		Expect(user.Create(ctx, d)).To(Succeed())
		a := add(ctx, newPod(ns, "a", madeBy(revision(ctx, d, "1")), mounting))
		activates(ctx, s, a)
		b := add(ctx, newPod(ns, "b", madeBy(revision(ctx, d, "2")), mounting, hindrance))
		if !deletes {
			Eventually(func() []string { return look(ctx, s).Waiting }).Should(Equal([]string{"b"}))
			look(ctx, s)
			Expect(live(ctx, a).DeletionTimestamp).To(BeNil())
			return
		}
		gone(ctx, a)
		for _, what := range []string{playPending, playMount} {
			tell(ctx, b, what, "")
		}
		activates(ctx, s, b)
	},
		Entry("ReadWriteOnce, and the new pod is on another node", corev1.ReadWriteOnce, func(p *corev1.Pod) { p.Annotations[playNode], p.Annotations[playMount] = "node-2", "yes" }, true),
		Entry("ReadWriteOncePod, and the new pod is unschedulable", corev1.ReadWriteOncePod, playing(playPending, "yes"), true),
		Entry("ReadWriteOnce, and the new pod is on the same node: not deleted", corev1.ReadWriteOnce, playing(playMount, "yes"), false),
		Entry("ReadWriteMany, and the new pod is unschedulable: not deleted", corev1.ReadWriteMany, playing(playPending, "yes"), false),
	)

	It("S11 with strategy Recreate is left to the Deployment", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		d := newDeployment(ns, 1, func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType })
		Expect(user.Create(ctx, d)).To(Succeed())
		a := add(ctx, newPod(ns, "a", madeBy(revision(ctx, d, "1"))))
		activates(ctx, s, a)
		b := add(ctx, newPod(ns, "b", madeBy(revision(ctx, d, "2"))))
		activates(ctx, s, a, "b")
		look(ctx, s)
		Expect(live(ctx, a).DeletionTimestamp).To(BeNil())
		remove(ctx, a)
		activates(ctx, s, b)
	})

	It("S15 starts a pod of the newest revision first, and an older one when there is no other", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		d := newDeployment(ns, 3)
		Expect(user.Create(ctx, d)).To(Succeed())
		one, two := revision(ctx, d, "1"), revision(ctx, d, "2")
		a := add(ctx, newPod(ns, "a", madeBy(two)))
		activates(ctx, s, a)
		old := add(ctx, newPod(ns, "b-old", madeBy(one)))
		activates(ctx, s, a, "b-old")
		recent := add(ctx, newPod(ns, "c-new", madeBy(two)))
		activates(ctx, s, a, "c-new", "b-old")
		remove(ctx, a)
		activates(ctx, s, recent, "b-old")
		remove(ctx, recent)
		activates(ctx, s, old)
	})

	It("S15 skips a pod that cannot start", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		stuck := add(ctx, newPod(ns, "a", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "bad" }))
		Expect(says(ctx, s, v1.ConditionProgressing, v1.ReasonWaitingForPod)).NotTo(BeEmpty())
		Eventually(func() string { return look(ctx, s).Message }).Should(Equal("pod a is next, but cannot start: ImagePullBackOff of container app; see: kubectl -n " + ns + " describe pod a"))
		Expect(granted(live(ctx, stuck))).To(BeFalse())
		nowhere := add(ctx, newPod(ns, "b", playing(playPending, "yes")))
		look(ctx, s)
		Expect(granted(live(ctx, nowhere))).To(BeFalse())
		c := add(ctx, newPod(ns, "c"))
		Eventually(func() bool { return granted(live(ctx, c)) }).Should(BeTrue())
		activates(ctx, s, c, "a", "b")
	})

	It("S15 of several replicas is blocked if it needs more than one Ready pod, and the condition reports it", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		d := newDeployment(ns, 3)
		Expect(user.Create(ctx, d)).To(Succeed())
		set := revision(ctx, d, "1")
		a := add(ctx, newPod(ns, "a", madeBy(set)))
		activates(ctx, s, a)
		add(ctx, newPod(ns, "b", madeBy(set)))
		Expect(says(ctx, s, v1.ConditionRolloutHeld, v1.ReasonStandbysNotReady)).To(Equal("Deployment db wants 3 Ready pods before its rollout continues, but at most one can be Ready: the others wait for their turn. Set maxUnavailable of a Deployment to one less than its replicas; a StatefulSet with more than one replica needs podManagementPolicy Parallel and updateStrategy OnDelete"))
		edit(ctx, d, func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(2)) })
		look(ctx, s)
		Expect(meta.IsStatusConditionFalse(s.Status.Conditions, v1.ConditionRolloutHeld)).To(BeTrue())
	})

	It("S11 of a StatefulSet starts a pod of its update revision first, and is blocked if the set is ordered", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: ns}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](2),
			Selector: s.Spec.Selector, ServiceName: "db", Template: newDeployment(ns, 1).Spec.Template}}
		Expect(user.Create(ctx, set)).To(Succeed())
		set.Status.UpdateRevision = "new"
		Expect(user.Status().Update(ctx, set)).To(Succeed())
		member := func(name, revision string) *corev1.Pod {
			return add(ctx, newPod(ns, name, func(p *corev1.Pod) {
				p.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
				p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
			}))
		}
		a := member("db-0", "old")
		activates(ctx, s, a)
		member("db-1", "old")
		activates(ctx, s, a, "db-1")
		c := member("db-2", "new")
		activates(ctx, s, a, "db-2", "db-1")
		Expect(says(ctx, s, v1.ConditionRolloutHeld, v1.ReasonStandbysNotReady)).To(HavePrefix("StatefulSet db wants 2 Ready pods"))
		Expect(live(ctx, a).DeletionTimestamp).To(BeNil(), "a StatefulSet replaces its own pods")
		remove(ctx, a)
		activates(ctx, s, c, "db-1")
	})
})

var _ = Describe("S26 two objects with overlapping selectors that admission did not refuse", func() {
	It("are both reported, and only the older one manages pods", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		elder := declare(ctx, newSingleton(ns))
		younger := newSingleton(ns, func(s *v1.StatefulSingleton) {
			s.Name, s.Spec.Selector.MatchLabels = "a-younger", map[string]string{"tier": "one"}
		})
		// Objects of the same second are ordered by name.
		Eventually(func() bool { return metav1.Now().Unix() > elder.CreationTimestamp.Unix() }).Should(BeTrue())
		outage(ctx, func() { Eventually(func() error { return user.Create(ctx, younger) }).Should(Succeed()) })
		startOperator(operatorOptions{namespaces: []string{ns}})
		Expect(says(ctx, younger, v1.ConditionSelectorConflict, v1.ReasonSelectorsOverlap)).To(Equal("a pod could also match StatefulSingleton db, which selects app=db, but may belong to only one; use a label with a different value in each selector, for example app; that one is older, and this one starts no pod"))
		Expect(says(ctx, elder, v1.ConditionSelectorConflict, v1.ReasonSelectorsOverlap)).To(Equal("a pod could also match StatefulSingleton a-younger, which selects tier=one, but may belong to only one; use a label with a different value in each selector, for example app; this one is older and controls the pods of both"))
		Expect(younger.Status.Phase).To(Equal(v1.PhaseFailed))
		both := func(p *corev1.Pod) { p.Labels["tier"] = "one" }
		a := add(ctx, newPod(ns, "a", both))
		activates(ctx, elder, a)
		b := add(ctx, newPod(ns, "b", func(p *corev1.Pod) { p.Labels = map[string]string{"tier": "one"} })) // only the younger object selects it
		look(ctx, younger)
		Expect(granted(live(ctx, b))).To(BeFalse())
		Expect(user.Delete(ctx, elder)).To(Succeed())
		activates(ctx, younger, a, "b")
		remove(ctx, a)
		activates(ctx, younger, b)
		Expect(meta.IsStatusConditionFalse(younger.Status.Conditions, v1.ConditionSelectorConflict)).To(BeTrue())
	})
})
