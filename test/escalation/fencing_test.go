package escalation

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	statefulsingletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

const (
	// programAccount is the service account of pods with fencing by Lease d.singleton, and otherAccount
	// that of other pods of the namespace.
	programAccount = "system:serviceaccount:" + tenant + ":default"
	otherAccount   = "system:serviceaccount:" + tenant + ":other"

	// holderPod and waitingPod are pods with fencing by Lease d.singleton, which names the second as the
	// next one.
	holderPod  = "d-1"
	waitingPod = "d-2"

	fencingNames    = "write Leases, Roles and RoleBindings only with names"
	fencingRoles    = "write Roles only to get, watch, update and patch Leases"
	fencingBindings = "write RoleBindings only for the Role with the same name"
	holderOnly      = "only the operator and the agent of the pod that holds it may change it"
	operatorOnly    = "which only the operator creates"
)

func lease(namespace, name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// identityOf returns the holderIdentity of a pod with UID <name>-uid.
func identityOf(pod string) string { return pod + "_" + pod + "-uid" }

// heldLease returns a Lease that holderPod holds.
func heldLease(name string) *coordinationv1.Lease {
	l := lease(tenant, name)
	l.Labels = map[string]string{statefulsingletonv1.LabelSingleton: "d"}
	l.Annotations = map[string]string{statefulsingletonv1.AnnotationNext: identityOf(waitingPod)}
	l.Spec = coordinationv1.LeaseSpec{HolderIdentity: ptr.To(identityOf(holderPod)), LeaseTransitions: ptr.To(int32(3)), LeaseDurationSeconds: ptr.To(int32(15))}
	return l
}

// changesLease returns a request that changes Lease d.singleton.
func changesLease(text string) func(context.Context, loot) error {
	return patches(func() client.Object { return lease(tenant, "d.singleton") }, text)
}

const (
	renewal = `{"spec": {"renewTime": "2026-11-29T00:00:00.000000Z"}}`
	// another differs from renewal: the policy allows a write that changes nothing.
	another  = `{"spec": {"renewTime": "2026-11-29T00:00:01.000000Z"}}`
	epoch    = `{"spec": {"leaseTransitions": 7}}`
	nextIsMe = `{"metadata": {"annotations": {"` + statefulsingletonv1.AnnotationNext + `": "mine_0"}}}`
	takeover = `{"spec": {"holderIdentity": "mine_0", "leaseTransitions": 4}}`
	forEver  = `{"spec": {"leaseDurationSeconds": 2147483647}}`
	unlabel  = `{"metadata": {"labels": {"` + statefulsingletonv1.LabelSingleton + `": null}}}`
)

// podThefts are requests of pods with the service account of the program.
var podThefts = []struct {
	pod string
	theft
}{
	{holderPod, theft{name: "renewing", do: changesLease(renewal)}},
	{holderPod, theft{name: "another epoch", do: changesLease(epoch), blocked: holderOnly}},
	{holderPod, theft{name: "naming a successor", do: changesLease(nextIsMe), blocked: holderOnly}},
	{holderPod, theft{name: "handing over to another pod", do: changesLease(takeover), blocked: holderOnly}},
	{holderPod, theft{name: "a renewal that does not expire", do: changesLease(forEver), blocked: holderOnly}},
	{holderPod, theft{name: "removing the label", do: changesLease(unlabel), blocked: holderOnly}},
	{holderPod, theft{name: "renewing the Lease of another program", do: patches(func() client.Object { return lease(tenant, "e.singleton") }, renewal), blocked: forbidden}},
	{waitingPod, theft{name: "renewing for the holder", do: changesLease(another), blocked: holderOnly}},
	{waitingPod, theft{name: "another epoch", do: changesLease(epoch), blocked: holderOnly}},
	{waitingPod, theft{name: "naming a successor", do: changesLease(nextIsMe), blocked: holderOnly}},
	{waitingPod, theft{name: "taking over", do: changesLease(`{"metadata": {"annotations": {"` + statefulsingletonv1.AnnotationNext + `": null}}, "spec": {"holderIdentity": "` + identityOf(waitingPod) + `", "leaseTransitions": 4}}`), blocked: holderOnly}},
	{holderPod, theft{name: "handing over to the pod that the operator named", do: changesLease(`{"metadata": {"annotations": {"` + statefulsingletonv1.AnnotationNext + `": null}}, "spec": {"holderIdentity": "` + identityOf(waitingPod) + `", "leaseTransitions": 4}}`)}},
	{holderPod, theft{name: "renewing after the handover", do: changesLease(another), blocked: holderOnly}},
}

// fencingRole returns the Role that the controllers write for the Lease with the same name.
func fencingRole(namespace, name string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{name}, Verbs: []string{"get", "watch", "update", "patch"}}}}
}

