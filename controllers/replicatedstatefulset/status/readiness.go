package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/kstatus"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
)

// Effects map reasons of condition Degraded to their effect on clients that wait for the set.
var Effects = kstatus.Effects{
	v1alpha1.ReasonInvalidSpec:      kstatus.NeedsPerson,
	v1alpha1.ReasonForeignObject:    kstatus.NeedsPerson,
	v1alpha1.ReasonForeignPods:      kstatus.NeedsPerson, // one has the name of a member
	v1alpha1.ReasonNodeUnreachable:  kstatus.Passes,      // if the member has a Lease
	v1alpha1.ReasonWriteRefused:     kstatus.NeedsPerson, // the API server rejected a valid request
	v1alpha1.ReasonNotServing:       kstatus.NeedsPerson,
	v1alpha1.ReasonRulesUnfollowed:  kstatus.NeedsPerson,
	v1alpha1.ReasonMembersNotReady:  kstatus.Passes,
	v1alpha1.ReasonAgentUnknown:     kstatus.NeedsPerson,
	v1alpha1.ReasonSecretMissing:    kstatus.Passes, // other controllers, such as cert-manager, create it
	v1alpha1.ReasonConfigMissing:    kstatus.Passes, // like a Secret of spec.TLS
	v1alpha1.ReasonConfigCached:     kstatus.NeedsPerson,
	v1alpha1.ReasonConfigUnreadable: kstatus.NeedsPerson,
	v1alpha1.ReasonRecovering:       kstatus.Passes,
	v1alpha1.ReasonMembersFailed:    kstatus.Passes, // failed members are stopped or recreated
	v1alpha1.ReasonMembersDegraded:  kstatus.Beside, // they run, and report that they are degraded

	v1alpha1.ReasonFencingNotPermitted: kstatus.NeedsPerson,
	v1alpha1.ReasonPolicyNotInstalled:  kstatus.Passes, // the installer creates it within seconds

	v1alpha1.ReasonMembersCannotStart: kstatus.Passes, // a scheduling gate may open, or a Node return
}

// lastingReasons are the reasons that need manual intervention only if the function returns true.
var lastingReasons = map[string]func(*facts.Facts) bool{
	v1alpha1.ReasonMembersFailed:   failsPermanently,
	v1alpha1.ReasonNodeUnreachable: facts.NeedsFencing,
	v1alpha1.ReasonMembersDegraded: func(f *facts.Facts) bool { return facts.MembersUnresponsive(f).Reason != "" },

	v1alpha1.ReasonMembersCannotStart: needsInterventionToStart,
}

// failsPermanently reports whether members fail in a way that the operator cannot repair.
func failsPermanently(f *facts.Facts) bool {
	if f.Fatal() != "" {
		return true
	}
	return slices.ContainsFunc(f.Members, func(m *facts.Member) bool {
		return (m.CannotRunHere && !m.Parked) || m.RefusesUnparked() || f.FailsToLeave(m) || f.StartsInVain(m)
	})
}

// withKstatus adds the conditions that tools wait for.
func withKstatus(f *facts.Facts, conditions []metav1.Condition) []metav1.Condition {
	conditionOf := func(kind string) *metav1.Condition { return meta.FindStatusCondition(conditions, kind) }
	v := Effects.Of(conditions)
	v.Idle = conditionOf(v1alpha1.ConditionAvailable).Reason == v1alpha1.ReasonStopped
	bad, risk, paused := conditionOf(v1alpha1.ConditionDegraded), conditionOf(v1alpha1.ConditionDataLossRisk), conditionOf(v1alpha1.ConditionPaused)
	switch lasts := lastingReasons[bad.Reason]; {
	case v.Blocker.Reason != "":
	case lasts != nil && lasts(f):
		v.Blocker = kstatus.Notice(bad)
	case risk.Status == metav1.ConditionTrue:
		v.Blocker = kstatus.Notice(risk)
	case paused.Reason == v1alpha1.ReasonReplicasTooLow:
		v.Blocker = kstatus.Notice(paused)
	case paused.Reason == v1alpha1.ReasonPausedByUser && differsFromSpec(f):
		v.Blocker = facts.Notice{Reason: paused.Reason, Message: paused.Message + "; the set differs from its spec, and is reconciled when spec.paused is false"}
	}
	return kstatus.With(conditions, v)
}
