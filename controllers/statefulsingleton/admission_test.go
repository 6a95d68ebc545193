package statefulsingleton_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// bad is a change that makes an object invalid, and the error that its author gets.
type bad struct {
	change  func(*v1.StatefulSingleton)
	message string
}

const (
	invalid   = `StatefulSingleton.apps.openshift.statefulsingleton.com "db" is invalid: `
	unchecked = `, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`
)

func badObjects() []TableEntry {
	long := strings.Repeat("a", 64)
	return []TableEntry{
		Entry("S1 a maxTransitionTime of 0", bad{func(s *v1.StatefulSingleton) { s.Spec.MaxTransitionTime = ptr.To[int32](0) },
			invalid + `spec.maxTransitionTime: Invalid value: 0: spec.maxTransitionTime in body should be greater than or equal to 1`}),
		Entry("S1 a maxTransitionTime of 3601", bad{func(s *v1.StatefulSingleton) { s.Spec.MaxTransitionTime = ptr.To[int32](3601) },
			invalid + `spec.maxTransitionTime: Invalid value: 3601: spec.maxTransitionTime in body should be less than or equal to 3600`}),
		Entry("V20 a terminationGracePeriod of centuries", bad{func(s *v1.StatefulSingleton) { s.Spec.TerminationGracePeriod = ptr.To[int64](9999999999) },
			invalid + `spec.terminationGracePeriod: Invalid value: 9999999999: max 31536000 seconds (a year), because the next pod waits until the previous one has stopped; 0 keeps the value of the pods`}),
		Entry("S26 no selector", bad{func(s *v1.StatefulSingleton) { s.Spec.Selector = nil },
			invalid + `[spec.selector: Required value` + unchecked}),
		Entry("S26 an empty selector", bad{func(s *v1.StatefulSingleton) { s.Spec.Selector = &metav1.LabelSelector{} },
			invalid + `spec.selector: Invalid value: set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod`}),
		Entry("a selector without matchLabels or In, which would match unrelated pods", bad{func(s *v1.StatefulSingleton) {
			s.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "no-such-label", Operator: metav1.LabelSelectorOpDoesNotExist}}}
		}, invalid + `spec.selector: Invalid value: select pods by matchLabels or by an expression In, for example matchLabels: {app: my-app}; a selector with only NotIn, Exists or DoesNotExist would match unrelated pods`}),
		Entry("an expression with 33 values", bad{func(s *v1.StatefulSingleton) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: strings.Fields(strings.Repeat("v ", 33))}}
		}, invalid + `[spec.selector.matchExpressions[0].values: Too many: 33: must have at most 32 items` + unchecked}),
		Entry("S26 a selector that no pod can match", bad{func(s *v1.StatefulSingleton) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpDoesNotExist}}
		}, invalid + `spec.selector: Invalid value: "app=db,!app": no pod can match: the requirements for label "app" contradict each other`}),
		Entry("a selector that uses a label of the operator", bad{func(s *v1.StatefulSingleton) {
			s.Spec.Selector.MatchLabels = map[string]string{v1.LabelManaged: "true"}
		}, invalid + `spec.selector: Invalid value: labels with prefix apps.statefulsingleton.com/ are set by the operator; select by a label of the application`}),
		Entry("a name that is too long for a label value", bad{func(s *v1.StatefulSingleton) { s.Name = long },
			`StatefulSingleton.apps.openshift.statefulsingleton.com "` + long + `" is invalid: <nil>: Invalid value: the name must have at most 63 characters, because it is a label value of pods`}),
		Entry("an unknown mode", bad{func(s *v1.StatefulSingleton) { s.Spec.GateMode = "Magic" },
			invalid + `[spec.gateMode: Unsupported value: "Magic": supported values: "Auto", "Binary", "Script", "Init"` + unchecked}),
		Entry("an unknown policy", bad{func(s *v1.StatefulSingleton) { s.Spec.OnTimeout = "Kill" },
			invalid + `[spec.onTimeout: Unsupported value: "Kill": supported values: "Wait", "DeleteOld"` + unchecked}),
		Entry("the sidecar as the program", bad{func(s *v1.StatefulSingleton) { s.Spec.Containers = []string{"status-sidecar"} },
			invalid + `spec.containers: Invalid value: status-sidecar is a container of the operator; use the name of the program's container`}),
		Entry("an invalid container name", bad{func(s *v1.StatefulSingleton) { s.Spec.Containers = []string{"my.app"} },
			invalid + `spec.containers[0]: Invalid value: "my.app": spec.containers[0] in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'`}),
	}
}

