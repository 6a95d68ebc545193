package children_test

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy/policytest"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
)

const (
	leaseGuard   = "replicatedstatefulset-lease-guard-operator-system"
	deniedLease  = `leases.coordination.k8s.io "db-0.member" is forbidden: ValidatingAdmissionPolicy '` + leaseGuard + `' with binding '` + leaseGuard + `' denied request: `
	leaseChanged = deniedLease + "a Lease with label clusterlabs.org/lease decides which member of a ReplicatedStatefulSet may be primary: only the operator may change it, and the agent of the pod that holds it may renew it. " +
		"To make another member primary, set annotation clusterlabs.org/switchover-to of the ReplicatedStatefulSet"
	leaseCreated = deniedLease + "label clusterlabs.org/lease is reserved for the Leases of a ReplicatedStatefulSet, which only the operator creates; remove the label"

	// theOperator is the only user that may patch the status of ReplicatedStatefulSets.
	theOperator = "system:serviceaccount:operator-system:manager"
)

func statusOnlyByTheOperator(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	isStatus := a.GetAPIGroup() == "clusterlabs.org" && a.GetResource() == "replicatedstatefulsets" && a.GetSubresource() == "status"
	if isStatus && a.GetVerb() == "patch" && a.GetNamespace() == "ns" && a.GetUser().GetName() == theOperator {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func newLeaseGuard(t *testing.T, watched ...string) *validating.Plugin {
	t.Helper()
	policy, binding := children.BuildLeaseGuard("operator-system", watched)
	return policytest.NewPlugin(t, policytest.Cluster{
		Existing: []runtime.Object{policy, binding, policytest.Namespace("ns"), policytest.Namespace("elsewhere")},
		Dynamic:  dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), Mapper: meta.NewDefaultRESTMapper(nil),
		Authorizer: authorizer.AuthorizerFunc(statusOnlyByTheOperator)})
}

// askLease returns the API server's response to a request for a Lease; "" if it is admitted.
func askLease(plugin *validating.Plugin, l, old *coordinationv1.Lease, who user.Info) string {
	operation, before := admission.Create, runtime.Object(nil)
	if old != nil {
		operation, before = admission.Update, old
	}
	attributes := admission.NewAttributesRecord(l, before, coordinationv1.SchemeGroupVersion.WithKind("Lease"), l.Namespace, l.Name,
		coordinationv1.SchemeGroupVersion.WithResource("leases"), "", operation, nil, false, who)
	if err := plugin.Validate(context.Background(), attributes, admission.NewObjectInterfacesFromScheme(clientgoscheme.Scheme)); err != nil {
		return err.Error()
	}
	return ""
}

// memberUser is the user of a token of a pod. All pods of a set have the same service account.
func memberUser(name, uid string) user.Info {
	return &user.DefaultInfo{Name: "system:serviceaccount:ns:default", Extra: map[string][]string{
		"authentication.kubernetes.io/pod-name": {name}, "authentication.kubernetes.io/pod-uid": {uid}}}
}

// heldLease returns the Lease of pod db-0 of set db, held by this pod.
func heldLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "db-0.member", Namespace: "ns", Labels: map[string]string{v1alpha1.LabelLease: "db", "app": "db"},
			Annotations: map[string]string{"note": "x"}, Finalizers: []string{"example.com/f"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicatedStatefulSet", Name: "db", UID: "uid-of-db"}}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("db-0_1"), LeaseDurationSeconds: ptr.To(int32(15)), LeaseTransitions: ptr.To(int32(3))},
	}
}

