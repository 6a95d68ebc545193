package extendedstatefulset

import (
	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/kstatus"
)

// effects are what the reasons of condition Degraded mean for who waits for the set.
var effects = kstatus.Effects{
	v1alpha1.ReasonInvalidSpec:      kstatus.NeedsPerson,
	v1alpha1.ReasonWriteRefused:     kstatus.NeedsPerson, // the API server understood it, and said no
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
	v1alpha1.ReasonPodsHindered:     kstatus.NeedsPerson,
	v1alpha1.ReasonConfigMissing:    kstatus.Passes, // others make it
}
