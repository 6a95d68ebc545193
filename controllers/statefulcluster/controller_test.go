package statefulcluster_test

import (
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

var _ = Describe("members", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		startOperator(operatorOptions{namespaces: []string{ns}})
	})

	It("SC-2 SC-3 SC-20 have a name of ten characters, their own claim, labels and an owner", func(ctx SpecContext) {
		set := newSet(ns, 3)
		Expect(user.Create(ctx, set)).To(Succeed())
		live := settled(ctx, set, 3)
		whole(ctx, set)
		for name, p := range live {
			Expect(name).To(MatchRegexp(`^db-[a-z2-7]{10}$`))
			Expect(p.Labels).To(HaveKeyWithValue("app", "db"))
		}
		Expect(claims(ctx, set)).To(HaveLen(3))
		Expect(set.Status.ReadyReplicas).To(BeEquivalentTo(3))
		Expect(set.Status.UpdatedReplicas).To(BeEquivalentTo(3))
		Expect(set.Status.CurrentReplicas).To(BeEquivalentTo(3))
		Expect(set.Status.CurrentRevision).To(Equal(set.Status.UpdateRevision))
		Expect(set.Generation).To(BeEquivalentTo(1))
	})

	It("SC-6 SC-7 SC-8 are created and retired with replicas, and names are never reused", func(ctx SpecContext) {
		set := newSet(ns, 3)
		Expect(user.Create(ctx, set)).To(Succeed())
		first := settled(ctx, set, 3)
		scaleTo(ctx, set, 5)
		second := settled(ctx, set, 5)
		for name, p := range first {
			Expect(second[name].UID).To(Equal(p.UID))
		}
		scaleTo(ctx, set, 3)
		third := settled(ctx, set, 3)
		whole(ctx, set)
		Expect(claims(ctx, set)).To(HaveLen(5), "claims of retired members are kept")
		scaleTo(ctx, set, 5)
		for name, p := range settled(ctx, set, 5) {
			if _, old := third[name]; !old {
				Expect(second).NotTo(HaveKey(name))
			} else {
				Expect(third[name].UID).To(Equal(p.UID))
			}
		}
		Expect(claims(ctx, set)).To(HaveLen(7))
	})

	It("SC-11 SC-27 are replaced under another name when their pod is deleted, and the claim is retained with the reason", func(ctx SpecContext) {
		set := newSet(ns, 2)
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 2)
		victim := anyOf(before)
		Expect(user.Delete(ctx, victim)).To(Succeed())
		Eventually(func() map[string]corev1.Pod { return pods(ctx, set) }).ShouldNot(HaveKey(victim.Name))
		after := settled(ctx, set, 2)
		whole(ctx, set)
		Expect(after).NotTo(HaveKey(victim.Name))
		Expect(claims(ctx, set)).To(HaveLen(3))
		Eventually(func() []v1alpha1.LostMember {
			Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			return set.Status.Lost
		}).Should(ContainElement(And(HaveField("Name", victim.Name), HaveField("Reason", v1alpha1.LossDeleted))))
	})

	It("SC-22 are updated in place for a new image, and recreated with the same name for other changes", func(ctx SpecContext) {
		set := newSet(ns, 3)
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 3)
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Image = "two" })
		updated := settled(ctx, set, 3)
		for name, p := range before {
			Expect(updated).To(HaveKey(name))
			Expect(updated[name].UID).To(Equal(p.UID))
			Expect(updated[name].Spec.Containers[0].Image).To(Equal("two"))
		}
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
		})
		recreated := settled(ctx, set, 3)
		whole(ctx, set)
		for name, p := range before {
			Expect(recreated).To(HaveKey(name))
			Expect(recreated[name].UID).NotTo(Equal(p.UID))
		}
		Expect(claims(ctx, set)).To(HaveLen(3))
		Expect(set.Status.Updating).To(BeEmpty())
	})

	It("SC-22 are resized in place, or recreated with the same name if the API server is too old", func(ctx SpecContext) {
		cpus := func(of *corev1.Container, n string) {
			of.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
		}
		set := newSet(ns, 2, func(s *v1alpha1.StatefulCluster) { cpus(&s.Spec.Template.Spec.Containers[0], "1") })
		Expect(user.Create(ctx, set)).To(Succeed())
		before := settled(ctx, set, 2)
		edit(ctx, set, func(s *v1alpha1.StatefulCluster) { cpus(&s.Spec.Template.Spec.Containers[0], "2") })
		for name, p := range settled(ctx, set, 2) {
			Expect(before).To(HaveKey(name))
			if server.AtLeast("1.33") {
				Expect(p.UID).To(Equal(before[name].UID))
			} else {
				Expect(p.UID).NotTo(Equal(before[name].UID))
			}
			Expect(p.Spec.Containers[0].Resources.Requests.Cpu().String()).To(Equal("2"))
		}
		whole(ctx, set)
		Expect(claims(ctx, set)).To(HaveLen(2))
	})

	It("SC-12 are replaced while their pod keeps terminating on a lost node", func(ctx SpecContext) {
		node := "lost-" + ns
		addNode(ctx, node)
		set := newSet(ns, 1, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Annotations[playNode] = node
			s.Spec.Template.Annotations[playHang] = "yes"
			s.Spec.Replacement.NodeLostSeconds = new(int32(1))
			s.Spec.Replacement.WhenNoneReady = v1alpha1.NoneReadyReplaces
		})
		Expect(user.Create(ctx, set)).To(Succeed())
		old := anyOf(settled(ctx, set, 1))
		setNodeReady(ctx, node, corev1.ConditionUnknown)
		Eventually(func() map[string]corev1.Pod { return pods(ctx, set) }).Should(And(HaveLen(1), Not(HaveKey(old.Name))))
		var hanging corev1.Pod
		Expect(user.Get(ctx, client.ObjectKeyFromObject(old), &hanging)).To(Succeed())
		Expect(hanging.DeletionTimestamp).NotTo(BeNil())
		setNodeReady(ctx, node, corev1.ConditionTrue)
	})

	It("W6 SC-20 have values in all columns of kubectl get, in a new set and at rest", func(ctx SpecContext) {
		elsewhere := newSet(server.NewNamespace(ctx), 2) // no operator runs in this namespace
		Expect(user.Create(ctx, elsewhere)).To(Succeed())
		_, cells := server.Table(ctx, "statefulclusters", elsewhere)
		for _, count := range []string{"Ready", "Updated", "Available", "Lost"} {
			Expect(cells).To(HaveKeyWithValue(count, BeEquivalentTo(0)))
		}
		set := newSet(ns, 2)
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 2)
		columns, cells := server.Table(ctx, "statefulclusters", set)
		Expect(columns).To(Equal([]string{"Name", "Desired", "Ready", "Updated", "Available", "Lost", "Image", "Revision", "Age"}))
		delete(cells, "Age")
		Expect(cells).To(Equal(map[string]any{"Name": "db", "Desired": float64(2), "Ready": float64(2), "Updated": float64(2), "Available": float64(2),
			"Lost": float64(0), "Image": "one", "Revision": set.Status.UpdateRevision}))
	})

	It("SC-34 cause no writes at rest", func(ctx SpecContext) {
		set := newSet(ns, 3)
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 3)
		var rest map[string]string
		Eventually(func(g Gomega) {
			rest = versions(ctx, set)
			g.Consistently(func() map[string]string { return versions(ctx, set) }, time.Second).Should(Equal(rest))
		}).Should(Succeed())
		// Each annotation by the user triggers a live pass.
		for i := range 10 {
			edit(ctx, set, func(s *v1alpha1.StatefulCluster) {
				s.Annotations = map[string]string{"note": strconv.Itoa(i)}
			})
			rest["StatefulCluster db"] = set.ResourceVersion
			Consistently(func() map[string]string { return versions(ctx, set) }, 200*time.Millisecond).Should(Equal(rest))
		}
	})
})
