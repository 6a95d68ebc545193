package olm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operatorGroup is the API group of OLM's kinds.
const operatorGroup = "operators.coreos.com"

// Remove removes OLM from the cluster: first the objects that it manages and must clean up itself, then
// its kinds and its programs.
func (m *Manager) Remove(ctx context.Context) {
	m.Say("removing OLM and its objects …")
	for _, list := range []client.ObjectList{
		&operatorsv1alpha1.SubscriptionList{}, &operatorsv1alpha1.ClusterServiceVersionList{},
		&operatorsv1alpha1.InstallPlanList{}, &operatorsv1.OperatorGroupList{}, &operatorsv1alpha1.CatalogSourceList{},
	} {
		m.DeleteAll(ctx, list)
	}
	m.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}})
	m.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "olm-operator-binding-olm"}})
	m.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:controller:operator-lifecycle-manager"}})
	m.DeleteKinds(ctx, operatorGroup)
}

// DeleteKinds deletes the CRDs of API groups.
func (m *Manager) DeleteKinds(ctx context.Context, groups ...string) {
	var crds apiextensionsv1.CustomResourceDefinitionList
	m.Expect(m.Client.List(ctx, &crds)).To(gomega.Succeed())
	for i := range crds.Items {
		if slices.Contains(groups, crds.Items[i].Spec.Group) {
			m.Delete(ctx, &crds.Items[i])
		}
	}
}

// DeleteAll deletes all objects of a kind, except OLM's copies, and waits until they are gone.
func (m *Manager) DeleteAll(ctx context.Context, list client.ObjectList, where ...client.ListOption) {
	err := m.Client.List(ctx, list, where...)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return
	}
	m.Expect(err).To(gomega.Succeed())
	m.Expect(meta.EachListItem(list, func(object runtime.Object) error {
		if o := object.(client.Object); o.GetLabels()[operatorsv1alpha1.CopiedLabelKey] == "" {
			m.Delete(ctx, o)
		}
		return nil
	})).To(gomega.Succeed())
}

// Delete deletes an object and waits until it is gone.
func (m *Manager) Delete(ctx context.Context, object client.Object) {
	what := fmt.Sprintf("%T %s to be gone", object, object.GetName())
	m.Expect(client.IgnoreNotFound(m.Client.Delete(ctx, object))).To(gomega.Succeed(), what)
	uid := object.GetUID()
	m.Until(ctx, what, func(ctx context.Context) error {
		err := m.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && uid != "" && object.GetUID() != uid {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it exists, with finalizers %v", object.GetFinalizers()))
	})
}
