package eviction

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
)

var selected = map[string]string{"app": "shop"}

func podOf(i int, ready corev1.ConditionStatus) *corev1.Pod {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "shop"}}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: fmt.Sprintf("shop-%d", i), Labels: selected,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}},
		Spec: corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}}
}

// clusterOf returns a cluster with a StatefulSet with 4 replicas, that many Ready pods of it, one pod that is not
// Ready, and budgets.
func clusterOf(ready int, budgets ...policyv1.PodDisruptionBudgetSpec) *simulation.Cluster {
	c := simulation.New(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	four := int32(4)
	c.Put(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "shop", UID: "shop"}, Spec: appsv1.StatefulSetSpec{Replicas: &four}})
	for i := range ready {
		c.Put(podOf(i, corev1.ConditionTrue))
	}
	c.Put(podOf(9, corev1.ConditionFalse))
	for i, spec := range budgets {
		spec.Selector = &metav1.LabelSelector{MatchLabels: selected}
		c.Put(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: fmt.Sprintf("b%d", i)}, Spec: spec})
	}
	return c
}

func TestRefusal(t *testing.T) {
	always := policyv1.AlwaysAllow
	least := func(v intstr.IntOrString) policyv1.PodDisruptionBudgetSpec {
		return policyv1.PodDisruptionBudgetSpec{MinAvailable: &v}
	}
	most := func(v intstr.IntOrString) policyv1.PodDisruptionBudgetSpec {
		return policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &v}
	}
	unready := most(intstr.FromInt32(0))
	unready.UnhealthyPodEvictionPolicy = &always
	n, percent := intstr.FromInt32, intstr.FromString
	for _, row := range []struct {
		name    string
		ready   int
		budgets []policyv1.PodDisruptionBudgetSpec
		ofReady string // the refusal for a Ready pod
		ofOther string // the refusal for the other one
	}{
		{"no budget", 3, nil, "", ""},
		{"enough are Ready", 3, []policyv1.PodDisruptionBudgetSpec{least(n(2))}, "", ""},
		{"too few are Ready", 3, []policyv1.PodDisruptionBudgetSpec{least(n(3))}, "b0 allows no", ""},
		{"fewer are Ready than required", 3, []policyv1.PodDisruptionBudgetSpec{least(n(4))}, "b0 allows no", "b0 allows no"},
		{"a percentage of spec.replicas, rounded up", 3, []policyv1.PodDisruptionBudgetSpec{least(percent("51%"))}, "b0 allows no", ""},
		{"half of spec.replicas", 3, []policyv1.PodDisruptionBudgetSpec{least(percent("50%"))}, "", ""},
		{"max unavailable", 3, []policyv1.PodDisruptionBudgetSpec{most(n(1))}, "b0 allows no", ""},
		{"more unavailable", 3, []policyv1.PodDisruptionBudgetSpec{most(n(2))}, "", ""},
		{"more unavailable than there are", 1, []policyv1.PodDisruptionBudgetSpec{most(n(9))}, "", ""},
		{"unready pods are always evicted", 3, []policyv1.PodDisruptionBudgetSpec{unready}, "b0 allows no", ""},
		{"two budgets", 4, []policyv1.PodDisruptionBudgetSpec{least(n(0)), least(n(0))}, "select it", "select it"},
	} {
		c := clusterOf(row.ready, row.budgets...)
		for pod, want := range map[*corev1.Pod]string{podOf(0, corev1.ConditionTrue): row.ofReady, podOf(9, corev1.ConditionFalse): row.ofOther} {
			got := Refusal(c, pod)
			if !strings.Contains(got, want) || (want == "") != (got == "") {
				t.Errorf("%s: the refusal for %s is %q, want %q", row.name, pod.Name, got, want)
			}
		}
	}
}

func TestEvict(t *testing.T) {
	c := clusterOf(2, policyv1.PodDisruptionBudgetSpec{MinAvailable: &intstr.IntOrString{IntVal: 1}})
	evict := func(name string) bool {
		for _, obj := range c.All {
			if pod, isPod := obj.(*corev1.Pod); isPod && pod.Name == name {
				return Evict(c, pod)
			}
		}
		return false
	}
	if !evict("shop-0") || evict("shop-1") {
		t.Errorf("one of two can be evicted: %q", c.Story)
	}
	gone := podOf(5, corev1.ConditionTrue)
	gone.UID = "gone"
	if evict("shop-0") || Evict(c, gone) {
		t.Error("a terminating pod, or one that does not exist, was evicted")
	}
}
