package statefulsingleton_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton"
)

const withoutGate = `StatefulSingleton db selects this pod, but the pod was created without the gate that holds back its program: the operator did not respond, or the StatefulSingleton has just been created. The pod is refused because two programs could run otherwise. Its owner will retry; if that does not help, check whether the operator is running: kubectl -n operator-system get pods`

var _ = Describe("S16 a pod without its gate", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	It("is refused while the webhook is unreachable, and other pods are not", func(ctx SpecContext) {
		declare(ctx, newSingleton(ns))
		elsewhere := newNamespace(ctx)
		outage(ctx, func() {
			Expect(refusal(ctx, newPod(ns, "a"))).To(Equal(guarded("a", withoutGate)))
			Expect(refusal(ctx, newPod(elsewhere, "a"))).To(BeEmpty())
			for _, labels := range []map[string]string{nil, {"app": "web"}} {
				Expect(refusal(ctx, newPod(ns, "a", func(p *corev1.Pod) { p.Labels = labels }))).To(BeEmpty())
			}
			Expect(refusal(ctx, newPod(ns, "a", func(p *corev1.Pod) { // imitates our work, but has no gate
				p.Labels[v1.LabelManaged], p.Labels[v1.LabelSingleton], p.Annotations[v1.AnnotationManaged] = "true", "db", "true"
			}))).To(Equal(guarded("a", withoutGate)))
		})
		Expect(refusal(ctx, newPod(ns, "a"))).To(BeEmpty())
	})

	It("that is older than the object blocks all others until it is deleted", func(ctx SpecContext) {
		old := add(ctx, newPod(ns, "old", playing(playHang, "yes")))
		s := declare(ctx, newSingleton(ns))
		startOperator(operatorOptions{namespaces: []string{ns}})
		next := add(ctx, newPod(ns, "next"))
		Expect(says(ctx, s, v1.ConditionUnmanagedPod, v1.ReasonPodWithoutGate)).To(Equal("these pods match the selector and may be running the program without the gate, because they were created before the StatefulSingleton, without its webhook, before spec.containers listed their containers, or with a gate that is not the operator's: old. No other pod starts until they have stopped. To continue: kubectl -n " + ns + " delete pod old"))
		Expect(look(ctx, s).Phase).To(Equal(v1.PhaseTransitioning))
		Expect(s.Status.ActivePod).To(Equal("old"))
		Expect(controllerutil.ContainsFinalizer(live(ctx, old), v1.FinalizerPod)).To(BeTrue(), "a force deletion would remove it immediately")
		Expect(granted(live(ctx, next))).To(BeFalse())
		remove(ctx, old, client.GracePeriodSeconds(0))
		look(ctx, s)
		Expect(granted(live(ctx, next))).To(BeFalse())
		tell(ctx, old, playHang, "")
		activates(ctx, s, next)
		look(ctx, s)
		Expect(meta.IsStatusConditionFalse(s.Status.Conditions, v1.ConditionUnmanagedPod)).To(BeTrue())
	})

	It("V14 is reported with all other running pods, and with the command that helps", func(ctx SpecContext) {
		var old []*corev1.Pod
		for _, name := range []string{"a", "b", "c"} {
			old = append(old, add(ctx, newPod(ns, name)))
		}
		for _, p := range old {
			Eventually(func() []corev1.PodCondition { return live(ctx, p).Status.Conditions }).Should(
				ContainElement(And(HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))))
		}
		s := declare(ctx, newSingleton(ns))
		startOperator(operatorOptions{namespaces: []string{ns}})
		const text = "3 pods may be running the program at the same time, but at most one should: a, b, c"
		command := ". Stop all but one: kubectl -n " + ns + " delete pod b c"
		Expect(says(ctx, s, v1.ConditionDegraded, v1.ReasonSeveralRunning)).To(Equal(text + command))
		Expect(says(ctx, s, v1.ConditionAvailable, v1.ReasonSeveralRunning)).To(Equal(text))
		Expect(says(ctx, s, v1.ConditionUnmanagedPod, v1.ReasonPodWithoutGate)).To(HaveSuffix("To continue: kubectl -n " + ns + " delete pod a b c"))
		Expect(s.Status.Phase).To(Equal(v1.PhaseFailed))
		Eventually(func() []string { return notes(ctx, s, v1.EventSeveralRunning) }).Should(Equal([]string{"Warning: " + text + command}))
		for _, p := range old[1:] {
			remove(ctx, p)
			gone(ctx, p)
		}
		says(ctx, s, v1.ConditionAvailable, v1.ReasonActive)
		says(ctx, s, v1.ConditionDegraded, v1.ReasonHealthy)
		Expect(s.Status.Phase).To(Equal(v1.PhaseRunning))
		Expect(notes(ctx, s, v1.EventSeveralRunning)).To(HaveLen(1))
	})

	It("that was created without webhook and guard blocks all others", func(ctx SpecContext) {
		s := newSingleton(ns)
		var slipped *corev1.Pod
		outage(ctx, func() {
			Expect(user.Create(ctx, s)).To(Succeed())
			// A mirror pod is the one that the guard allows: the kubelet runs it anyway.
			slipped = add(ctx, newPod(ns, "slipped", func(p *corev1.Pod) {
				p.Spec.NodeName = "node-1"
				p.Annotations[corev1.MirrorPodAnnotationKey] = "x"
				p.Annotations[playOff] = "the operator must not observe its end"
			}))
		})
		op := startOperator(operatorOptions{namespaces: []string{ns}})
		next := add(ctx, newPod(ns, "next"))
		Expect(says(ctx, s, v1.ConditionUnmanagedPod, v1.ReasonPodWithoutGate)).To(HaveSuffix("To continue: remove the manifest of static pod slipped from the kubelet's manifest directory on Node node-1"))
		look(ctx, s)
		Expect(granted(live(ctx, next))).To(BeFalse())
		remove(ctx, slipped, client.GracePeriodSeconds(0))
		gone(ctx, slipped)
		// V14: this proves nothing about the program; its kubelet would recreate the
		// mirror.
		Expect(says(ctx, s, v1.ConditionProgressing, v1.ReasonWaitingForPod)).To(HavePrefix("waiting up to 2m0s for the kubelet to report a static pod again"))
		Expect(granted(live(ctx, next))).To(BeFalse())
		op.forward(3 * time.Minute)
		edit(ctx, s, func(s *v1.StatefulSingleton) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, "wake", "up") })
		activates(ctx, s, next)
	})
})

