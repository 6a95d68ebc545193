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

// budgets computes the wanted budgets of a set.
type budgets struct{ *facts }

// keepBudgets creates the budgets, and repairs changes by others. It never opens a closed budget
// (see openBudget).
func keepBudgets(f *facts, p *plan) {
	b := budgets{f}
	switch {
	case !hasBudgets(f.set):
		dropBudget(f, p, f.budget)
		dropBudget(f, p, f.primaryBudget)
	case !handsOver(f.set):
		dropBudget(f, p, f.primaryBudget)
		b.keep(p, f.budget, buildBudget(f.set))
	default:
		b.keep(p, f.primaryBudget, buildPrimaryBudget(f.set, b.minPrimaries()))
		// A budget that is recreated during a handover starts closed. openBudget opens it at rest.
		isLate := f.budget == nil && f.record.epoch > 0
		if b.mustClose() || b.isClosed() || isLate {
			b.keep(p, f.budget, closed(b.open()))
		} else {
			b.keep(p, f.budget, b.open())
		}
	}
}

// openBudget reopens the budget of the members that are not primary.
func openBudget(f *facts, p *plan) {
	b := budgets{f}
	if !f.keeps() || f.deleting() || !b.isClosed() {
		return
	}
	if b.mustClose() || p.sent || b.waitsForCommand() {
		return
	}
	b.keep(p, f.budget, b.open())
}

// waitsForCommand reports whether a command must end before members may be evicted again. After
// spec.evictionTimeout has expired while a primary is missing, no command needs to end, because it
// may run on a Node that never returns.
func (b budgets) waitsForCommand() bool {
	if b.lacksPrimary() && drain(b).timeIsOver() {
		return false
	}
	return len(b.record.commands) > 0
}

// inUse reports whether the primaries have a separate budget.
func (b budgets) inUse() bool { return hasBudgets(b.set) && handsOver(b.set) }

// mustClose reports whether no member may be evicted because a primary is missing.
func (b budgets) mustClose() bool {
	return b.lacksPrimary() && !drain(b).timeIsOver()
}

// lacksPrimary reports whether too few members have the primary label. Any other member may then be
// primary, or be about to become primary.
func (b budgets) lacksPrimary() bool {
	return b.record.epoch > 0 && b.labelled() < b.target()
}

// labelled returns the number of members that have the primary label and keep it.
func (b budgets) labelled() int {
	return len(b.among(b.isLabelled))
}

// isLabelled reports whether a member has the primary label and keeps it. A member on an
// unreachable Node serves no client and does not count.
func (b budgets) isLabelled(m *member) bool {
	if m.terminating() || m.lost() || m.pod.Labels[v1alpha1.LabelRole] != v1alpha1.RolePrimary {
		return false
	}
	_, role := roleOf(m)
	return role == v1alpha1.RolePrimary || b.keepsLabels(m)
}

// isClosed reports whether the budget of the members that are not primary allows no eviction.
func (b budgets) isClosed() bool {
	have := b.budget
	if have == nil || !b.inUse() || !b.ours(have) {
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

// shutAt returns when a handover closed the budget. It returns "" if the budget is open, or was
// closed by another rule.
func (b budgets) shutAt() string {
	if !b.isClosed() {
		return ""
	}
	return b.budget.Annotations[v1alpha1.AnnotationClosedAt]
}

// open returns the budget of the members that are not primary, as it is at rest.
func (b budgets) open() *policyv1.PodDisruptionBudget {
	return buildFollowersBudget(b.set, b.minFollowers())
}

// closed returns a copy of the budget that allows no eviction.
func closed(budget *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	budget = budget.DeepCopy()
	budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = nil, ptr.To(intstr.FromInt32(0))
	budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget)
	return budget
}

// minFollowers returns how many of the members that are not primary must stay available. While
// the set is scaled, there are more of them than wanted.
func (b budgets) minFollowers() int32 {
	said := ptr.Deref(b.set.Spec.PodDisruptionBudget, v1alpha1.BudgetPolicy{})
	if said.MinAvailable != nil {
		return *said.MinAvailable
	}
	size := b.wanted()
	if b.stateful != nil {
		size = max(size, int(ptr.Deref(b.stateful.Spec.Replicas, 0)))
	}
	return int32(max(0, size-b.target()-int(ptr.Deref(said.MaxUnavailable, 1))))
}

// minPrimaries returns how many primaries must stay available: all that exist and are wanted,
// except those that may be evicted without a successor.
func (b budgets) minPrimaries() int32 {
	least := max(b.target(), b.labelled())
	if d := drain(b); d.timeIsOver() {
		least -= len(d.leavers())
	}
	return int32(max(0, least))
}

// keep creates or repairs a budget. A change between minAvailable and maxUnavailable is written
// without a delay.
func (b budgets) keep(p *plan, have, want *policyv1.PodDisruptionBudget) {
	if have == nil {
		p.Do(action.Chain{{Verb: action.Create, Object: want, Reason: reasonChild}})
		return
	}
	if !b.ours(have) {
		return
	}
	next, _ := owned.Budget(have, want)
	turned := (have.Spec.MaxUnavailable == nil) != (want.Spec.MaxUnavailable == nil)
	mend(b.facts, p, turned, action.Action{
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

// closing returns the actions that precede the removal of a primary's label, so that the primary is
// not evicted as a member that is not primary. If the label is already wrong, keepBudgets closes
// the budget.
//
// A budget that is already closed is written as well, unless this process closed it for a handover.
// So a stale write of another operator process that decided to open it fails, because its write is
// bound to the version that it read.
func (b budgets) closing(m *member) []action.Action {
	switch {
	case !b.inUse(), !b.isLabelled(m), b.mustClose():
		return nil
	case b.budget == nil, !b.ours(b.budget):
		return nil
	}
	if at := b.shutAt(); at != "" && at == b.closedAt {
		return nil
	}
	shut := closed(b.budget)
	metav1.SetMetaDataAnnotation(&shut.ObjectMeta, v1alpha1.AnnotationClosedAt, b.now.UTC().Format(time.RFC3339Nano))
	closing := action.Action{
		Verb:      action.Patch,
		Object:    shut,
		From:      b.budget,
		Unchanged: true,
		Reason:    reasonBudget,
		Detail:    "block evictions during the handover",
	}
	if !b.deleting() { // a deleted set is stopped without a handover
		closing.Verify = verifyClosed
	}
	return []action.Action{closing}
}
