package replicatedstatefulset

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
)

// A set that hands a role over before its primary is evicted has two budgets. One protects the
// primaries, selected by their role label. The other limits evictions of the remaining members.
// While the label does not identify the primary, no member may be evicted, so the second budget is
// closed (maxUnavailable 0). It is closed before a label is removed for a handover. It is opened
// when the next primary has its label and no command is pending.

// keepBudgets creates the budgets, and repairs changes by others. It never opens a closed budget
// (see openBudget).
func keepBudgets(f *facts, p *plan) {
	switch {
	case !hasBudgets(f.set):
		dropBudget(f, p, f.budget)
		dropBudget(f, p, f.primaryBudget)
	case !handsOver(f.set):
		dropBudget(f, p, f.primaryBudget)
		keepBudget(f, p, f.budget, buildBudget(f.set))
	default:
		keepBudget(f, p, f.primaryBudget, buildPrimaryBudget(f.set, minPrimaries(f)))
		// A budget that is recreated during a handover starts closed. openBudget opens it at rest.
		isLate := f.budget == nil && f.record.epoch > 0
		if mustCloseBudget(f) || budgetIsClosed(f) || isLate {
			keepBudget(f, p, f.budget, closedBudget(openedBudget(f)))
		} else {
			keepBudget(f, p, f.budget, openedBudget(f))
		}
	}
}

// openBudget reopens the budget of the members that are not primary.
func openBudget(f *facts, p *plan) {
	if !f.keeps() || f.deleting() || !budgetIsClosed(f) {
		return
	}
	if mustCloseBudget(f) || p.sent || budgetWaitsForCommand(f) {
		return
	}
	keepBudget(f, p, f.budget, openedBudget(f))
}

// budgetWaitsForCommand reports whether a command must end before members may be evicted again. After
// spec.evictionTimeout has expired while a primary is missing, no command needs to end, because it
// may run on a Node that never returns.
func budgetWaitsForCommand(f *facts) bool {
	if lacksPrimary(f) && evictionTimeIsOver(f) {
		return false
	}
	return len(f.record.commands) > 0
}

// usesBudgets reports whether the primaries have a separate budget.
func usesBudgets(f *facts) bool { return hasBudgets(f.set) && handsOver(f.set) }

// mustCloseBudget reports whether no member may be evicted because a primary is missing.
func mustCloseBudget(f *facts) bool {
	return lacksPrimary(f) && !evictionTimeIsOver(f)
}

// lacksPrimary reports whether too few members have the primary label. Any other member may then be
// primary, or be about to become primary.
func lacksPrimary(f *facts) bool {
	return f.record.epoch > 0 && countLabelled(f) < f.target()
}

// countLabelled returns the number of members that have the primary label and keep it.
func countLabelled(f *facts) int {
	return len(f.among(func(m *member) bool { return isLabelledPrimary(f, m) }))
}

// isLabelledPrimary reports whether a member has the primary label and keeps it. A member on an
// unreachable Node serves no client and does not count.
func isLabelledPrimary(f *facts, m *member) bool {
	if m.terminating() || m.lost() || m.pod.Labels[v1alpha1.LabelRole] != v1alpha1.RolePrimary {
		return false
	}
	_, role := roleOf(m)
	return role == v1alpha1.RolePrimary || f.keepsLabels(m)
}

// budgetIsClosed reports whether the budget of the members that are not primary allows no eviction.
func budgetIsClosed(f *facts) bool {
	have := f.budget
	if have == nil || !usesBudgets(f) || !f.ours(have) {
		return false
	}
	return letsNoneGo(have)
}

// letsNoneGo reports whether a budget allows no eviction.
func letsNoneGo(budget *policyv1.PodDisruptionBudget) bool {
	most := budget.Spec.MaxUnavailable
	return most != nil && *most == intstr.FromInt32(0)
}

// verifyClosed returns an error if the API server did not store a closed budget as sent. Then the
// label of the primary must stay, because an open budget would allow its eviction.
func verifyClosed(answer metav1.Object) error {
	budget, isBudget := answer.(*policyv1.PodDisruptionBudget)
	if isBudget && letsNoneGo(budget) {
		return nil
	}
	return errors.New("the API server did not store spec.maxUnavailable 0, so a primary could be evicted during its handover; " +
		"exempt the operator's PodDisruptionBudgets from the webhook or policy that changes them (`kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies` lists them)")
}