var _ = Describe("after an outage", func() {
	It("S16 triggers only the owners whose pods were refused", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		d := newDeployment(ns, 1)
		Expect(user.Create(ctx, d)).To(Succeed())
		refused := revision(ctx, d, "1")
		refused.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate"}}
		Expect(user.Status().Update(ctx, refused)).To(Succeed())
		other := newDeployment(ns, 1, func(d *appsv1.Deployment) {
			d.Name, d.Spec.Selector.MatchLabels["app"], d.Spec.Template.Labels["app"] = "web", "web", "web"
		})
		Expect(user.Create(ctx, other)).To(Succeed())
		patient := revision(ctx, d, "2") // it has no failure, so it is not touched
		stateful := &appsv1.StatefulSet{ObjectMeta: newDeployment(ns, 1).ObjectMeta, Spec: appsv1.StatefulSetSpec{
			Selector: d.Spec.Selector, Template: d.Spec.Template, ServiceName: "db"}}
		Expect(user.Create(ctx, stateful)).To(Succeed())
		declare(ctx, newSingleton(ns))
		op := startOperator(operatorOptions{namespaces: []string{ns}})
		op.forward(time.Minute) // the owners are no longer new
		const touched = "apps.statefulsingleton.com/touched"
		Eventually(func() map[string]string {
			Expect(user.Get(ctx, client.ObjectKeyFromObject(refused), refused)).To(Succeed())
			return refused.Annotations
		}).Should(HaveKey(touched))
		Eventually(func() map[string]string {
			Expect(user.Get(ctx, client.ObjectKeyFromObject(stateful), stateful)).To(Succeed())
			return stateful.Annotations
		}).Should(HaveKey(touched))
		Expect(user.Get(ctx, client.ObjectKeyFromObject(patient), patient)).To(Succeed())
		Expect(patient.Annotations).NotTo(HaveKey(touched))
	})
})

// answer returns a response of the API server.
func answer(r *http.Request, code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(strings.NewReader(body))}
}

