package extendedstatefulset_test

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// theOperator is a user with exactly the permissions of the roles that are shipped for this kind.
const theOperator = apiserver.TheOperator

var giveRights = sync.OnceFunc(func() {
	server.GiveRights(context.Background(), "extendedstatefulset-role", "exec-role")
})

// startOperator starts an operator for one namespace.
func startOperator(namespace string) {
	GinkgoHelper()
	startOperatorWith(func(mgr ctrl.Manager) error { return extendedstatefulset.Setup(mgr, settings(namespace)) })
}

// settings returns the options of an operator for the given namespaces; none means all.
func settings(namespaces ...string) extendedstatefulset.Options {
	return extendedstatefulset.Options{Namespaces: namespaces, Key: givenKey{}, Restarts: 10}
}

// startOperatorWith starts an operator with another setup function. It runs until the test ends or stop
// is called.
func startOperatorWith(setup func(ctrl.Manager) error) (stop func()) {
	GinkgoHelper()
	giveRights()
	conf := rest.CopyConfig(server.Config)
	conf.Impersonate.UserName = theOperator
	mgr, err := ctrl.NewManager(conf, ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: ptr.To(true)},
		GracefulShutdownTimeout: ptr.To(5 * time.Second),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(setup(mgr)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			GinkgoLogr.Info("the manager stopped", "error", err)
		}
	})
	DeferCleanup(stop)
	return stop
}

// web reads the object of these tests.
func web(ctx context.Context, namespace string) *v1alpha1.ExtendedStatefulSet {
	GinkgoHelper()
	var set v1alpha1.ExtendedStatefulSet
	Expect(user.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "web"}, &set)).To(Succeed())
	return &set
}

// statefulSets returns the StatefulSets of a namespace, by name.
func statefulSets(ctx context.Context, namespace string) map[string]appsv1.StatefulSet {
	GinkgoHelper()
	var list appsv1.StatefulSetList
	Expect(user.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	all := map[string]appsv1.StatefulSet{}
	for _, s := range list.Items {
		all[s.Name] = s
	}
	return all
}

// claimUIDs returns the UIDs of the claims of a namespace, by name.
func claimUIDs(ctx context.Context, namespace string) map[string]types.UID {
	GinkgoHelper()
	var list corev1.PersistentVolumeClaimList
	Expect(user.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	all := map[string]types.UID{}
	for _, c := range list.Items {
		all[c.Name] = c.UID
	}
	return all
}

// stable waits until a version serves with the given number of Ready pods, and nothing is in progress.
func stable(ctx context.Context, namespace string, version int64, ready int32) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		set := web(ctx, namespace)
		g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
		g.Expect(set.Status.Phase).To(Equal(v1alpha1.PhaseStable))
		g.Expect(set.Status.CurrentVersion).To(Equal(version))
		g.Expect(set.Status.ReadyReplicas).To(Equal(ready))
		g.Expect(meta.IsStatusConditionFalse(set.Status.Conditions, v1alpha1.ConditionProgressing)).To(BeTrue())
	}).Should(Succeed())
}

// looked waits until the operator has processed a change of the object.
func looked(ctx context.Context, namespace string, retries int) {
	GinkgoHelper()
	Expect(change(ctx, object(namespace), `{"spec": {"updateStrategy": {"retryCount": `+string(rune('0'+retries))+`}}}`)).To(Succeed())
	Eventually(func(g Gomega) {
		set := web(ctx, namespace)
		g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
	}).Should(Succeed())
}

// image returns a patch that sets the image of the template.
func image(name string) string {
	return `{"spec": {"template": {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "` + name + `"}]}}}}}}`
}

