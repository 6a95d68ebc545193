package rules

import "github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"

// With onEviction ReplaceFirst a drain does not end members, because the budget refuses evictions
// of all Ready members. A member on a cordoned Node leaves it. While a member leaves, the set wants
// more members than replicas (facts.Wanted), and createMissing creates them. Once one more than
// replicas is available, a leaving member is retired, as in a surge update. When the Node is
// uncordoned no member leaves it any more, and surplus members are scaled down.

// aheadOf returns the event text about the members that leave after the new member in that slot is
// available; "" if the slot is one of the replicas.
func aheadOf(f *facts.Facts, slot int) string {
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
