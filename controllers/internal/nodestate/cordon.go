package nodestate

import (
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// ToleratedCordon is the taint of a cordon that tolerations let a pod start in spite of; "" if
// they let it start on no Node that is cordoned.
func ToleratedCordon(tolerations []corev1.Toleration) string {
	for _, key := range cordons {
		taint := corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
		if slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), &taint, false) }) {
			return key
		}
	}
	return ""
}
