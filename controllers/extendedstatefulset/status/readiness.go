package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/kstatus"
)

// Effects maps each reason of condition Degraded to its effect on clients that wait for the set.
var Effects = kstatus.Effects{
	v1alpha1.ReasonInvalidSpec:      kstatus.NeedsPerson,
	v1alpha1.ReasonWriteRefused:     kstatus.NeedsPerson, // the API server understood the request and denied it
	v1alpha1.ReasonClaimTaken:       kstatus.NeedsPerson,
	v1alpha1.ReasonServiceTaken:     kstatus.NeedsPerson,
	v1alpha1.ReasonJobSuspended:     kstatus.NeedsPerson,
	v1alpha1.ReasonJobResultUnknown: kstatus.NeedsPerson,
	v1alpha1.ReasonCanaryFailed:     kstatus.NeedsPerson,
	v1alpha1.ReasonUpdateTimeout:    kstatus.NeedsPerson,
	v1alpha1.ReasonPreJobFailed:     kstatus.NeedsPerson,
	v1alpha1.ReasonPostJobFailed:    kstatus.NeedsPerson,
	v1alpha1.ReasonConfigCached:     kstatus.NeedsPerson,
	v1alpha1.ReasonConfigUnreadable: kstatus.NeedsPerson,
	v1alpha1.ReasonPodsHindered:     kstatus.NeedsPerson, // except for temporary causes: see withKstatus
	v1alpha1.ReasonConfigMissing:    kstatus.Passes,      // other clients create it
}

// withKstatus adds the conditions Ready, Reconciling and Stalled, which tools wait for.
func withKstatus(f *facts.Facts, conditions []metav1.Condition) []metav1.Condition {
	v := Effects.Of(conditions)
	bad := meta.FindStatusCondition(conditions, v1alpha1.ConditionDegraded)
	if bad.Reason == v1alpha1.ReasonPodsHindered && hindrancePasses(f) {
		v.Blocker, v.Obstacle = facts.Notice{}, v.Blocker
	}
	return kstatus.With(conditions, v)
}
