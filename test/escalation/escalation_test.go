package escalation

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	fissilev1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	statefulsingletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// read decodes a manifest into object and sets the tenant's namespace.
func read[T client.Object](object T, text string) T {
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		panic(err) // the text is a constant of this package
	}
	object.SetNamespace(tenant)
	return object
}

func cluster(spec string) *engev1alpha1.StatefulCluster {
	return read(&engev1alpha1.StatefulCluster{}, `
metadata: {name: a}
spec:
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}
`+spec)
}

func replicated(pod, spec string) *clusterlabsv1alpha1.ReplicatedStatefulSet {
	return read(&clusterlabsv1alpha1.ReplicatedStatefulSet{}, `
metadata: {name: b}
spec:
  pod:
    containers: [{name: b, image: b}]
    commands: {status: {command: [a], timeout: 5s}, sequence: {command: [a], timeout: 5s}, stop: {command: [a], timeout: 5s}, seed: {command: [a], timeout: 5s}, primary: {command: [a], timeout: 5s}}
`+pod+spec)
}

func extended(set, spec string) *fissilev1alpha1.ExtendedStatefulSet {
	return read(&fissilev1alpha1.ExtendedStatefulSet{}, `
metadata: {name: c}
spec:
  template:
    spec:
      selector: {matchLabels: {app: c}}
      template: {metadata: {labels: {app: c}}, spec: {containers: [{name: c, image: c}]}}
`+set+spec)
}

func singleton() *statefulsingletonv1.StatefulSingleton {
	return read(&statefulsingletonv1.StatefulSingleton{}, "metadata: {name: d}\nspec: {selector: {matchLabels: {app: d}}}")
}

const (
	claimTemplates = "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]\n"
	job            = "{spec: {template: {spec: {restartPolicy: Never, containers: [{name: j, image: j}]}}}}"
)

// rights are the additional rights of an actor in the tenant's namespace.
type rights map[string][]string // verbs, by resource

// attempt is an object that an actor tries to create. The API server's error must contain blocked. If
// blocked is "", the request must succeed, which shows that nothing else blocks it.
type attempt struct {
	name    string
	kind    string // the actor has the editor role of this kind
	rights  rights
	object  client.Object
	blocked string
}

