package extendedstatefulset_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// invalid is the prefix of error messages about the object of these tests.
const invalid = `ExtendedStatefulSet.fissile.cloudfoundry.org "web" is invalid: `

// plain is an object with default settings.
const plain = `apiVersion: fissile.cloudfoundry.org/v1alpha1
kind: ExtendedStatefulSet
metadata: {name: web}
spec:
  template:
    spec:
      replicas: 3
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: web}]}`

// stored is a patch that adds claims.
const stored = "spec: {template: {spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}}"

// object returns the plain object with YAML patches applied. It is sent unchanged.
func object(namespace string, patches ...string) *unstructured.Unstructured {
	GinkgoHelper()
	text, err := yaml.YAMLToJSON([]byte(plain))
	Expect(err).NotTo(HaveOccurred())
	for _, p := range patches {
		patch, err := yaml.YAMLToJSON([]byte(p))
		Expect(err).NotTo(HaveOccurred())
		text, err = strategicpatch.StrategicMergePatch(text, patch, v1alpha1.ExtendedStatefulSet{})
		Expect(err).NotTo(HaveOccurred())
	}
	o := &unstructured.Unstructured{}
	Expect(o.UnmarshalJSON(text)).To(Succeed())
	o.SetNamespace(namespace)
	return o
}

// change sends a YAML merge patch.
func change(ctx context.Context, o client.Object, patch string) error {
	GinkgoHelper()
	text, err := yaml.YAMLToJSON([]byte(patch))
	Expect(err).NotTo(HaveOccurred())
	return user.Patch(ctx, o, client.RawPatch(types.MergePatchType, text))
}

// said returns the error message as a user sees it, without the name of the webhook.
func said(err error) string { return apiserver.Said(err) }

// scale sends the same request as kubectl scale; scaleAfterReading sends the same requests as an
// autoscaler.
func scale(ctx context.Context, o client.Object, to int) error {
	GinkgoHelper()
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"replicas": to}})
	Expect(err).NotTo(HaveOccurred())
	return user.SubResource("scale").Patch(ctx, typed(o), client.RawPatch(types.MergePatchType, text))
}

func scaleAfterReading(ctx context.Context, o client.Object, to int) error {
	var s autoscalingv1.Scale
	if err := user.SubResource("scale").Get(ctx, typed(o), &s); err != nil {
		return err
	}
	s.Spec.Replicas = int32(to)
	return user.SubResource("scale").Update(ctx, typed(o), client.WithSubResourceBody(&s))
}

