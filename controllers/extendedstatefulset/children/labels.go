package children

import (
	"maps"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
)

// OwnLabels returns the operator's labels for StatefulSets and their pods.
func OwnLabels(set string, z Zone, number int64) map[string]string {
	labels := map[string]string{
		v1alpha1.LabelSet: set, v1alpha1.LabelVersion: strconv.FormatInt(number, 10),
		v1alpha1.LabelStatefulSet: z.Stem(set), v1alpha1.LabelZoneIndex: strconv.Itoa(int(max(0, z.Index))),
	}
	if z.Index != NoZone {
		labels[v1alpha1.LabelZoneName] = z.Name
	}
	return labels
}

// Controls reports whether a set is the controller owner of a child.
func Controls(set *v1alpha1.ExtendedStatefulSet, child metav1.Object) bool {
	return owned.By(child, set, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
}

// Merged returns a new map with both; add takes precedence.
func Merged(base, add map[string]string) map[string]string {
	all := make(map[string]string, len(base)+len(add))
	maps.Copy(all, base)
	maps.Copy(all, add)
	return all
}

// Stamped returns a map in which key has the given value; "" removes the key.
func Stamped(have map[string]string, key, value string) map[string]string {
	if have[key] == value {
		return have
	}
	next := Merged(have, map[string]string{key: value})
	if value == "" {
		delete(next, key)
	}
	return next
}

// OwnPodLabels are the labels that Services and budgets select by.
var OwnPodLabels = []string{v1alpha1.LabelSet, v1alpha1.LabelVersion, v1alpha1.LabelStatefulSet, v1alpha1.LabelPodActive}
