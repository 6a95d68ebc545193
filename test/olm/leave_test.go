package olm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	fissilev1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	singletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/olm"
)

// kinds returns a list of each of the four kinds.
func kinds() []client.ObjectList {
	return []client.ObjectList{
		&engev1alpha1.StatefulClusterList{}, &clusterlabsv1alpha1.ReplicatedStatefulSetList{},
		&fissilev1alpha1.ExtendedStatefulSetList{}, &singletonv1.StatefulSingletonList{},
	}
}

// groups are the API groups of the kinds.
var groups = []string{
	engev1alpha1.GroupVersion.Group, clusterlabsv1alpha1.GroupVersion.Group,
	fissilev1alpha1.GroupVersion.Group, singletonv1.GroupVersion.Group,
}

// withdraw deletes the operator's objects of all namespaces, while the operator runs and removes their
// finalizers. Then it removes the operator.
func (s *site) withdraw(ctx context.Context, namespace string) {
	for _, list := range kinds() {
		s.m.DeleteAll(ctx, list)
	}
	s.m.Unsubscribe(ctx, namespace)
	// The guard is created by the operator and unknown to OLM. It must be deleted before the CRD of its
	// parameters.
	guard := metav1.ObjectMeta{Name: "statefulsingleton-guard-" + namespace}
	s.m.Delete(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: guard})
	s.m.Delete(ctx, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: guard})
}

// leave removes everything and checks that nothing is left.
func (s *site) leave(ctx context.Context, namespace string, others ...string) {
	s.withdraw(ctx, namespace)
	s.m.DeleteKinds(ctx, groups...)
	// The ClusterRoles of the bundle stay too, as all that OLM did not generate itself.
	s.m.DeleteAll(ctx, &rbacv1.ClusterRoleList{}, client.MatchingLabels{"app.kubernetes.io/name": olm.Package})
	s.m.DeleteAll(ctx, &operatorsv1.OperatorGroupList{}, client.InNamespace(namespace))
	for _, name := range append(others, namespace) {
		s.deleteNamespace(ctx, name)
	}
	s.m.Until(ctx, "no objects to be left", s.nothingLeft)
}

func (s *site) deleteNamespace(ctx context.Context, name string) {
	s.m.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// leaveAsDocumented removes everything with the commands of docs/install.md, which use lifeNamespace,
// and checks that nothing is left.
func (s *site) leaveAsDocumented(ctx context.Context, operands string) {
	commands, err := removal("docs/install.md")
	s.Expect(err).To(Succeed())
	within, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	out, err := s.local.Shell(within, "set -x\n"+commands).CombinedOutput()
	s.m.Say("%s", out)
	s.Expect(err).To(Succeed(), "removing the operator as documented in docs/install.md")
	s.deleteNamespace(ctx, operands)
	s.m.Until(ctx, "no objects to be left", s.nothingLeft)
}

// removal returns the first block of commands under the heading Removal.
func removal(file string) (commands string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	_, after, _ := strings.Cut(string(text), "\n### Removal\n")
	for line := range strings.SplitSeq(after, "\n") {
		command, indented := strings.CutPrefix(line, "    ")
		if indented {
			commands += command + "\n"
		} else if commands != "" {
			return commands, nil
		}
	}
	return "", fmt.Errorf("%s has no commands under the heading Removal", file)
}

// nothingLeft returns an error if cluster-scoped objects of the operator exist.
func (s *site) nothingLeft(ctx context.Context) (left error) {
	for _, list := range []client.ObjectList{
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &apiextensionsv1.CustomResourceDefinitionList{},
		&admissionv1.MutatingWebhookConfigurationList{}, &admissionv1.ValidatingWebhookConfigurationList{},
		&admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.ValidatingAdmissionPolicyBindingList{},
	} {
		if err := s.m.Client.List(ctx, list); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(object runtime.Object) error {
			if o := object.(client.Object); ours(o) && !s.isDangling(ctx, o) {
				left = errors.Join(left, fmt.Errorf("%T %s is left", o, o.GetName()))
			}
			return nil
		})
		left = errors.Join(left, err)
	}
	return left
}

// isDangling reports whether an object is a binding that OLM made for a ClusterRole that does not exist.
// It grants nothing. OLM 0.46 sometimes creates the binding of a replaced version again while it deletes
// that version, and never deletes it.
func (s *site) isDangling(ctx context.Context, o client.Object) bool {
	binding, ok := o.(*rbacv1.ClusterRoleBinding)
	if !ok || binding.Labels["olm.managed"] != "true" {
		return false
	}
	err := s.m.Client.Get(ctx, client.ObjectKey{Name: binding.RoleRef.Name}, &rbacv1.ClusterRole{})
	return apierrors.IsNotFound(err)
}

// ours reports whether an object belongs to the operator, by its name or by OLM's labels.
func ours(o client.Object) bool {
	names := append([]string{olm.Package, "statefulsingleton"}, groups...)
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(o.GetName(), name) }) ||
		strings.Contains(o.GetLabels()["olm.owner"], olm.Package)
}
