package replicatedstatefulset_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset"
)

// startOperator starts one operator for the namespaces of the fake control planes, with the rights
// that are shipped. It stops with the test, or when stop is called.
func startOperator(planes ...*fakeControlPlane) (stop func()) {
	GinkgoHelper()
	var namespaces []string
	byNamespace, watched := map[string]*fakeControlPlane{}, map[string]cache.Config{}
	for _, p := range planes {
		namespaces = append(namespaces, p.namespace)
		byNamespace[p.namespace], watched[p.namespace] = p, cache.Config{}
	}
	run := func(ctx context.Context, c podexec.Command) podexec.Result {
		return byNamespace[c.Pod.Namespace].exec(ctx, c)
	}
	conf := rest.CopyConfig(server.Config)
	conf.Impersonate.UserName = theOperator
	mgr, err := ctrl.NewManager(conf, ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Cache:                   cache.Options{DefaultNamespaces: watched, ByObject: replicatedstatefulset.Cache()},
		Controller:              config.Controller{SkipNameValidation: ptr.To(true)},
		GracefulShutdownTimeout: ptr.To(5 * time.Second),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(replicatedstatefulset.SetupWithRun(mgr, settings(namespaces), run)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx); close(done) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			GinkgoLogr.Info("operator stopped", "error", err)
		}
	}
	DeferCleanup(stop)
	return stop
}

// givenKey is a key that is never lost.
type givenKey struct{}

func (givenKey) Current(context.Context, bool) ([]byte, error) {
	return []byte("0123456789abcdef0123456789abcdef"), nil
}

// settings returns the options of an operator for the namespaces.
func settings(namespaces []string) replicatedstatefulset.Options {
	return replicatedstatefulset.Options{Namespaces: namespaces, Book: book, Key: givenKey{}, Restarts: 10, Account: "operator-system:manager", AgentImage: agentImage}
}

// replicated creates a set of one primary and two secondaries with claims.
func replicated(namespace string) *v1alpha1.ReplicatedStatefulSet {
	GinkgoHelper()
	return newSet(namespace, func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Primaries, s.Spec.ReconcileInterval = ptr.To(int32(1)), "1s"
		s.Spec.Pod.Commands["secondary"] = v1alpha1.Command{Command: []string{"/secondary"}}
		s.Spec.Pod.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}}
	})
}

// settled waits until the status has that many primaries and secondaries, and nothing is in
// progress.
func settled(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, primaries, secondaries int) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		g.Expect(set.Status.Members.Primary).To(HaveLen(primaries))
		g.Expect(set.Status.Members.Secondary).To(HaveLen(secondaries))
		g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
		g.Expect(meta.IsStatusConditionFalse(set.Status.Conditions, v1alpha1.ConditionProgressing)).To(BeTrue())
	}).Should(Succeed())
}

// started returns a running set of replicated, and an operator that serves it.
func started(ctx context.Context, p *fakeControlPlane) *v1alpha1.ReplicatedStatefulSet {
	GinkgoHelper()
	startOperator(p)
	set := replicated(p.namespace)
	Expect(user.Create(ctx, set)).To(Succeed())
	settled(ctx, set, 1, 2)
	return set
}

// crashPrimary crashes the primary, and waits until another one has taken over and all members run
// again.
func crashPrimary(ctx context.Context, p *fakeControlPlane, set *v1alpha1.ReplicatedStatefulSet) {
	GinkgoHelper()
	old := podsOf(ctx, p.namespace)[set.Status.Members.Primary[0]]
	p.crash(&old)
	Eventually(func(g Gomega) {
		g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		g.Expect(set.Status.Members.Primary).To(And(HaveLen(1), Not(ContainElement(old.Name))))
	}).Should(Succeed())
	settled(ctx, set, 1, 2)
}

func podsOf(ctx context.Context, namespace string) map[string]corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	Expect(user.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	pods := map[string]corev1.Pod{}
	for _, p := range list.Items {
		pods[p.Name] = p
	}
	return pods
}

