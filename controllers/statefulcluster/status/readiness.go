package status

import (
	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/kstatus"
)

// Effects map the reasons of condition Degraded to their effect on readiness.
var Effects = kstatus.Effects{
	v1alpha1.ReasonInvalidSpec:        kstatus.NeedsPerson,
	v1alpha1.ReasonWriteRefused:       kstatus.NeedsPerson, // the API server rejected the write
	v1alpha1.ReasonRevisionFailing:    kstatus.NeedsPerson,
	v1alpha1.ReasonMembersNotReady:    kstatus.NeedsPerson, // the operator cannot resolve it
	v1alpha1.ReasonClaimResizeRefused: kstatus.NeedsPerson,
	v1alpha1.ReasonRestoredClaims:     kstatus.NeedsPerson,
	v1alpha1.ReasonNoMemberReady:      kstatus.NeedsPerson,
	v1alpha1.ReasonOrphanedPods:       kstatus.NeedsPerson,
	v1alpha1.ReasonMembersCannotStart: kstatus.Passes, // except for most causes: see withKstatus
	v1alpha1.ReasonReplacementHeld:    kstatus.Passes, // the next member is replaced when this one is Ready
	v1alpha1.ReasonDrainBlocked:       kstatus.Passes, // until a Node has room, or is uncordoned
	v1alpha1.ReasonForeignPods:        kstatus.Beside,
	v1alpha1.ReasonUnrecordedClaims:   kstatus.Beside,
}
