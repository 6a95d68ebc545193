package rules

import "github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"

// With onEviction ReplaceFirst a drain evicts no Ready member, because the budget refuses it. Instead,
// members on cordoned Nodes leave them (Facts.Leaving): the set wants more members than replicas
// (Facts.Wanted), createMissing creates them, and once more than replicas are available, leaving members
// are retired, as in a surge update. If the Node is uncordoned, its members do not leave it any more,
// and scaleDown retires the surplus.

// leavingDetail returns the event text about the members that leave after the new member in that slot is
// available; "" if the slot is one of the replicas.
func leavingDetail(f *facts.Facts, slot int) string {
	if slot < f.Replicas() || len(f.Leaving) == 0 {
		return ""
	}
	return "to replace members on cordoned nodes: " + facts.AtMost(3, facts.NamesOf(f.Leaving))
}

// waitsForSuccessor reports whether the update skips a member because the drain will replace it:
// the member is available, and its pod could not be recreated on the cordoned Node.
func waitsForSuccessor(f *facts.Facts, m *facts.Member) bool {
	if !f.Leaves(m) || !f.Serves(m) {
		return false
	}
	_, patched := inPlace(f, m)
	return !patched
}

// retireLeaving retires leaving members, as many as possible while all replicas stay available. A
// leaving member that is not available is kept until then too, because its data may be needed.
func retireLeaving(f *facts.Facts, p *Plan) {
	if len(f.Leaving) == 0 {
		return
	}
	available, changes := f.CountAvailable()
	p.RequeueAt(changes...)
	spare := available - f.Replicas()
	if spare < 0 {
		return
	}
	surplus := f.Occupied() - f.Replicas()
	retire(f, p, affordable(f.World, firstToGo(f, f.Leaving, surplus), spare))
}
