package extended

import (
	"context"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

func sized(replicas int32) specChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) { s.Template.Spec.Replicas = &replicas }
}

// scaledDownWithoutQuota scales a set down while a quota refuses one of the remaining pods. The
// StatefulSet controller alone never deletes the surplus pod (kubernetes#140858).
func scaledDownWithoutQuota(ctx context.Context, c *kit.Cluster) {
	x := newFixture(c, "scarce-pods", 3)
	x.create(ctx)
	c.Put(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "two-pods", Namespace: c.Namespace},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}}})
	c.Until(ctx, "the quota to be enforced", func(ctx context.Context) {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "two-pods", Namespace: c.Namespace}}
		c.Read(ctx, quota)
		used := quota.Status.Used[corev1.ResourcePods]
		c.Expect(used.Value()).To(BeEquivalentTo(3), "pods that the quota counts")
	})
	first := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: x.child(1) + "-0", Namespace: c.Namespace}}
	c.Check(c.Client.Delete(ctx, first))
	x.conditionSays(ctx, v1alpha1.ConditionDegraded, "exceeded quota: two-pods")
	x.edit(ctx, sized(2))
	x.serves(ctx, 1)
}

// recreatedImmutable recreates an immutable ConfigMap that two pods on one node use. The kubelet
// keeps its old contents while either of them exists.
func recreatedImmutable(ctx context.Context, c *kit.Cluster) {
	fixed := func(says string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "fixed", Namespace: c.Namespace}, Immutable: ptr.To(true), Data: map[string]string{sayKey: says}}
	}
	c.Put(ctx, fixed("1"))
	x := newFixture(c, "fixed", 2, patiently, func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.UpdateOnEnvChange = true
		k := keeperOf(s)
		k.Env = append(k.Env, corev1.EnvVar{Name: "BY_ENV", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "fixed"}, Key: sayKey}}})
		s.Template.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "fixed"}}}}}}
	})
	x.create(ctx)
	c.Check(c.Client.Delete(ctx, fixed("")))
	c.Put(ctx, fixed("2"))
	x.conditionSays(ctx, v1alpha1.ConditionDegraded, "ConfigMap fixed was deleted and recreated")
	x.Until(ctx, "both pods to be restarted", func(ctx context.Context) {
		x.Read(ctx, x.set)
		said := meta.FindStatusCondition(x.set.Status.Conditions, v1alpha1.ConditionDegraded)
		x.onlyPods(ctx, 1)
		for name := range x.pods(ctx) {
			x.Expect(said.Message).To(ContainSubstring(name))
			x.Expect(x.shell(ctx, name, "echo $BY_ENV")).To(Equal("1"), "the output of %s, whose kubelet has the old contents", name)
		}
	})
	x.edit(ctx, sized(0))
	x.Until(ctx, "its pods to be deleted", func(ctx context.Context) { x.Expect(x.pods(ctx)).To(BeEmpty()) })
	x.edit(ctx, sized(2))
	x.serves(ctx, 1)
	for name := range x.pods(ctx) {
		x.Expect(strings.TrimSpace(x.shell(ctx, name, "echo $BY_ENV"))).To(Equal("2"), "the output of %s", name)
	}
	x.says(ctx, "that it is healthy", func(s v1alpha1.ExtendedStatefulSetStatus) bool {
		return meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionDegraded)
	})
}
