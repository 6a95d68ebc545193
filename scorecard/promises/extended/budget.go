package extended

import (
	"context"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// lastOneStays evicts all pods that serve while both versions exist. One of them must stay,
// although the pods of the new version are Ready too.
func lastOneStays(ctx context.Context, c *kit.Cluster) {
	x := newFixture(c, "kept", 2, coexist, patiently, func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.PodDisruptionBudget = &v1alpha1.DisruptionBudget{MinAvailable: new(intstr.FromInt32(1))}
	})
	x.create(ctx)
	// The post-update job never ends, so that both versions stay.
	x.edit(ctx, inVersion("2"), canaries(2), func(s *v1alpha1.ExtendedStatefulSetSpec) {
		job := &v1alpha1.UpdateJob{}
		job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "waits", Image: c.Image, Command: []string{"/bin/sh", "-c", kit.Idle}}}}
		s.UpdateStrategy.PostUpdateJob = job
	})
	x.says(ctx, "both versions to exist", func(s v1alpha1.ExtendedStatefulSetStatus) bool { return s.Phase == v1alpha1.PhasePostJob })
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: c.Namespace}}
	c.Until(ctx, "the budget to count two pods", func(ctx context.Context) {
		c.Read(ctx, budget)
		c.Expect(budget.Status.CurrentHealthy).To(BeEquivalentTo(2), "%+v", budget.Status)
		c.Expect(budget.Status.DisruptionsAllowed).To(BeEquivalentTo(1), "%+v", budget.Status)
	})
	c.Check(evictNamed(ctx, c, "kept-v1-0"))
	c.Expect(apierrors.IsTooManyRequests(evictNamed(ctx, c, "kept-v1-1"))).To(BeTrue(), "the last serving pod was evicted, or not refused by the budget")
	c.Log("the last serving pod was kept; roll back to version 1, without a budget")
	x.edit(ctx, inVersion("1"), func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.UpdateStrategy.PostUpdateJob, s.PodDisruptionBudget = nil, nil
	})
	x.serves(ctx, 1)
	c.Gone(ctx, budget)
	x.edit(ctx, func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.PodDisruptionBudget = &v1alpha1.DisruptionBudget{MaxUnavailable: new(intstr.FromString("50%"))}
	})
	x.edit(ctx, inVersion("3"))
	x.serves(ctx, 3)
	c.Until(ctx, "the budget to select version 3", func(ctx context.Context) {
		c.Read(ctx, budget)
		c.Expect(budget.Spec.Selector.MatchLabels).To(HaveKeyWithValue(v1alpha1.LabelVersion, "3"))
	})
}

// evictNamed requests the eviction of the pod of that name once.
func evictNamed(ctx context.Context, c *kit.Cluster, name string) error {
	var pod corev1.Pod
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, &pod); err != nil {
		return err
	}
	return c.Evict(ctx, &pod)
}
