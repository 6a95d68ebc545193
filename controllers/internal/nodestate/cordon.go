package nodestate

import (
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// ToleratedCordon returns the key of the first cordon taint that the tolerations tolerate. It returns
// "" if the pod cannot start on any cordoned Node.
func ToleratedCordon(tolerations []corev1.Toleration) string {
	for _, key := range cordons {
		taint := corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
		if slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), &taint, false) }) {
			return key
		}
	}
	return ""
}
