package rules

import (
	"fmt"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// switchOver gives the role of a primary to the member that a user ordered.
func switchOver(f *facts.Facts, p *Plan) {
	o := openOrderOf(f, v1alpha1.OrderSwitchoverTo)
	m := f.Named(o.name)
	if m == nil || m.State == record.Primary || !f.MayStartMembers() || o.isSpent() {
		return
	}
	if !f.WellStaffed() {
		p.WaitFor(v1alpha1.ReasonHandingOver, fmt.Sprintf("the switchover to %s (%s) waits until no member is missing; missing: %s",
			m.Name(), o.source(), f.WhatIsMissing()))
		return
	}
	live := f.Primaries()
	p.askVersions(f, live)
	all := copiesOf(live)
	if len(all) == 0 || !all.answered() {
		p.WaitFor(v1alpha1.ReasonHandingOver, "waiting for a response from sequence in "+facts.NamesOf(live))
		return
	}
	h := transfer{Facts: f, primary: all.oldest(), only: m.Name()}.findSuccessor()
	p.askForHandover(f, h)
	if h.successor == nil {
		return
	}
	before, old := p.Record, all.oldest()
	p.Record.Orders = o.begin(p.Record.Orders, old)
	if p.demote(f, old, m.Name()+" takes over, as requested"); !p.writesRecord {
		p.Record = before
	}
}