var _ = Describe("admission of objects", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	DescribeTable("refuses", func(ctx SpecContext, b bad) {
		Expect(refusal(ctx, newSingleton(ns, b.change))).To(server.Says(b.message))
	}, badObjects())

	It("S1 fills in the defaults", func(ctx SpecContext) {
		s := newSingleton(ns)
		Expect(user.Create(ctx, s)).To(Succeed())
		Expect(s.Spec).To(Equal(v1.StatefulSingletonSpec{
			Selector: s.Spec.Selector, MaxTransitionTime: ptr.To[int32](300), TerminationGracePeriod: ptr.To[int64](30),
			RespectPodGracePeriod: ptr.To(true), GateMode: v1.GateAuto, StatusSidecar: ptr.To(false), OnTimeout: v1.TimeoutWaits,
			OnEviction: v1.EvictionReplaces, OnCrashLoop: v1.CrashLoopRestarts}))
	})

	It("S1 keeps false and 0 from a Go client", func(ctx SpecContext) {
		s := newSingleton(ns, func(s *v1.StatefulSingleton) {
			s.Spec.RespectPodGracePeriod, s.Spec.TerminationGracePeriod = ptr.To(false), ptr.To[int64](0)
		})
		Expect(user.Create(ctx, s)).To(Succeed())
		Expect(user.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
		Expect(s.Spec.RespectPodGracePeriod).To(HaveValue(BeFalse()))
		Expect(s.Spec.TerminationGracePeriod).To(HaveValue(BeZero()))
		edit(ctx, s, func(s *v1.StatefulSingleton) { s.Spec.MaxTransitionTime = ptr.To[int32](1) })
		Expect(s.Spec.RespectPodGracePeriod).To(HaveValue(BeFalse()))
	})

	It("S1 shows the columns Status, Active Pod, Waiting, Ready, Available, Node and Age, under the short name", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		startOperator(operatorOptions{namespaces: []string{ns}})
		a := add(ctx, newPod(ns, "a"))
		activates(ctx, s, a)
		add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
		Eventually(func(g Gomega) {
			columns, cells := server.Table(ctx, "statefulsingletons", s)
			g.Expect(columns).To(Equal([]string{"Name", "Status", "Active Pod", "Waiting", "Ready", "Available", "Node", "Age"}))
			for _, column := range columns {
				g.Expect(cells).To(HaveKeyWithValue(column, Not(BeNil())))
			}
			g.Expect(cells).To(And(HaveKeyWithValue("Status", "Running"), HaveKeyWithValue("Active Pod", "a"),
				HaveKeyWithValue("Waiting", BeEquivalentTo(1)), HaveKeyWithValue("Available", "True")))
		}).Should(Succeed())
		Expect(server.CRDs).To(ContainElement(HaveField("Spec.Names.ShortNames", ConsistOf("ssn"))))
	})

	It("V21 shows 0 in column Waiting where no pod has waited yet", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		startOperator(operatorOptions{namespaces: []string{ns}})
		says(ctx, s, v1.ConditionAvailable, v1.ReasonNoPods)
		_, cells := server.Table(ctx, "statefulsingletons", s)
		Expect(cells).To(And(HaveKeyWithValue("Status", "Running"), HaveKeyWithValue("Active Pod", BeNil()), HaveKeyWithValue("Waiting", BeEquivalentTo(0))))
	})

	It("V20 warns about a typo in an annotation during the deletion, and about a namespace without the guard", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns, func(s *v1.StatefulSingleton) { s.Finalizers = []string{"example.com/mine"} }))
		Expect(user.Delete(ctx, s.DeepCopy())).To(Succeed())
		c, heard := listening()
		Expect(c.Patch(ctx, s, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"apps.statefulsingleton.com/release":"true"}}}`)))).To(Succeed())
		Expect(*heard).To(ConsistOf(ContainSubstring("metadata.annotations[apps.statefulsingleton.com/release]: unknown annotation")))
		edit(ctx, s, func(s *v1.StatefulSingleton) { s.Finalizers = nil })
		c, heard = listening()
		Expect(c.Create(ctx, newSingleton(metav1.NamespaceSystem), client.DryRunAll)).To(Succeed())
		Expect(*heard).To(ConsistOf(ContainSubstring("metadata.namespace: the operator does not guard namespace kube-system")))
	})

	It("S26 refuses a change of the selector", func(ctx SpecContext) {
		s := declare(ctx, newSingleton(ns))
		s.Spec.Selector.MatchLabels["app"] = "web"
		Expect(apiserver.Said(user.Update(ctx, s))).To(Equal(invalid + `spec: Invalid value: selector is immutable; delete the StatefulSingleton (the running program is not stopped) and create another`))
	})

	It("S26 refuses an object whose selector overlaps another's", func(ctx SpecContext) {
		declare(ctx, newSingleton(ns))
		Expect(refusal(ctx, newSingleton(ns, func(s *v1.StatefulSingleton) {
			s.Name, s.Spec.Selector.MatchLabels = "second", map[string]string{"tier": "one"}
		}))).To(Equal(`StatefulSingleton.apps.openshift.statefulsingleton.com "second" is invalid: spec.selector: Invalid value: "tier=one": a pod could also match StatefulSingleton db, which selects app=db, but may belong to only one; use a label with a different value in each selector, for example app`))
		Expect(refusal(ctx, newSingleton(ns, func(s *v1.StatefulSingleton) {
			s.Name, s.Spec.Selector.MatchLabels = "second", map[string]string{"app": "web"}
		}))).To(BeEmpty())
	})

	It("refuses more than 100 objects in a namespace", func(ctx SpecContext) {
		numbered := func(i int) *v1.StatefulSingleton {
			return newSingleton(ns, func(s *v1.StatefulSingleton) {
				s.Name = fmt.Sprint("s", i)
				s.Spec.Selector.MatchLabels["app"] = s.Name
			})
		}
		for i := range 100 {
			Expect(user.Create(ctx, numbered(i))).To(Succeed())
		}
		Eventually(func() string { return refusal(ctx, numbered(100)) }).Should(Equal(`StatefulSingleton.apps.openshift.statefulsingleton.com "s100" is invalid: metadata.namespace: Forbidden: a namespace may have at most 100 StatefulSingletons, because the API server compares every new pod with all of them, and ` + ns + ` has reached this limit; use another namespace`))
		Expect(refusal(ctx, newPod(ns, "stranger"))).To(BeEmpty())
	})

	It("warns about containers that mode Init ignores", func(ctx SpecContext) {
		c, heard := listening()
		Expect(c.Create(ctx, newSingleton(ns, mode(v1.GateInit), func(s *v1.StatefulSingleton) { s.Spec.Containers = []string{"app"} }))).To(Succeed())
		Expect(*heard).To(Equal([]string{"spec.containers is ignored in gate mode Init, which holds back the whole pod"}))
	})
})

// listening returns a client, and the warnings that it has received.
func listening() (client.Client, *[]string) {
	GinkgoHelper()
	var heard []string
	conf := rest.CopyConfig(server.Config)
	conf.WarningHandler = warnings(func(text string) { heard = append(heard, text) })
	c, err := client.New(conf, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c, &heard
}

type warnings func(string)

func (w warnings) HandleWarningHeader(_ int, _ string, text string) { w(text) }

var _ = Describe("S6 a managed pod", func() {
	It("can get labels, annotations and owners, and lose finalizers", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		s := declare(ctx, newSingleton(ns))
		startOperator(operatorOptions{namespaces: []string{ns}})
		p := add(ctx, newPod(ns, "a"))
		activates(ctx, s, p)
		theInvariant.excuse(ns)
		for _, patch := range []string{
			`{"metadata":{"labels":{"tier":"one"}}}`,
			`{"metadata":{"annotations":{"note":"x"}}}`,
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"1"}]}}`,
			`{"metadata":{"finalizers":["example.com/other"]}}`,
			`{"metadata":{"finalizers":null}}`,
		} {
			Expect(as(anotherUser).Patch(ctx, p, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed(), patch)
		}
	})

	It("cannot leave a selector by a change of labels, and an unmanaged pod cannot join one", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		s := declare(ctx, newSingleton(ns))
		startOperator(operatorOptions{namespaces: []string{ns}})
		p := add(ctx, newPod(ns, "a"))
		activates(ctx, s, p)
		stranger := add(ctx, newPod(ns, "stranger", func(p *corev1.Pod) { p.Labels["app"] = "web" }))
		for pod, app := range map[*corev1.Pod]string{p: "debug", stranger: "db"} {
			err := user.Patch(ctx, pod, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"app":%q}}}`, app)))
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(guarded(pod.Name, `StatefulSingleton db selects by these labels: this change would add a pod that may be running to its selection, or remove one, so that two programs could run. Delete the pod instead, or change the labels in its template`)))
		}
	})

	It("cannot get or lose a grant by a write of another client", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		s := declare(ctx, newSingleton(ns))
		startOperator(operatorOptions{namespaces: []string{ns}})
		a := add(ctx, newPod(ns, "a"))
		activates(ctx, s, a)
		b := add(ctx, newPod(ns, "b"))
		activates(ctx, s, a, "b")
		for pod, grant := range map[*corev1.Pod]string{b: fmt.Sprintf("%q", string(b.UID)+" 7"), a: "null"} {
			err := as(anotherUser).Patch(ctx, pod, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, v1.AnnotationGrant, grant)))
			Expect(err).To(MatchError(guarded(pod.Name, `StatefulSingleton db starts one pod at a time: only the operator may change annotation apps.statefulsingleton.com/grant, which starts the program`)))
		}
	})
})

// guarded returns the API server's error when the guard policy rejects a pod with that
// text.
func guarded(pod, text string) string {
	const guard = "statefulsingleton-guard-" + operatorNamespace
	return fmt.Sprintf(`pods %q is forbidden: ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s`, pod, guard, guard, text)
}
