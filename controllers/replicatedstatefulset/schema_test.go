package replicatedstatefulset_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

var _ = Describe("RS-1 the seed's manifest", func() {
	It("applies unchanged", func(ctx SpecContext) {
		text, err := os.ReadFile(filepath.Join("testdata", "seed.yaml"))
		Expect(err).NotTo(HaveOccurred())
		set := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(text, &set.Object)).To(Succeed())
		set.SetNamespace(newNamespace(ctx))
		written := set.DeepCopy()
		Expect(user.Create(ctx, set, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
		stored, err := json.Marshal(set.Object)
		Expect(err).NotTo(HaveOccurred())
		merge(set.Object, written.Object)
		Expect(json.Marshal(set.Object)).To(MatchJSON(stored), "a field of the manifest is not stored")
	})

	It("RS-86 has a short name and printer columns", func(ctx SpecContext) {
		set := newSet(newNamespace(ctx))
		Expect(user.Create(ctx, set)).To(Succeed())
		set.Status.ReadyReplicas, set.Status.Primaries, set.Status.Phase = 2, 2, v1alpha1.PhaseRunning
		set.Status.Members.Primary = []string{"rss-example-0", "rss-example-2"}
		Expect(user.Status().Update(ctx, set)).To(Succeed())
		set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Tested", LastTransitionTime: metav1.Now()}}
		Expect(user.Status().Update(ctx, set)).To(Succeed())
		columns, cells := server.Table(ctx, "replicatedstatefulsets", set)
		Expect(columns).To(Equal([]string{"Name", "Desired", "Ready", "Available", "Primaries", "Primary", "Phase", "Image", "Age"}))
		delete(cells, "Age")
		Expect(cells).To(Equal(map[string]any{"Name": "example", "Desired": float64(3), "Ready": float64(2), "Available": "True", "Primaries": float64(2),
			"Primary": "rss-example-0", "Phase": "Running", "Image": set.Spec.Pod.Containers[0].Image}))
		clients, err := kubernetes.NewForConfig(server.Config)
		Expect(err).NotTo(HaveOccurred())
		resources, err := clients.Discovery().ServerResourcesForGroupVersion("clusterlabs.org/v1alpha1")
		Expect(err).NotTo(HaveOccurred())
		Expect(resources.APIResources).To(ContainElement(And(HaveField("Kind", "ReplicatedStatefulSet"), HaveField("ShortNames", Equal([]string{"rss"})), HaveField("Namespaced", true))))
	})
})

var _ = Describe("the scale subresource", func() {
	It("RS-33 RS-37 shows and sets replicas, and validates them", func(ctx SpecContext) {
		primaries := int32(2)
		set := newSet(newNamespace(ctx), func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Primaries = &primaries })
		Expect(user.Create(ctx, set)).To(Succeed())
		set.Status.Replicas, set.Status.Selector = 3, "app=example"
		Expect(user.Status().Update(ctx, set)).To(Succeed())
		scale := &autoscalingv1.Scale{}
		Expect(user.SubResource("scale").Get(ctx, set, scale)).To(Succeed())
		Expect(scale.Spec.Replicas).To(BeEquivalentTo(3))
		Expect(scale.Status).To(Equal(autoscalingv1.ScaleStatus{Replicas: 3, Selector: "app=example"}))
		to := func(n int32) error {
			Expect(user.SubResource("scale").Get(ctx, set, scale)).To(Succeed())
			scale.Spec.Replicas = n
			return user.SubResource("scale").Update(ctx, set, client.WithSubResourceBody(scale))
		}
		Expect(to(5)).To(Succeed())
		Expect(to(0)).To(Succeed(), "stopping the set must not require a change of primaries")
		Expect(clean(to(1))).To(ContainSubstring("spec.primaries: Invalid value: may not be more than replicas; lower it, or remove it to use replicas"))
		Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		Expect(*set.Spec.Replicas).To(BeZero())
	})
})

var _ = Describe("the status", func() {
	It("RS-50 is a subresource and stores all fields", func(ctx SpecContext) {
		set := newSet(newNamespace(ctx))
		set.Status.Epoch = 7
		Expect(user.Create(ctx, set)).To(Succeed())
		Expect(set.Status.Epoch).To(BeZero())
		now := metav1.NewTime(time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC))
		begun := metav1.NewMicroTime(time.Date(2024, 1, 2, 3, 4, 5, 678901000, time.UTC))
		set.Status = v1alpha1.ReplicatedStatefulSetStatus{
			ObservedGeneration: set.Generation, Phase: v1alpha1.PhaseRunning, Reason: "x", ControlPaused: true, Replicas: 3, ReadyReplicas: 3,
			Primaries: 3, PrimariesWanted: 3, RestoreReplicas: 3, Selector: "app=example", ServiceName: "example-svc", Epoch: 2,
			Members:   v1alpha1.Members{Ready: []string{"rss-example-0", "rss-example-1"}, Primary: []string{"rss-example-0"}},
			Sequences: []v1alpha1.Sequence{{Pod: "rss-example-0", Sequence: "18446744073709551615", Epoch: 2, Time: now}},
			Commands: []v1alpha1.RunningCommand{{Pod: "rss-example-0", UID: "1", ContainerID: "containerd://x", RestartCount: 1, Name: v1alpha1.CommandSeed,
				StartedAt: begun, Timeout: metav1.Duration{Duration: time.Minute}}},
			Failures:   []v1alpha1.Failure{{Pod: "rss-example-1", Count: 2, Last: now}},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionAvailable, Status: "True", Reason: v1alpha1.ReasonOnTarget, LastTransitionTime: now}},
		}
		wanted := set.Status.DeepCopy()
		Expect(user.Status().Update(ctx, set)).To(Succeed())
		var got v1alpha1.ReplicatedStatefulSet
		Expect(user.Get(ctx, client.ObjectKeyFromObject(set), &got)).To(Succeed())
		want, err := json.Marshal(wanted)
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Marshal(got.Status)).To(MatchJSON(want))
		set.Status.Sequences[0].Sequence = "-1"
		Expect(user.Status().Update(ctx, set)).To(MatchError(ContainSubstring(`sequences[0].sequence: Invalid value: "-1"`)))
	})
})
