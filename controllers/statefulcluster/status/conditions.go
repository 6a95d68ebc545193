package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
)

// Summarize returns the status for the facts, the plan and its results.
func Summarize(f *facts.Facts, p *rules.Plan, done Results) v1alpha1.StatefulClusterStatus {
	s := *f.Set.Status.DeepCopy()
	s.ObservedGeneration = f.Set.Generation
	if f.Served() {
		count(f, &s)
		s.Updating = stillUpdating(updatingOnRecord(f, p, done), done)
		s.Creating = stillCreating(f, p, done)
		s.Lost = lossesListed(f, p, done)
		s.Claims = claimsOnRecord(f, done)
	} else if f.Set.DeletionTimestamp == nil {
		countBlindly(f.World, &s)
	}
	for _, c := range withKstatus(f, []metav1.Condition{availableCondition(f, &s), progressingCondition(f, p, &s), degradedCondition(f, p, done, &s)}) {
		c.ObservedGeneration = f.Set.Generation
		c.LastTransitionTime = metav1.NewTime(f.Now)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	return s
}

// availableCondition returns condition Available.
func availableCondition(f *facts.Facts, s *v1alpha1.StatefulClusterStatus) metav1.Condition {
	want := int32(f.Replicas())
	message := fmt.Sprintf("%d of %d members are available", s.AvailableReplicas, want)
	if f.Invalid != "" {
		return metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonInvalidSpec, Message: "the spec is invalid; see condition Degraded"}
	}
	if s.AvailableReplicas >= want {
		return metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonAllAvailable, Message: message}
	}
	return metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonMembersUnavailable, Message: message}
}

// progressingCondition returns condition Progressing, with the first operation that is in progress.
func progressingCondition(f *facts.Facts, p *rules.Plan, s *v1alpha1.StatefulClusterStatus) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue}
	want := int32(f.Replicas())
	toUpdate := want - s.UpdatedReplicas
	if !f.Rolling() {
		toUpdate = 0
	}
	toUpdate -= int32(f.Partition())
	switch {
	case f.Invalid != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec, "no action is taken until the spec is corrected"
	case s.LostReplicas > 0 || len(p.Held) > 0:
		c.Reason, c.Message = v1alpha1.ReasonReplacing, "replacing "+facts.MemberCount(s.LostReplicas)
	case len(f.Leaving) > 0 && toUpdate <= 0 && len(s.Updating) == 0:
		c.Reason, c.Message = v1alpha1.ReasonDraining, drainingMessage(f)
	case slotsFilled(f, s) != f.Wanted():
		c.Reason, c.Message = v1alpha1.ReasonScaling, fmt.Sprintf("the set has %s and should have %d", facts.MemberCount(s.Replicas), want)+unready(f)
	case toUpdate > 0 || len(s.Updating) > 0:
		c.Reason, c.Message = v1alpha1.ReasonUpdating, fmt.Sprintf("%d of %d members have revision %s", s.UpdatedReplicas, want, s.UpdateRevision)+unready(f)+unsettled(f)
	case s.AvailableReplicas < want:
		c.Reason, c.Message = v1alpha1.ReasonWaiting, fmt.Sprintf("waiting for %s to become available", facts.MemberCount(want-s.AvailableReplicas))+unready(f)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonComplete, completeness(f, s)
	}
	return c
}

// degradedCondition returns condition Degraded with the most severe problem, and the reasons why
// members do not run.
func degradedCondition(f *facts.Facts, p *rules.Plan, done Results, s *v1alpha1.StatefulClusterStatus) metav1.Condition {
	c := withCauses(f, worstProblem(f, p, done, s))
	c.Message = excerpt.Of(c.Message, maxMessage)
	return c
}

// worstProblem returns condition Degraded with the first of the problems that the set has.
func worstProblem(f *facts.Facts, p *rules.Plan, done Results, s *v1alpha1.StatefulClusterStatus) metav1.Condition {
	check := func(find func(*facts.Facts, *rules.Plan, Results) engine.Notice) engine.Notice {
		return find(f, p, done)
	}
	if found := engine.First(problems, check); found.Message != "" {
		return metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: found.Reason, Message: found.Message}
	}
	message := "no problems detected"
	if int(s.AvailableReplicas) < f.Replicas() {
		message = "no problems detected so far; see condition Progressing"
	}
	return metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonHealthy, Message: message + departedMessage(f) + AsideMessage(f)}
}

// maxMessage bounds the message of a condition.
const maxMessage = 1024
