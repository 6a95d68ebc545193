package extendedstatefulset_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// givenKey is a key that is never lost.
type givenKey struct{}

func (givenKey) Current(context.Context, bool) ([]byte, error) {
	return []byte("0123456789abcdef0123456789abcdef"), nil
}

// startConfigOperator runs the controller until stop is called.
func startConfigOperator() (stop func()) {
	GinkgoHelper()
	return startOperatorWith(func(mgr ctrl.Manager) error { return extendedstatefulset.Setup(mgr, settings()) })
}

// following returns a set that uses a ConfigMap and a Secret.
func following(namespace string, change ...func(*v1alpha1.ExtendedStatefulSet)) *v1alpha1.ExtendedStatefulSet {
	set := &v1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: namespace}}
	set.Spec.UpdateOnEnvChange = true
	set.Spec.Template.Spec = appsv1.StatefulSetSpec{
		Replicas: ptr.To(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "db"}},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "main", Image: "one",
					Env:     []corev1.EnvVar{{Name: "LITERAL", Value: "one"}},
					EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "conf"}}}}}},
				Volumes: []corev1.Volume{{Name: "creds", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "creds"}}}}}}}},
			}},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

func byOwners(s *v1alpha1.ExtendedStatefulSet) {
	s.Spec.ConfigTracking = v1alpha1.TrackByOwnerReference
}

func newConf(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "conf", Namespace: namespace}, Data: map[string]string{"a": "1"}}
}

func newCreds(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "creds", Namespace: namespace,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "friend", UID: "a-friend"}}}, Data: map[string][]byte{"a": []byte("1")}}
}

// hashOf returns a function that reads the configuration hash in the pod template of a StatefulSet.
func hashOf(ctx context.Context, namespace, child string) func() (string, error) {
	return func() (string, error) {
		var s appsv1.StatefulSet
		err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: child}, &s)
		return s.Spec.Template.Annotations[v1alpha1.AnnotationConfigHash], err
	}
}

// ownersOf returns a function that reads the kinds of an object's owners.
func ownersOf(ctx context.Context, o client.Object) func() ([]string, error) {
	return func() ([]string, error) {
		err := user.Get(ctx, client.ObjectKeyFromObject(o), o)
		kinds := []string{}
		for _, r := range o.GetOwnerReferences() {
			kinds = append(kinds, r.Kind)
		}
		return kinds, err
	}
}

func editSet(ctx context.Context, set *v1alpha1.ExtendedStatefulSet, change func(*v1alpha1.ExtendedStatefulSet)) {
	GinkgoHelper()
	Eventually(func() error {
		if err := user.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		change(set)
		return user.Update(ctx, set)
	}).Should(Succeed())
}

func condition(ctx context.Context, set *v1alpha1.ExtendedStatefulSet, kind string) func() string {
	return func() string {
		if err := user.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err.Error()
		}
		if c := meta.FindStatusCondition(set.Status.Conditions, kind); c != nil {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
		return "none"
	}
}