// fencingBinding returns the RoleBinding that the controllers write for the pods with a service account.
func fencingBinding(namespace, name string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "default"}}}
}

// fencingThefts are requests after an administrator has bound the role for fencing, and the controllers have
// written Lease, Role and RoleBinding d.singleton.
var fencingThefts = []theft{
	{"renewing a Lease", []string{otherAccount, podCreator, webhooksToken, installerToken}, changesLease(renewal), forbidden},
	{"the epoch of a Lease", []string{otherAccount, podCreator}, changesLease(epoch), forbidden},
	{"naming a successor", []string{otherAccount, podCreator}, changesLease(nextIsMe), forbidden},
	{"holding a Lease for ever", []string{otherAccount, podCreator}, changesLease(forEver), forbidden},
	{"renewing a Lease without the token of its pod", []string{programAccount, namespaceEditor}, changesLease(renewal), holderOnly},
	{"the epoch of a Lease without the token of its pod", []string{programAccount, namespaceEditor}, changesLease(epoch), holderOnly},
	{"naming a successor without the token of its pod", []string{programAccount, namespaceEditor}, changesLease(nextIsMe), holderOnly},
	{"taking over a Lease without the token of its pod", []string{programAccount, namespaceEditor}, changesLease(takeover), holderOnly},
	{"holding a Lease for ever without the token of its pod", []string{programAccount, namespaceEditor}, changesLease(forEver), holderOnly},
	{"a Lease with the label", []string{namespaceEditor}, creates(func() client.Object { return heldLease("f.singleton") }), operatorOnly},
	{"deleting a Lease", []string{programAccount, otherAccount, podCreator}, func(ctx context.Context, l loot) error {
		return l.Delete(ctx, lease(tenant, "d.singleton"))
	}, forbidden},
	{"a new Lease", []string{programAccount, otherAccount, podCreator}, creates(func() client.Object { return lease(tenant, "f.singleton") }), forbidden},
	{"reading all Leases", []string{programAccount, otherAccount, podCreator}, func(ctx context.Context, l loot) error {
		return l.List(ctx, &coordinationv1.LeaseList{}, client.InNamespace(tenant))
	}, forbidden},
	{"their own Role for a Lease", []string{programAccount, otherAccount, podCreator, namespaceEditor}, creates(func() client.Object { return fencingRole(tenant, "f.singleton") }), forbidden},
	{"their own RoleBinding for a Lease", []string{programAccount, otherAccount, podCreator, namespaceEditor}, creates(func() client.Object { return fencingBinding(tenant, "e.singleton") }), forbidden},

	{"a Lease of kube-system", []string{controllersToken}, creates(func() client.Object { return lease(metav1.NamespaceSystem, "kube-scheduler") }), fencingNames},
	{"a heartbeat of a Node", []string{controllersToken}, creates(func() client.Object { return lease(corev1.NamespaceNodeLease, "there") }), fencingNames},
	{"a Lease of the operator's namespace", []string{controllersToken}, creates(func() client.Object { return lease(operatorNamespace, "new") }), fencingNames},
	{"a Lease of another leader election", []string{controllersToken}, creates(func() client.Object { return lease(tenant, "lock") }), fencingNames},
	{"a Role in the operator's namespace", []string{controllersToken}, creates(func() client.Object { return fencingRole(operatorNamespace, "d.singleton") }), fencingNames},
	{"deleting a Role of a tenant", []string{controllersToken}, func(ctx context.Context, l loot) error { return l.Delete(ctx, fencingRole(tenant, "there")) }, fencingNames},
	{"deleting a RoleBinding of a tenant", []string{controllersToken}, func(ctx context.Context, l loot) error {
		return l.Delete(ctx, fencingBinding(tenant, "there"))
	}, fencingNames},
	{"a Role for pods", []string{controllersToken}, creates(func() client.Object {
		role := fencingRole(tenant, "f.singleton")
		role.Rules[0] = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}}
		return role
	}), fencingRoles},
	{"a Role for pods in place of that for a Lease", []string{controllersToken}, patches(func() client.Object { return fencingRole(tenant, "d.singleton") },
		`{"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}]}`), fencingRoles},
	{"its ClusterRole for a service account", []string{controllersToken}, creates(func() client.Object {
		binding := fencingBinding(tenant, "f.singleton")
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "statefulsingleton-role"}
		return binding
	}), fencingBindings},
	{"a Role for a service account of another namespace", []string{controllersToken}, patches(func() client.Object { return fencingBinding(tenant, "d.singleton") },
		`{"subjects": [{"kind": "ServiceAccount", "namespace": "elsewhere", "name": "default"}]}`), fencingBindings},
}

