package replicatedstatefulset_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

var _ = Describe("claims", func() {
	var p *fakeControlPlane
	BeforeEach(func(ctx SpecContext) {
		p = startFakeControlPlane(newNamespace(ctx))
		DeferCleanup(func(ctx SpecContext) { sweep(ctx, p.namespace) })
	})

	data := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
	// claimed creates a claim as the StatefulSet controller does for a member.
	claimed := func(ctx context.Context, ordinal string) *corev1.PersistentVolumeClaim {
		GinkgoHelper()
		c := data.DeepCopy()
		c.Namespace, c.Name = p.namespace, "data-rss-example-"+ordinal
		c.Labels = map[string]string{v1alpha1.LabelApp: "example", v1alpha1.LabelManaged: v1alpha1.True}
		Expect(user.Create(ctx, c)).To(Succeed())
		return c
	}
	isGoing := func(ctx context.Context, c *corev1.PersistentVolumeClaim) bool {
		GinkgoHelper()
		err := user.Get(ctx, client.ObjectKeyFromObject(c), c)
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		return apierrors.IsNotFound(err) || c.DeletionTimestamp != nil // no controller protects or removes it here
	}

	It("RS-93 are deleted on a scale-down and with the object, with the policy Delete", func(ctx SpecContext) {
		older := claimed(ctx, "0")
		Eventually(func() int64 { return time.Now().Unix() }).Should(BeNumerically(">", older.CreationTimestamp.Unix()))
		startOperator(p)
		set := replicated(p.namespace)
		set.Spec.Pod.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{data}
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 1, 2)
		stateful := &appsv1.StatefulSet{}
		says := func(g Gomega, replicas int, least int64) {
			g.Expect(user.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: "rss-example"}, stateful)).To(Succeed())
			g.Expect(*stateful.Spec.Replicas).To(BeEquivalentTo(replicas))
			g.Expect(*stateful.Spec.PersistentVolumeClaimRetentionPolicy).To(And(
				HaveField("WhenScaled", appsv1.RetainPersistentVolumeClaimRetentionPolicyType), HaveField("WhenDeleted", appsv1.RetainPersistentVolumeClaimRetentionPolicyType)))
			g.Expect(stateful.Generation).To(BeNumerically(">=", least))
		}
		says(Default, 3, 1)
		before, pods := stateful.Generation, podsOf(ctx, p.namespace)

		Expect(apply(ctx, set, "spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}}")).To(Succeed())
		settled(ctx, set, 1, 2)
		says(Default, 3, before)
		Expect(stateful.Generation).To(Equal(before), "the StatefulSet is written before a scale-down")
		for name, pod := range podsOf(ctx, p.namespace) {
			Expect(pod.UID).To(Equal(pods[name].UID), "the pod is recreated")
		}

		Expect(apply(ctx, set, "spec: {replicas: 2}")).To(Succeed())
		settled(ctx, set, 1, 1)
		// One write sets the number and Delete, and a later one sets Retain.
		Eventually(func(g Gomega) { says(g, 2, before+2) }).Should(Succeed())

		mine, gone := claimed(ctx, "1"), claimed(ctx, "2")
		other := data.DeepCopy()
		other.Namespace, other.Name = p.namespace, "logs-rss-example-1"
		other.Labels = mine.Labels
		Expect(user.Create(ctx, other)).To(Succeed())
		Expect(user.Delete(ctx, set)).To(Succeed())
		Eventually(func() bool { return apierrors.IsNotFound(user.Get(ctx, client.ObjectKeyFromObject(set), set)) }).Should(BeTrue())
		Expect(isGoing(ctx, mine)).To(BeTrue())
		Expect(isGoing(ctx, gone)).To(BeTrue())
		Expect(isGoing(ctx, older)).To(BeFalse(), "a claim that is older than the object is deleted")
		Expect(isGoing(ctx, other)).To(BeFalse(), "a claim of no template of the set is deleted")
	})
})
