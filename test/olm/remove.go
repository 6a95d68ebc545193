package olm

import (
	"context"
	"errors"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operatorGroup is the API group of OLM's kinds.
const operatorGroup = "operators.coreos.com"

// Remove takes OLM out of the cluster: first what it manages, which it must clean
// up itself, then its kinds and its programs.
func (m *Manager) Remove(ctx context.Context) error {
	m.Say("removing OLM, and what it installed …")
	for _, list := range []client.ObjectList{
		&operatorsv1alpha1.SubscriptionList{}, &operatorsv1alpha1.ClusterServiceVersionList{},
		&operatorsv1alpha1.InstallPlanList{}, &operatorsv1.OperatorGroupList{}, &operatorsv1alpha1.CatalogSourceList{},
	} {
		if err := m.DeleteAll(ctx, list); err != nil {
			return err
		}
	}
	var crds apiextensionsv1.CustomResourceDefinitionList
	if err := m.Client.List(ctx, &crds); err != nil {
		return err
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "olm-operator-binding-olm"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:controller:operator-lifecycle-manager"}},
	}
	for i := range crds.Items {
		if crds.Items[i].Spec.Group == operatorGroup {
			objects = append(objects, &crds.Items[i])
		}
	}
	for _, object := range objects {
		if err := m.Delete(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// DeleteAll deletes all objects of a kind that OLM did not copy, and waits for
// their end.
func (m *Manager) DeleteAll(ctx context.Context, list client.ObjectList, where ...client.ListOption) error {
	err := m.Client.List(ctx, list, where...)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if o := object.(client.Object); o.GetLabels()[operatorsv1alpha1.CopiedLabelKey] == "" {
			if err := m.Delete(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// Delete deletes an object and waits until it is gone.
func (m *Manager) Delete(ctx context.Context, object client.Object) error {
	what := fmt.Sprintf("%T %s to be gone", object, object.GetName())
	if err := client.IgnoreNotFound(m.Client.Delete(ctx, object)); err != nil {
		return err
	}
	uid := object.GetUID()
	return m.Until(ctx, what, func(ctx context.Context) error {
		err := m.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && uid != "" && object.GetUID() != uid {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it is there, with finalizers %v", object.GetFinalizers()))
	})
}