// fencing tests the permissions of pods with fencing by a Lease, and of the account that grants them. The users
// of thieves exist.
func (s site) fencing(t *testing.T) {
	g := NewWithT(t)
	controllers := s.loot(t, controllersToken)
	t.Run("the role for fencing is not bound by default", func(t *testing.T) {
		for _, object := range []client.Object{lease(tenant, "d.singleton"), fencingRole(tenant, "d.singleton"), fencingBinding(tenant, "d.singleton")} {
			NewWithT(t).Expect(controllers.Create(t.Context(), object)).To(MatchError(ContainSubstring(forbidden)), "%T", object)
		}
	})
	for _, object := range []client.Object{fencingRole(tenant, "there"), fencingBinding(tenant, "there"), lease(tenant, "e.singleton")} {
		g.Expect(s.admin.Create(t.Context(), object)).To(Succeed())
	}
	if err := s.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	s.bind(t, "", "ClusterRole", "fencing-role", controllersToken)
	g.Eventually(func() error { // the API server enforces a new policy only after a delay
		return controllers.Create(t.Context(), lease(tenant, "probe"), client.DryRunAll)
	}, patience).Should(MatchError(ContainSubstring(fencingNames)))
	for _, object := range []client.Object{heldLease("d.singleton"), fencingRole(tenant, "d.singleton"), fencingBinding(tenant, "d.singleton")} {
		g.Expect(controllers.Create(t.Context(), object)).To(Succeed(), "%T", object)
	}
	program := s.loot(t, programAccount)
	g.Eventually(func() error { // caches of roles and bindings lag
		return program.Get(t.Context(), client.ObjectKey{Namespace: tenant, Name: "d.singleton"}, &coordinationv1.Lease{})
	}, patience).Should(Succeed())
	s.steal(t, fencingThefts)
	for _, a := range podThefts {
		t.Run(a.name+" by pod "+a.pod, func(t *testing.T) { s.stealAsPod(t, a.pod, a.theft) })
	}
	s.fencingMembers(t)
}

// lootOfPod returns the client of a pod: the API server adds name and UID to the user of its token.
func (s site) lootOfPod(t *testing.T, account, pod string) loot {
	t.Helper()
	own := rest.CopyConfig(s.server.Config)
	own.Impersonate = rest.ImpersonationConfig{UserName: account, Extra: map[string][]string{
		"authentication.kubernetes.io/pod-name": {pod}, "authentication.kubernetes.io/pod-uid": {pod + "-uid"}}}
	c, err := client.New(own, client.Options{Scheme: s.admin.Scheme(), Mapper: s.admin.RESTMapper()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return loot{Client: c}
}
