package olm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Channel is the default channel of subscriptions.
const Channel = "stable"

// Subscription is a subscription to the operator in one namespace, with its OperatorGroup.
type Subscription struct {
	Namespace string
	Catalog   string // in OLM's namespace
	Channel   string
	// Targets are the namespaces in which the operator acts. Default: all.
	Targets []string
	// Start is the version to start with. Default: the newest.
	Start string
	// Manual requires approval of each install plan.
	Manual bool
}

// Subscribe creates the OperatorGroup and the Subscription.
func (m *Manager) Subscribe(ctx context.Context, s Subscription) {
	m.MakeNamespace(ctx, s.Namespace, nil)
	meta := metav1.ObjectMeta{Namespace: s.Namespace, Name: Package}
	approval := operatorsv1alpha1.ApprovalAutomatic
	if s.Manual {
		approval = operatorsv1alpha1.ApprovalManual
	}
	channel := cmp.Or(s.Channel, Channel)
	m.Say("subscribing to channel %s of catalog %s in namespace %s, for %s", channel, s.Catalog, s.Namespace,
		cmp.Or(strings.Join(s.Targets, ", "), "all namespaces"))
	// They may exist: the group after an earlier installation, and both after a repeated call.
	group := &operatorsv1.OperatorGroup{ObjectMeta: meta, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: s.Targets}}
	m.Expect(client.IgnoreAlreadyExists(m.Client.Create(ctx, group))).To(gomega.Succeed(), "create the OperatorGroup")
	subscription := &operatorsv1alpha1.Subscription{ObjectMeta: meta, Spec: &operatorsv1alpha1.SubscriptionSpec{
		CatalogSource: s.Catalog, CatalogSourceNamespace: Namespace, Package: Package, Channel: channel,
		StartingCSV: s.Start, InstallPlanApproval: approval,
	}}
	m.Expect(client.IgnoreAlreadyExists(m.Client.Create(ctx, subscription))).To(gomega.Succeed(), "create the Subscription")
}

// Approve approves the install plan of a version once OLM waits for the approval. A plan that is
// approved earlier is never executed.
func (m *Manager) Approve(ctx context.Context, namespace, csv string) {
	m.Until(ctx, "an install plan of "+csv, func(ctx context.Context) error {
		var plans operatorsv1alpha1.InstallPlanList
		if err := m.Client.List(ctx, &plans, client.InNamespace(namespace)); err != nil {
			return err
		}
		i := slices.IndexFunc(plans.Items, func(p operatorsv1alpha1.InstallPlan) bool {
			return slices.Contains(p.Spec.ClusterServiceVersionNames, csv)
		})
		if i < 0 {
			return m.whyNot(ctx, namespace)
		}
		plan := &plans.Items[i]
		if plan.Spec.Approved {
			return nil
		}
		if err := m.pending(ctx, plan); err != nil {
			return err
		}
		plan.Spec.Approved = true
		m.Say("approve install plan %s of %s", plan.Name, csv)
		return m.Client.Update(ctx, plan)
	})
}

// pending returns an error unless the Subscription waits for the approval of this plan.
func (m *Manager) pending(ctx context.Context, plan *operatorsv1alpha1.InstallPlan) error {
	var subscription operatorsv1alpha1.Subscription
	if err := m.Client.Get(ctx, client.ObjectKey{Namespace: plan.Namespace, Name: Package}, &subscription); err != nil {
		return err
	}
	ref, condition := subscription.Status.InstallPlanRef, subscription.Status.GetCondition(operatorsv1alpha1.SubscriptionInstallPlanPending)
	if ref == nil || ref.Name != plan.Name || condition.Reason != string(operatorsv1alpha1.InstallPlanPhaseRequiresApproval) ||
		plan.Status.Phase != operatorsv1alpha1.InstallPlanPhaseRequiresApproval {
		return fmt.Errorf("plan %s is %q, and the subscription has %s", plan.Name, plan.Status.Phase, condition.Reason)
	}
	return nil
}

