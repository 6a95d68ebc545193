package children_test

import (
	"context"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy/policytest"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
)

const (
	deniedLease = `leases.coordination.k8s.io "db.singleton" is forbidden: ValidatingAdmissionPolicy 'statefulsingleton-lease-guard-operator-system' with binding 'statefulsingleton-lease-guard-operator-system' denied request: `
	changed     = deniedLease + `a Lease with label apps.statefulsingleton.com/singleton decides which pod of a StatefulSingleton runs its program: only the operator and the agent of the pod that holds it may change it. To start the program in another pod, delete the pod that holds it`
	created     = deniedLease + `label apps.statefulsingleton.com/singleton is reserved for the Lease of a StatefulSingleton, which only the operator creates; remove the label`
)

// podUser is the user of a token of a pod. All pods of an object may have the same service account.
func podUser(name, uid string) user.Info {
	return &user.DefaultInfo{Name: "system:serviceaccount:ns:default", Extra: map[string][]string{
		"authentication.kubernetes.io/pod-name": {name}, "authentication.kubernetes.io/pod-uid": {uid}}}
}

// heldLease returns the Lease of db, held by pod a, which hands it over to pod b.
func heldLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "db.singleton", Namespace: "ns", Labels: map[string]string{v1.LabelSingleton: "db"},
			Annotations: map[string]string{v1.AnnotationNext: "b_2", "note": "x"}, Finalizers: []string{"example.com/f"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSingleton", Name: "db", UID: "uid-of-db"}}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a_1"), LeaseDurationSeconds: ptr.To(int32(15)), LeaseTransitions: ptr.To(int32(3))},
	}
}

// askLease returns the API server's response to a request for a Lease; "" if it is admitted.
func (g *guard) askLease(l, old *coordinationv1.Lease, who user.Info) string {
	operation, before := admission.Create, runtime.Object(nil)
	if old != nil {
		operation, before = admission.Update, old
	}
	attributes := admission.NewAttributesRecord(l, before, coordinationv1.SchemeGroupVersion.WithKind("Lease"), l.Namespace, l.Name,
		coordinationv1.SchemeGroupVersion.WithResource("leases"), "", operation, nil, false, who)
	if err := g.plugin.Validate(context.Background(), attributes, admission.NewObjectInterfacesFromScheme(g.scheme)); err != nil {
		return err.Error()
	}
	return ""
}

func newLeaseGuard(t *testing.T, watched []string) *guard {
	t.Helper()
	policy, binding := children.BuildLeaseGuard("operator-system", watched)
	return startGuard(t, []runtime.Object{policy, binding})
}

func handOver(l *coordinationv1.Lease) {
	delete(l.Annotations, v1.AnnotationNext)
	l.Spec.HolderIdentity, l.Spec.LeaseTransitions = ptr.To("b_2"), ptr.To(int32(4))
	l.Spec.RenewTime = ptr.To(metav1.NowMicro())
}