// typed returns a typed object with the same name, which the client for /scale requires.
func typed(o client.Object) client.Object {
	return &v1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// replicas returns the replicas of a stored object.
func replicas(ctx context.Context, o client.Object) *int32 {
	GinkgoHelper()
	var set v1alpha1.ExtendedStatefulSet
	Expect(user.Get(ctx, client.ObjectKeyFromObject(o), &set)).To(Succeed())
	return set.Spec.Template.Spec.Replicas
}

// create creates an object with strict validation, and returns the warnings.
func create(ctx context.Context, o client.Object) []string {
	GinkgoHelper()
	l := &apiserver.Warned{Texts: []string{}}
	Expect(l.Client(server).Create(ctx, o, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
	return l.Texts
}

var _ = Describe("E11 the scaling rules", func() {
	const (
		odd     = "spec: {scaling: {min: 3, max: 7, oddOnly: true}}"
		tooFew  = `may not be less than scaling.min; take more replicas, or lower min first`
		tooMany = `may not be more than scaling.max; take fewer replicas, or raise max first`
		even    = `scaling.oddOnly allows odd numbers only; take one more or one less, or remove oddOnly first`
		count   = invalid + `spec.template.spec.replicas: Invalid value: `
	)
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	DescribeTable("are enforced on create, update and /scale", func(ctx SpecContext, n int, want string) {
		patch := "spec: {template: {spec: {replicas: " + yamlOf(n) + "}}}"
		Expect(said(user.Create(ctx, object(ns, odd, patch)))).To(Equal(count + want))
		o := object(ns, odd)
		Expect(user.Create(ctx, o)).To(Succeed())
		Expect(said(change(ctx, o.DeepCopy(), patch))).To(Equal(count + want))
		Expect(said(scale(ctx, o.DeepCopy(), n))).To(Equal(count + want))
		Expect(said(scaleAfterReading(ctx, o.DeepCopy(), n))).To(Equal(count + want))
		Expect(replicas(ctx, o)).To(HaveValue(BeEquivalentTo(3)))
	},
		Entry("below scaling.min", 1, tooFew), Entry("above scaling.max", 9, tooMany), Entry("an even number with oddOnly", 4, even))

	It("allow a legal number on create, update and /scale", func(ctx SpecContext) {
		o := object(ns, odd)
		Expect(user.Create(ctx, o)).To(Succeed())
		Expect(change(ctx, o.DeepCopy(), "spec: {template: {spec: {replicas: 5}}}")).To(Succeed())
		Expect(scale(ctx, o.DeepCopy(), 7)).To(Succeed())
		Expect(replicas(ctx, o)).To(HaveValue(BeEquivalentTo(7)))
		Expect(scaleAfterReading(ctx, o.DeepCopy(), 3)).To(Succeed())
		Expect(replicas(ctx, o)).To(HaveValue(BeEquivalentTo(3)))
	})

	It("apply to /scale after a change", func(ctx SpecContext) {
		o := object(ns)
		Expect(user.Create(ctx, o)).To(Succeed())
		Expect(scale(ctx, o.DeepCopy(), 9)).To(Succeed())
		Expect(said(change(ctx, o.DeepCopy(), "spec: {scaling: {max: 7}}"))).To(Equal(count + tooMany))
		Expect(change(ctx, o.DeepCopy(), "spec: {template: {spec: {replicas: 3}}, scaling: {max: 7}}")).To(Succeed())
		Expect(said(scale(ctx, o.DeepCopy(), 9))).To(Equal(count + tooMany))
	})

	It("reject a negative number of replicas", func(ctx SpecContext) {
		const want = invalid + `.spec.template.spec.replicas: Invalid value: -1: should be a non-negative integer`
		Expect(said(user.Create(ctx, object(ns, "spec: {template: {spec: {replicas: -1}}}")))).To(Equal(want))
	})

	DescribeTable("are rejected if they allow no number", func(ctx SpecContext, rules, want string) {
		Expect(said(user.Create(ctx, object(ns, "spec: {template: {spec: {replicas: null}}, scaling: "+rules+"}")))).To(Equal(invalid + want))
	},
		Entry("min above max", "{min: 5, max: 3}", `spec.scaling.min: Invalid value: may not be more than scaling.max; lower it, or raise max`),
		Entry("no odd number", "{min: 4, max: 4, oddOnly: true}", `spec.scaling.oddOnly: Invalid value: there is no odd number from scaling.min to scaling.max; change one of them, or remove oddOnly`),
		Entry("only 0 is allowed", "{max: 0, oddOnly: true}", `spec.scaling.oddOnly: Invalid value: there is no odd number from scaling.min to scaling.max; change one of them, or remove oddOnly`),
		Entry("a negative min", "{min: -1}", `spec.scaling.min: Invalid value: -1: spec.scaling.min in body should be greater than or equal to 0`),
	)

	DescribeTable("set the default of missing replicas to the smallest legal number", func(ctx SpecContext, rules string, want int) {
		o := object(ns, "spec: {template: {spec: {replicas: null}}, scaling: "+rules+"}")
		Expect(user.Create(ctx, o)).To(Succeed())
		Expect(replicas(ctx, o)).To(HaveValue(BeEquivalentTo(want)))
		Expect(scaleAfterReading(ctx, o.DeepCopy(), want)).To(Succeed(), "/scale returns the default replicas")
	},
		Entry("no rules", "null", 1), Entry("empty rules", "{}", 1), Entry("a min", "{min: 4}", 4), Entry("a min of 0", "{min: 0}", 1),
		Entry("oddOnly", "{min: 4, max: 7, oddOnly: true}", 5), Entry("max of 0", "{max: 0}", 0))

	It("keep the replicas of an autoscaler when an apply omits replicas", func(ctx SpecContext) {
		o := object(ns, "spec: {template: {spec: {replicas: null}}, scaling: {min: 2}}")
		for _, image := range []string{"first", "second"} {
			applied := object(ns, "spec: {template: {spec: {replicas: null, template: {spec: {containers: [{name: web, image: "+image+"}]}}}}, scaling: {min: 2}}")
			unstructured.RemoveNestedField(applied.Object, "spec", "template", "spec", "replicas")
			Expect(user.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("gitops"))).To(Succeed())
			if image == "first" {
				Expect(replicas(ctx, o)).To(HaveValue(BeEquivalentTo(2)))
				Expect(scale(ctx, o.DeepCopy(), 6)).To(Succeed())
			}
		}
		Expect(replicas(ctx, o)).To(HaveValue(BeEquivalentTo(6)))
	})

	It("reject canaries above replicas, except with 0 replicas", func(ctx SpecContext) {
		const want = invalid + `spec.updateStrategy.canaries: Invalid value: may not be more than template.spec.replicas; lower canaries first, or take more replicas`
		Expect(said(user.Create(ctx, object(ns, "spec: {updateStrategy: {canaries: 3}, template: {spec: {replicas: 2}}}")))).To(Equal(want))
		o := object(ns, "spec: {updateStrategy: {canaries: 3}}")
		Expect(user.Create(ctx, o)).To(Succeed())
		Expect(said(change(ctx, o.DeepCopy(), "spec: {template: {spec: {replicas: 2}}}"))).To(Equal(want))
		Expect(said(scale(ctx, o.DeepCopy(), 2))).To(Equal(want))
		Expect(scale(ctx, o.DeepCopy(), 0)).To(Succeed())
	})
})

func yamlOf(value any) string {
	GinkgoHelper()
	text, err := yaml.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(text))
}

var _ = Describe("E10 the example of the original operator", func() {
	It("is accepted with strict validation, including its null and its labels", func(ctx SpecContext) {
		text, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", "extendedstatefulset", "example.yaml"))
		Expect(err).NotTo(HaveOccurred())
		o := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(text, &o.Object)).To(Succeed())
		o.SetNamespace(newNamespace(ctx))
		Expect(create(ctx, o)).To(ConsistOf("spec.az is ignored; list the zones in spec.zones"))
		var set v1alpha1.ExtendedStatefulSet
		Expect(user.Get(ctx, client.ObjectKeyFromObject(o), &set)).To(Succeed())
		Expect(set.Spec.Template.Labels).To(HaveKeyWithValue("a-label-for-my-stateful-set", "foo"))
		Expect(set.Spec.Template.Spec.Template.Labels).To(HaveKeyWithValue("app", "my-app"))
		Expect(set.Spec.Template.Spec.Replicas).To(Equal(ptr.To[int32](3)))
	})
})
