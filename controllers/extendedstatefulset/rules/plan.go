package rules

import (
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// Plan is the result of Decide: the steps to take, and the reasons for them.
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

// Reasons of the writes of this rule.
const (
	reasonProbe   = "Probe"
	reasonActive  = "Active"
	reasonPassive = "Passive"
)

// waitFor sets the reason for waiting; "" is ignored.
func (p *Plan) waitFor(what string) {
	if what != "" {
		p.WaitFor(v1alpha1.ReasonWaiting, what)
	}
}

func (p *Plan) DoesSomething() bool { return p.RecordFirst || p.Acts() > 0 }

// Changes reports whether the plan does more than run probes. An outdated world cannot make probes
// wrong.
func (p *Plan) Changes() bool { return p.DoesSomething() && !p.AsksOnly() }

// AsksOnly reports whether the plan only runs probes. An outdated world cannot make probes wrong.
func (p *Plan) AsksOnly() bool {
	for _, step := range p.Steps {
		for _, chain := range step {
			if slices.ContainsFunc(chain, func(a action.Action) bool { return a.Verb != action.Exec }) {
				return false
			}
		}
	}
	return !p.RecordFirst
}

// WaitingToo returns text followed by the reason for waiting, if there is one.
func (p *Plan) WaitingToo(text string) string {
	if p.Waiting.Message == "" {
		return text
	}
	return text + "; waiting until " + p.Waiting.Message
}