// budgetClosedAt returns when a handover closed the budget. It returns "" if the budget is open, or was
// closed by another rule.
func budgetClosedAt(f *facts) string {
	if !budgetIsClosed(f) {
		return ""
	}
	return f.budget.Annotations[v1alpha1.AnnotationClosedAt]
}

// openedBudget returns the budget of the members that are not primary, as it is at rest.
func openedBudget(f *facts) *policyv1.PodDisruptionBudget {
	return buildFollowersBudget(f.set, minFollowers(f))
}

// closedBudget returns a copy of the budget that allows no eviction.
func closedBudget(budget *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	budget = budget.DeepCopy()
	budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = nil, ptr.To(intstr.FromInt32(0))
	budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget)
	return budget
}

// minFollowers returns how many of the members that are not primary must stay available. While
// the set is scaled, there are more of them than wanted.
func minFollowers(f *facts) int32 {
	said := ptr.Deref(f.set.Spec.PodDisruptionBudget, v1alpha1.BudgetPolicy{})
	if said.MinAvailable != nil {
		return *said.MinAvailable
	}
	size := f.wanted()
	if f.stateful != nil {
		size = max(size, int(ptr.Deref(f.stateful.Spec.Replicas, 0)))
	}
	return int32(max(0, size-f.target()-int(ptr.Deref(said.MaxUnavailable, 1))))
}

// minPrimaries returns how many primaries must stay available: all that exist and are wanted,
// except those that may be evicted without a successor.
func minPrimaries(f *facts) int32 {
	least := max(f.target(), countLabelled(f))
	if evictionTimeIsOver(f) {
		least -= len(primariesToDrain(f))
	}
	return int32(max(0, least))
}

// keepBudget creates or repairs a budget. A change between minAvailable and maxUnavailable is written
// without a delay.
func keepBudget(f *facts, p *plan, have, want *policyv1.PodDisruptionBudget) {
	if have == nil {
		p.Do(action.Chain{{Verb: action.Create, Object: want, Reason: reasonChild}})
		return
	}
	if !f.ours(have) {
		return
	}
	next, _ := owned.Budget(have, want)
	turned := (have.Spec.MaxUnavailable == nil) != (want.Spec.MaxUnavailable == nil)
	mend(f, p, turned, action.Action{
		Verb:      action.Patch,
		Object:    next,
		From:      have,
		Unchanged: true,
		Reason:    reasonChild,
	})
}

// dropBudget deletes a budget that the set should no longer have.
func dropBudget(f *facts, p *plan, have *policyv1.PodDisruptionBudget) {
	if have != nil && f.ours(have) && have.DeletionTimestamp == nil {
		p.Do(action.Chain{{Verb: action.Delete, Object: have, Reason: reasonChild}})
	}
}

// closingBudget returns the actions that precede the removal of a primary's label, so that the primary is
// not evicted as a member that is not primary. If the label is already wrong, keepBudgets closes
// the budget.
//
// A budget that is already closed is written as well, unless this process closed it for a handover.
// So a stale write of another operator process that decided to open it fails, because its write is
// bound to the version that it read.
func closingBudget(f *facts, m *member) []action.Action {
	switch {
	case !usesBudgets(f), !isLabelledPrimary(f, m), mustCloseBudget(f):
		return nil
	case f.budget == nil, !f.ours(f.budget):
		return nil
	}
	if at := budgetClosedAt(f); at != "" && at == f.closedAt {
		return nil
	}
	shut := closedBudget(f.budget)
	metav1.SetMetaDataAnnotation(&shut.ObjectMeta, v1alpha1.AnnotationClosedAt, f.now.UTC().Format(time.RFC3339Nano))
	closing := action.Action{
		Verb:      action.Patch,
		Object:    shut,
		From:      f.budget,
		Unchanged: true,
		Reason:    reasonBudget,
		Detail:    "block evictions during the handover",
	}
	if !f.deleting() { // a deleted set is stopped without a handover
		closing.Verify = verifyClosed
	}
	return []action.Action{closing}
}
