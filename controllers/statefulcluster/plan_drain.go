package statefulcluster

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// With onEviction ReplaceFirst a drain does not end members, because the budget refuses evictions
// of all Ready members. A member on a cordoned Node leaves it. While a member leaves, the set wants
// more members than replicas (facts.wanted), and createMissing creates them. Once one more than
// replicas is available, a leaving member is retired, as in a surge update. When the Node is
// uncordoned no member leaves it any more, and surplus members are scaled down.

// leaves reports whether a member is on a cordoned Node and will be retired when a new one is
// available.
func (f *facts) leaves(m *member) bool {
	return f.replacesFirst() && m.node.cordoned && f.stays == ""
}

// findLeaving finds the alive members that leave their Node. Lost members are replaced by
// replaceLost.
func (f *facts) findLeaving() {
	for _, m := range f.alive {
		if f.leaves(m) {
			f.leaving = append(f.leaving, m)
		}
	}
}

// startsAgain returns the reason why new members could start on a cordoned Node; "" if they cannot.
// They and their successors would have to leave again. Admission validates the current template,
// but new members get an older one while a partition keeps members at it.
func (f *facts) startsAgain() string {
	if !f.replacesFirst() || f.partition() == 0 {
		return ""
	}
	current, ok := dataOf(f.named(f.set.Status.CurrentRevision))
	if !ok || !startsOnCordoned(&current.Template.Spec) {
		return ""
	}
	return fmt.Sprintf("new members could start there again, because rollingUpdate.partition keeps members at revision %s, whose template sets nodeName or tolerates cordoned nodes; lower the partition",
		f.set.Status.CurrentRevision)
}

// aheadOf returns the event text about the members that leave after the new member in that slot is
// available; "" if the slot is one of the replicas.
func (f *facts) aheadOf(slot int) string {
	if slot < f.replicas() || len(f.leaving) == 0 {
		return ""
	}
	return "to replace members on cordoned nodes: " + atMost(3, namesOf(f.leaving))
}

// waitsForRoom reports whether an unschedulable member is a new one in a set whose Nodes are being
// drained. Its replacement would be unschedulable too, and each would leave claims.
func (f *facts) waitsForRoom(l loss) bool {
	return f.draining && l.reason == v1alpha1.LossPending && !l.hasRun()
}

// waitsForSuccessor reports whether the update skips a member because the drain will replace it:
// the member is available, and its pod could not be recreated on the cordoned Node.
func (f *facts) waitsForSuccessor(m *member) bool {
	if !f.leaves(m) || !f.serves(m) {
		return false
	}
	_, patched := inPlace(f, m)
	return !patched
}

// retireLeaving retires leaving members, as many as possible while all replicas stay available. A
// leaving member that is not available is kept until then too, because its data may be needed.
func retireLeaving(f *facts, p *plan) {
	if len(f.leaving) == 0 {
		return
	}
	available, changes := f.countAvailable()
	p.lookAgain(changes...)
	spare := available - f.replicas()
	if spare < 0 {
		return
	}
	surplus := f.occupied() - f.replicas()
	retire(f, p, affordable(f.world, firstToGo(f, f.leaving, surplus), spare))
}

// drainingMessage returns which members leave, and which members the drain waits for.
func drainingMessage(f *facts) string {
	return fmt.Sprintf("%s on cordoned nodes will be retired when new members are available: %s%s; to keep them: `kubectl uncordon %s`",
		members(int32(len(f.leaving))), atMost(3, namesOf(f.leaving)), unready(f), strings.Join(nodesOf(f.leaving, 3), " "))
}

// drainBlocked returns a notice if members stay on cordoned Nodes and the operator cannot resolve
// it.
func drainBlocked(f *facts, _ *plan, _ results) engine.Notice {
	found := engine.Notice{Reason: v1alpha1.ReasonDrainBlocked}
	switch {
	case f.stays != "":
		if cordoned := f.cordoned(); len(cordoned) > 0 {
			found.Message = fmt.Sprintf("members stay on cordoned nodes and their evictions are refused: %s; %s", someOf(cordoned), f.stays)
		}
	case len(f.roomless) > 0 && len(f.leaving) > 0:
		found.Message = fmt.Sprintf("new members are unschedulable, and these members cannot leave their cordoned nodes without them: %s; "+
			"`kubectl -n %s describe pod %s` shows what is missing; add capacity, or end the drain: `kubectl uncordon %s`",
			someOf(namesOf(f.leaving)), f.set.Namespace, f.roomless[0], strings.Join(nodesOf(f.leaving, 3), " "))
	}
	return found
}

// cordoned returns the names of the members on cordoned Nodes.
func (f *facts) cordoned() (names []string) {
	for _, m := range f.alive {
		if m.node.cordoned {
			names = append(names, m.name())
		}
	}
	return names
}

// nodesOf returns the names of the Nodes of members, at most n of them.
func nodesOf(members []*member, n int) []string {
	var names []string
	for _, m := range members {
		names = append(names, m.pod.Spec.NodeName)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), n)]
}
