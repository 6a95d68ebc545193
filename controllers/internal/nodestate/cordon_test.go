package nodestate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestToleratedCordon(t *testing.T) {
	for _, r := range []struct {
		says       string
		toleration corev1.Toleration
		want       string
	}{
		{"all taints", corev1.Toleration{Operator: corev1.TolerationOpExists}, corev1.TaintNodeUnschedulable},
		{"a cordon", corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}, corev1.TaintNodeUnschedulable},
		{"a cordon without an eviction", corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoExecute}, ""},
		{"the taint of Karpenter", corev1.Toleration{Key: "karpenter.sh/disrupted", Operator: corev1.TolerationOpExists}, "karpenter.sh/disrupted"},
		{"another taint", corev1.Toleration{Key: "example.com/gpu", Operator: corev1.TolerationOpExists}, ""},
	} {
		if got := ToleratedCordon([]corev1.Toleration{{Key: "x"}, r.toleration}); got != r.want {
			t.Errorf("%s: %q, want %q", r.says, got, r.want)
		}
	}
	if got := ToleratedCordon(nil); got != "" {
		t.Errorf("no tolerations: %q", got)
	}
}
