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

// The budgets of a set in which a role is handed over before its primary is evicted: one
// keeps the primaries, by the label of their role, and one so many of the others. While that
// label does not tell who is primary, no member may be evicted: the second one is closed. It
// is closed before a label is taken off for a handover, and opened when the next primary has
// its label and nothing is on its way.

// budgets is what the budgets of a set are to say.
type budgets struct{ *facts }

// keepBudgets makes the budgets, and repairs what others changed. It opens none (openBudget).
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
		b.keep(p, f.primaryBudget, buildPrimaryBudget(f.set, b.leastPrimaries()))
		// One that is made anew may be made beside a handover; it is opened at rest.
		isLate := f.budget == nil && f.record.epoch > 0
		if b.mustClose() || b.isClosed() || isLate {
			b.keep(p, f.budget, closed(b.open()))
		} else {
			b.keep(p, f.budget, b.open())
		}
	}
}

// openBudget lets members be evicted again that are no primary.
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

// waitsForCommand reports whether a command has to end before members may be evicted again.
// None has to when spec.evictionTimeout is over while a primary is missing: it may be on a
// Node that never comes back.
func (b budgets) waitsForCommand() bool {
	if b.lacksPrimary() && drain(b).timeIsOver() {
		return false
	}
	return len(b.record.commands) > 0
}

// inUse reports whether the primaries have a budget of their own.
func (b budgets) inUse() bool { return hasBudgets(b.set) && handsOver(b.set) }

// mustClose reports whether no member may be evicted, since a primary is missing.
func (b budgets) mustClose() bool {
	return b.lacksPrimary() && !drain(b).timeIsOver()
}

// lacksPrimary reports whether fewer members have the label of a primary than should: the
// others are not told apart from one that is, or is about to be.
func (b budgets) lacksPrimary() bool {
	return b.record.epoch > 0 && b.labelled() < b.target()
}

// labelled is how many members have the label of a primary, and keep it.
func (b budgets) labelled() int {
	return len(b.among(b.isLabelled))
}

// isLabelled reports whether a member is one of those. On a Node that does not answer it serves
// nobody.
func (b budgets) isLabelled(m *member) bool {
	if m.terminating() || m.lost() || m.pod.Labels[v1alpha1.LabelRole] != v1alpha1.RolePrimary {
		return false
	}
	_, role := roleOf(m)
	return role == v1alpha1.RolePrimary || b.keepsLabels(m)
}

// isClosed reports whether the budget of those that are no primary lets none be evicted.
func (b budgets) isClosed() bool {
	have := b.budget
	if have == nil || !b.inUse() || !b.ours(have) {
		return false
	}
	return letsNoneGo(have)
}

// letsNoneGo reports whether no pod may be evicted by a budget.
func letsNoneGo(budget *policyv1.PodDisruptionBudget) bool {
	most := budget.Spec.MaxUnavailable
	return most != nil && *most == intstr.FromInt32(0)
}

// verifyClosed returns an error if the API server did not take a closed budget as it was sent.
// Then the label of the primary must stay: a budget that is open would let it be evicted.
func verifyClosed(answer metav1.Object) error {
	budget, isBudget := answer.(*policyv1.PodDisruptionBudget)
	if isBudget && letsNoneGo(budget) {
		return nil
	}
	return errors.New("spec.maxUnavailable is not 0, so that a primary could be evicted while its role is handed over; " +
		"exempt PodDisruptionBudgets of the operator from it (`kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies` lists them)")
}

// shutAt is when a handover closed the budget; "" where it is open, or another rule closed it.
func (b budgets) shutAt() string {
	if !b.isClosed() {
		return ""
	}
	return b.budget.Annotations[v1alpha1.AnnotationClosedAt]
}

// open is the budget of those that are no primary, as it is at rest.
func (b budgets) open() *policyv1.PodDisruptionBudget {
	return buildFollowersBudget(b.set, b.leastFollowers())
}

// closed is the same budget, by which none may be evicted.
func closed(budget *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	budget = budget.DeepCopy()
	budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = nil, ptr.To(intstr.FromInt32(0))
	budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget)
	return budget
}

// leastFollowers is how many of the members that are no primary must stay available. While
// members come or go there are more of them than are wanted.
func (b budgets) leastFollowers() int32 {
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

// leastPrimaries is how many primaries must stay available: all that there are, and are
// wanted. Those that may go although no other has their role are not counted.
func (b budgets) leastPrimaries() int32 {
	least := max(b.target(), b.labelled())
	if d := drain(b); d.timeIsOver() {
		least -= len(d.leavers())
	}
	return int32(max(0, least))
}

// keep makes a budget, or repairs it. A change of the operator's own waits for nothing.
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

// dropBudget deletes a budget that the set is not to have any more.
func dropBudget(f *facts, p *plan, have *policyv1.PodDisruptionBudget) {
	if have != nil && f.ours(have) && have.DeletionTimestamp == nil {
		p.Do(action.Chain{{Verb: action.Delete, Object: have, Reason: reasonChild}})
	}
}

// closing is what comes before the label of a primary is taken off, so that it is not evicted
// as one that is none. Where the label is wrong already keepBudgets closes the budget.
//
// A budget that is closed already is written too, unless this process closed it for a handover:
// another operator that froze between its decision to open it and the write is refused then,
// since its write is bound to the version it read.
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
		Detail:    "no member is evicted while a role is handed over",
	}
	if !b.deleting() { // a set that is deleted is stopped, and no role is handed over
		closing.Verify = verifyClosed
	}
	return []action.Action{closing}
}
