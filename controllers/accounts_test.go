package controllers

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/policy/policytest"
)

const (
	controllersUser = "system:serviceaccount:home:op-controller-manager"
	installerUser   = "system:serviceaccount:home:op-installer"
)

// newAccountPolicies returns the API server's plugin for ValidatingAdmissionPolicies, with the policies
// on the accounts of an operator with name op in namespace home.
func newAccountPolicies(t *testing.T) *validating.Plugin {
	t.Helper()
	var existing []runtime.Object
	for _, name := range []string{"home", "shop", metav1.NamespaceSystem, corev1.NamespaceNodeLease} {
		existing = append(existing, policytest.Namespace(name))
	}
	for _, rule := range accountRules("op", "home") {
		made, binding := rule.build("op", "home")
		existing = append(existing, made, binding)
	}
	return policytest.NewPlugin(t, policytest.Cluster{Existing: existing, Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()),
		Mapper: meta.NewDefaultRESTMapper(nil), Authorizer: authorizerfactory.NewAlwaysDenyAuthorizer()})
}

func aLease(namespace, name string) client.Object {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func aRole(namespace, name string, change ...func(*rbacv1.Role)) client.Object {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{name}, Verbs: []string{"get", "watch", "update", "patch"}}}}
	for _, c := range change {
		c(role)
	}
	return role
}

func aBinding(namespace, name string, change ...func(*rbacv1.RoleBinding)) client.Object {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{
			{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "default"}, {Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "db"}}}
	for _, c := range change {
		c(binding)
	}
	return binding
}

// firstRule changes the first rule of a Role.
func firstRule(change func(*rbacv1.PolicyRule)) func(*rbacv1.Role) {
	return func(r *rbacv1.Role) { change(&r.Rules[0]) }
}

// refusedWrite returns the API server's response to a write. "" means that it is allowed.
func refusedWrite(t *testing.T, plugin *validating.Plugin, operation admission.Operation, object client.Object, who string) string {
	t.Helper()
	kinds, _, err := clientgoscheme.Scheme.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	var now, before runtime.Object = object, nil
	switch operation {
	case admission.Update:
		before = object.DeepCopyObject()
	case admission.Delete:
		now, before = nil, object
	}
	attributes := admission.NewAttributesRecord(now, before, kinds[0], object.GetNamespace(), object.GetName(), resource, "", operation, nil, false, &user.DefaultInfo{Name: who})
	if err := plugin.Validate(t.Context(), attributes, admission.NewObjectInterfacesFromScheme(clientgoscheme.Scheme)); err != nil {
		return err.Error()
	}
	return ""
}

// Parts of the responses to writes that are refused.
const (
	fencingNames    = "only with names that end with .singleton or .member, and none in namespaces kube-system and home"
	fencingRoles    = "write Roles only to get, watch, update and patch Leases"
	fencingBindings = "write RoleBindings only for the Role with the same name"
	// notEvaluated is the response to an expression that cannot be evaluated.
	notEvaluated = "resulted in error"
)

var (
	allWrites = []admission.Operation{admission.Create, admission.Update, admission.Delete}
	contents  = allWrites[:2]
)

