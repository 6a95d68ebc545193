package rules

import (
	"fmt"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// A deleted, preempted or tainted (NoExecute) primary is not evicted, so no budget applies. But if
// its container has a preStop hook that sleeps, the kubelet sends SIGTERM only after the sleep.
// Until then the pod is held (facts.HeldUntil), and the role is handed over as in a drain.

// handOverHeld hands over the role of a terminating primary whose SIGTERM is delayed. While no
// other member has its data, it stays primary. It is stopped at the end of the delay.
func handOverHeld(f *facts.Facts, p *Plan, m *facts.Member) {
	p.LookAgain(facts.HeldUntil(m).Sub(f.Now))
	demoteWithSuccessor(f, p, transfer{Facts: f, primary: m}, "its pod is being deleted")
}

// awaitHeld waits until the running members have the data of a primary that was demoted because its
// pod is terminating, and asks them for their sequence repeatedly. It reports whether there is a
// member to wait for. If no member catches up in time, the copy returns with the next pod of that
// name.
func (p *Plan) awaitHeld(f *facts.Facts, running []*facts.Member, sequence uint64) bool {
	held := f.Among(func(m *facts.Member) bool { return m.Owned && m.State == record.Secondary && f.IsHeld(m) })
	if len(held) == 0 {
		return false
	}
	p.askVersions(f, held)
	all := copiesOf(held)
	newest := all[0]
	switch {
	case !all.answered():
		p.WaitFor(v1alpha1.ReasonSeeding, all.whyWaiting(""))
		return true
	case !newest.Version.Known, newest.Version.Sequence <= sequence:
		return false
	}
	answer, _ := newest.Answer(v1alpha1.CommandSequence)
	for _, m := range running {
		p.askSince(f, question{Member: m, after: answer.Ended})
	}
	p.LookAgain(facts.HeldUntil(newest).Sub(f.Now))
	p.WaitFor(v1alpha1.ReasonHandingOver, fmt.Sprintf(
		"the pod of %s is being deleted; waiting for another member to catch up with it: sequence %d", newest.Name(), newest.Version.Sequence,
	))
	return true
}
