package escalation

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	fissilev1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	statefulsingletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// labels tests the labels that Services and budgets select pods by. A user who may create and patch pods
// cannot add or change them. Other changes of a pod with such a label are allowed.
func (s site) labels(t *testing.T) {
	object := singleton()
	object.Name, object.Spec.Selector.MatchLabels = "labelled", map[string]string{"app": "labelled"}
	NewWithT(t).Expect(s.admin.Create(t.Context(), object)).To(Succeed())
	t.Cleanup(func() { _ = s.admin.Delete(context.WithoutCancel(t.Context()), object) })
	maker := s.actor(t, "label maker", "", rights{"pods": {"create", "patch"}})
	controller := s.as(t, "stateful set controller")
	s.bind(t, tenant, "ClusterRole", "system:controller:statefulset-controller", "stateful set controller")
	for _, row := range []struct {
		kind, label, value string
		// any is true if the StatefulSet controller may write the label.
		any bool
	}{
		{"StatefulCluster", engev1alpha1.LabelCluster, "db", true},
		{"StatefulCluster", engev1alpha1.LabelClusterUID, "db", true},
		{"StatefulCluster", engev1alpha1.LabelMember, "aaaaaaaaaa", true},
		{"ReplicatedStatefulSet", clusterlabsv1alpha1.LabelManaged, "true", true},
		{"ReplicatedStatefulSet", clusterlabsv1alpha1.LabelRole, "primary", true},
		{"ReplicatedStatefulSet", clusterlabsv1alpha1.LabelActive, "true", true},
		{"ExtendedStatefulSet", fissilev1alpha1.LabelSet, "web", true},
		{"ExtendedStatefulSet", fissilev1alpha1.LabelVersion, "1", true},
		{"ExtendedStatefulSet", fissilev1alpha1.LabelStatefulSet, "web", true},
		{"ExtendedStatefulSet", fissilev1alpha1.LabelPodActive, "active", true},
		{"StatefulSingleton", statefulsingletonv1.LabelSingleton, object.GetName(), false},
	} {
		t.Run("F1 to F5 "+row.kind+" "+row.label, func(t *testing.T) {
			g := NewWithT(t)
			refused := MatchError(ContainSubstring(row.label))
			forged := pod(tenant, "forged")
			forged.Labels = map[string]string{row.label: row.value}
			g.Eventually(func() error { return maker.Create(t.Context(), forged.DeepCopy(), client.DryRunAll) }).Should(refused)
			if row.any {
				g.Eventually(func() error { return controller.Create(t.Context(), forged.DeepCopy(), client.DryRunAll) }).Should(Succeed())
			}
			patch := func(p *corev1.Pod, text string) error {
				return maker.Patch(t.Context(), p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text)), client.DryRunAll)
			}
			g.Expect(s.admin.Create(t.Context(), forged)).To(Succeed())
			defer func() { g.Expect(s.admin.Delete(context.WithoutCancel(t.Context()), forged)).To(Succeed()) }()
			g.Expect(patch(forged, `{"metadata": {"labels": {"a": "b"}}}`)).To(Succeed(), "a change of another label")
			g.Expect(patch(forged, fmt.Sprintf(`{"metadata": {"labels": {%q: null}}}`, row.label))).To(Succeed(), "removing the label")
			if row.any {
				g.Expect(patch(forged, fmt.Sprintf(`{"metadata": {"labels": {%q: "other"}}}`, row.label))).To(refused, "another value")
			}
			plain := pod(tenant, "plain")
			g.Expect(s.admin.Create(t.Context(), plain)).To(Succeed())
			defer func() { g.Expect(s.admin.Delete(context.WithoutCancel(t.Context()), plain)).To(Succeed()) }()
			g.Expect(patch(plain, fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}}`, row.label, row.value))).To(refused, "adding the label to a pod without it")
		})
	}
}
