package olm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Channel is the one that is subscribed to where none is said.
const Channel = "stable"

// Subscription is a wish for the operator in one namespace, for those of the
// OperatorGroup.
type Subscription struct {
	Namespace string
	Catalog   string // in OLM's namespace
	Channel   string
	// Targets are where the operator acts; none are all.
	Targets []string
	// Start is the version to begin with; empty is the newest.
	Start string
	// Manual is true where each install plan waits to be approved.
	Manual bool
}

// Subscribe makes the OperatorGroup and the Subscription.
func (m *Manager) Subscribe(ctx context.Context, s Subscription) error {
	if err := m.MakeNamespace(ctx, s.Namespace, nil); err != nil {
		return err
	}
	group := &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: Package},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: s.Targets},
	}
	approval := operatorsv1alpha1.ApprovalAutomatic
	if s.Manual {
		approval = operatorsv1alpha1.ApprovalManual
	}
	subscription := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: Package},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			CatalogSource: s.Catalog, CatalogSourceNamespace: Namespace, Package: Package, Channel: cmp.Or(s.Channel, Channel),
			StartingCSV: s.Start, InstallPlanApproval: approval,
		},
	}
	m.Say("subscribing to channel %s of catalog %s in namespace %s, for %s", subscription.Spec.Channel, s.Catalog, s.Namespace, targets(s.Targets))
	// They may be there: the group where the operator was installed before, both
	// where this is said again.
	if err := client.IgnoreAlreadyExists(m.Client.Create(ctx, group)); err != nil {
		return fmt.Errorf("making the OperatorGroup: %w", err)
	}
	if err := client.IgnoreAlreadyExists(m.Client.Create(ctx, subscription)); err != nil {
		return fmt.Errorf("making the Subscription: %w", err)
	}
	return nil
}

func targets(names []string) string {
	if len(names) == 0 {
		return "all namespaces"
	}
	return strings.Join(names, ", ")
}

// Approve approves the install plan of a version, when OLM says that it waits for
// that: one approved before is never taken up.
func (m *Manager) Approve(ctx context.Context, namespace, csv string) error {
	return m.Until(ctx, "an install plan of "+csv, func(ctx context.Context) error {
		var plans operatorsv1alpha1.InstallPlanList
		if err := m.Client.List(ctx, &plans, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range plans.Items {
			plan := &plans.Items[i]
			if !slices.Contains(plan.Spec.ClusterServiceVersionNames, csv) {
				continue
			}
			if plan.Spec.Approved {
				return nil
			}
			if err := m.pending(ctx, plan); err != nil {
				return err
			}
			plan.Spec.Approved = true
			m.Say("approving install plan %s of %s", plan.Name, csv)
			return m.Client.Update(ctx, plan)
		}
		return m.whyNot(ctx, namespace)
	})
}

// pending tells whether the Subscription waits for this plan to be approved.
func (m *Manager) pending(ctx context.Context, plan *operatorsv1alpha1.InstallPlan) error {
	var subscription operatorsv1alpha1.Subscription
	if err := m.Client.Get(ctx, client.ObjectKey{Namespace: plan.Namespace, Name: Package}, &subscription); err != nil {
		return err
	}
	ref, condition := subscription.Status.InstallPlanRef, subscription.Status.GetCondition(operatorsv1alpha1.SubscriptionInstallPlanPending)
	if ref == nil || ref.Name != plan.Name || condition.Reason != string(operatorsv1alpha1.InstallPlanPhaseRequiresApproval) ||
		plan.Status.Phase != operatorsv1alpha1.InstallPlanPhaseRequiresApproval {
		return fmt.Errorf("plan %s is %q, and the subscription says %s", plan.Name, plan.Status.Phase, condition.Reason)
	}
	return nil
}

// whyNot is what the Subscription says.
func (m *Manager) whyNot(ctx context.Context, namespace string) error {
	var subscription operatorsv1alpha1.Subscription
	if err := m.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: Package}, &subscription); err != nil {
		return err
	}
	words := []string{fmt.Sprintf("subscription is %q", subscription.Status.State)}
	for _, c := range subscription.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Type != operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy || c.Message != "" && c.Reason != "AllCatalogSourcesHealthy" {
			words = append(words, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return errors.New(strings.Join(words, "; "))
}

// Succeeded waits until a version is installed and its pods are available.
func (m *Manager) Succeeded(ctx context.Context, namespace, name string) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	err := m.Until(ctx, name, func(ctx context.Context) error {
		err := m.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, csv)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			return m.whyNot(ctx, namespace)
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return fmt.Errorf("phase %q (%s: %s)", csv.Status.Phase, csv.Status.Reason, csv.Status.Message)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return csv, m.running(ctx, csv)
}

// running waits until all pods of a version run, and no others of its Deployment.
func (m *Manager) running(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	for _, wanted := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if err := m.Rolled(ctx, client.ObjectKey{Namespace: csv.Namespace, Name: wanted.Name}); err != nil {
			return err
		}
		pods, err := m.OperatorPods(ctx, csv.Namespace)
		if err != nil {
			return err
		}
		for i := range pods {
			m.Say("  %s runs %s on %s", pods[i].Name, pods[i].Spec.Containers[0].Image, pods[i].Spec.NodeName)
		}
	}
	return nil
}

// DeploymentName is the operator's own, in every version.
const DeploymentName = "stateful-operator-controller-manager"

// OperatorPods are the operator's own pods that are not being deleted.
func (m *Manager) OperatorPods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	var d appsv1.Deployment
	if err := m.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: DeploymentName}, &d); err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := m.Client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), nil
}

// Unsubscribe removes the operator as its users do: first the Subscription, then
// what it installed. OperatorGroup and namespace stay.
func (m *Manager) Unsubscribe(ctx context.Context, namespace string) error {
	m.Say("deleting the Subscription and the ClusterServiceVersion in %s", namespace)
	subscription := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Package}}
	if err := m.Delete(ctx, subscription); err != nil {
		return err
	}
	var csvs operatorsv1alpha1.ClusterServiceVersionList
	if err := m.Client.List(ctx, &csvs, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range csvs.Items {
		if strings.HasPrefix(csvs.Items[i].Name, Package+".") {
			if err := m.Delete(ctx, &csvs.Items[i]); err != nil {
				return err
			}
		}
	}
	return m.Until(ctx, "the operator to be gone", func(ctx context.Context) error {
		var d appsv1.Deployment
		err := m.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: DeploymentName}, &d)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		// As the Deployment selects them, which may be gone already.
		var pods corev1.PodList
		if err := m.Client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": Package}); err != nil {
			return err
		}
		if err == nil || len(pods.Items) > 0 {
			return fmt.Errorf("its Deployment is there: %t, and %d pods", err == nil, len(pods.Items))
		}
		return nil
	})
}