var _ = Describe("configuration", func() {
	It("E14 changes the hash in the same version for an edit of contents, but not of metadata", func(ctx SpecContext) {
		startConfigOperator()
		ns := namespaceOfSecrets(ctx)
		c, s := newConf(ns), newCreds(ns)
		Expect(user.Create(ctx, c)).To(Succeed())
		Expect(user.Create(ctx, s)).To(Succeed())
		set := following(ns)
		Expect(user.Create(ctx, set)).To(Succeed())
		hash := hashOf(ctx, ns, "db-v1")
		Eventually(hash).ShouldNot(BeEmpty())
		first, err := hash()
		Expect(err).NotTo(HaveOccurred())

		c.Labels = map[string]string{"a": "b"}
		Expect(user.Update(ctx, c)).To(Succeed())
		c.BinaryData = map[string][]byte{"b": {0}}
		Expect(user.Update(ctx, c)).To(Succeed())
		c.BinaryData["b"] = []byte{1} // in the same window
		Expect(user.Update(ctx, c)).To(Succeed())
		Eventually(hash).ShouldNot(Equal(first))
		second, err := hash()
		Expect(err).NotTo(HaveOccurred())
		s.Data["a"] = []byte("2")
		Expect(user.Update(ctx, s)).To(Succeed())
		Eventually(hash).ShouldNot(Equal(second))
		Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		Expect(set.Status.VersionHighWater).To(BeEquivalentTo(1))
		Expect(s.OwnerReferences).To(HaveLen(1), "an object tracked by index is not written")
	})

	It("E14 detects an edit that was made while the operator was down", func(ctx SpecContext) {
		stop := startConfigOperator()
		ns := namespaceOfSecrets(ctx)
		c := newConf(ns)
		Expect(user.Create(ctx, c)).To(Succeed())
		Expect(user.Create(ctx, newCreds(ns))).To(Succeed())
		Expect(user.Create(ctx, following(ns))).To(Succeed())
		hash := hashOf(ctx, ns, "db-v1")
		Eventually(hash).ShouldNot(BeEmpty())
		first, err := hash()
		Expect(err).NotTo(HaveOccurred())
		stop()
		c.Data["a"] = "2"
		Expect(user.Update(ctx, c)).To(Succeed())
		startConfigOperator()
		Eventually(hash).ShouldNot(Equal(first))
	})

	It("E18 reports missing configuration, and continues when it is created", func(ctx SpecContext) {
		startConfigOperator()
		ns := namespaceOfSecrets(ctx)
		Expect(user.Create(ctx, newCreds(ns))).To(Succeed())
		set := following(ns)
		Expect(user.Create(ctx, set)).To(Succeed())
		Eventually(condition(ctx, set, v1alpha1.ConditionConfigMissing)).Should(Equal(
			`True ConfigMissing: ConfigMap conf does not exist and is required by envFrom of container "main"`))
		hash := hashOf(ctx, ns, "db-v1")
		Eventually(hash).ShouldNot(BeEmpty(), "the StatefulSet is created, and its pods wait for the configuration")
		first, err := hash()
		Expect(err).NotTo(HaveOccurred())
		Expect(user.Create(ctx, newConf(ns))).To(Succeed())
		Eventually(hash).ShouldNot(Equal(first))
		Eventually(condition(ctx, set, v1alpha1.ConditionConfigMissing)).Should(HavePrefix("False"))
	})

	It("E13 reports missing permission to set owner references, and continues when it is granted", func(ctx SpecContext) {
		startConfigOperator()
		ns := namespaceOfSecrets(ctx)
		c := newConf(ns)
		Expect(user.Create(ctx, c)).To(Succeed())
		Expect(user.Create(ctx, newCreds(ns))).To(Succeed())
		set := following(ns, byOwners)
		Expect(user.Create(ctx, set)).To(Succeed())
		Eventually(condition(ctx, set, v1alpha1.ConditionProgressing)).Should(HavePrefix("True WriteRefused: "))
		Expect(ownersOf(ctx, c)()).To(BeEmpty())
		mayDeleteConfig(ctx, ns)
		Eventually(ownersOf(ctx, c)).Should(Equal([]string{"Namespace", "ExtendedStatefulSet"}))
		Eventually(condition(ctx, set, v1alpha1.ConditionProgressing)).ShouldNot(ContainSubstring("WriteRefused"))
	})

	It("E13 E15 E16 adds owner references to used objects, and removes them from unused ones", func(ctx SpecContext) {
		startConfigOperator()
		ns := namespaceOfSecrets(ctx)
		mayDeleteConfig(ctx, ns)
		c, s := newConf(ns), newCreds(ns)
		Expect(user.Create(ctx, c)).To(Succeed())
		Expect(user.Create(ctx, s)).To(Succeed())
		set := following(ns, byOwners)
		Expect(user.Create(ctx, set)).To(Succeed())
		Eventually(ownersOf(ctx, c)).Should(Equal([]string{"Namespace", "ExtendedStatefulSet"}))
		Eventually(ownersOf(ctx, s)).Should(Equal([]string{"ConfigMap", "Namespace", "ExtendedStatefulSet"}))
		Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		Expect(c.OwnerReferences[1]).To(Equal(metav1.OwnerReference{APIVersion: "fissile.cloudfoundry.org/v1alpha1", Kind: "ExtendedStatefulSet",
			Name: "db", UID: set.UID, Controller: ptr.To(false), BlockOwnerDeletion: ptr.To(true)}))
		Expect(set.Finalizers).To(ContainElement(v1alpha1.Finalizer))

		Eventually(hashOf(ctx, ns, "db-v1")).ShouldNot(BeEmpty())
		By("removing a reference while the old version exists")
		editSet(ctx, set, func(s *v1alpha1.ExtendedStatefulSet) {
			s.Spec.Template.Spec.Template.Spec.Volumes = nil
			s.Spec.UpdateStrategy.UpdateNotReady = true
		})
		Eventually(hashOf(ctx, ns, "db-v2")).ShouldNot(BeEmpty())
		Expect(ownersOf(ctx, s)()).To(ContainElement("ExtendedStatefulSet"), "version 1 uses it")

		By("turning configTracking off")
		editSet(ctx, set, func(s *v1alpha1.ExtendedStatefulSet) { s.Spec.UpdateOnEnvChange = false })
		Eventually(ownersOf(ctx, c)).Should(BeEmpty())
		Eventually(ownersOf(ctx, s)).Should(Equal([]string{"ConfigMap"}))
		Expect(s.Annotations).NotTo(HaveKey(v1alpha1.AnnotationGuard))
		Eventually(func() []string {
			Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			return set.Finalizers
		}).Should(BeEmpty())
	})

	It("E14 E16 E17 reads Secrets only in namespaces with permission, and reports missing permission in others", func(ctx SpecContext) {
		startConfigOperator()
		ns := newNamespace(ctx)
		mayDeleteConfig(ctx, ns)
		c, s := newConf(ns), newCreds(ns)
		s.OwnerReferences = nil
		Expect(user.Create(ctx, c)).To(Succeed())
		Expect(user.Create(ctx, s)).To(Succeed())
		unlike := following(ns, func(s *v1alpha1.ExtendedStatefulSet) {
			s.Name, s.Spec.Template.Spec.Template.Spec.Volumes = "plain", nil
			s.Spec.Template.Spec.Selector.MatchLabels, s.Spec.Template.Spec.Template.Labels = map[string]string{"app": "plain"}, map[string]string{"app": "plain"}
		})
		set := following(ns, byOwners)
		Expect(user.Create(ctx, set)).To(Succeed())
		Expect(user.Create(ctx, unlike)).To(Succeed())
		Eventually(condition(ctx, set, v1alpha1.ConditionConfigMissing)).Should(HavePrefix("True ConfigUnreadable: Secret creds cannot be read: "))
		Eventually(condition(ctx, set, v1alpha1.ConditionProgressing)).Should(HavePrefix("True WriteRefused: cannot add or remove owner references because Secrets cannot be read: "))
		Eventually(hashOf(ctx, ns, "plain-v1")).ShouldNot(BeEmpty(), "a set without Secrets is processed")

		By("granting the permission without a restart")
		server.GiveRightsIn(ctx, ns, "secrets-role")
		Eventually(hashOf(ctx, ns, "db-v1")).ShouldNot(BeEmpty())
		Eventually(ownersOf(ctx, s)).Should(Equal([]string{"Namespace", "ExtendedStatefulSet"}))
		Eventually(condition(ctx, set, v1alpha1.ConditionConfigMissing)).Should(HavePrefix("False"))

		By("revoking the permission before owner references must be removed")
		Expect(user.DeleteAllOf(ctx, &rbacv1.RoleBinding{}, client.InNamespace(ns))).To(Succeed())
		Eventually(func() bool {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: theOperator,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: "list", Resource: "secrets"}}}
			Expect(user.Create(ctx, review)).To(Succeed())
			return review.Status.Allowed
		}).Should(BeFalse())
		Expect(user.Delete(ctx, set)).To(Succeed())
		Eventually(condition(ctx, set, v1alpha1.ConditionProgressing)).Should(HavePrefix("True WriteRefused: cannot add or remove owner references because Secrets cannot be read: "))
		Expect(ownersOf(ctx, s)()).To(ContainElement("ExtendedStatefulSet"))
		server.GiveRightsIn(ctx, ns, "secrets-role")
		mayDelete := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "puts-owner-references", Namespace: ns},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "puts-owner-references"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: theOperator}}}
		Expect(user.Create(ctx, mayDelete)).To(Succeed())
		Eventually(func() bool { return apierrors.IsNotFound(user.Get(ctx, client.ObjectKeyFromObject(set), set)) }).Should(BeTrue(), "the set is deleted")
		Expect(ownersOf(ctx, s)()).To(BeEmpty())
	})

	It("E17 never deletes a user's object, with any propagation policy", func(ctx SpecContext) {
		startGarbageCollector()
		startConfigOperator()
		for round := range 5 {
			for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
				By(fmt.Sprintf("%s, round %d", policy, round))
				ns := namespaceOfSecrets(ctx)
				mayDeleteConfig(ctx, ns)
				c, s, other := newConf(ns), newCreds(ns), newConf(ns)
				s.OwnerReferences, other.Name = nil, "other"
				Expect(user.Create(ctx, c)).To(Succeed())
				Expect(user.Create(ctx, other)).To(Succeed())
				s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: other.UID}}
				Expect(user.Create(ctx, s)).To(Succeed())
				set := following(ns, byOwners)
				Expect(user.Create(ctx, set)).To(Succeed())
				Eventually(ownersOf(ctx, c)).Should(ContainElement("ExtendedStatefulSet"))
				Eventually(ownersOf(ctx, s)).Should(ContainElement("ExtendedStatefulSet"))
				Eventually(hashOf(ctx, ns, "db-v1")).ShouldNot(BeEmpty())
				uids := []any{c.UID, s.UID}
				Expect(user.Delete(ctx, set, client.PropagationPolicy(policy))).To(Succeed())
				Eventually(func() bool {
					return apierrors.IsNotFound(user.Get(ctx, client.ObjectKeyFromObject(set), set))
				}).Should(BeTrue(), "the set is deleted")
				Eventually(ownersOf(ctx, c)).Should(BeEmpty())
				Eventually(ownersOf(ctx, s)).Should(Equal([]string{"ConfigMap"}))
				Expect([]any{c.UID, s.UID}).To(Equal(uids))
				var child appsv1.StatefulSet
				if policy != metav1.DeletePropagationOrphan {
					Eventually(func() bool {
						return apierrors.IsNotFound(user.Get(ctx, client.ObjectKey{Namespace: ns, Name: "db-v1"}, &child))
					}).Should(BeTrue(), "its StatefulSets are deleted")
				}
				Expect(user.Get(ctx, client.ObjectKeyFromObject(c), c)).To(Succeed())
				Expect(user.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
			}
		}
	})
})

