package spec

import (
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// StatefulSetName returns the name of the StatefulSet. It is also the prefix of the pod names.
func StatefulSetName(set *v1alpha1.ReplicatedStatefulSet) string { return "rss-" + set.Name }

// ServiceName returns the name of the headless Service of all members.
func ServiceName(set *v1alpha1.ReplicatedStatefulSet) string { return set.MembersServiceName() }

// ActiveServiceName returns the name of the Service of the primaries and secondaries.
func ActiveServiceName(set *v1alpha1.ReplicatedStatefulSet) string { return set.Name + "-active" }

// MemberName returns the name of the pod with the ordinal.
func MemberName(set *v1alpha1.ReplicatedStatefulSet, ordinal int) string {
	return StatefulSetName(set) + "-" + strconv.Itoa(ordinal)
}

// OrdinalOf returns the ordinal in the name of a pod. It returns false for a name that no pod of
// the set can have.
func OrdinalOf(set *v1alpha1.ReplicatedStatefulSet, pod string) (int, bool) {
	digits, ok := strings.CutPrefix(pod, StatefulSetName(set)+"-")
	ordinal, err := strconv.Atoi(digits)
	if !ok || err != nil || ordinal < 0 || strconv.Itoa(ordinal) != digits {
		return 0, false
	}
	return ordinal, true
}

// SecondaryServiceName returns the name of the Service of the secondaries.
func SecondaryServiceName(set *v1alpha1.ReplicatedStatefulSet) string { return set.Name + "-secondary" }

// BudgetName returns the name of the budget of all members, or of those that are not primary.
func BudgetName(set *v1alpha1.ReplicatedStatefulSet) string { return StatefulSetName(set) }

// PrimaryBudgetName returns the name of the budget of the primaries. Names of sets contain no dot,
// so no other budget can have this name.
func PrimaryBudgetName(set *v1alpha1.ReplicatedStatefulSet) string {
	return StatefulSetName(set) + "." + v1alpha1.RolePrimary
}

// PodOfClaim returns the name of the pod that uses the claim of that template and name.
func PodOfClaim(template *corev1.PersistentVolumeClaim, name string) (pod string, ok bool) {
	return strings.CutPrefix(name, template.Name+"-")
}

// OwnLabels returns the labels of all children, which also select the pods.
func OwnLabels(set *v1alpha1.ReplicatedStatefulSet) map[string]string {
	return map[string]string{v1alpha1.LabelApp: set.Name, v1alpha1.LabelManaged: v1alpha1.True}
}

// OwnPodLabels are the labels by which Services and budgets select members.
var OwnPodLabels = []string{v1alpha1.LabelManaged, v1alpha1.LabelRole, v1alpha1.LabelActive}

// Merged merges maps. For equal keys the last map wins.
func Merged(all ...map[string]string) map[string]string {
	result := map[string]string{}
	for _, one := range all {
		maps.Copy(result, one)
	}
	return result
}
