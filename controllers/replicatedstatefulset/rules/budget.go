package rules

import (
	"errors"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// A set that hands a role over before its primary is evicted has two budgets. One protects the
// primaries, selected by their role label. The other limits evictions of the remaining members.
// While the label does not identify the primary, no member may be evicted, so the second budget is
// closed (maxUnavailable 0). It is closed before a label is removed for a handover. It is opened
// when the next primary has its label and no command is pending.

// keepBudgets creates the budgets, and repairs changes by others. It keeps a closed budget closed:
// only openBudget opens it.
func keepBudgets(f *facts.Facts, p *Plan) {
	switch {
	case !spec.HasBudgets(f.Set):
		dropBudget(f, p, f.Budget)
		dropBudget(f, p, f.PrimaryBudget)
	case !spec.HandsOver(f.Set):
		dropBudget(f, p, f.PrimaryBudget)
		keepBudget(f, p, f.Budget, children.BuildBudget(f.Set))
	default:
		keepBudget(f, p, f.PrimaryBudget, children.BuildPrimaryBudget(f.Set, MinPrimaries(f)))
		// A deleted budget may have been closed for a handover. So a new one starts closed if there
		// ever was a primary. openBudget opens it at rest.
		isRecreated := f.Budget == nil && f.Record.Epoch > 0
		if MustCloseBudget(f) || BudgetIsClosed(f) || isRecreated {
			keepBudget(f, p, f.Budget, ClosedBudget(OpenedBudget(f)))
		} else {
			keepBudget(f, p, f.Budget, OpenedBudget(f))
		}
	}
}

// openBudget reopens the budget of the members that are not primary.
func openBudget(f *facts.Facts, p *Plan) {
	if !f.ManagesChildren() || f.Deleting() || !BudgetIsClosed(f) {
		return
	}
	if MustCloseBudget(f) || p.writesRecord || budgetWaitsForCommand(f) {
		return
	}
	keepBudget(f, p, f.Budget, OpenedBudget(f))
}

// budgetWaitsForCommand reports whether a command must end before members may be evicted again.
// After spec.evictionTimeout has expired while a primary is missing, no command needs to end,
// because it may run on a Node that never returns.
func budgetWaitsForCommand(f *facts.Facts) bool {
	if LacksPrimary(f) && EvictionTimeIsOver(f) {
		return false
	}
	return len(f.Record.Commands) > 0
}

// UsesBudgets reports whether the primaries have a separate budget.
func UsesBudgets(f *facts.Facts) bool { return spec.HasBudgets(f.Set) && spec.HandsOver(f.Set) }

// MustCloseBudget reports whether no member may be evicted because a primary is missing.
func MustCloseBudget(f *facts.Facts) bool {
	return LacksPrimary(f) && !EvictionTimeIsOver(f)
}

// LacksPrimary reports whether too few members have the primary label. Any other member may then be
// primary, or be about to become primary.
func LacksPrimary(f *facts.Facts) bool {
	return f.Record.Epoch > 0 && CountLabelled(f) < f.WantedPrimaries()
}

// CountLabelled returns the number of members that have the primary label and keep it.
func CountLabelled(f *facts.Facts) int {
	return len(f.Among(func(m *facts.Member) bool { return isLabelledPrimary(f, m) }))
}

// isLabelledPrimary reports whether a member has the primary label and keeps it. A member on an
// unreachable Node serves no client and does not count.
func isLabelledPrimary(f *facts.Facts, m *facts.Member) bool {
	if m.Terminating() || m.NodeUnreachable() || m.Pod.Labels[v1alpha1.LabelRole] != v1alpha1.RolePrimary {
		return false
	}
	_, role := roleLabelsOf(m)
	return role == v1alpha1.RolePrimary || roleLabelsStay(f, m)
}

// BudgetIsClosed reports whether the budget of the members that are not primary allows no eviction.
func BudgetIsClosed(f *facts.Facts) bool {
	have := f.Budget
	if have == nil || !UsesBudgets(f) || !f.Ours(have) {
		return false
	}
	return allowsNoEviction(have)
}

// allowsNoEviction reports whether a budget allows no eviction.
func allowsNoEviction(budget *policyv1.PodDisruptionBudget) bool {
	most := budget.Spec.MaxUnavailable
	return most != nil && *most == intstr.FromInt32(0)
}

// verifyClosed returns an error if the API server did not store a closed budget as sent. Then the
// label of the primary must stay, because an open budget would allow its eviction.
func verifyClosed(answer metav1.Object) error {
	budget, isBudget := answer.(*policyv1.PodDisruptionBudget)
	if isBudget && allowsNoEviction(budget) {
		return nil
	}
	return errors.New("the API server did not store spec.maxUnavailable 0, so a primary could be evicted during its handover; " +
		"exempt the operator's PodDisruptionBudgets from the webhook or policy that changes them (`kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies` lists them)")
}

// budgetClosedAt returns when a handover closed the budget. It returns "" if the budget is open, or
// was closed by another rule.
func budgetClosedAt(f *facts.Facts) string {
	if !BudgetIsClosed(f) {
		return ""
	}
	return f.Budget.Annotations[v1alpha1.AnnotationClosedAt]
}

// OpenedBudget returns the budget of the members that are not primary, as it is at rest.
func OpenedBudget(f *facts.Facts) *policyv1.PodDisruptionBudget {
	return children.BuildFollowersBudget(f.Set, minFollowers(f))
}

// ClosedBudget returns a copy of the budget that allows no eviction.
func ClosedBudget(budget *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	budget = budget.DeepCopy()
	budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = nil, ptr.To(intstr.FromInt32(0))
	budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget)
	return budget
}