var _ = Describe("An ExtendedStatefulSet", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		startFakeControlPlane(namespace)
		startOperator(namespace)
	})

	It("E1 E2 E3 creates a StatefulSet of version 1, and writes nothing in a stable state", func(ctx SpecContext) {
		Expect(user.Create(ctx, object(namespace))).To(Succeed())
		stable(ctx, namespace, 1, 3)
		set, v1 := web(ctx, namespace), statefulSets(ctx, namespace)["web-v1"]
		Expect(metav1.IsControlledBy(&v1, set)).To(BeTrue())
		Expect(v1.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationVersion, "1"))
		Expect(v1.Spec.PodManagementPolicy).To(Equal(appsv1.ParallelPodManagement))
		Expect(set.Status.Versions).To(Equal(map[string]bool{"1": true}))

		Expect(change(ctx, object(namespace), `{"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}`)).To(Succeed())
		looked(ctx, namespace, 1)
		looked(ctx, namespace, 2)
		Expect(statefulSets(ctx, namespace)).To(Equal(map[string]appsv1.StatefulSet{"web-v1": v1}))
	})

	It("E4 creates the new version before it deletes the old one", func(ctx SpecContext) {
		Expect(user.Create(ctx, object(namespace, `{"spec": {"template": {"spec": {"serviceName": "peers"}}}}`))).To(Succeed())
		stable(ctx, namespace, 1, 3)
		Expect(change(ctx, object(namespace), image("two"))).To(Succeed())
		stable(ctx, namespace, 2, 3)
		Expect(web(ctx, namespace).Status.Versions).To(Equal(map[string]bool{"2": true}))
		Expect(statefulSets(ctx, namespace)).To(And(HaveLen(1), HaveKey("web-v2")))
		var active corev1.Service
		Expect(user.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "web-active"}, &active)).To(Succeed())
		Expect(active.Spec.Selector).To(HaveKeyWithValue(v1alpha1.LabelVersion, "2"))
	})

	It("E9 never reuses version numbers", func(ctx SpecContext) {
		Expect(user.Create(ctx, object(namespace, `{"spec": {"updateStrategy": {"canaryWatchTime": "3s"}}}`))).To(Succeed())
		stable(ctx, namespace, 1, 3)
		Expect(change(ctx, object(namespace), image(badImage))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(web(ctx, namespace).Status.Phase).To(Equal(v1alpha1.PhaseStale))
			v2 := statefulSets(ctx, namespace)["web-v2"]
			g.Expect(v2.Annotations).To(And(HaveKeyWithValue(v1alpha1.AnnotationStale, "true"), HaveKey(v1alpha1.AnnotationStaleReason), HaveKey(v1alpha1.AnnotationStaleSince)))
			g.Expect(v2.Spec.Replicas).To(HaveValue(BeZero()))
		}).Should(Succeed())
		set := web(ctx, namespace)
		Expect(meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionStale)).To(BeTrue())
		Expect(meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionAvailable)).To(BeTrue())

		v2 := statefulSets(ctx, namespace)["web-v2"]
		Expect(user.Delete(ctx, &v2)).To(Succeed())
		Expect(change(ctx, object(namespace), image("three"))).To(Succeed())
		stable(ctx, namespace, 3, 3)
		Expect(statefulSets(ctx, namespace)).To(And(HaveLen(1), HaveKey("web-v3")))
	})

	It("E12 reverts edits of a StatefulSet by another client", func(ctx SpecContext) {
		Expect(user.Create(ctx, object(namespace))).To(Succeed())
		stable(ctx, namespace, 1, 3)
		v1 := statefulSets(ctx, namespace)["web-v1"]
		edited := v1.DeepCopy()
		edited.Spec.Replicas, edited.Spec.Template.Spec.Containers[0].Image = ptr.To(int32(5)), "evil"
		edited.Labels, edited.Annotations = nil, nil
		Expect(user.Update(ctx, edited)).To(Succeed())
		Eventually(func(g Gomega) {
			now := statefulSets(ctx, namespace)["web-v1"]
			g.Expect(now.Spec).To(Equal(v1.Spec))
			g.Expect(now.Labels).To(Equal(v1.Labels))
			g.Expect(now.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationVersion, "1"))
		}).Should(Succeed())
		stable(ctx, namespace, 1, 3)
		now := statefulSets(ctx, namespace)["web-v1"]
		looked(ctx, namespace, 1)
		after := statefulSets(ctx, namespace)["web-v1"] // the fake control plane writes its status
		Expect([]any{after.Generation, after.Labels, after.Annotations}).To(Equal([]any{now.Generation, now.Labels, now.Annotations}), "the operator writes in a stable state")
	})

	It("E26 keeps the claims of the ordinals in upgrades, in scaling, and after its deletion", func(ctx SpecContext) {
		Expect(user.Create(ctx, object(namespace, stored))).To(Succeed())
		stable(ctx, namespace, 1, 3)
		before := claimUIDs(ctx, namespace)
		Expect(before).To(And(HaveLen(3), HaveKey("data-web-0"), HaveKey("data-web-1"), HaveKey("data-web-2")))
		Expect(change(ctx, object(namespace), image("two"))).To(Succeed())
		stable(ctx, namespace, 2, 3)
		Expect(claimUIDs(ctx, namespace)).To(Equal(before))
		var pod corev1.Pod
		Expect(user.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "web-v2-1"}, &pod)).To(Succeed())
		Expect(pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName).To(Equal("data-web-1"))
		Expect(pod.Spec.Hostname).To(Equal("web-1"))

		for _, n := range []int32{1, 4} {
			Expect(scale(ctx, object(namespace), int(n))).To(Succeed())
			stable(ctx, namespace, 2, n)
		}
		after := claimUIDs(ctx, namespace)
		Expect(after).To(HaveLen(4))
		for name, uid := range before {
			Expect(after).To(HaveKeyWithValue(name, uid))
		}
		Expect(user.Delete(ctx, object(namespace))).To(Succeed())
		Expect(claimUIDs(ctx, namespace)).To(Equal(after))
	})

	It("E28 creates a StatefulSet for each zone, and sets the zone in its pods", func(ctx SpecContext) {
		Expect(user.Create(ctx, object(namespace, `{"spec": {"zones": ["a", "b"], "template": {"spec": {"template": {"spec": {
			"initContainers": [{"name": "init", "image": "one"}],
			"containers": [{"name": "web", "image": "one", "env": [{"name": "KUBE_AZ", "value": "mine"}, {"name": "OTHER", "value": "stays"}]}]}}}}}}`))).To(Succeed())
		stable(ctx, namespace, 1, 6)
		z1 := statefulSets(ctx, namespace)["web-z1-v1"]
		Expect(statefulSets(ctx, namespace)).To(And(HaveLen(2), HaveKey("web-z0-v1")))
		for _, m := range []metav1.ObjectMeta{z1.ObjectMeta, z1.Spec.Template.ObjectMeta} {
			Expect(m.Labels).To(And(HaveKeyWithValue(v1alpha1.LabelZoneIndex, "1"), HaveKeyWithValue(v1alpha1.LabelZoneName, "b")))
			Expect(m.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationZones, `["a","b"]`))
		}
		ours := []corev1.EnvVar{{Name: "REPLICAS", Value: "3"}, {Name: "KUBE_AZ", Value: "b"}, {Name: "BOSH_AZ", Value: "b"},
			{Name: "CF_OPERATOR_AZ", Value: "b"}, {Name: "AZ_INDEX", Value: "2"}}
		Expect(z1.Spec.Template.Spec.InitContainers[0].Env).To(Equal(ours))
		Expect(z1.Spec.Template.Spec.Containers[0].Env).To(Equal(append(ours, corev1.EnvVar{Name: "OTHER", Value: "stays"})))
		set := web(ctx, namespace)
		Expect(set.Status.Replicas).To(Equal(int32(3)))
		Expect(set.Status.Zones).To(Equal([]v1alpha1.ZoneStatus{{Name: "a", Index: 0, Replicas: 3, ReadyReplicas: 3}, {Name: "b", Index: 1, Replicas: 3, ReadyReplicas: 3}}))
	})

	It("E23 E24 E25 runs jobs before and after an upgrade, and rolls back if the second one fails", func(ctx SpecContext) {
		jobs := func(post string) string {
			return `{"spec": {"updateStrategy": {"preUpdateJob": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "job", "image": "fine"}]}}}},
				"postUpdateJob": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "job", "image": "` + post + `"}]}}}}}}}`
		}
		Expect(user.Create(ctx, object(namespace, jobs("fine")))).To(Succeed())
		stable(ctx, namespace, 1, 3)
		Expect(change(ctx, object(namespace), image("two"))).To(Succeed())
		stable(ctx, namespace, 2, 3)
		Expect(change(ctx, object(namespace), jobs(badImage))).To(Succeed())
		Expect(change(ctx, object(namespace), image("three"))).To(Succeed())
		Eventually(func(g Gomega) {
			set := web(ctx, namespace)
			g.Expect(set.Status.Phase).To(Equal(v1alpha1.PhaseStale))
			g.Expect(meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionAborted)).To(BeTrue())
			g.Expect(set.Status.Versions).To(Equal(map[string]bool{"2": true, "3": false}))
		}).Should(Succeed())
	})

	It("does not change objects of other owners", func(ctx SpecContext) {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "peers"}, Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"x": "y"}}}
		Expect(user.Create(ctx, service)).To(Succeed())
		Expect(user.Create(ctx, object(namespace, `{"spec": {"template": {"spec": {"serviceName": "peers"}}}}`))).To(Succeed())
		stable(ctx, namespace, 1, 3)
		foreign := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-v2"}, Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"x": "y"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}}}}
		Expect(user.Create(ctx, foreign)).To(Succeed())
		Expect(change(ctx, object(namespace), image("two"))).To(Succeed())
		Eventually(func(g Gomega) {
			c := meta.FindStatusCondition(web(ctx, namespace).Status.Conditions, v1alpha1.ConditionProgressing)
			g.Expect(c).NotTo(BeNil())
			g.Expect(c.Reason).To(Equal(v1alpha1.ReasonWriteRefused))
			g.Expect(c.Message).To(ContainSubstring(`"web-v2" already exists`))
		}).Should(Succeed())
		theirs := statefulSets(ctx, namespace)["web-v2"] // the fake control plane writes its status
		Expect(theirs.UID).To(Equal(foreign.UID))
		Expect(theirs.Generation).To(Equal(foreign.Generation))
		Expect([]any{theirs.Labels, theirs.Annotations, theirs.OwnerReferences}).To(HaveEach(BeEmpty()))
		Expect(user.Delete(ctx, foreign)).To(Succeed())
		stable(ctx, namespace, 2, 3)
		now := &corev1.Service{}
		Expect(user.Get(ctx, client.ObjectKeyFromObject(service), now)).To(Succeed())
		Expect(now.ResourceVersion).To(Equal(service.ResourceVersion))
	})
})