var attempts = []attempt{
	{"pods through a StatefulCluster", "statefulcluster", nil, cluster(""), "may not create pods"},
	{"pods through a ReplicatedStatefulSet", "replicatedstatefulset", nil, replicated("", ""), "may not create pods"},
	{"pods through an ExtendedStatefulSet", "extendedstatefulset", nil, extended("", ""), "may not create pods"},
	{"pods of other users through a StatefulSingleton", "statefulsingleton", nil, singleton(), "may not update pods"},
	{"deleting pods of other users through a StatefulSingleton", "statefulsingleton", rights{"pods": {"update"}}, singleton(), "may not delete pods"},
	{"a StatefulSingleton by a user with the permissions", "statefulsingleton", rights{"pods": {"update", "delete"}}, singleton(), ""},

	{"N5 a budget through a StatefulCluster", "statefulcluster", rights{"pods": {"create"}}, cluster(""), "may not create poddisruptionbudgets.policy"},
	{"a StatefulCluster by a user who may create pods and budgets", "statefulcluster", rights{"pods": {"create"}, "poddisruptionbudgets": {"create"}}, cluster(""), ""},
	{"claims through a StatefulCluster", "statefulcluster", rights{"pods": {"create"}}, cluster("  " + claimTemplates), "may not create persistentvolumeclaims"},
	{"claims through a StatefulCluster by a user with the permissions", "statefulcluster", rights{"pods": {"create"}, "persistentvolumeclaims": {"create"}, "poddisruptionbudgets": {"create"}}, cluster("  " + claimTemplates), ""},
	{"deleting claims through a StatefulCluster", "statefulcluster", rights{"pods": {"create"}, "persistentvolumeclaims": {"create"}},
		cluster("  " + claimTemplates + "  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}"), "may not delete persistentvolumeclaims"},

	{"commands through a ReplicatedStatefulSet", "replicatedstatefulset", rights{"pods": {"create"}}, replicated("", ""), "may not create pods/exec"},
	{"N5 its own Services through a ReplicatedStatefulSet", "replicatedstatefulset", rights{"pods": {"create"}, "pods/exec": {"create"}}, replicated("", ""), "may not create services"},
	{"N5 budgets through a ReplicatedStatefulSet", "replicatedstatefulset", rights{"pods": {"create"}, "pods/exec": {"create"}, "services": {"create"}}, replicated("", ""),
		"may not create poddisruptionbudgets.policy"},
	{"a ReplicatedStatefulSet by a user with the permissions", "replicatedstatefulset",
		rights{"pods": {"create"}, "pods/exec": {"create"}, "services": {"create"}, "poddisruptionbudgets": {"create"}}, replicated("", ""), ""},
	{"claims through a ReplicatedStatefulSet", "replicatedstatefulset", rights{"pods": {"create"}, "pods/exec": {"create"}},
		replicated("    "+claimTemplates, ""), "may not create persistentvolumeclaims"},
	{"Secrets through a ReplicatedStatefulSet", "replicatedstatefulset", rights{"pods": {"create"}, "pods/exec": {"create"}},
		replicated("", "  secrets: [crown]\n"), "may not get secrets"},
	{"ConfigMaps through a ReplicatedStatefulSet", "replicatedstatefulset", rights{"pods": {"create"}, "pods/exec": {"create"}},
		replicated("", "  ruleSelector: {matchLabels: {a: b}}\n"), "may not get configmaps"},
	{"Services through a ReplicatedStatefulSet", "replicatedstatefulset", rights{"pods": {"create"}, "pods/exec": {"create"}},
		replicated("", "  servicePorts: [{port: 1}]\n"), "may not create services"},

	{"an ExtendedStatefulSet by a user who may create pods", "extendedstatefulset", rights{"pods": {"create"}}, extended("", ""), ""},
	{"claims through an ExtendedStatefulSet", "extendedstatefulset", rights{"pods": {"create"}}, extended("      "+claimTemplates, ""), "may not create persistentvolumeclaims"},
	{"probes through an ExtendedStatefulSet", "extendedstatefulset", rights{"pods": {"create"}},
		extended("", "  activePassiveProbes: {c: {exec: {command: [a]}}}\n"), "may not create pods/exec"},
	{"Services through an ExtendedStatefulSet", "extendedstatefulset", rights{"pods": {"create"}},
		extended("      serviceName: c\n", ""), "may not create services"},
	{"Jobs through an ExtendedStatefulSet", "extendedstatefulset", rights{"pods": {"create"}},
		extended("", "  updateStrategy: {preUpdateJob: "+job+"}\n"), "may not create jobs.batch"},
	{"changes of Secrets through an ExtendedStatefulSet", "extendedstatefulset", rights{"pods": {"create"}},
		extended("", "  updateOnEnvChange: true\n"), "may not get secrets"},
	{"changes of ConfigMaps through an ExtendedStatefulSet", "extendedstatefulset", rights{"pods": {"create"}, "secrets": {"get"}},
		extended("", "  updateOnEnvChange: true\n"), "may not get configmaps"},
	{"a write to Secrets through an ExtendedStatefulSet", "extendedstatefulset", rights{"pods": {"create"}, "secrets": {"get"}, "configmaps": {"get"}},
		extended("", "  updateOnEnvChange: true\n  configTracking: OwnerReference\n"), "may not patch secrets"},
}

// TestAPIOwners forges each child of each kind.
func TestAPIOwners(t *testing.T) { newSite(t).owners(t) }