// fencingWrites are writes of objects that the role for fencing grants, and the responses.
var fencingWrites = []struct {
	name       string
	operations []admission.Operation
	object     client.Object
	want       string
}{
	{"a Lease of a StatefulSingleton", allWrites, aLease("shop", "db.singleton"), ""},
	{"a Lease of a member", allWrites, aLease("shop", "db-0.member"), ""},
	{"a Role", allWrites, aRole("shop", "db.singleton"), ""},
	{"a RoleBinding", allWrites, aBinding("shop", "db.singleton"), ""},
	{"the Lease of the leader election", contents, aLease("home", "op"), ""},
	{"the deletion of the Lease of the leader election", []admission.Operation{admission.Delete}, aLease("home", "op"), fencingNames},
	{"the Lease of the installer", allWrites, aLease("home", "op-installer"), fencingNames},
	{"a Lease in the operator's namespace", allWrites, aLease("home", "db.singleton"), fencingNames},
	{"a Lease with the name of the operator in another namespace", allWrites, aLease("shop", "op"), fencingNames},
	{"a Lease of another program", allWrites, aLease("shop", "lock"), fencingNames},
	{"a similar name", allWrites, aLease("shop", "db-singleton"), fencingNames},
	{"a name with another end", allWrites, aLease("shop", "db.singleton.x"), fencingNames},
	{"a Lease of kube-system", allWrites, aLease(metav1.NamespaceSystem, "kube-scheduler"), fencingNames},
	{"a new Lease in kube-system", allWrites, aLease(metav1.NamespaceSystem, "db.singleton"), fencingNames},
	{"a heartbeat of a Node", allWrites, aLease(corev1.NamespaceNodeLease, "node-1"), fencingNames},
	{"a Role with another name", allWrites, aRole("shop", "db", firstRule(func(r *rbacv1.PolicyRule) { r.ResourceNames = []string{"db.singleton"} })), fencingNames},
	{"a Role with the name of the operator", allWrites, aRole("shop", "op", firstRule(func(r *rbacv1.PolicyRule) { r.ResourceNames = []string{"db.singleton"} })), fencingNames},
	{"a Role in kube-system", allWrites, aRole(metav1.NamespaceSystem, "db.singleton"), fencingNames},
	{"a Role in the operator's namespace", allWrites, aRole("home", "db.singleton"), fencingNames},
	{"a Role for all Leases", contents, aRole("shop", "db.singleton", firstRule(func(r *rbacv1.PolicyRule) { r.ResourceNames = nil })), fencingRoles},
	{"a Role for a Lease of another program", contents, aRole("shop", "db.singleton", firstRule(func(r *rbacv1.PolicyRule) { r.ResourceNames = []string{"db.singleton", "lock"} })), fencingRoles},
	{"a Role with another verb", contents, aRole("shop", "db.singleton", firstRule(func(r *rbacv1.PolicyRule) { r.Verbs = append(r.Verbs, "delete") })), fencingRoles},
	{"a Role with all verbs", contents, aRole("shop", "db.singleton", firstRule(func(r *rbacv1.PolicyRule) { r.Verbs = []string{"*"} })), fencingRoles},
	{"a Role for another resource", contents, aRole("shop", "db.singleton", firstRule(func(r *rbacv1.PolicyRule) { r.Resources = append(r.Resources, "leases/status") })), fencingRoles},
	{"a Role for another group", contents, aRole("shop", "db.singleton", firstRule(func(r *rbacv1.PolicyRule) { r.APIGroups = []string{"*"} })), fencingRoles},
	{"a Role for all groups and resources", contents, aRole("shop", "db.singleton", firstRule(func(r *rbacv1.PolicyRule) { r.APIGroups, r.Resources = nil, nil })), fencingRoles},
	{"a Role with a second rule", contents, aRole("shop", "db.singleton", func(r *rbacv1.Role) {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"a.singleton"}, Verbs: []string{"get"}})
	}), fencingRoles},
	{"a Role without rules", contents, aRole("shop", "db.singleton", func(r *rbacv1.Role) { r.Rules = nil }), notEvaluated},
	{"the deletion of a Role that was changed", []admission.Operation{admission.Delete}, aRole("shop", "db.singleton", func(r *rbacv1.Role) { r.Rules = nil }), ""},
	{"a RoleBinding with another name", allWrites, aBinding("shop", "db"), fencingNames},
	{"a RoleBinding in kube-system", allWrites, aBinding(metav1.NamespaceSystem, "db.singleton"), fencingNames},
	{"a RoleBinding for a ClusterRole", contents, aBinding("shop", "db.singleton", func(b *rbacv1.RoleBinding) { b.RoleRef.Kind = "ClusterRole" }), fencingBindings},
	{"a RoleBinding for another Role", contents, aBinding("shop", "db.singleton", func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "admin.singleton" }), fencingBindings},
	{"a RoleBinding for a user", contents, aBinding("shop", "db.singleton", func(b *rbacv1.RoleBinding) { b.Subjects[1] = rbacv1.Subject{Kind: rbacv1.UserKind, Name: "jane"} }), fencingBindings},
	{"a RoleBinding for a group", contents, aBinding("shop", "db.singleton", func(b *rbacv1.RoleBinding) {
		b.Subjects[0] = rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:authenticated", Namespace: "shop"}
	}), fencingBindings},
	{"a RoleBinding for an account of another namespace", contents, aBinding("shop", "db.singleton", func(b *rbacv1.RoleBinding) { b.Subjects[1].Namespace = "bank" }), fencingBindings},
}

// TestFencingRule tests writes that the role for fencing grants to the controllers' account, and that
// the policy refuses.
func TestFencingRule(t *testing.T) {
	plugin := newAccountPolicies(t)
	for _, row := range fencingWrites {
		for _, operation := range row.operations {
			t.Run(row.name+" "+string(operation), func(t *testing.T) {
				got := refusedWrite(t, plugin, operation, row.object, controllersUser)
				isAllowed, wantAllowed := got == "", row.want == ""
				if isAllowed != wantAllowed || !strings.Contains(got, row.want) {
					t.Errorf("the response is %q, want %q", got, row.want)
				}
				if other := refusedWrite(t, plugin, operation, row.object, installerUser); other != "" {
					t.Errorf("the response to another account is %q", other)
				}
			})
		}
	}
}

// TestAccountPolicies tests that the names of policies are those that the pages have, and that the
// policies fail closed.
func TestAccountPolicies(t *testing.T) {
	want := []string{"op-controller-manager-account-home", "op-controller-manager-fencing-home", "op-webhook-account-home"}
	if got := accountPolicies("op", "home"); !slices.Equal(got, want) {
		t.Errorf("the names are %q", got)
	}
	for _, rule := range accountRules("op", "home") {
		made, binding := rule.build("op", "home")
		if *made.Spec.FailurePolicy != admissionv1.Fail || binding.Spec.PolicyName != made.Name {
			t.Errorf("%s has failurePolicy %s, and its binding is for %s", made.Name, *made.Spec.FailurePolicy, binding.Spec.PolicyName)
		}
	}
}
