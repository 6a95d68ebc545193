package statefulcluster_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// bound is the max number or size of something in a spec.
type bound struct {
	most   int
	change func(s *v1alpha1.StatefulClusterSpec, n int)
	says   string // the message for one more
}

var _ = Describe("the limit", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	words := func(n int) map[string]string {
		all := map[string]string{"app": "db"}
		for i := range n - 1 {
			all[fmt.Sprint("k", i)] = "v"
		}
		return all
	}
	containers := func(n int) (all []corev1.Container) {
		for i := range n {
			all = append(all, corev1.Container{Name: fmt.Sprint("c", i), Image: "x"})
		}
		return all
	}
	rolling := func(s *v1alpha1.StatefulClusterSpec) *v1alpha1.RollingUpdate {
		s.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdate{}
		return s.UpdateStrategy.RollingUpdate
	}

	DescribeTable("is accepted and more is rejected", func(ctx SpecContext, b bound) {
		tried := func(n int) error {
			return user.Create(ctx, newSet(ns, 1, func(s *v1alpha1.StatefulCluster) { b.change(&s.Spec, n) }), client.DryRunAll)
		}
		Expect(tried(b.most)).To(Succeed())
		Expect(clean(tried(b.most + 1))).To(server.Mentions(b.says))
	},
		Entry("of replicas", bound{20000, func(s *v1alpha1.StatefulClusterSpec, n int) { s.Replicas = new(int32(n)) }, "spec.replicas: Invalid value: 20001"}),
		Entry("of partition", bound{20000, func(s *v1alpha1.StatefulClusterSpec, n int) { rolling(s).Partition = int32(n) }, "spec.updateStrategy.rollingUpdate.partition: Invalid value: 20001"}),
		Entry("of maxUnavailable", bound{20000, func(s *v1alpha1.StatefulClusterSpec, n int) { rolling(s).MaxUnavailable = new(intstr.FromInt(n)) }, "maxUnavailable may be at most 20000"}),
		Entry("of maxSurge", bound{20000, func(s *v1alpha1.StatefulClusterSpec, n int) { rolling(s).MaxSurge = new(intstr.FromInt(n)) }, "maxSurge may be at most 20000"}),
		Entry("of maxConcurrent", bound{20000, func(s *v1alpha1.StatefulClusterSpec, n int) { s.Replacement.MaxConcurrent = new(intstr.FromInt(n)) }, "maxConcurrent may be at most 20000"}),
		Entry("of containers", bound{32, func(s *v1alpha1.StatefulClusterSpec, n int) { s.Template.Spec.Containers = containers(n) },
			"spec.template.spec.containers: Invalid value: there may be at most 32; remove the others"}),
		Entry("of init containers", bound{32, func(s *v1alpha1.StatefulClusterSpec, n int) { s.Template.Spec.InitContainers = containers(n) },
			"spec.template.spec.initContainers: Invalid value: there may be at most 32"}),
		Entry("of volumes", bound{128, func(s *v1alpha1.StatefulClusterSpec, n int) {
			for i := range n {
				s.Template.Spec.Volumes = append(s.Template.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			}
		}, "spec.template.spec.volumes: Invalid value: there may be at most 128"}),
		Entry("of claims", bound{32, func(s *v1alpha1.StatefulClusterSpec, n int) {
			s.VolumeClaimTemplates = nil
			for i := range n {
				s.VolumeClaimTemplates = append(s.VolumeClaimTemplates, claimTemplate(fmt.Sprint("v", i), "1Gi"))
			}
		}, "spec.volumeClaimTemplates: Too many: 33"}),
		Entry("of labels", bound{64, func(s *v1alpha1.StatefulClusterSpec, n int) { s.Template.Labels = words(n) }, "spec.template.metadata.labels: Invalid value: there may be at most 64"}),
		Entry("of annotations", bound{64, func(s *v1alpha1.StatefulClusterSpec, n int) { s.Template.Annotations = words(n) },
			"spec.template.metadata.annotations: Invalid value: there may be at most 64"}),
		Entry("of labels of the selector", bound{32, func(s *v1alpha1.StatefulClusterSpec, n int) {
			s.Selector.MatchLabels = words(n)
			s.Template.Labels = words(n)
		}, "spec.selector.matchLabels: Invalid value: there may be at most 32"}),
		Entry("of expressions of the selector", bound{32, func(s *v1alpha1.StatefulClusterSpec, n int) {
			for range n {
				s.Selector.MatchExpressions = append(s.Selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpExists})
			}
		}, "spec.selector.matchExpressions: Invalid value: there may be at most 32, each of at most 32 values"}),
		Entry("of values of an expression", bound{32, func(s *v1alpha1.StatefulClusterSpec, n int) {
			values := []string{"db"}
			for i := range n - 1 {
				values = append(values, fmt.Sprint("v", i))
			}
			s.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: values}}
		}, "spec.selector.matchExpressions: Invalid value: there may be at most 32, each of at most 32 values"}),
	)

	It("applies to the size of a spec", func(ctx SpecContext) {
		long := newSet(ns, 0, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("x", 256<<10)}
		})
		Expect(clean(user.Create(ctx, long))).To(MatchRegexp("spec: Invalid value: has [0-9]+ bytes as JSON, and may have at most 262144; move scripts and configuration to the image or a ConfigMap"))
	})

	It("applies to /scale", func(ctx SpecContext) {
		set := newSet(ns, 0)
		Expect(user.Create(ctx, set)).To(Succeed())
		to := func(n int32) error {
			return user.SubResource("scale").Update(ctx, set, client.DryRunAll, client.WithSubResourceBody(&autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: set.Name, Namespace: ns}, Spec: autoscalingv1.ScaleSpec{Replicas: n}}))
		}
		Expect(to(20000)).To(Succeed())
		Expect(to(20001)).To(MatchError(ContainSubstring("spec.replicas: Invalid value: 20001")))
	})
})