func TestAPIEscalation(t *testing.T) {
	s := newSite(t)
	nobody := s.actor(t, "nobody", "", nil)
	for _, kind := range []string{"statefulcluster", "replicatedstatefulset", "extendedstatefulset", "statefulsingleton"} {
		s.bind(t, tenant, "ClusterRole", kind+"-editor-role", "nobody")
	}
	s.awaitPolicies(t, nobody, cluster(""), replicated("", ""), extended("", ""), singleton())
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			g := NewWithT(t)
			actor := s.actor(t, a.name, a.kind, a.rights)
			err := actor.Create(t.Context(), a.object.DeepCopyObject().(client.Object), client.DryRunAll)
			if a.blocked == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(And(ContainSubstring(a.blocked), ContainSubstring(a.name), ContainSubstring("kubectl auth can-i"))))
		})
	}
	t.Run("no user may have objects in the namespaces with the accounts of the cluster or of the operator", func(t *testing.T) {
		for _, namespace := range []string{operatorNamespace, metav1.NamespaceSystem} {
			for _, object := range []client.Object{cluster(""), replicated("", ""), extended("", ""), singleton()} {
				object.SetNamespace(namespace)
				NewWithT(t).Expect(s.admin.Create(t.Context(), object, client.DryRunAll)).To(MatchError(ContainSubstring("Use another namespace")))
			}
		}
	})
	t.Run("unchanged fields need no permission", func(t *testing.T) { s.scales(t) })
	t.Run("a pod with the labels of a member", func(t *testing.T) { s.members(t) })
	t.Run("annotations with orders, and labels that are copied to pods", func(t *testing.T) { s.orders(t) })
	t.Run("fields that change pods or roles", func(t *testing.T) { s.fields(t) })
	t.Run("N4 N12 too many labels and annotations", func(t *testing.T) { s.bounds(t) })
	t.Run("N2 an annotation with the name of a quantity", func(t *testing.T) { s.quantity(t) })
	t.Run("N1 an object that cannot be decoded", func(t *testing.T) { s.undecodable(t) })
	t.Run("an object with deletionProtection", func(t *testing.T) { s.deletionProtection(t) })
	t.Run("labels that only members have", func(t *testing.T) { s.labels(t) })
	s.thieves(t)
	s.fencing(t)
}

// actor returns the client of a user with the editor role of a kind, or with none if kind is "", and
// further rights in the tenant's namespace.
func (s site) actor(t *testing.T, name, kind string, more rights) client.Client {
	t.Helper()
	if kind != "" {
		s.bind(t, tenant, "ClusterRole", kind+"-editor-role", name)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, GenerateName: "actor-"}}
	for resource, verbs := range more {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"", "batch", "policy"}, Resources: []string{resource}, Verbs: verbs})
	}
	NewWithT(t).Expect(s.admin.Create(t.Context(), role)).To(Succeed())
	s.bind(t, tenant, "Role", role.Name, name)
	return s.as(t, name)
}

