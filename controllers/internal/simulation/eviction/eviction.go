// Package eviction evicts pods in a simulated cluster, as far as their PodDisruptionBudgets allow it.
package eviction

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
)

// Refusal returns the error of the API server for an eviction, or "" if the eviction is allowed.
func Refusal(c *simulation.Cluster, pod *corev1.Pod) string {
	if podstate.Terminating(pod) || podstate.Ended(pod) || pod.Status.Phase == corev1.PodPending {
		return ""
	}
	budgets := budgetsOf(c, pod)
	switch len(budgets) {
	case 0:
		return ""
	case 1:
		budget := budgets[0]
		if Allowed(c, budget) > 0 || mayGoUnready(c, budget, pod) {
			return ""
		}
		return fmt.Sprintf("budget %s allows no disruption", budget.Name)
	}
	return fmt.Sprintf("budgets %s and %s select it, and the API server evicts no such pod", budgets[0].Name, budgets[1].Name)
}

// Blocked reports whether budgets allow no eviction of any of the pods that are Ready. It returns false if none is.
func Blocked(c *simulation.Cluster, pods []*corev1.Pod) bool {
	type limit struct {
		namespace string
		selector  labels.Selector
		allowed   int
	}
	var limits []limit
	for _, obj := range c.All {
		if budget, isBudget := obj.(*policyv1.PodDisruptionBudget); isBudget {
			if selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector); err == nil {
				limits = append(limits, limit{budget.Namespace, selector, Allowed(c, budget)})
			}
		}
	}
	blocked := false
	for _, pod := range pods {
		if !podstate.Ready(pod) || podstate.Terminating(pod) {
			continue
		}
		selecting, allowed := 0, 0
		for _, l := range limits {
			if l.namespace == pod.Namespace && l.selector.Matches(labels.Set(pod.Labels)) {
				selecting, allowed = selecting+1, l.allowed
			}
		}
		isAllowed := selecting == 1 && allowed > 0
		if selecting == 0 || isAllowed {
			return false
		}
		blocked = true
	}
	return blocked
}

// Evict evicts a pod if its budget allows it. It reports whether it did.
func Evict(c *simulation.Cluster, pod *corev1.Pod) bool {
	now := &corev1.Pod{}
	for _, obj := range c.All {
		if obj.GetUID() == pod.UID {
			now, _ = obj.(*corev1.Pod)
		}
	}
	if now == nil || now.UID == "" || podstate.Terminating(now) || Refusal(c, now) != "" {
		return false
	}
	c.Say("    %s is evicted", pod.Name)
	c.Delete(now)
	return true
}

// mayGoUnready reports whether the budget lets a pod be evicted because the pod is not Ready. By default, it does so
// only if enough other pods are Ready.
func mayGoUnready(c *simulation.Cluster, budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	if podstate.Ready(pod) {
		return false
	}
	always := ptr.Deref(budget.Spec.UnhealthyPodEvictionPolicy, "") == policyv1.AlwaysAllow
	return always || Allowed(c, budget) >= 0
}

// budgetsOf returns the budgets that select a pod.
func budgetsOf(c *simulation.Cluster, pod *corev1.Pod) (found []*policyv1.PodDisruptionBudget) {
	for _, obj := range c.All {
		budget, isBudget := obj.(*policyv1.PodDisruptionBudget)
		if isBudget && budget.Namespace == pod.Namespace && selects(budget, pod) {
			found = append(found, budget)
		}
	}
	slices.SortFunc(found, func(a, b *policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
	return found
}

func selects(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// Allowed returns the number of disruptions that a budget allows, as the disruption controller computes it. It
// can be negative.
func Allowed(c *simulation.Cluster, budget *policyv1.PodDisruptionBudget) int {
	healthy, pods := 0, []*corev1.Pod{}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	for _, obj := range c.All {
		pod, isPod := obj.(*corev1.Pod)
		if !isPod || pod.Namespace != budget.Namespace || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		pods = append(pods, pod)
		if podstate.Ready(pod) && !podstate.Terminating(pod) {
			healthy++
		}
	}
	if least := budget.Spec.MinAvailable; least != nil {
		if least.Type == intstr.Int {
			return healthy - least.IntValue()
		}
		return healthy - scaled(least, expected(c, pods))
	}
	if most := budget.Spec.MaxUnavailable; most != nil {
		count := expected(c, pods)
		return healthy - max(0, count-scaled(most, count))
	}
	return 0
}

// scaled returns a number, or the percentage of a count, rounded up.
func scaled(value *intstr.IntOrString, count int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(value, count, true)
	if err != nil {
		return count
	}
	return n
}

// expected returns the sum of spec.replicas of the controllers of pods. A pod without a known controller counts
// as one.
func expected(c *simulation.Cluster, pods []*corev1.Pod) (n int) {
	controllers := map[types.UID]bool{}
	for _, pod := range pods {
		owner := metav1.GetControllerOf(pod)
		if owner == nil {
			n++
			continue
		}
		if controllers[owner.UID] {
			continue
		}
		controllers[owner.UID] = true
		n += replicas(c, owner.UID)
	}
	return n
}

func replicas(c *simulation.Cluster, uid types.UID) int {
	for _, obj := range c.All {
		if obj.GetUID() == uid {
			return replicasOf(obj)
		}
	}
	return 0
}

// replicasOf returns spec.replicas of any object with a scale subresource; the default is 1.
func replicasOf(obj client.Object) int {
	text, err := json.Marshal(obj)
	if err != nil {
		return 1
	}
	var read struct {
		Spec struct {
			Replicas *int `json:"replicas"`
		} `json:"spec"`
	}
	if json.Unmarshal(text, &read) != nil {
		return 1
	}
	return ptr.Deref(read.Spec.Replicas, 1)
}