// whyNot returns the state and conditions of the Subscription as an error.
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
func (m *Manager) Succeeded(ctx context.Context, namespace, name string) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	m.Until(ctx, name, func(ctx context.Context) error {
		err := m.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, csv)
		if apierrors.IsNotFound(err) {
			return m.whyNot(ctx, namespace)
		}
		if err == nil && csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			err = fmt.Errorf("phase %q (%s: %s)", csv.Status.Phase, csv.Status.Reason, csv.Status.Message)
		}
		return err
	})
	// All its pods run, and no others of its Deployment.
	for _, wanted := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		m.Rolled(ctx, client.ObjectKey{Namespace: csv.Namespace, Name: wanted.Name})
	}
	for _, pod := range m.OperatorPods(ctx, csv.Namespace) {
		m.Say("  %s runs %s on %s", pod.Name, pod.Spec.Containers[0].Image, pod.Spec.NodeName)
	}
}

// plansComplete waits until OLM has completed its InstallPlans. OLM applies a plan several times, also
// after the version is installed, and so recreates objects that are deleted meanwhile. With a stale
// cache it may apply a completed plan once more, so this function also waits for the duration of that.
func (m *Manager) plansComplete(ctx context.Context, namespace string) {
	m.Until(ctx, "OLM to complete its InstallPlans", func(ctx context.Context) error {
		var plans operatorsv1alpha1.InstallPlanList
		if err := m.Client.List(ctx, &plans, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range plans.Items {
			if p := &plans.Items[i]; p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseInstalling || p.Status.Phase == operatorsv1alpha1.InstallPlanPhasePlanning {
				return fmt.Errorf("%s is in phase %s", p.Name, p.Status.Phase)
			}
		}
		return nil
	})
	time.Sleep(onceThroughAPlan)
}

// onceThroughAPlan is more time than OLM needs to apply all objects of the bundle, at five requests per
// second.
const onceThroughAPlan = 20 * time.Second

// Names of the operator's Deployments, and of their accounts, in every version.
const (
	DeploymentName = Package + "-controller-manager"
	WebhookName    = Package + "-webhook"
)

// ofOperator are the labels of all of the operator's pods and Deployments.
var ofOperator = client.MatchingLabels{"app.kubernetes.io/name": Package}

// OperatorPods returns the pods of the operator's Deployments that are not terminating.
func (m *Manager) OperatorPods(ctx context.Context, namespace string) []corev1.Pod {
	var pods corev1.PodList
	m.Expect(m.Client.List(ctx, &pods, client.InNamespace(namespace), ofOperator)).To(gomega.Succeed())
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// Unsubscribe removes the operator as its users do: first the Subscription, then the
// ClusterServiceVersion. OperatorGroup and namespace stay.
func (m *Manager) Unsubscribe(ctx context.Context, namespace string) {
	m.plansComplete(ctx, namespace)
	m.Say("deleting the Subscription and the ClusterServiceVersion in %s", namespace)
	m.Delete(ctx, &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Package}})
	var csvs operatorsv1alpha1.ClusterServiceVersionList
	m.Expect(m.Client.List(ctx, &csvs, client.InNamespace(namespace))).To(gomega.Succeed())
	for i := range csvs.Items {
		if strings.HasPrefix(csvs.Items[i].Name, Package+".") {
			m.Delete(ctx, &csvs.Items[i])
		}
	}
	m.Until(ctx, "the operator to be gone", func(ctx context.Context) error {
		var deployments appsv1.DeploymentList
		var pods corev1.PodList
		err := errors.Join(
			m.Client.List(ctx, &deployments, client.InNamespace(namespace), ofOperator),
			m.Client.List(ctx, &pods, client.InNamespace(namespace), ofOperator))
		if err == nil && len(deployments.Items)+len(pods.Items) > 0 {
			err = fmt.Errorf("%d of its Deployments and %d of its pods exist", len(deployments.Items), len(pods.Items))
		}
		return err
	})
}
