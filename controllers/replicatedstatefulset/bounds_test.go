package replicatedstatefulset_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// bound is the max number of something in a spec.
type bound struct {
	most   int
	change func(s *v1alpha1.ReplicatedStatefulSetSpec, n int)
	says   string // the error for one more
}

var _ = Describe("a bound", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	words := func(n int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprint("k", i)] = "v"
		}
		return all
	}

	DescribeTable("accepts the maximum and refuses one more", func(ctx SpecContext, b bound) {
		tried := func(n int) error {
			return user.Create(ctx, newSet(ns, func(s *v1alpha1.ReplicatedStatefulSet) { b.change(&s.Spec, n) }), client.DryRunAll)
		}
		Expect(tried(b.most)).To(Succeed())
		Expect(clean(tried(b.most + 1))).To(server.Mentions(b.says))
	},
		Entry("of members", bound{1000, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) { s.Replicas = new(int32(n)) }, "spec.replicas: Invalid value: 1001"}),
		Entry("of primaries", bound{1000, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
			s.Replicas, s.Primaries = new(int32(0)), new(int32(n))
		}, "spec.primaries: Invalid value: 1001"}),
		Entry("of nodeSelector", bound{64, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) { s.NodeSelector = words(n) }, "spec.nodeSelector: Too many: 65"}),
		Entry("of nodeSelector of the pod", bound{64, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) { s.Pod.NodeSelector = words(n) }, "spec.pod.nodeSelector: Too many: 65"}),
		Entry("of tolerations", bound{128, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
			for i := range n {
				s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: fmt.Sprint("k", i), Operator: corev1.TolerationOpExists})
			}
		}, "spec.tolerations: Too many: 129"}),
		Entry("of terminationGracePeriodSeconds", bound{604800, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
			s.Pod.TerminationGracePeriodSeconds = new(int64(n))
		},
			"spec.pod.terminationGracePeriodSeconds: Invalid value: 604801"}),
		Entry("of labels of ruleSelector", bound{32, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
			s.RuleSelector = &metav1.LabelSelector{MatchLabels: words(n)}
		},
			"spec.ruleSelector.matchLabels: Invalid value: there may be at most 32; remove the others"}),
		Entry("of expressions and values of ruleSelector", bound{32, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
			var values []string
			for i := range n {
				values = append(values, fmt.Sprint("v", i))
			}
			s.RuleSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: values}}}
		}, "spec.ruleSelector.matchExpressions: Invalid value: there may be at most 32, each of at most 32 values; remove the others"}),
		Entry("of arguments", bound{1024, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
			s.Pod.Commands["stop"] = v1alpha1.Command{Command: append([]string{"/stop"}, make([]string, n-1)...)}
		}, "spec.pod.commands.stop.command: Too many: 1025"}),
		Entry("of bytes in an argument", bound{32768, func(s *v1alpha1.ReplicatedStatefulSetSpec, n int) {
			s.Pod.Commands["stop"] = v1alpha1.Command{Command: []string{"/stop", strings.Repeat("x", n)}}
		}, "spec.pod.commands.stop.command[1]: Too long"}),
	)

	It("applies to the bytes of a spec", func(ctx SpecContext) {
		long := newSet(ns, func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Containers[0].Args = []string{strings.Repeat("x", 256<<10)}
		})
		Expect(clean(user.Create(ctx, long))).To(MatchRegexp("spec: Invalid value: has [0-9]+ bytes as JSON, and may have at most 262144; move scripts and configuration to the image or a ConfigMap"))
	})

	It("applies to /scale", func(ctx SpecContext) {
		set := newSet(ns)
		Expect(user.Create(ctx, set)).To(Succeed())
		to := func(n int32) error {
			return user.SubResource("scale").Update(ctx, set, client.DryRunAll, client.WithSubResourceBody(&autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: set.Name, Namespace: ns}, Spec: autoscalingv1.ScaleSpec{Replicas: n}}))
		}
		Expect(to(1000)).To(Succeed())
		Expect(to(1001)).To(MatchError(ContainSubstring("spec.replicas: Invalid value: 1001")))
	})
})
