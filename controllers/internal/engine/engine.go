// Package engine runs a pass: Pass reads an object and what belongs to it, decides, and acts. Decide
// makes the decision: an ordered list of named rules reads facts and adds steps to a plan.
//
// Each kind has one list of rules in order of priority. The modes of the rules determine which of them
// act in the same pass. By default, the first rule that adds steps is the only one, except for rules
// with mode Beside. The remaining work is done in a later pass, based on the state of the cluster at
// that time.
package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// Mode specifies how a rule combines with other rules and with stale state. Modes are combined with |.
type Mode uint8

const (
	// Exclusive is the default mode. The rule acts only if no other exclusive rule acted, and no later
	// rule acts after it.
	Exclusive Mode = 0
	// Leading rules let later rules act in the same pass.
	Leading Mode = 1 << (iota - 1)
	// Beside rules act in addition to any other rule, because other rules do not change the facts that
	// they read.
	Beside
	// Timeless rules write values that are correct even if the state has changed since it was read.
	// They need no live read before the write.
	Timeless
)

// Has reports whether a mode includes any of others.
func (m Mode) Has(others Mode) bool { return m&others != 0 }

// Rule checks for one task and adds its steps to the plan, if there are any. F is the type of the facts
// that it reads, and P the type of the kind's plan.
type Rule[F, P any] struct {
	// Name describes the purpose of the rule. It is used in logs and tests.
	Name string
	Act  func(F, *P)
	Mode Mode
}

// Notice is the reason and message of a condition. It is empty if there is nothing to report.
type Notice struct{ Reason, Message string }

// First runs the checks in order and returns the first notice with a message. It returns an empty Notice
// if no check finds anything.
func First[C any](checks []C, run func(C) Notice) Notice {
	for _, check := range checks {
		if found := run(check); found.Message != "" {
			return found
		}
	}
	return Notice{}
}

// Plan contains the actions that the rules of one pass want. The plan of each kind embeds it.
type Plan struct {
	// Rule is the name of the first rule that acts, or "" if there is nothing to do.
	Rule string
	// Steps are the actions in order.
	Steps action.Steps
	// Wait is the requeue delay; 0 means no requeue.
	Wait time.Duration
	// Waiting describes the awaited event, in a message that follows "waiting until". Its reason is a
	// reason of condition Progressing.
	Waiting Notice
	// Timed is true if a rule acts that is not Timeless.
	Timed bool
	// Undone contains the patches that must wait, because an earlier one was undone by another writer.
	Undone undone.Held

	// last is true after Last, or after a rule that is neither Leading nor Beside acted. stopped is true
	// after Stop.
	last, stopped bool
	// held is true if a patch of the current rule must wait. The rule's later steps then wait too.
	held bool
}

// Do adds chains that are independent of each other and of those already in the first step. An error in
// one chain does not affect the others.
func (p *Plan) Do(chains ...action.Chain) {
	chains = p.due(chains)
	if len(chains) == 0 {
		return
	}
	if len(p.Steps) == 0 {
		p.Steps = action.Steps{nil}
	}
	p.Steps[0] = append(p.Steps[0], chains...)
}

// Then adds chains as a separate step. It starts only after all earlier steps succeeded.
func (p *Plan) Then(chains ...action.Chain) {
	if p.held {
		return
	}
	if chains = p.due(chains); len(chains) > 0 {
		p.Steps = append(p.Steps, chains)
	}
}

// due returns the chains that do not have to wait. It requeues the key for the other chains.
func (p *Plan) due(chains []action.Chain) []action.Chain {
	return slices.DeleteFunc(slices.Clone(chains), func(chain action.Chain) bool {
		pause := p.Undone.Pause(chain)
		p.LookAgain(pause)
		p.held = p.held || pause > 0
		return pause > 0
	})
}

// Acts returns the number of chains in the plan. It is 0 if nothing is to be done.
func (p *Plan) Acts() int {
	n := 0
	for _, step := range p.Steps {
		n += len(step)
	}
	return n
}

// LookAgain requeues the key after at most the given time. A time of 0 or less has no effect.
func (p *Plan) LookAgain(after time.Duration) {
	if after > 0 && (p.Wait == 0 || after < p.Wait) {
		p.Wait = after
	}
}

// WaitFor sets the awaited event, unless an earlier rule has set it already.
func (p *Plan) WaitFor(reason, message string) {
	if p.Waiting.Message == "" {
		p.Waiting = Notice{Reason: reason, Message: message}
	}
}

// Last makes the current rule the last one of the pass, except for rules with mode Beside.
func (p *Plan) Last() { p.last = true }

// Stop prevents all later rules from acting in this pass.
func (p *Plan) Stop() { p.stopped = true }

// Decide runs the rules in order. P embeds Plan, and core is that embedded Plan.
func Decide[F, P any](rules []Rule[F, P], facts F, p *P, core *Plan) {
	for _, rule := range rules {
		if core.stopped {
			return
		}
		if core.last && !rule.Mode.Has(Beside) {
			continue
		}
		before := core.Acts()
		core.held = false
		if rule.Act(facts, p); core.Acts() == before {
			continue
		}
		core.Rule = cmp.Or(core.Rule, rule.Name)
		core.Timed = core.Timed || !rule.Mode.Has(Timeless)
		if !rule.Mode.Has(Leading | Beside) {
			core.last = true
		}
	}
}