// TestTheGuardOfMembers tests that the holder of a Lease may only renew it, and that others may not change it.
func TestTheGuardOfMembers(t *testing.T) {
	guard := newLeaseGuard(t)
	holder, other := memberUser("db-0", "1"), memberUser("db-1", "2")
	operator, client := &user.DefaultInfo{Name: theOperator}, &user.DefaultInfo{Name: "a-user"}
	renew := func(l *coordinationv1.Lease) { l.Spec.RenewTime = ptr.To(metav1.NowMicro()) }
	for _, r := range []struct {
		name   string
		who    user.Info
		change func(*coordinationv1.Lease)
		want   string
	}{
		{"the holder renews", holder, renew, ""},
		{"the holder sets the time since when it holds it", holder, func(l *coordinationv1.Lease) { l.Spec.AcquireTime = ptr.To(metav1.NowMicro()) }, ""},
		{"the holder sets another duration", holder, func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To(int32(600)) }, ""},
		{"the holder changes nothing", holder, func(*coordinationv1.Lease) {}, ""},
		{"the holder sets a duration that is too long", holder, func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To(int32(601)) }, leaseChanged},
		{"the holder sets a duration that is too short", holder, func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To(int32(9)) }, leaseChanged},
		{"the holder removes the duration", holder, func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = nil }, leaseChanged},
		{"the holder hands over", holder, func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.LeaseTransitions = ptr.To("db-1_2"), ptr.To(int32(4))
		}, leaseChanged},
		{"the holder names another", holder, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("db-1_2") }, leaseChanged},
		{"the holder removes itself", holder, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil }, leaseChanged},
		{"the holder raises the epoch", holder, func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To(int32(4)) }, leaseChanged},
		{"the holder lowers the epoch", holder, func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To(int32(2)) }, leaseChanged},
		{"the holder removes the epoch", holder, func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = nil }, leaseChanged},
		{"the holder removes the spec", holder, func(l *coordinationv1.Lease) { l.Spec = coordinationv1.LeaseSpec{} }, leaseChanged},
		{"the holder sets a strategy", holder, func(l *coordinationv1.Lease) { l.Spec.Strategy = ptr.To(coordinationv1.OldestEmulationVersion) }, leaseChanged},
		{"the holder prefers another", holder, func(l *coordinationv1.Lease) { l.Spec.PreferredHolder = ptr.To("db-1_2") }, leaseChanged},
		{"the holder adds an annotation", holder, func(l *coordinationv1.Lease) { l.Annotations[v1alpha1.AnnotationFenced] = "y" }, leaseChanged},
		{"the holder changes an annotation", holder, func(l *coordinationv1.Lease) { l.Annotations["note"] = "y" }, leaseChanged},
		{"the holder removes all annotations", holder, func(l *coordinationv1.Lease) { l.Annotations = nil }, leaseChanged},
		{"the holder adds a label", holder, func(l *coordinationv1.Lease) { l.Labels["more"] = "y" }, leaseChanged},
		{"the holder changes the label", holder, func(l *coordinationv1.Lease) { l.Labels[v1alpha1.LabelLease] = "other" }, leaseChanged},
		{"the holder removes the labels", holder, func(l *coordinationv1.Lease) { l.Labels = nil }, leaseChanged},
		{"the holder removes the owner", holder, func(l *coordinationv1.Lease) { l.OwnerReferences = nil }, leaseChanged},
		{"the holder removes a finalizer", holder, func(l *coordinationv1.Lease) { l.Finalizers = nil }, leaseChanged},
		{"another member renews", other, renew, leaseChanged},
		{"another member takes over", other, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("db-1_2") }, leaseChanged},
		{"a later pod with the name of the holder renews", memberUser("db-0", "9"), renew, leaseChanged},
		{"a token that belongs to no pod", &user.DefaultInfo{Name: "system:serviceaccount:ns:default"}, renew, leaseChanged},
		{"another client renews", client, renew, leaseChanged},
		{"another client changes nothing", client, func(*coordinationv1.Lease) {}, ""},
		{"another client removes the label", client, func(l *coordinationv1.Lease) { delete(l.Labels, v1alpha1.LabelLease) }, leaseChanged},
		{"the operator takes over", operator, func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.LeaseTransitions, l.Annotations = ptr.To("db-1_2"), ptr.To(int32(9)), nil
		}, ""},
	} {
		l := heldLease()
		r.change(l)
		if got := askLease(guard, l, heldLease(), r.who); got != r.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}

// TestTheGuardOfMembersKeepsToItsLeases tests new Leases, those without a holder, and those that are not of members.
func TestTheGuardOfMembersKeepsToItsLeases(t *testing.T) {
	guard := newLeaseGuard(t, "ns")
	operator, client := &user.DefaultInfo{Name: theOperator}, &user.DefaultInfo{Name: "a-user"}
	unlabelled, free, elsewhere := heldLease(), heldLease(), heldLease()
	unlabelled.Labels = map[string]string{"app": "db"}
	free.Spec.HolderIdentity = nil
	elsewhere.Namespace = "elsewhere"
	for _, r := range []struct {
		name      string
		now, from *coordinationv1.Lease
		who       user.Info
		want      string
	}{
		{"the operator creates a Lease", heldLease(), nil, operator, ""},
		{"another client creates a Lease with the label", heldLease(), nil, client, leaseCreated},
		{"a member creates a Lease with the label", heldLease(), nil, memberUser("db-0", "1"), leaseCreated},
		{"another client creates a Lease without the label", unlabelled, nil, client, ""},
		{"another client changes a Lease without the label", &coordinationv1.Lease{ObjectMeta: unlabelled.ObjectMeta}, unlabelled, client, ""},
		{"another client adds the label", heldLease(), unlabelled, client, leaseChanged},
		{"a member takes a free Lease", heldLease(), free, memberUser("db-0", "1"), leaseChanged},
		{"a client without a pod takes a free Lease", heldLease(), free, client, leaseChanged},
		{"the operator names a holder", heldLease(), free, operator, ""},
		{"a Lease in a namespace that is not watched", elsewhere, nil, client, ""},
	} {
		if got := askLease(guard, r.now, r.from, r.who); got != r.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}

func TestThePolicyOnLeases(t *testing.T) {
	policy, binding := children.BuildLeaseGuard("operator-system", []string{"b", "a"})
	if policy.Name != leaseGuard || binding.Name != policy.Name || binding.Spec.PolicyName != policy.Name || *policy.Spec.FailurePolicy != admissionv1.Fail {
		t.Errorf("the policy is %v, and its binding %v", policy, binding)
	}
	for _, selector := range []*metav1.LabelSelector{binding.Spec.MatchResources.NamespaceSelector, policy.Spec.MatchConstraints.NamespaceSelector} {
		const want = "kubernetes.io/metadata.name notin (kube-system,operator-system),kubernetes.io/metadata.name in (a,b)"
		if got := metav1.FormatLabelSelector(selector); got != want {
			t.Errorf("the policy selects namespaces %s, want %s", got, want)
		}
	}
	policytest.Compile130(t, &policy.Spec, false)
}
