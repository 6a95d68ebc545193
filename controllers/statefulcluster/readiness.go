package statefulcluster

import (
	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/kstatus"
)

// effects are what the reasons of condition Degraded mean for who waits for the set.
var effects = kstatus.Effects{
	v1alpha1.ReasonInvalidSpec:        kstatus.NeedsPerson,
	v1alpha1.ReasonCreateFailing:      kstatus.NeedsPerson, // the API server understood it, and said no
	v1alpha1.ReasonRevisionFailing:    kstatus.NeedsPerson,
	v1alpha1.ReasonMembersNotReady:    kstatus.NeedsPerson, // nothing that the operator may do helps
	v1alpha1.ReasonClaimResize:        kstatus.NeedsPerson,
	v1alpha1.ReasonRestoredClaims:     kstatus.NeedsPerson,
	v1alpha1.ReasonNoMemberReady:      kstatus.NeedsPerson,
	v1alpha1.ReasonOrphanedPods:       kstatus.NeedsPerson,
	v1alpha1.ReasonMembersCannotStart: kstatus.Passes, // but for most causes: see withKstatus
	v1alpha1.ReasonReplacementHeld:    kstatus.Passes, // the next one is replaced when this one is Ready
	v1alpha1.ReasonDrainBlocked:       kstatus.Passes, // when a Node has room, or the cordon is taken back
	v1alpha1.ReasonForeignPods:        kstatus.Beside,
	v1alpha1.ReasonUnrecordedClaims:   kstatus.Beside,
}