// members tests that a user who may create pods cannot set a StatefulCluster as the controller of a pod.
// Otherwise the set would count the pod as a member and delete a genuine member.
func (s site) members(t *testing.T) {
	g := NewWithT(t)
	forged := pod(tenant, "db-forged")
	forged.OwnerReferences = []metav1.OwnerReference{{APIVersion: engev1alpha1.GroupVersion.String(), Kind: "StatefulCluster", Name: "db",
		UID: "00000000-0000-0000-0000-000000000000", Controller: ptr.To(true)}}
	maker := s.actor(t, "member maker", "statefulcluster", rights{"pods": {"create", "patch"}})
	g.Expect(maker.Create(t.Context(), forged, client.DryRunAll)).To(MatchError(ContainSubstring("may not update statefulclusters/finalizers")))
	plain := pod(tenant, "plain")
	g.Expect(maker.Create(t.Context(), plain)).To(Succeed())
	g.Expect(maker.Patch(t.Context(), plain, client.RawPatch(types.MergePatchType, []byte(
		`{"metadata": {"ownerReferences": [{"apiVersion": "enge.me/v1alpha1", "kind": "StatefulCluster", "name": "db", "uid": "00000000-0000-0000-0000-000000000000", "controller": true}]}}`)),
		client.DryRunAll)).To(MatchError(ContainSubstring("may not update statefulclusters/finalizers")))
	g.Expect(s.admin.Create(t.Context(), forged)).To(Succeed())
	g.Expect(maker.Patch(t.Context(), forged, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"a": "b"}}}`)), client.DryRunAll)).To(Succeed(), "a reference to an existing object")
	g.Expect(maker.Patch(t.Context(), forged, client.RawPatch(types.MergePatchType, []byte(
		`{"metadata": {"ownerReferences": [{"apiVersion": "enge.me/v1alpha1", "kind": "StatefulCluster", "name": "db", "uid": "00000000-0000-0000-0000-000000000001", "controller": true}]}}`)),
		client.DryRunAll)).To(MatchError(ContainSubstring("may not update statefulclusters/finalizers")), "N3b a reference to another set")
	for _, p := range []*corev1.Pod{plain, forged} {
		g.Expect(s.admin.Delete(t.Context(), p)).To(Succeed())
	}
}

// orders tests the annotations and fields that start commands in pods, and the labels and annotations of
// an object that are copied to its pods. A user who may only edit the object cannot change them.
func (s site) orders(t *testing.T) {
	g := NewWithT(t)
	made := replicated("", "")
	made.Name = "ordered"
	made.Annotations = map[string]string{"note": "a"}
	g.Expect(s.admin.Create(t.Context(), made)).To(Succeed())
	patch := func(actor client.Client, text string) error {
		object := &clusterlabsv1alpha1.ReplicatedStatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "ordered"}}
		return actor.Patch(context.WithoutCancel(t.Context()), object, client.RawPatch(types.MergePatchType, []byte(text)), client.DryRunAll)
	}
	const (
		order = `{"metadata": {"annotations": {"clusterlabs.org/switchover-to": "rss-ordered-1"}}}`
		twin  = `{"spec": {"switchoverTo": {"member": "rss-ordered-1", "id": "a"}}}`
		label = `{"metadata": {"labels": {"tier": "payments"}}}`
		note  = `{"metadata": {"annotations": {"inject": "yes"}}}`
		less  = `{"metadata": {"annotations": {"note": null}}}`
	)
	editor := s.actor(t, "order editor", "replicatedstatefulset", nil)
	g.Expect(patch(editor, order)).To(MatchError(And(ContainSubstring("may not create pods/exec"), ContainSubstring("clusterlabs.org/switchover-to"))))
	g.Expect(patch(editor, twin)).To(MatchError(And(ContainSubstring("may not create pods/exec"), ContainSubstring("spec.switchoverTo"))))
	for _, text := range []string{label, note, less} {
		g.Expect(patch(editor, text)).To(MatchError(ContainSubstring("may not create pods")), text)
	}
	for _, text := range []string{`{"spec": {"pod": {"template": {"spec": {"hostPID": true}}}}}`, `{"spec": {"pod": {"template": {"metadata": {"labels": {"tier": "payments"}}}}}}`} {
		g.Expect(patch(editor, text)).To(MatchError(ContainSubstring("may not create pods")), text)
	}
	g.Expect(patch(editor, `{"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}, "spec": {"replicas": 3}}`)).To(Succeed())
	g.Expect(patch(s.actor(t, "commander", "replicatedstatefulset", rights{"pods/exec": {"create"}}), order)).To(Succeed())
	for _, text := range []string{label, note, less} {
		g.Expect(patch(s.actor(t, "pod maker "+text[:30], "replicatedstatefulset", rights{"pods": {"create"}}), text)).To(Succeed(), text)
	}
	g.Expect(s.admin.Delete(t.Context(), made)).To(Succeed())
}

// scales tests that a user who may not create pods may change the number of replicas and the labels of a
// StatefulCluster, but not its template.
func (s site) scales(t *testing.T) {
	g := NewWithT(t)
	actor := s.actor(t, "scaler", "statefulcluster", nil)
	made := cluster("")
	made.Name = "scaled"
	g.Expect(s.admin.Create(t.Context(), made)).To(Succeed())
	patch := func(text string) error {
		object := &engev1alpha1.StatefulCluster{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "scaled"}}
		return actor.Patch(context.WithoutCancel(t.Context()), object, client.RawPatch(types.MergePatchType, []byte(text)))
	}
	g.Expect(patch(`{"spec": {"replicas": 0}, "metadata": {"labels": {"a": "b"}}}`)).To(Succeed())
	g.Expect(patch(`{"spec": {"template": {"spec": {"serviceAccountName": "privileged"}}}}`)).To(MatchError(ContainSubstring("may not create pods")))
	g.Expect(patch(`{"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "other"}]}}}}`)).To(MatchError(ContainSubstring("may not create pods")))
	g.Expect(s.admin.Delete(t.Context(), made)).To(Succeed())
}
