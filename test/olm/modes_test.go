package olm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/olm"
)

// modes installs the operator in each of OLM's install modes, and looks in which
// namespaces it acts and which it leaves alone.
func modes(t *testing.T, s *site) {
	for _, mode := range []struct {
		name string
		// home is the operator's namespace; all are home, one, two and three.
		targets []string
	}{
		{"OwnNamespace", []string{"home"}},
		{"SingleNamespace", []string{"one"}},
		{"MultiNamespace", []string{"one", "two"}},
		{"AllNamespaces", nil},
	} {
		t.Run("OLM-3 "+mode.name, func(t *testing.T) { s.check(t, s.inMode(t.Context(), strings.ToLower(mode.name), mode.targets)) })
	}
}

func (s *site) inMode(ctx context.Context, mode string, targets []string) error {
	name := func(short string) string { return mode + "-" + short }
	home := name("home")
	wanted := make([]string, 0, len(targets))
	for _, short := range targets {
		wanted = append(wanted, name(short))
	}
	all := []string{home, name("one"), name("two"), name("three")}
	for _, namespace := range all {
		if err := s.m.MakeNamespace(ctx, namespace, nil); err != nil {
			return err
		}
	}
	if err := s.m.Subscribe(ctx, olm.Subscription{Namespace: home, Catalog: s.catalog, Targets: wanted}); err != nil {
		return err
	}
	if _, err := s.m.Succeeded(ctx, home, s.present.Name); err != nil {
		return err
	}
	acts := func(namespace string) bool { return len(wanted) == 0 || slices.Contains(wanted, namespace) }
	for _, namespace := range all {
		if err := s.m.Client.Create(ctx, oneMember(namespace)); err != nil {
			return err
		}
	}
	for _, namespace := range all {
		if acts(namespace) {
			if err := errors.Join(s.memberReady(ctx, namespace), s.refusesBadObject(ctx, namespace)); err != nil {
				return fmt.Errorf("in %s, where it should act: %w", namespace, err)
			}
		}
	}
	// The others had as long as those.
	for _, namespace := range all {
		if !acts(namespace) {
			if err := s.leftAlone(ctx, namespace); err != nil {
				return fmt.Errorf("in %s, where it should not act: %w", namespace, err)
			}
		}
	}
	return s.leave(ctx, home, all[1:]...)
}

// oneMember is a StatefulCluster of one.
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

func (s *site) memberReady(ctx context.Context, namespace string) error {
	return s.m.Until(ctx, "the member in "+namespace, func(ctx context.Context) error {
		set := oneMember(namespace)
		if err := s.m.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if set.Status.ReadyReplicas != 1 || set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("%d members are Ready", set.Status.ReadyReplicas)
		}
		return nil
	})
}

// leftAlone checks that the operator did nothing in a namespace, is not asked there,
// and has no rights there.
func (s *site) leftAlone(ctx context.Context, namespace string) error {
	set := oneMember(namespace)
	if err := s.m.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return err
	}
	var pods corev1.PodList
	if err := s.m.Client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": "one"}); err != nil {
		return err
	}
	if len(pods.Items) > 0 || set.Status.ObservedGeneration != 0 {
		return fmt.Errorf("it acts: %d pods, status %+v", len(pods.Items), set.Status)
	}
	bad := oneMember(namespace)
	bad.Name = "bad"
	bad.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "there-is-no-such-volume", MountPath: "/nowhere"}}
	if err := s.m.Client.Create(ctx, bad, client.DryRunAll); err != nil {
		return fmt.Errorf("its webhook is asked: %w", err)
	}
	return s.noRights(ctx, namespace)
}

// noRights asks the API server whether the operator may change pods in a namespace.
func (s *site) noRights(ctx context.Context, namespace string) error {
	mode, _, _ := strings.Cut(namespace, "-")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + mode + "-home:" + olm.DeploymentName,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "delete", Resource: "pods"},
	}}
	if err := s.m.Client.Create(ctx, review); err != nil {
		return err
	}
	// OLM gives it, in its own namespace, all of its namespaced rights.
	if own := strings.HasSuffix(namespace, "-home"); review.Status.Allowed != own {
		return fmt.Errorf("it may delete pods: %t (%s)", review.Status.Allowed, review.Status.Reason)
	}
	return nil
}