// minFollowers returns how many of the members that are not primary must stay available. While
// the set is scaled, there are more of them than wanted.
func minFollowers(f *facts.Facts) int32 {
	limits := ptr.Deref(f.Set.Spec.PodDisruptionBudget, v1alpha1.BudgetPolicy{})
	if limits.MinAvailable != nil {
		return *limits.MinAvailable
	}
	size := f.Wanted()
	if f.Stateful != nil {
		size = max(size, int(ptr.Deref(f.Stateful.Spec.Replicas, 0)))
	}
	return int32(max(0, size-f.WantedPrimaries()-int(ptr.Deref(limits.MaxUnavailable, 1))))
}

// MinPrimaries returns how many primaries must stay available: all that exist and are wanted,
// except those that may be evicted without a successor.
func MinPrimaries(f *facts.Facts) int32 {
	least := max(f.WantedPrimaries(), CountLabelled(f))
	if EvictionTimeIsOver(f) {
		least -= len(primariesToDrain(f))
	}
	return int32(max(0, least))
}

// keepBudget creates or repairs a budget. A change between minAvailable and maxUnavailable is
// written without a delay.
func keepBudget(f *facts.Facts, p *Plan, have, want *policyv1.PodDisruptionBudget) {
	if have == nil {
		p.Do(action.Chain{{Verb: action.Create, Object: want, Reason: facts.ReasonChild}})
		return
	}
	if !f.Ours(have) {
		return
	}
	next, _ := owned.Budget(have, want)
	turned := (have.Spec.MaxUnavailable == nil) != (want.Spec.MaxUnavailable == nil)
	patchChild(f, p, turned, action.Action{
		Verb:      action.Patch,
		Object:    next,
		From:      have,
		Unchanged: true,
		Reason:    facts.ReasonChild,
	})
}

// dropBudget deletes a budget that the set should no longer have.
func dropBudget(f *facts.Facts, p *Plan, have *policyv1.PodDisruptionBudget) {
	if have != nil && f.Ours(have) && have.DeletionTimestamp == nil {
		p.Do(action.Chain{{Verb: action.Delete, Object: have, Reason: facts.ReasonChild}})
	}
}

// closingBudget returns the actions that precede the removal of a primary's label, so that the
// primary is not evicted as a member that is not primary. If the label is already wrong,
// keepBudgets closes the budget.
//
// A budget that is already closed is written as well, unless this process closed it for a handover.
// So a stale write of another operator process that decided to open it fails, because its write is
// bound to the version that it read.
func closingBudget(f *facts.Facts, m *facts.Member) []action.Action {
	switch {
	case !UsesBudgets(f), !isLabelledPrimary(f, m), MustCloseBudget(f):
		return nil
	case f.Budget == nil, !f.Ours(f.Budget):
		return nil
	}
	if at := budgetClosedAt(f); at != "" && at == f.ClosedAt {
		return nil
	}
	shut := ClosedBudget(f.Budget)
	metav1.SetMetaDataAnnotation(&shut.ObjectMeta, v1alpha1.AnnotationClosedAt, f.Now.UTC().Format(time.RFC3339Nano))
	closing := action.Action{
		Verb:      action.Patch,
		Object:    shut,
		From:      f.Budget,
		Unchanged: true,
		Reason:    facts.ReasonBudget,
		Detail:    "block evictions during the handover",
	}
	if !f.Deleting() { // a deleted set is stopped without a handover
		closing.Verify = verifyClosed
	}
	return []action.Action{closing}
}