// TestTheGuardOfLeases checks the API server's response to changes of a Lease.
func TestTheGuardOfLeases(t *testing.T) {
	g := newLeaseGuard(t, nil)
	holder, next := podUser("a", "1"), podUser("b", "2")
	operator, other := &user.DefaultInfo{Name: theOperator}, &user.DefaultInfo{Name: "a-user"}
	renew := func(l *coordinationv1.Lease) { l.Spec.RenewTime = ptr.To(metav1.NowMicro()) }
	handOverAnd := func(change func(*coordinationv1.Lease)) func(*coordinationv1.Lease) {
		return func(l *coordinationv1.Lease) { handOver(l); change(l) }
	}
	for _, r := range []struct {
		name   string
		who    user.Info
		change func(*coordinationv1.Lease)
		want   string
	}{
		{"the holder renews", holder, renew, ""},
		{"the holder renews with another duration", holder, func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To(int32(600)) }, ""},
		{"the holder sets a duration that is too long", holder, func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To(int32(601)) }, changed},
		{"the holder sets a duration that is too short", holder, func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To(int32(9)) }, changed},
		{"the holder removes the duration", holder, func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = nil }, changed},
		{"the holder hands over", holder, handOver, ""},
		{"the holder hands over to another pod", holder, handOverAnd(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("c_3") }), changed},
		{"the holder hands over without a new epoch", holder, handOverAnd(func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To(int32(3)) }), changed},
		{"the holder hands over and skips an epoch", holder, handOverAnd(func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To(int32(5)) }), changed},
		{"the holder hands over and keeps the successor", holder, handOverAnd(func(l *coordinationv1.Lease) { l.Annotations[v1.AnnotationNext] = "b_2" }), changed},
		{"the holder hands over and names another successor", holder, handOverAnd(func(l *coordinationv1.Lease) { l.Annotations[v1.AnnotationNext] = "a_1" }), changed},
		{"the holder changes another annotation", holder, func(l *coordinationv1.Lease) { l.Annotations["note"] = "y" }, changed},
		{"the holder removes another annotation", holder, handOverAnd(func(l *coordinationv1.Lease) { delete(l.Annotations, "note") }), changed},
		{"the holder adds an annotation", holder, func(l *coordinationv1.Lease) { l.Annotations["more"] = "y" }, changed},
		{"the holder removes the successor", holder, func(l *coordinationv1.Lease) { delete(l.Annotations, v1.AnnotationNext) }, changed},
		{"the holder removes the label", holder, func(l *coordinationv1.Lease) { l.Labels = nil }, changed},
		{"the holder removes the owner", holder, func(l *coordinationv1.Lease) { l.OwnerReferences = nil }, changed},
		{"the holder removes a finalizer", holder, func(l *coordinationv1.Lease) { l.Finalizers = nil }, changed},
		{"the holder raises the epoch", holder, func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To(int32(4)) }, changed},
		{"the holder removes itself", holder, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil }, changed},
		{"the holder sets a strategy", holder, func(l *coordinationv1.Lease) { l.Spec.Strategy = ptr.To(coordinationv1.OldestEmulationVersion) }, changed},
		{"the successor takes over", next, handOver, changed},
		{"the successor renews", next, renew, changed},
		{"a pod with the name of the holder renews", podUser("a", "9"), renew, changed},
		{"a token that belongs to no pod", &user.DefaultInfo{Name: "system:serviceaccount:ns:default"}, renew, changed},
		{"a token with two names", &user.DefaultInfo{Extra: map[string][]string{"authentication.kubernetes.io/pod-name": {"a", "b"}, "authentication.kubernetes.io/pod-uid": {"1"}}}, renew, changed},
		{"another client renews", other, renew, changed},
		{"another client changes nothing", other, func(*coordinationv1.Lease) {}, ""},
		{"another client removes the label", other, func(l *coordinationv1.Lease) { l.Labels = nil }, changed},
		{"the operator takes over", operator, handOverAnd(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("c_3") }), ""},
		{"the operator names a successor", operator, func(l *coordinationv1.Lease) { l.Annotations[v1.AnnotationNext] = "c_3" }, ""},
	} {
		l := heldLease()
		r.change(l)
		if got := g.askLease(l, heldLease(), r.who); got != r.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}

// TestTheGuardOfLeasesKeepsToItsLeases checks new Leases, and those that are not ours.
func TestTheGuardOfLeasesKeepsToItsLeases(t *testing.T) {
	g := newLeaseGuard(t, []string{"ns"})
	operator, other := &user.DefaultInfo{Name: theOperator}, &user.DefaultInfo{Name: "a-user"}
	unlabelled := heldLease()
	unlabelled.Labels = map[string]string{"app": "db"}
	empty := &coordinationv1.Lease{ObjectMeta: *heldLease().ObjectMeta.DeepCopy()}
	empty.Annotations = nil
	elsewhere := heldLease()
	elsewhere.Namespace = "elsewhere"
	for _, r := range []struct {
		name      string
		now, from *coordinationv1.Lease
		who       user.Info
		want      string
	}{
		{"the operator creates a Lease", heldLease(), nil, operator, ""},
		{"another client creates a Lease with the label", heldLease(), nil, other, created},
		{"a pod creates a Lease with the label", heldLease(), nil, podUser("a", "1"), created},
		{"another client creates a Lease without the label", unlabelled, nil, other, ""},
		{"another client changes a Lease without the label", &coordinationv1.Lease{ObjectMeta: unlabelled.ObjectMeta}, unlabelled, other, ""},
		{"another client adds the label", heldLease(), unlabelled, other, changed},
		{"another client fills an empty Lease", heldLease(), empty, other, changed},
		{"a pod fills an empty Lease", heldLease(), empty, podUser("a", "1"), changed},
		{"the operator fills an empty Lease", heldLease(), empty, operator, ""},
		{"a Lease in a namespace that is not watched", elsewhere, nil, other, ""},
	} {
		if got := g.askLease(r.now, r.from, r.who); got != r.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}

func TestThePolicyOnLeases(t *testing.T) {
	policy, binding := children.BuildLeaseGuard("operator-system", []string{"b", "a"})
	if policy.Name != binding.Name || binding.Spec.PolicyName != policy.Name || *policy.Spec.FailurePolicy != admissionregistrationv1.Fail || policy.Spec.ParamKind != nil || binding.Spec.ParamRef != nil {
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