// namespaceOfSecrets creates a namespace in which the operator may read Secrets.
func namespaceOfSecrets(ctx context.Context) string {
	GinkgoHelper()
	ns := newNamespace(ctx)
	server.GiveRightsIn(ctx, ns, "secrets-role")
	return ns
}

// mayDeleteConfig grants the operator the permissions in a namespace that OwnerReference requires with
// the admission plugin of this API server (docs/security.md).
func mayDeleteConfig(ctx context.Context, namespace string) {
	GinkgoHelper()
	its := metav1.ObjectMeta{Name: "puts-owner-references", Namespace: namespace}
	Expect(user.Create(ctx, &rbacv1.Role{ObjectMeta: its, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"delete"}}}})).To(Succeed())
	Expect(user.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: its,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: its.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: theOperator}}})).To(Succeed())
}

// startGarbageCollector runs the garbage collector of Kubernetes.
func startGarbageCollector() {
	GinkgoHelper()
	if _, err := os.Stat(apiserver.ControllerManager()); err != nil {
		Skip("requires kube-controller-manager")
	}
	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(kubeconfig, server.KubeConfig, 0o600)).To(Succeed())
	stop, err := apiserver.StartControllers(kubeconfig, GinkgoWriter, "garbage-collector-controller")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(stop)
}