var _ = Describe("the guard policy", func() {
	It("S16 is reported as missing if it cannot be installed", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		s := declare(ctx, newSingleton(ns))
		startOperator(operatorOptions{namespaces: []string{ns}, name: "elsewhere", rest: func(c *rest.Config) {
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return tripper(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/validatingadmissionpolicies") {
						return answer(r, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"policies are not for you","reason":"Forbidden","code":403}`), nil
					}
					return next.RoundTrip(r)
				})
			})
		}})
		a := add(ctx, newPod(ns, "a"))
		activates(ctx, s, a)
		look(ctx, s)
		Expect(says(ctx, s, v1.ConditionGuardMissing, v1.ReasonPolicyNotInstalled)).To(Equal("the API server does not have policy statefulsingleton-guard-elsewhere; the operator's installer creates it within seconds, or logs why it cannot: kubectl logs -n elsewhere -l control-plane=installer; a pod that is created while the operator's webhook is unavailable runs its program immediately"))
	})

	It("S16 is reported as missing by an object at rest, until it is restored", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		s := declare(ctx, newSingleton(ns))
		var gone atomic.Bool
		startOperator(operatorOptions{namespaces: []string{ns}, rest: func(c *rest.Config) {
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return tripper(func(r *http.Request) (*http.Response, error) {
					if gone.Load() && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/validatingadmissionpolicies/") {
						return answer(r, http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"there is none","reason":"NotFound","code":404}`), nil
					}
					return next.RoundTrip(r)
				})
			})
		}})
		activates(ctx, s, add(ctx, newPod(ns, "a")))
		healthy := func() {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				g.Expect(user.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
				g.Expect(meta.IsStatusConditionFalse(s.Status.Conditions, v1.ConditionGuardMissing)).To(BeTrue())
				g.Expect(meta.IsStatusConditionFalse(s.Status.Conditions, v1.ConditionProgressing)).To(BeTrue())
			}).Should(Succeed())
		}
		healthy()
		gone.Store(true)
		says(ctx, s, v1.ConditionGuardMissing, v1.ReasonPolicyNotInstalled)
		gone.Store(false)
		healthy()
	})

	It("S16 is reported as missing if the API server does not support policies", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		s := declare(ctx, newSingleton(ns))
		startOperator(operatorOptions{namespaces: []string{ns}, rest: func(c *rest.Config) {
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return tripper(func(r *http.Request) (*http.Response, error) {
					if r.URL.Path == "/apis" { // one list of groups, and one of resources for each group
						r = r.Clone(r.Context())
						r.Header.Set("Accept", "application/json")
					}
					resp, err := next.RoundTrip(r)
					if err == nil && r.URL.Path == "/apis/admissionregistration.k8s.io/v1" {
						err = withoutPolicies(resp)
					}
					return resp, err
				})
			})
		}})
		a := add(ctx, newPod(ns, "a"))
		activates(ctx, s, a)
		look(ctx, s)
		Expect(says(ctx, s, v1.ConditionGuardMissing, v1.ReasonNoPolicyAPI)).To(Equal("the API server does not support ValidatingAdmissionPolicy, which requires Kubernetes 1.30; a pod that is created while the operator's webhook is unavailable runs its program immediately"))
	})

	It("S16 is deleted with the definition of its parameters", func(ctx SpecContext) {
		policy, binding := statefulsingleton.BuildGuard(operatorNamespace, nil)
		edit(ctx, policy, func(p *admissionv1.ValidatingAdmissionPolicy) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "another", UID: "another"}}
		})
		edit(ctx, binding, func(b *admissionv1.ValidatingAdmissionPolicyBinding) { b.OwnerReferences = nil })
		crd := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
			ObjectMeta: metav1.ObjectMeta{Name: "statefulsingletons." + v1.GroupVersion.Group}}
		Expect(user.Get(ctx, client.ObjectKeyFromObject(crd), crd)).To(Succeed())
		startOperator(operatorOptions{namespaces: []string{newNamespace(ctx)}})
		owner := HaveField("UID", crd.UID)
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(Succeed())
			g.Expect(policy.OwnerReferences).To(ConsistOf(HaveField("Name", "another"), owner))
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(binding), binding)).To(Succeed())
			g.Expect(binding.OwnerReferences).To(ConsistOf(owner))
		}).Should(Succeed())
	})

	It("S16 is corrected when the operator starts", func(ctx SpecContext) {
		policy, binding := statefulsingleton.BuildGuard(operatorNamespace, nil)
		edit(ctx, policy, func(p *admissionv1.ValidatingAdmissionPolicy) { p.Spec.FailurePolicy = ptr.To(admissionv1.Ignore) })
		Expect(user.Delete(ctx, binding)).To(Succeed())
		startOperator(operatorOptions{namespaces: []string{newNamespace(ctx)}})
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(Succeed())
			g.Expect(policy.Spec.FailurePolicy).To(HaveValue(Equal(admissionv1.Fail)))
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(binding), binding)).To(Succeed())
			// During its first minute, which may just have begun, a policy allows
			// everything that it cannot evaluate.
		}).WithTimeout(2 * time.Minute).Should(Succeed())
		outage(ctx, func() {
			Eventually(func() string { return refusal(ctx, newPod(probes, "a")) }).Should(ContainSubstring("denied request"))
		})
	})

	// The controller that writes status.typeChecking does not run in an API server. This is
	// the function that it calls, with the types that this API server publishes.
	It("has no expression with a type error", func(ctx SpecContext) {
		d, err := discovery.NewDiscoveryClientForConfig(server.Config)
		Expect(err).NotTo(HaveOccurred())
		checker := &validating.TypeChecker{SchemaResolver: &resolver.ClientDiscoveryResolver{Discovery: d}, RestMapper: user.RESTMapper()}
		policy, _ := statefulsingleton.BuildGuard(operatorNamespace, nil)
		Expect(user.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(Succeed())
		Expect(checker.Check(policy)).To(BeEmpty())
		policy.Spec.Validations[0].Expression = `params.spec.noSuchField == 1 || object.spec.containers == "x"`
		Expect(checker.Check(policy)).NotTo(BeEmpty(), "the API server checks no types")
	})
})

// withoutPolicies changes a list of resources to the response of Kubernetes 1.29.
func withoutPolicies(resp *http.Response) error {
	var list metav1.APIResourceList
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return err
	}
	list.APIResources = slices.DeleteFunc(list.APIResources, func(r metav1.APIResource) bool { return strings.HasPrefix(r.Name, "validatingadmissionpolic") })
	text, err := json.Marshal(&list)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	resp.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return err
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
