package olm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/olm"
)

// modes installs the operator in each of OLM's install modes, and checks in which namespaces it acts.
func modes(t *testing.T, s *site) {
	s.try(t, "OLM-3 OwnNamespace", (*site).refusesItsOwn)
	for _, mode := range []struct {
		name string
		// The operator's namespace is home; others are one, two and three.
		targets []string
	}{
		{"SingleNamespace", []string{"one"}},
		{"MultiNamespace", []string{"one", "two"}},
		{"AllNamespaces", nil},
	} {
		s.try(t, "OLM-3 "+mode.name, func(s *site, ctx context.Context) { s.inMode(ctx, strings.ToLower(mode.name), mode.targets) })
	}
}

// refusesItsOwn requests the install mode OwnNamespace, which is not supported: everyone who may edit
// the operands' namespace would have the rights of the operator's account.
func (s *site) refusesItsOwn(ctx context.Context) {
	const home = "ownnamespace-home"
	s.m.MakeNamespace(ctx, home, nil)
	s.m.Subscribe(ctx, olm.Subscription{Namespace: home, Catalog: s.catalog, Targets: []string{home}})
	s.m.Until(ctx, "OLM to report that the mode is not supported", func(ctx context.Context) error {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		err := s.m.Client.Get(ctx, client.ObjectKey{Namespace: home, Name: s.present.Name}, csv)
		if err == nil && csv.Status.Reason != operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup {
			err = fmt.Errorf("phase %q (%s: %s)", csv.Status.Phase, csv.Status.Reason, csv.Status.Message)
		}
		return err
	})
	s.Expect(s.m.OperatorPods(ctx, home)).To(BeEmpty())
	s.leave(ctx, home)
}

func (s *site) inMode(ctx context.Context, mode string, targets []string) {
	home := mode + "-home"
	all := []string{mode + "-one", mode + "-two", mode + "-three"}
	wanted := make([]string, 0, len(targets))
	for _, short := range targets {
		wanted = append(wanted, mode+"-"+short)
	}
	for _, namespace := range append([]string{home}, all...) {
		s.m.MakeNamespace(ctx, namespace, nil)
	}
	s.m.Subscribe(ctx, olm.Subscription{Namespace: home, Catalog: s.catalog, Targets: wanted})
	s.m.Succeeded(ctx, home, s.present.Name)
	for _, namespace := range all {
		s.Expect(s.m.Client.Create(ctx, oneMember(namespace))).To(Succeed())
	}
	acts := func(namespace string) bool { return len(wanted) == 0 || slices.Contains(wanted, namespace) }
	for _, namespace := range all {
		if acts(namespace) {
			s.m.Say("in %s, which should be watched", namespace)
			s.memberReady(ctx, namespace)
			s.refusesBadObject(ctx, namespace)
		}
	}
	// The other namespaces had the same time.
	for _, namespace := range all {
		if !acts(namespace) {
			s.leftAlone(ctx, namespace)
		}
	}
	s.leave(ctx, home, all...)
}

// oneMember returns a StatefulCluster with one member.
func oneMember(namespace string) *engev1alpha1.StatefulCluster {
	set := &engev1alpha1.StatefulCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}
	labels := map[string]string{"app": "one"}
	set.Spec.Replicas = new(int32(1))
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(0))
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "program", Image: cluster.BusyboxImage, Command: []string{"sleep", "2147483647"}}}
	return set
}

func (s *site) memberReady(ctx context.Context, namespace string) {
	s.m.Until(ctx, "the member in "+namespace, func(ctx context.Context) error {
		set := oneMember(namespace)
		err := s.m.Client.Get(ctx, client.ObjectKeyFromObject(set), set)
		if err == nil && (set.Status.ReadyReplicas != 1 || set.Status.ObservedGeneration != set.Generation) {
			err = fmt.Errorf("%d members are Ready", set.Status.ReadyReplicas)
		}
		return err
	})
}

// leftAlone checks that the operator did nothing in a namespace, and that its webhooks and rights do
// not apply there.
func (s *site) leftAlone(ctx context.Context, namespace string) {
	where := "in " + namespace + ", which should not be watched"
	set := oneMember(namespace)
	s.Expect(s.m.Client.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed(), where)
	var pods corev1.PodList
	s.Expect(s.m.Client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": "one"})).To(Succeed(), where)
	s.Expect(len(pods.Items) == 0 && set.Status.ObservedGeneration <= 0).To(
		BeTrueBecause("%s is managed: %d pods, status %+v", where, len(pods.Items), set.Status))
	bad := oneMember(namespace)
	bad.Name = "bad"
	bad.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "there-is-no-such-volume", MountPath: "/nowhere"}}
	s.Expect(s.m.Client.Create(ctx, bad, client.DryRunAll)).To(Succeed(), "%s, its webhook is called", where)
	mode, _, _ := strings.Cut(namespace, "-")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + mode + "-home:" + olm.DeploymentName,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "delete", Resource: "pods"},
	}}
	s.Expect(s.m.Client.Create(ctx, review)).To(Succeed(), where)
	s.Expect(review.Status.Allowed).To(BeFalse(), "%s, may it delete pods? (%s)", where, review.Status.Reason)
}
