package escalation

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

const (
	// memberRights is the name of the Role and of the RoleBinding of the members of ReplicatedStatefulSet d.
	memberRights = "rss-d.member"
	// primaryPod holds its Lease. otherPod is another member, whose Lease names no pod.
	primaryPod, otherPod = "rss-d-0", "rss-d-1"

	fencedLabel      = `{"metadata": {"labels": {"` + clusterlabsv1alpha1.LabelLease + `": null}}}`
	fencedAnnotation = `{"metadata": {"annotations": {"` + clusterlabsv1alpha1.AnnotationFenced + `": "containerd://a"}}}`
	memberOnly       = "only the operator may change it, and the agent of the pod that holds it may renew it"

	holdsIt = `{"spec": {"holderIdentity": "rss-d-1_rss-d-1-uid", "leaseTransitions": 4}}`
)

// memberLease returns the Lease of a member.
func memberLease(pod, holder string) *coordinationv1.Lease {
	l := lease(tenant, pod+clusterlabsv1alpha1.LeaseSuffix)
	l.Labels = map[string]string{clusterlabsv1alpha1.LabelLease: "d"}
	l.Spec = coordinationv1.LeaseSpec{LeaseTransitions: ptr.To(int32(3)), LeaseDurationSeconds: ptr.To(int32(30))}
	if holder != "" {
		l.Spec.HolderIdentity = ptr.To(identityOf(holder))
	}
	return l
}

// changesMember returns a request that changes the Lease of a member.
func changesMember(pod, text string) func(context.Context, loot) error {
	return patches(func() client.Object { return lease(tenant, pod+clusterlabsv1alpha1.LeaseSuffix) }, text)
}

// memberThefts are requests of pods with the service account of the members.
var memberThefts = []struct {
	pod string
	theft
}{
	{primaryPod, theft{name: "a member renewing", do: changesMember(primaryPod, renewal)}},
	{primaryPod, theft{name: "another epoch of a member", do: changesMember(primaryPod, epoch), blocked: memberOnly}},
	{primaryPod, theft{name: "handing over the Lease of a member", do: changesMember(primaryPod, takeover), blocked: memberOnly}},
	{primaryPod, theft{name: "a renewal of a member that does not expire", do: changesMember(primaryPod, forEver), blocked: memberOnly}},
	{primaryPod, theft{name: "removing the label of a member's Lease", do: changesMember(primaryPod, fencedLabel), blocked: memberOnly}},
	{primaryPod, theft{name: "declaring its own container ended", do: changesMember(primaryPod, fencedAnnotation), blocked: memberOnly}},
	{primaryPod, theft{name: "renewing the Lease of another member", do: changesMember(otherPod, renewal), blocked: memberOnly}},
	{primaryPod, theft{name: "renewing the Lease of another set", do: changesMember("rss-e-0", renewal), blocked: forbidden}},
	{otherPod, theft{name: "renewing for another member", do: changesMember(primaryPod, another), blocked: memberOnly}},
	{otherPod, theft{name: "taking its own Lease", do: changesMember(otherPod, holdsIt), blocked: memberOnly}},
	{otherPod, theft{name: "declaring a primary ended", do: changesMember(primaryPod, fencedAnnotation), blocked: memberOnly}},
}

// memberFencingThefts are requests of other users.
var memberFencingThefts = []theft{
	{"renewing the Lease of a member", []string{otherAccount, podCreator, webhooksToken, installerToken}, changesMember(primaryPod, another), forbidden},
	{"renewing the Lease of a member without the token of its pod", []string{programAccount, namespaceEditor}, changesMember(primaryPod, another), memberOnly},
	{"declaring a primary ended without the token of its pod", []string{programAccount, namespaceEditor}, changesMember(primaryPod, fencedAnnotation), memberOnly},
	{"taking the Lease of a member", []string{programAccount, namespaceEditor}, changesMember(otherPod, holdsIt), memberOnly},
	{"a Lease with the label of members", []string{namespaceEditor}, creates(func() client.Object { return memberLease("rss-f-0", "rss-f-0") }), operatorOnly},
	{"deleting the Lease of a member", []string{programAccount, otherAccount, podCreator}, func(ctx context.Context, l loot) error {
		return l.Delete(ctx, lease(tenant, primaryPod+clusterlabsv1alpha1.LeaseSuffix))
	}, forbidden},
}

// fencingMembers tests the same for the members of a ReplicatedStatefulSet.
func (s site) fencingMembers(t *testing.T) {
	g, controllers := NewWithT(t), s.loot(t, controllersToken)
	role := fencingRole(tenant, memberRights)
	role.Rules[0].ResourceNames = []string{primaryPod + clusterlabsv1alpha1.LeaseSuffix, otherPod + clusterlabsv1alpha1.LeaseSuffix}
	for _, object := range []client.Object{memberLease(primaryPod, primaryPod), memberLease(otherPod, ""), memberLease("rss-e-0", "rss-e-0"), role, fencingBinding(tenant, memberRights)} {
		g.Expect(controllers.Create(t.Context(), object)).To(Succeed(), "%T %s", object, object.GetName())
	}
	program := s.loot(t, programAccount)
	g.Eventually(func() error { // caches of roles and bindings lag
		return program.Get(t.Context(), client.ObjectKey{Namespace: tenant, Name: primaryPod + clusterlabsv1alpha1.LeaseSuffix}, &coordinationv1.Lease{})
	}, patience).Should(Succeed())
	s.steal(t, memberFencingThefts)
	for _, a := range memberThefts {
		t.Run(a.name+" by pod "+a.pod, func(t *testing.T) { s.stealAsPod(t, a.pod, a.theft) })
	}
}

// stealAsPod sends a request of a pod with the service account of the program.
func (s site) stealAsPod(t *testing.T, pod string, a theft) {
	t.Helper()
	err := a.do(t.Context(), s.lootOfPod(t, programAccount, pod))
	if a.blocked == "" {
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return
	}
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring(a.blocked)))
}
