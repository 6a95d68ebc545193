package replicatedstatefulset_test

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/internal/servingcert"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/webhooks"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// evictOnce requests the eviction of a pod. Unlike other clients, it does not retry.
func evictOnce(ctx context.Context, pod *corev1.Pod, dryRun ...string) error {
	GinkgoHelper()
	kube, err := kubernetes.NewForConfig(server.Config)
	Expect(err).NotTo(HaveOccurred())
	preconditions := metav1.NewUIDPreconditions(string(pod.UID))
	return kube.PolicyV1().RESTClient().Post().AbsPath("/api/v1").Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
		Body(&policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: preconditions, DryRun: dryRun},
		}).MaxRetries(0).Do(ctx).Error()
}

var _ = Describe("a drain", func() {
	var p *fakeControlPlane
	var nodes []*corev1.Node
	BeforeEach(func(ctx SpecContext) {
		p = startFakeControlPlane(newNamespace(ctx))
		p.nodes, nodes = p.namespace, nil
		for i := range 3 {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", p.namespace, i)}}
			Expect(user.Create(ctx, n)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(user.Delete(ctx, n)).To(Succeed()) })
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			Expect(user.Status().Update(ctx, n)).To(Succeed())
			nodes = append(nodes, n)
		}
		DeferCleanup(func(ctx SpecContext) { sweep(ctx, p.namespace) })
	})

	cordon := func(ctx SpecContext, n *corev1.Node, is bool) {
		GinkgoHelper()
		from := n.DeepCopy()
		n.Spec.Unschedulable = is
		Expect(user.Patch(ctx, n, client.MergeFrom(from))).To(Succeed())
	}
	says := func(ctx SpecContext, set *v1alpha1.ReplicatedStatefulSet, reason string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			g.Expect(meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionDraining)).To(HaveField("Reason", reason))
		}).Should(Succeed())
	}
	budget := func(ctx SpecContext, name string) (*policyv1.PodDisruptionBudget, error) {
		var b policyv1.PodDisruptionBudget
		return &b, user.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, &b)
	}

	It("RS-64 RS-65 begins with a cordon, and waits while no successor exists", func(ctx SpecContext) {
		set := started(ctx, p)
		Expect(set.Status.Members.Primary).To(ConsistOf("rss-example-0"))
		cordon(ctx, nodes[2], true)
		cordon(ctx, nodes[0], true)
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			g.Expect(set.Status.Members.Primary).To(ConsistOf("rss-example-1"))
		}).Should(Succeed())
		settled(ctx, set, 1, 2)
		says(ctx, set, v1alpha1.ReasonNotDraining)
		cordon(ctx, nodes[1], true)
		says(ctx, set, v1alpha1.ReasonNoSuccessor)
		Expect(set.Status.Members.Primary).To(ConsistOf("rss-example-1"))
		cordon(ctx, nodes[2], false)
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			g.Expect(set.Status.Members.Primary).To(ConsistOf("rss-example-2"))
		}).Should(Succeed())
		Expect(p.maxPrimaries()).To(Equal(1))
	})

	It("RS-67 hands no role over while a policy opens the budget", func(ctx SpecContext) {
		set := started(ctx, p)
		Expect(set.Status.Members.Primary).To(ConsistOf("rss-example-0"))
		server.Mutate(ctx, p.namespace, apiserver.Mutation{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets",
			Patch: `has(object.spec.maxUnavailable) ? [JSONPatch{op: "replace", path: "/spec/maxUnavailable", value: 1}] : []`})
		cordon(ctx, nodes[0], true)
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			degraded := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionDegraded)
			g.Expect(degraded.Reason).To(Equal(v1alpha1.ReasonWriteRefused))
			g.Expect(degraded.Message).To(ContainSubstring("the API server did not store spec.maxUnavailable 0, so a primary could be evicted during its handover"))
		}).Should(Succeed())
		Expect(set.Status.Members.Primary).To(ConsistOf("rss-example-0"))
		Expect(podsOf(ctx, p.namespace)["rss-example-0"].Labels).To(HaveKeyWithValue(v1alpha1.LabelRole, v1alpha1.RolePrimary))
	})

	It("uses a webhook configuration that the API server stores unchanged", func(ctx SpecContext) {
		kept := policy.Keeper{Live: user, Runner: &action.Runner{Client: user, Live: user}}
		keep := func(token string) *registrationv1.ValidatingWebhookConfiguration {
			GinkgoHelper()
			want := replicatedstatefulset.BuildEvictionWebhook(&webhooks.EvictionWebhook{
				Name: "stored", Namespaces: policy.Namespaces("nowhere", []string{"none"}), Service: types.NamespacedName{Namespace: "nowhere", Name: "none"},
			}, servingcert.Caller{Authority: server.WebhookInstallOptions.LocalServingCAData, Token: token})
			webhooks := want.DeepCopy().Webhooks
			Expect(kept.KeepWebhooks(ctx, "replicatedstatefulsets.clusterlabs.org", want)).To(Succeed())
			var have registrationv1.ValidatingWebhookConfiguration
			Expect(user.Get(ctx, client.ObjectKey{Name: "stored"}, &have)).To(Succeed())
			have.Webhooks[0].NamespaceSelector.MatchExpressions = slices.DeleteFunc(have.Webhooks[0].NamespaceSelector.MatchExpressions,
				func(r metav1.LabelSelectorRequirement) bool { return r.Key == "control-plane" })
			Expect(have.Webhooks).To(Equal(webhooks))
			return &have
		}
		made := keep("token")
		DeferCleanup(func(ctx SpecContext) { Expect(user.Delete(ctx, made)).To(Succeed()) })
		Expect(keep("token").ResourceVersion).To(Equal(made.ResourceVersion), "the configuration is written again")
		// W3 The controller of a cloud provider excludes its own namespaces.
		edited := keep("token")
		edited.Webhooks[0].NamespaceSelector.MatchExpressions = append(edited.Webhooks[0].NamespaceSelector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist})
		Expect(user.Update(ctx, edited)).To(Succeed())
		Expect(keep("token").ResourceVersion).To(Equal(edited.ResourceVersion), "W3 fields that a cloud provider added are removed")
		Expect(*keep("another").Webhooks[0].ClientConfig.Service.Path).To(Equal("/another" + webhooks.EvictionPath))
	})

	It("RS-80 RS-82 begins with an eviction request, whose response names the successors", func(ctx SpecContext) {
		set := started(ctx, p)
		first := podsOf(ctx, p.namespace)["rss-example-0"]
		told := func() map[string]string {
			GinkgoHelper()
			var have corev1.ConfigMap
			Expect(client.IgnoreNotFound(user.Get(ctx, book, &have))).To(Succeed())
			return have.Data
		}
		words := "handing over to rss-example-1 or rss-example-2 first"
		err := evictOnce(ctx, &first, metav1.DryRunAll)
		Expect(apierrors.IsTooManyRequests(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(words)))
		Expect(told()).NotTo(HaveKey(string(first.UID)), "a dry run is recorded")
		err = evictOnce(ctx, &first)
		Expect(apierrors.IsTooManyRequests(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(words)))
		Expect(told()).To(HaveKeyWithValue(string(first.UID), ContainSubstring(`"pod":"rss-example-0"`)))
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			g.Expect(set.Status.Members.Primary).To(And(HaveLen(1), Not(ContainElement(first.Name))))
		}).Should(Succeed())
		settled(ctx, set, 1, 2)
		Eventually(func() []string { return events(ctx, p.namespace) }).Should(ContainElement(v1alpha1.EventHandingOver))
		Eventually(func(g Gomega) { // no disruption controller runs here
			b, err := budget(ctx, "rss-example")
			g.Expect(err).NotTo(HaveOccurred())
			b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, DisruptionsAllowed: 1, ExpectedPods: 2, CurrentHealthy: 2, DesiredHealthy: 1}
			g.Expect(user.Status().Update(ctx, b)).To(Succeed())
			g.Expect(evictOnce(ctx, &first)).To(Succeed())
		}).Should(Succeed())
		Expect(p.maxPrimaries()).To(Equal(1))
	})

	It("RS-67 RS-66 RS-69 has a separate budget for the primaries", func(ctx SpecContext) {
		set := started(ctx, p)
		selected := func(name string) []string {
			GinkgoHelper()
			b, err := budget(ctx, name)
			Expect(err).NotTo(HaveOccurred())
			selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			Expect(err).NotTo(HaveOccurred())
			var pods corev1.PodList
			Expect(user.List(ctx, &pods, client.InNamespace(p.namespace), client.MatchingLabelsSelector{Selector: selector})).To(Succeed())
			var names []string
			for i := range pods.Items {
				names = append(names, pods.Items[i].Name)
			}
			return names
		}
		Expect(selected("rss-example.primary")).To(ConsistOf("rss-example-0"))
		Expect(selected("rss-example")).To(ConsistOf("rss-example-1", "rss-example-2"))

		set.Spec.EvictionPolicy = v1alpha1.EvictionAllow
		Expect(user.Update(ctx, set)).To(Succeed())
		Eventually(func(g Gomega) {
			_, err := budget(ctx, "rss-example.primary")
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
			b, err := budget(ctx, "rss-example")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(b.Spec.Selector.MatchExpressions).To(BeEmpty())
			g.Expect(b.Spec.MinAvailable).To(BeNil())
			g.Expect(b.Spec.MaxUnavailable.IntValue()).To(Equal(1))
		}).Should(Succeed())

		settled(ctx, set, 1, 2)
		set.Spec.EvictionPolicy = v1alpha1.EvictionHandover
		Expect(user.Update(ctx, set)).To(Succeed())
		Eventually(func(g Gomega) {
			_, err := budget(ctx, "rss-example.primary")
			g.Expect(err).NotTo(HaveOccurred())
			b, err := budget(ctx, "rss-example")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(b.Spec.MaxUnavailable).To(BeNil())
			g.Expect(b.Spec.MinAvailable.IntValue()).To(Equal(1))
		}).Should(Succeed())

		settled(ctx, set, 1, 2)
		set.Spec.PodDisruptionBudget = &v1alpha1.BudgetPolicy{Disabled: true}
		Expect(user.Update(ctx, set)).To(Succeed())
		Eventually(func(g Gomega) {
			var all policyv1.PodDisruptionBudgetList
			g.Expect(user.List(ctx, &all, client.InNamespace(p.namespace))).To(Succeed())
			g.Expect(all.Items).To(BeEmpty())
		}).Should(Succeed())
	})
})
