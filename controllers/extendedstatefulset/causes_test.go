package extendedstatefulset_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
)

// becomeReady updates the status of a pod like a kubelet when the pod becomes Ready.
func becomeReady(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var pod corev1.Pod
		g.Expect(user.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &pod)).To(Succeed())
		now := metav1.Now()
		pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}}
		g.Expect(user.Status().Update(ctx, &pod)).To(Succeed())
	}).Should(Succeed())
}

var _ = Describe("The cause of a failure", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		startFakeControlPlane(namespace)
	})

	It("V5 is not attributed to a canary while the operator was down", func(ctx SpecContext) {
		var away atomic.Bool
		lease := leadership.Alone(func(context.Context) error {
			if away.Load() {
				return errors.New("the API server is away")
			}
			return nil
		}, leadership.Timing{LeaseDuration: 2 * time.Second, RenewDeadline: time.Second, RetryPeriod: 50 * time.Millisecond})
		startOperatorWith(func(mgr ctrl.Manager) error {
			options := settings(namespace)
			options.Lease = lease
			return errors.Join(mgr.Add(lease), extendedstatefulset.Setup(mgr, options))
		})
		Expect(user.Create(ctx, object(namespace, `{"spec": {"updateStrategy": {"canaryWatchTime": "3s"}, "template": {"spec": {"replicas": 1, "minReadySeconds": 1}}}}`))).To(Succeed())
		stable(ctx, namespace, 1, 1)
		away.Store(true)
		Expect(change(ctx, object(namespace), image(badImage))).To(Succeed()) // the fake control plane is paused and does not process it
		var begun time.Time
		Eventually(func(g Gomega) {
			u := web(ctx, namespace).Status.Update
			g.Expect(u).NotTo(BeNil())
			g.Expect(u.CanaryAt).NotTo(BeNil())
			g.Expect(user.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "web-v2-0"}, &corev1.Pod{})).To(Succeed())
			begun = u.CanaryAt.Time
		}).Should(Succeed())
		Eventually(time.Now).Should(BeTemporally(">", begun.Add(6*time.Second)))
		Expect(web(ctx, namespace).Status.Phase).To(Equal(v1alpha1.PhaseCanary))
		becomeReady(ctx, namespace, "web-v2-0")
		away.Store(false)
		stable(ctx, namespace, 2, 1)
	})

	DescribeTable("V6 is reported while pods cannot be created, and after they are deleted", func(ctx SpecContext, obstacle func(context.Context, string), patch, want string) {
		startOperator(namespace)
		Expect(user.Create(ctx, object(namespace, `{"spec": {"updateStrategy": {"canaryWatchTime": "8s"}}}`))).To(Succeed())
		stable(ctx, namespace, 1, 3)
		set := web(ctx, namespace)
		obstacle(ctx, namespace)
		Expect(change(ctx, object(namespace), patch)).To(Succeed())
		Eventually(condition(ctx, set, v1alpha1.ConditionProgressing)).
			Should(And(ContainSubstring("not Ready: web-v2-0 (it cannot be created: "), ContainSubstring(want)))
		Eventually(condition(ctx, set, v1alpha1.ConditionStale)).
			Should(And(HavePrefix("True CanaryFailed: version 2 was marked stale"), ContainSubstring(want)))
		Expect(condition(ctx, set, v1alpha1.ConditionAvailable)()).To(HavePrefix("True "))
		Eventually(func() string {
			return statefulSets(ctx, namespace)["web-v2"].Annotations[v1alpha1.AnnotationStaleReason]
		}).Should(ContainSubstring(want))
	},
		Entry("because of a LimitRange", func(ctx context.Context, namespace string) {
			Expect(user.Create(ctx, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: namespace}, Spec: corev1.LimitRangeSpec{
				Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}})).To(Succeed())
		}, `{"spec": {"template": {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web", "resources": {"limits": {"cpu": "2"}}}]}}}}}}`,
			"maximum cpu usage per Container is 1, but limit is 2"),
		Entry("because of PodSecurity", func(ctx context.Context, namespace string) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
			Expect(change(ctx, ns, `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}`)).To(Succeed())
		}, `{"spec": {"template": {"spec": {"template": {"spec": {"hostNetwork": true}}}}}}`, `violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`),
		Entry("because of a RuntimeClass", func(context.Context, string) {},
			`{"spec": {"template": {"spec": {"template": {"spec": {"runtimeClassName": "none"}}}}}}`, `RuntimeClass "none" not found`),
	)

	It("V6 W17 is reported for a first version, which cannot be rolled back", func(ctx SpecContext) {
		startOperator(namespace)
		Expect(user.Create(ctx, object(namespace, `{"spec": {"template": {"spec": {"template": {"spec": {"runtimeClassName": "none"}}}}}}`))).To(Succeed())
		set := web(ctx, namespace)
		const why = `not Ready: web-v1-0 (it cannot be created: pod rejected: RuntimeClass "none" not found)`
		for kind, want := range map[string]string{
			v1alpha1.ConditionAvailable: "False PodsUnavailable: 0 of 3 pods are available; " + why, v1alpha1.ConditionProgressing: "True WaitingForPods: web-v1 has 0 of 3 pods available; " + why,
			v1alpha1.ConditionDegraded: "True PodsHindered: pods of version 1 cannot be created or started: web-v1-0 (it cannot be created: ",
			v1alpha1.ConditionStalled:  "True PodsHindered: "} {
			Eventually(condition(ctx, set, kind)).Should(HavePrefix(want))
		}
	})
})
