// Package engine decides what a controller does in one pass: an ordered list of
// named rules looks at facts and writes steps into a plan.
//
// A kind has one list of rules, in order of importance. The first rule with
// something to do wins: the rules after it do not act in this pass, but for those
// whose mode says that they act beside any other. What is left is done in a later
// pass, on what the cluster is like then.
package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// Mode says how a rule goes together with other rules, and with an old world. Modes
// are combined with |.
type Mode uint8

const (
	// Exclusive is the mode of a rule that acts alone: it acts only if no other
	// exclusive rule acted, and none acts after it.
	Exclusive Mode = 0
	// Leading is the mode of a rule that lets the rules after it act in the same
	// pass.
	Leading Mode = 1 << (iota - 1)
	// Beside is the mode of a rule that acts beside any other, since nothing that
	// it looks at is changed by them.
	Beside
	// Timeless is the mode of a rule whose writes are right even if the world has
	// changed since it was seen. They need no live read before them.
	Timeless
)

// Has reports whether a mode includes any of others.
func (m Mode) Has(others Mode) bool { return m&others != 0 }

// Rule looks for one thing to do. It writes steps into the plan, or nothing. F is
// what it looks at, and P is the plan of the kind.
type Rule[F, P any] struct {
	// Name says what the rule is for. It is in logs and in tests.
	Name string
	Act  func(F, *P)
	Mode Mode
}

// Notice is the reason of a condition, and its message.
type Notice struct{ Reason, Message string }

// Plan is what the rules of one pass want done. The plan of each kind embeds it.
type Plan struct {
	// Rule is the name of the first rule that acts; "" when there is nothing to do.
	Rule string
	// Steps is what to do, in order.
	Steps action.Steps
	// Wait is when to look again although no event will come; 0 is never.
	Wait time.Duration
	// Waiting says what is waited for; its reason is one of condition Progressing.
	Waiting Notice
	// Timed is true when a rule acts that is not Timeless.
	Timed bool
	// Undone has the patches that have to wait, because an earlier one was undone.
	Undone undone.Held

	last, stopped bool
	// held is true when a patch of the present rule has to wait. Its later steps wait too.
	held bool
}

// Do adds chains beside those that are there: what is refused of one keeps no other
// from being done.
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

// Then adds chains as a step of their own, which is begun only when all steps before
// it succeeded.
func (p *Plan) Then(chains ...action.Chain) {
	if p.held {
		return
	}
	if chains = p.due(chains); len(chains) > 0 {
		p.Steps = append(p.Steps, chains)
	}
}

// due returns the chains that do not have to wait. For the others the plan wakes the key.
func (p *Plan) due(chains []action.Chain) []action.Chain {
	return slices.DeleteFunc(slices.Clone(chains), func(chain action.Chain) bool {
		pause := p.Undone.Pause(chain)
		p.LookAgain(pause)
		p.held = p.held || pause > 0
		return pause > 0
	})
}

// Acts is how many chains the plan has.
func (p *Plan) Acts() int {
	n := 0
	for _, step := range p.Steps {
		n += len(step)
	}
	return n
}

// LookAgain makes the plan wake the key after that time at the latest. A time of 0 or
// less changes nothing.
func (p *Plan) LookAgain(after time.Duration) {
	if after > 0 && (p.Wait == 0 || after < p.Wait) {
		p.Wait = after
	}
}

// WaitFor says what is waited for, unless a more important rule has said so.
func (p *Plan) WaitFor(reason, message string) {
	if p.Waiting.Message == "" {
		p.Waiting = Notice{Reason: reason, Message: message}
	}
}

// Last makes this rule the last one of the pass but for those that act Beside.
func (p *Plan) Last() { p.last = true }

// Stop keeps all other rules from acting in this pass.
func (p *Plan) Stop() { p.stopped = true }

// Decide asks the rules in order. P embeds Plan, and core is that Plan.
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