var _ = Describe("a set", func() {
	var p *fakeControlPlane
	BeforeEach(func(ctx SpecContext) {
		p = startFakeControlPlane(newNamespace(ctx))
		DeferCleanup(func(ctx SpecContext) { sweep(ctx, p.namespace) })
	})

	It("RS-1 RS-2 RS-3 RS-63 from the seed's manifest starts with the shipped roles", func(ctx SpecContext) {
		startOperator(p)
		set := newSet(p.namespace)
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 3, 0)
		Expect(p.commands()).To(Equal([]string{"rss-example-0 seed", "rss-example-1 primary", "rss-example-2 primary"}))
		Expect(set.Status.Members.Ready).To(Equal([]string{"rss-example-0", "rss-example-1", "rss-example-2"}))
		Expect(meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionAvailable)).To(BeTrue())
		for name, child := range map[string]client.Object{"rss-example": &appsv1.StatefulSet{}, "example-svc": &corev1.Service{}, "example-primary": &corev1.Service{}, "example-active": &corev1.Service{}} {
			Expect(user.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, child)).To(Succeed())
			Expect(metav1.IsControlledBy(child, set)).To(BeTrue())
			Expect(child.GetLabels()).To(And(HaveKeyWithValue("app", "example"), HaveKeyWithValue("rss-operator-managed", "true")))
		}
		Expect(user.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: "rss-example"}, &policyv1.PodDisruptionBudget{})).To(Succeed())
		for _, pod := range podsOf(ctx, p.namespace) {
			Expect(pod.Labels).To(And(HaveKeyWithValue(v1alpha1.LabelActive, "true"), HaveKeyWithValue(v1alpha1.LabelRole, "primary")))
			Expect(pod.Finalizers).To(BeEmpty())
		}
	})

	It("RS-50 is not written at rest", func(ctx SpecContext) {
		set := started(ctx, p)
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			g.Consistently(func() string {
				var now v1alpha1.ReplicatedStatefulSet
				g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), &now)).To(Succeed())
				return now.ResourceVersion
			}, 3*time.Second).Should(Equal(set.ResourceVersion))
		}).Should(Succeed())
	})

	It("RS-34 RS-54 fails over when its primary crashes, without two primaries at once", func(ctx SpecContext) {
		set := started(ctx, p)
		crashPrimary(ctx, p, set)
		Expect(podsOf(ctx, p.namespace)[set.Status.Members.Primary[0]].Labels).To(HaveKeyWithValue(v1alpha1.LabelRole, "primary"))
		Expect(p.maxPrimaries()).To(Equal(1))
	})

	It("RS-32 RS-42 restarts a member whose pod was deleted while no operator ran, and no other member", func(ctx SpecContext) {
		stop := startOperator(p)
		set := replicated(p.namespace)
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 1, 2)
		stop()
		before := podsOf(ctx, p.namespace)
		victim := before[set.Status.Members.Secondary[0]]
		Expect(user.Delete(ctx, &victim)).To(Succeed())
		done := len(p.commands())
		startOperator(p)
		Eventually(func() bool {
			pod, there := podsOf(ctx, p.namespace)[victim.Name]
			return there && pod.UID != victim.UID
		}).Should(BeTrue())
		Eventually(p.commands).Should(HaveLen(done + 1))
		settled(ctx, set, 1, 2)
		Expect(p.commands()[done:]).To(Equal([]string{victim.Name + " secondary"}))
		for name, pod := range podsOf(ctx, p.namespace) {
			if name != victim.Name {
				Expect(pod.UID).To(Equal(before[name].UID))
			}
		}
	})

	It("RS-37 RS-46 scales through its subresource, and stops its members in order when it is deleted", func(ctx SpecContext) {
		set := started(ctx, p)
		scale := func(n int32) {
			Expect(user.SubResource("scale").Update(ctx, set, client.WithSubResourceBody(&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: n}}))).To(Succeed())
		}
		done := len(p.commands())
		scale(0)
		Eventually(func() map[string]corev1.Pod { return podsOf(ctx, p.namespace) }).Should(BeEmpty())
		Expect(p.commands()[done:]).To(Equal([]string{"rss-example-2 stop", "rss-example-1 stop", "rss-example-0 stop"}))
		Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		Expect(set.Status.RestoreReplicas).To(BeEquivalentTo(3))
		scale(3)
		settled(ctx, set, 1, 2)
		done = len(p.commands())
		Expect(user.Delete(ctx, set)).To(Succeed())
		Eventually(func() bool { return apierrors.IsNotFound(user.Get(ctx, client.ObjectKeyFromObject(set), set)) }).Should(BeTrue())
		Expect(p.commands()[done:]).To(Equal([]string{"rss-example-2 stop", "rss-example-1 stop", "rss-example-0 stop"}))
		Expect(p.maxPrimaries()).To(Equal(1))
	})

	It("RS-47 restores deleted and changed children", func(ctx SpecContext) {
		set := started(ctx, p)
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "example-primary"}}
		Expect(user.Delete(ctx, service)).To(Succeed())
		Eventually(func() error { return user.Get(ctx, client.ObjectKeyFromObject(service), service) }).Should(Succeed())
		stateful := &appsv1.StatefulSet{}
		Expect(user.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: "rss-example"}, stateful)).To(Succeed())
		Expect(user.Patch(ctx, stateful, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":2}}`)))).To(Succeed())
		Eventually(func() int32 {
			Expect(user.Get(ctx, client.ObjectKeyFromObject(stateful), stateful)).To(Succeed())
			return *stateful.Spec.Replicas
		}).Should(BeEquivalentTo(3))
		settled(ctx, set, 1, 2)
		name := set.Status.Members.Primary[0]
		primary := podsOf(ctx, p.namespace)[name]
		Expect(user.Patch(ctx, &primary, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"app":null}}}`)))).To(Succeed())
		Eventually(func() map[string]string { return podsOf(ctx, p.namespace)[name].Labels }).Should(HaveKeyWithValue("app", "example"))
		settled(ctx, set, 1, 2)
		Expect(p.maxPrimaries()).To(Equal(1))
	})

	It("RS-47 RS-50 keeps the type and the node ports that a user set on a Service", func(ctx SpecContext) {
		set := started(ctx, p)
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "example-primary"}}
		Expect(user.Patch(ctx, service, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"type":"LoadBalancer"}}`)))).To(Succeed())
		Expect(user.Patch(ctx, set, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"reconcileInterval":"2s"}}`)))).To(Succeed())
		settled(ctx, set, 1, 2)
		stateful := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "rss-example"}}
		image := func() string {
			Expect(user.Get(ctx, client.ObjectKeyFromObject(stateful), stateful)).To(Succeed())
			return stateful.Spec.Template.Spec.Containers[0].Image
		}
		was := image()
		stateful.Spec.Template.Spec.Containers[0].Image = "another"
		Expect(user.Update(ctx, stateful)).To(Succeed())
		Eventually(image).Should(Equal(was))
		Expect(user.Get(ctx, client.ObjectKeyFromObject(service), service)).To(Succeed())
		Expect(service.Spec.Type).To(Equal(corev1.ServiceTypeLoadBalancer))
		Expect(events(ctx, p.namespace)).NotTo(ContainElement("WriteUndone"))
	})

	It("RS-52 RS-55 emits events and metrics", func(ctx SpecContext) {
		startOperator(p)
		set := replicated(p.namespace)
		set.Spec.FailureThreshold = ptr.To(int32(1))
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 1, 2)
		tells := func(reasons ...any) {
			GinkgoHelper()
			Eventually(func() []string { return events(ctx, p.namespace) }).Should(ContainElements(reasons...))
		}
		tells("MemberAdded", "Seeded", "Promoted", "MemberStarted")
		p.fail("promote", "stop")
		crashPrimary(ctx, p, set)
		tells("MemberFailed", "MemberReplaced", "Demoted")
		edit := func(patch string) {
			GinkgoHelper()
			Expect(user.Patch(ctx, set, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
		}
		edit(`{"spec":{"replicas":2}}`)
		settled(ctx, set, 1, 1)
		tells("MemberStopped", "MemberRemoved")
		edit(`{"spec":{"pod":{"labels":{"revision":"two"}}}}`)
		tells("MemberUpdated")
		settled(ctx, set, 1, 1)
		families, err := metrics.Registry.Gather()
		Expect(err).NotTo(HaveOccurred())
		var names []string
		for _, f := range families {
			names = append(names, f.GetName())
		}
		Expect(names).To(ContainElements("rss_operator_controller_clusters", "rss_operator_controller_clusters_created",
			"rss_operator_controller_clusters_deleted", "rss_operator_controller_clusters_modified", "rss_operator_controller_clusters_failed",
			"rss_operator_cluster_reconcile_duration", "replicatedstatefulset_actions_total", "replicatedstatefulset_members", "replicatedstatefulset_member_sequence"))
	})

	It("RS-57 RS-59 restarts its members when its rules change, and reports missing Secrets", func(ctx SpecContext) {
		startOperator(p)
		set := replicated(p.namespace)
		server.GiveRightsIn(ctx, p.namespace, "secrets-role")
		set.Spec.TLS = &v1alpha1.TLSPolicy{Static: &v1alpha1.StaticTLS{OperatorSecret: "operator-tls"}}
		set.Spec.RuleSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rules": "yes"}}
		rules := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "rules", Labels: map[string]string{"rules": "yes"}}, Data: map[string]string{"a": "1"}}
		Expect(user.Create(ctx, rules)).To(Succeed())
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 1, 2)
		says := func() string {
			Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			return meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionDegraded).Reason
		}
		Eventually(says).Should(Equal(v1alpha1.ReasonSecretMissing))
		Expect(user.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "operator-tls"}})).To(Succeed())
		Eventually(says).Should(Equal(v1alpha1.ReasonHealthy))
		before := podsOf(ctx, p.namespace)
		rules.Data["a"] = "2"
		Expect(user.Update(ctx, rules)).To(Succeed())
		Eventually(func(g Gomega) {
			for name, pod := range podsOf(ctx, p.namespace) {
				g.Expect(pod.UID).NotTo(Equal(before[name].UID))
			}
		}).Should(Succeed())
		settled(ctx, set, 1, 2)
		Expect(p.maxPrimaries()).To(Equal(1))
	})

	It("RS-84 RS-88 creates pods from its template, and expands their claims", func(ctx SpecContext) {
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "grows-" + p.namespace}, Provisioner: "example.com/none", AllowVolumeExpansion: ptr.To(true)}
		Expect(user.Create(ctx, class)).To(Succeed())
		data := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class.Name,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
		for i := range 3 {
			made := data.DeepCopy()
			made.Namespace, made.Name = p.namespace, fmt.Sprintf("data-rss-example-%d", i)
			Expect(user.Create(ctx, made)).To(Succeed())
			made.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: data.Spec.Resources.Requests, AccessModes: data.Spec.AccessModes}
			Expect(user.Status().Update(ctx, made)).To(Succeed())
		}
		startOperator(p)
		set := replicated(p.namespace)
		set.Spec.Pod.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{data}
		set.Spec.Pod.Template = &runtime.RawExtension{Raw: []byte(`{"spec": {"schedulerName": "mine", "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}]}}`)}
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 1, 2)
		before := podsOf(ctx, p.namespace)
		stateful := &appsv1.StatefulSet{}
		Expect(user.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: "rss-example"}, stateful)).To(Succeed())
		Expect(stateful.Spec.Template.Spec).To(And(HaveField("SchedulerName", "mine"), HaveField("HostAliases", HaveLen(1))))
		Expect(apply(ctx, set, "spec: {pod: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: "+class.Name+
			", resources: {requests: {storage: 2Gi}}}}]}}")).To(Succeed())
		Eventually(func(g Gomega) {
			var claims corev1.PersistentVolumeClaimList
			g.Expect(user.List(ctx, &claims, client.InNamespace(p.namespace))).To(Succeed())
			g.Expect(claims.Items).To(HaveLen(3))
			for _, c := range claims.Items {
				g.Expect(c.Spec.Resources.Requests.Storage().String()).To(Equal("2Gi"))
			}
		}).Should(Succeed())
		settled(ctx, set, 1, 2)
		for name, pod := range podsOf(ctx, p.namespace) {
			Expect(pod.UID).To(Equal(before[name].UID), "the pod is recreated")
		}
	})

	It("RS-44 keeps running without an operator", func(ctx SpecContext) {
		stop := startOperator(p)
		set := replicated(p.namespace)
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 1, 2)
		stop()
		before, told, roles, versions := podsOf(ctx, p.namespace), p.commands(), p.plays(), versionsOf(ctx, p.namespace)
		// The nodes keep running: a kubelet restarts the container of a secondary.
		restarted := before["rss-"+set.Name+"-2"]
		p.crash(&restarted)
		Eventually(func(g Gomega) {
			g.Expect(podsOf(ctx, p.namespace)[restarted.Name].Status.ContainerStatuses[0].RestartCount).To(BeEquivalentTo(1))
		}).Should(Succeed())
		delete(roles, p.id(&restarted, 0))
		Expect(p.commands()).To(Equal(told))
		Expect(p.plays()).To(Equal(roles)) // without the role of the ended container
		Expect(versionsOf(ctx, p.namespace)).To(Equal(versions))
		after := podsOf(ctx, p.namespace)
		Expect(after).To(HaveLen(3))
		for name, pod := range after {
			Expect(pod.UID).To(Equal(before[name].UID))
			Expect(pod.DeletionTimestamp).To(BeNil())
			Expect(pod.Labels).To(Equal(before[name].Labels)) // the Services select it as before
			if name != restarted.Name {
				Expect(pod.ResourceVersion).To(Equal(before[name].ResourceVersion))
			}
		}
		startOperator(p)
		settled(ctx, set, 1, 2) // changes in the meantime are found and repaired
		Expect(p.maxPrimaries()).To(Equal(1))
	})

	It("RS-62 starts and fails over while more sets hang than there are workers", func(ctx SpecContext) {
		const hung = 40
		stuck := startFakeControlPlane(newNamespace(ctx))
		stuck.hangs = true
		DeferCleanup(func(ctx SpecContext) { sweep(ctx, stuck.namespace) })
		startOperator(stuck, p)
		for i := range hung {
			one := replicated(stuck.namespace)
			if i > 0 { // the first has the same name as the set of the other namespace
				one.Name = fmt.Sprintf("hung-%d", i)
			}
			one.Spec.Replicas = ptr.To[int32](1)
			Expect(user.Create(ctx, one)).To(Succeed())
		}
		Eventually(stuck.hung).Should(Equal(hung))
		set := replicated(p.namespace)
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 1, 2)
		crashPrimary(ctx, p, set)
		Expect(p.maxPrimaries()).To(Equal(1))
		Expect(stuck.hung()).To(Equal(hung)) // one command at a time in a pod
	})

	It("RS-63 has an operator with the right to run commands in pods", func(ctx SpecContext) {
		for _, verb := range []string{"get", "create"} {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: theOperator,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: p.namespace, Verb: verb, Resource: "pods", Subresource: "exec"}}}
			Expect(user.Create(ctx, review)).To(Succeed())
			Expect(review.Status.Allowed).To(BeTrue())
		}
	})
})

// sweep deletes objects that no controller deletes here.
func sweep(ctx context.Context, namespace string) {
	GinkgoHelper()
	var sets v1alpha1.ReplicatedStatefulSetList
	Expect(user.List(ctx, &sets, client.InNamespace(namespace))).To(Succeed())
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	for i := range sets.Items {
		Expect(client.IgnoreNotFound(user.Patch(ctx, &sets.Items[i], free))).To(Succeed())
	}
	for _, pod := range podsOf(ctx, namespace) {
		Expect(client.IgnoreNotFound(user.Patch(ctx, &pod, free))).To(Succeed())
	}
	Expect(user.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0))).To(Succeed())
}
