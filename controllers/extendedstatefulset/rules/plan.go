package rules

import (
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// Plan is the result of Decide: the steps to take, the event that the set waits for, and the requeue
// delay.
type Plan struct {
	engine.Plan

	// RecordFirst is true if the record must be written. The pass does nothing else then.
	RecordFirst bool
}

// Reasons of writes in logs, golden files and metrics.
const (
	reasonScale    = "Scale"
	reasonTemplate = "Template"
	reasonChild    = "Child"
	reasonClaim    = "Claim"
	reasonJob      = "Job"
	reasonBudget   = "Budget"
	ReasonZoneGone = "ZoneGone"
	ReasonOld      = "OldVersion"
)

// Reasons of the actions of rule FollowProbes.
const (
	reasonProbe   = "Probe"
	reasonActive  = "Active"
	reasonPassive = "Passive"
)

// waitFor sets the event that the set waits for, as a text that follows "waiting until". The first event
// of a pass is kept. "" is ignored.
func (p *Plan) waitFor(what string) {
	if what != "" {
		p.WaitFor(v1alpha1.ReasonWaiting, what)
	}
}

// DoesSomething reports whether the plan writes or runs a command.
func (p *Plan) DoesSomething() bool { return p.RecordFirst || p.Acts() > 0 }

// Changes reports whether the plan does more than run probes. An outdated world cannot make probes
// wrong.
func (p *Plan) Changes() bool { return p.DoesSomething() && !p.ProbesOnly() }

// ProbesOnly reports whether all actions of the plan are probes. It is also true without actions.
func (p *Plan) ProbesOnly() bool {
	for _, step := range p.Steps {
		for _, chain := range step {
			if slices.ContainsFunc(chain, func(a action.Action) bool { return a.Verb != action.Exec }) {
				return false
			}
		}
	}
	return !p.RecordFirst
}

// WaitingToo returns text followed by the event that the set waits for, if there is one.
func (p *Plan) WaitingToo(text string) string {
	if p.Waiting.Message == "" {
		return text
	}
	return text + "; waiting until " + p.Waiting.Message
}
