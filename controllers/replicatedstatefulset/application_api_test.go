package replicatedstatefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

// postgreSQL returns a set as a user writes it.
func postgreSQL(namespace string, changes ...func(*v1alpha1.ReplicatedStatefulSet)) *v1alpha1.ReplicatedStatefulSet {
	set := fixture.PostgreSQL()
	set.Namespace, set.Status = namespace, v1alpha1.ReplicatedStatefulSetStatus{}
	set.Spec.ReconcileInterval = "1s"
	set.Spec.Pod.VolumeClaimTemplates[0].Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	for _, change := range changes {
		change(set)
	}
	return set
}

// createPasswords creates the Secret of postgreSQL.
func createPasswords(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(user.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "passwords"},
		StringData: map[string]string{"password": "a", "replicationPassword": "b"}})).To(Succeed())
}

var _ = Describe("spec.application", func() {
	It("RS-143 RS-144 starts members with the agent on record, which only a rollout changes", func(ctx SpecContext) {
		p := startFakeControlPlane(newNamespace(ctx))
		stop := startOperator(p)
		createPasswords(ctx, p.namespace)
		set := postgreSQL(p.namespace)
		Expect(user.Create(ctx, set)).To(Succeed())
		settled(ctx, set, 1, 2)
		Expect(set.Status.Agent).To(Equal(&v1alpha1.AgentStatus{Image: fixture.AgentImage, Mount: v1alpha1.AgentInitContainer}))
		stateful := &appsv1.StatefulSet{}
		key := client.ObjectKey{Namespace: p.namespace, Name: "rss-db"}
		Expect(user.Get(ctx, key, stateful)).To(Succeed())
		Expect(stateful.Spec.Template.Spec.InitContainers[0].Image).To(Equal(fixture.AgentImage))
		Expect(stateful.Generation).To(BeEquivalentTo(1), "the StatefulSet was written again")
		before := podsOf(ctx, p.namespace)

		By("upgrading the operator")
		stop()
		DeferCleanup(func() { agentOfOperator = fixture.AgentImage })
		agentOfOperator = "registry/operator:2"
		startOperator(p)
		// The operator has observed the set again when it has written the new generation.
		set.Spec.ReconcileInterval = "2s"
		Expect(user.Update(ctx, set)).To(Succeed())
		settled(ctx, set, 1, 2)
		Expect(set.Status.Agent.Image).To(Equal(fixture.AgentImage))
		for name, pod := range podsOf(ctx, p.namespace) {
			Expect(pod.UID).To(Equal(before[name].UID), "%s was recreated", name)
		}

		By("applying the filled object by hand")
		byHand := application.Filled(set)
		Expect(user.Update(ctx, byHand)).To(Succeed())
		settled(ctx, byHand, 1, 2)
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), byHand)).To(Succeed())
			g.Expect(byHand.Status.Agent).To(BeNil())
		}).Should(Succeed())
		for name, pod := range podsOf(ctx, p.namespace) {
			Expect(pod.UID).To(Equal(before[name].UID), "%s was recreated", name)
		}

		By("returning to spec.application with another image")
		Expect(user.Get(ctx, client.ObjectKeyFromObject(set), byHand)).To(Succeed())
		byHand.Spec = postgreSQL(p.namespace).Spec
		byHand.Spec.Pod.Containers[0].Image = "docker.io/library/postgres:17.1"
		Expect(user.Update(ctx, byHand)).To(Succeed())
		Eventually(func(g Gomega) {
			for name, pod := range podsOf(ctx, p.namespace) {
				g.Expect(pod.UID).NotTo(Equal(before[name].UID), name)
				g.Expect(pod.Spec.InitContainers[0].Image).To(Equal("registry/operator:2"))
			}
		}).Should(Succeed())
	})

	It("RS-142 reports a missing Secret, and creates the children meanwhile", func(ctx SpecContext) {
		p := startFakeControlPlane(newNamespace(ctx))
		startOperator(p)
		server.GiveRightsIn(ctx, p.namespace, "secrets-role")
		set := postgreSQL(p.namespace)
		Expect(user.Create(ctx, set)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			bad := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionDegraded)
			g.Expect(bad).NotTo(BeNil())
			g.Expect(bad.Message).To(ContainSubstring("do not exist: passwords"))
			g.Expect(user.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: "rss-db"}, &appsv1.StatefulSet{})).To(Succeed())
		}).Should(Succeed())
	})

	It("RS-141 refuses at admission what cannot work, with the field", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		for _, row := range []struct {
			want   string
			change func(*v1alpha1.ReplicatedStatefulSet)
		}{
			{"spec.application.postgreSQL.settings[fsync]: Forbidden", func(s *v1alpha1.ReplicatedStatefulSet) {
				s.Spec.Application.PostgreSQL = &v1alpha1.PostgreSQLPolicy{Settings: map[string]string{"fsync": "off"}}
			}},
			{`spec.application.type: Unsupported value: "Oracle"`, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Application.Type = "Oracle" }},
			{"spec.application.credentialsSecret", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Application.CredentialsSecret = "" }},
			{"spec.application.postgreSQL.synchronousStandbys", func(s *v1alpha1.ReplicatedStatefulSet) {
				s.Spec.Application.PostgreSQL = &v1alpha1.PostgreSQLPolicy{SynchronousStandbys: 64}
			}},
			{"spec.pod.commands: Invalid value: sequence is missing; add the command that prints the data version of a member, or set spec.application", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Application = nil }},
			{"spec.pod.volumeClaimTemplates: Required value", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.VolumeClaimTemplates = nil }},
			{"spec.primaries: Invalid value: 3: PostgreSQL has one primary", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Primaries = new(int32(3)) }},
			{"spec.pod.containers[0].args: Forbidden", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Containers[0].Args = []string{"-c"} }},
			{"spec.pod.containers[0].resources", func(s *v1alpha1.ReplicatedStatefulSet) { // found by the dry run of the filled pod
				s.Spec.Pod.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("-1")}
			}},
		} {
			Expect(clean(user.Create(ctx, postgreSQL(namespace, row.change)))).To(ContainSubstring(row.want))
		}
		Expect(user.Create(ctx, postgreSQL(namespace))).To(Succeed())
	})
})
