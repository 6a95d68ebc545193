package replicatedstatefulset

import (
	"cmp"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// plan is what decide wants done, and what it knows about why.
type plan struct {
	// rule is the name of the first rule that acts; "" when there is nothing to do.
	rule  string
	steps action.Steps
	// wait is when to look again although no event will come; 0 is never.
	wait time.Duration
	// waits says what is waited for, with the reason of condition Progressing;
	// the first to wait has the word.
	waits notice
	// risk says why the newest copy is not at hand; blind, whose sequence is not
	// known.
	risk, blind string

	asked map[string]bool // pods in which this plan asks something
	sent  bool            // whether it sends a command that changes something
	// proven is true when another member is known to have all of the data of the
	// one that the plan stops.
	proven bool
}

// notice is the reason of a condition, and its message.
type notice struct{ reason, message string }

// rule looks for one thing to do. It writes chains into the plan, or nothing.
type rule struct {
	name string
	act  func(*world, *plan)
	// joins is true for a rule that acts beside any other.
	joins bool
}

// rules in order of importance: the first with something to do wins, but for
// those that join. Nothing is begun before what was learned is in the books.
var rules = []rule{
	{"let the pods of an object go that is not served", letGo, false},
	{"keep the books", keepBooks, false},
	{"release pods that have stopped", release, true},
	{"protect pods that may run", protect, true},
	{"find the pods again", keepLabels, true},
	{"show the roles", showRoles, true},
	{"ask how members are", askStatus, true},
	{"keep the object until its members were stopped", keepObject, false},
	{"keep the children", keepChildren, true},
	{"delete pods whose machine is off", deleteFenced, false},
	{"end commands whose end nobody saw", endUnseen, false},
	{"clean members that failed", repair, false},
	{"stop what is being deleted", stopTerminating, false},
	{"finish the deletion", finishDeletion, false},
	{"scale", scale, false},
	{"take what a person asked for off the object", takeOverrides, false},
	{"stop a primary too many", stopSurplus, false},
	{"make pods anew that serve nobody", renewIdle, false},
	{"start the first primary", startFirst, false},
	{"start another primary", startPrimary, false},
	{"start a secondary", startSecondary, false},
	{"hand a role over", switchOver, false},
	{"make a pod anew", renew, false},
}

// decide says what to do about a world. It is pure: the same world gives the
// same plan.
func decide(w *world) plan {
	p := plan{asked: map[string]bool{}}
	w.books = learn(w)
	decided := false
	for _, rule := range rules {
		if decided && !rule.joins {
			continue
		}
		before := p.acts()
		if rule.act(w, &p); p.acts() == before {
			continue
		}
		p.rule = cmp.Or(p.rule, rule.name)
		decided = decided || !rule.joins
	}
	p.lookAgainFor(w)
	return p
}

// do adds chains beside those that are there: what is refused of one keeps no
// other from being done.
func (p *plan) do(chains ...action.Chain) {
	switch {
	case len(chains) == 0:
	case len(p.steps) == 0:
		p.steps = action.Steps{chains}
	default:
		p.steps[0] = append(p.steps[0], chains...)
	}
}

// acts is how many chains the plan has.
func (p *plan) acts() (n int) {
	for _, step := range p.steps {
		n += len(step)
	}
	return n
}

// asksOnly tells whether the plan does nothing but ask, which an old world
// cannot make wrong.
func (p *plan) asksOnly() bool {
	for _, step := range p.steps {
		for _, chain := range step {
			for _, a := range chain {
				if a.Verb != action.Exec || !asks(a.Command.Name) {
					return false
				}
			}
		}
	}
	return true
}

// waitFor says what is waited for, unless something more important is.
func (p *plan) waitFor(reason, message string) {
	if p.waits.reason == "" {
		p.waits = notice{reason, message}
	}
}

// lookAgain makes the plan wake the key after that time.
func (p *plan) lookAgain(after time.Duration) {
	if after > 0 && (p.wait == 0 || after < p.wait) {
		p.wait = after
	}
}

// lookAgainFor wakes the key for what no event tells.
func (p *plan) lookAgainFor(w *world) {
	for _, m := range w.members {
		if m.node.missing {
			p.lookAgain(w.watch.Deadline(m.node.missingSince, fenceAfter).Sub(w.now))
		}
		if w.serves() {
			p.lookAgain(w.retryAt(m).Sub(w.now))
		}
		if !m.askedAt.IsZero() && !w.unanswered(m) {
			p.lookAgain(w.watch.Deadline(m.askedAt, answersWithin).Sub(w.now))
		}
		if w.shown(m) == primary && !podstate.Ready(m.pod) {
			p.lookAgain(w.unreadySince(m).Add(unreadyAfter).Sub(w.now))
		}
	}
	for _, c := range w.books.commands {
		p.lookAgain(strayUntil(c.StartedAt, c.BeginWithin).Sub(w.now))
		p.lookAgain(c.StartedAt.Add(c.Timeout.Duration).Sub(w.now))
	}
	for _, g := range w.books.grants {
		p.lookAgain(strayUntil(g.Since, g.BeginWithin).Sub(w.now))
	}
	if w.deleting() {
		p.lookAgain(w.deadline().Sub(w.now))
	}
}

// Questions about the object.

func (w *world) deleting() bool { return w.set.DeletionTimestamp != nil }

func (w *world) held() bool { return controllerutil.ContainsFinalizer(w.set, v1alpha1.FinalizerStop) }

// serves tells whether commands may be run.
func (w *world) serves() bool {
	return w.invalid == "" && !w.namespaceGoes && (!w.set.Spec.Paused || w.deleting()) && !w.letsGo()
}

// starts tells whether a member may be started at all.
func (w *world) starts() bool { return w.serves() && !w.deleting() && w.fatal() == "" }

// wanted is how many members there shall be: none of a set that goes, and none
// more while a stopped one may not come back.
func (w *world) wanted() int {
	if w.deleting() || w.tooFew() {
		return 0
	}
	return int(*w.set.Spec.Replicas)
}

// target is how many primaries there shall be.
func (w *world) target() int {
	if w.wanted() == 0 {
		return 0
	}
	return max(1, int(primariesWanted(w.set)))
}

// tooFew tells whether a stopped set is to come back with fewer members than it
// had: the newest copy may be on one that is left out.
func (w *world) tooFew() bool {
	want := *w.set.Spec.Replicas
	return want > 0 && want < w.set.Status.RestoreReplicas && (w.stateful == nil && len(w.members) == 0 || w.stateful != nil && *w.stateful.Spec.Replicas == 0)
}

// configured tells whether the user gave that command.
func (w *world) configured(name string) bool {
	_, ok := w.set.Spec.Pod.Commands[name]
	return ok
}

// fatal says why no member may be started before the spec is another; "" if they
// may. OCF calls exit code 6 "not configured".
func (w *world) fatal() string {
	for _, f := range w.books.failures {
		if f.Code == ocfNotConfigured && f.Generation == w.set.Generation {
			return "the application says that it is configured wrongly (exit code 6 of " + f.Command + " in " + f.Pod + "); edit the spec"
		}
	}
	return ""
}

// wellStaffed tells whether nothing is missing: that many primaries, and all
// other wanted members as secondaries, or idle where there is no such command.
func (w *world) wellStaffed() bool { return w.staffed(w.state) }

// staffed is the same by other words on the states of members.
func (w *world) staffed(stateOf func(*member) state) bool {
	if len(w.members) != w.wanted() || len(w.books.commands) > 0 || len(w.books.grants) != w.target() {
		return false
	}
	primaries := 0
	for _, m := range w.members {
		switch s := stateOf(m); {
		case s == primary:
			primaries++
		case s == secondary:
		case s == idle && !w.configured(v1alpha1.CommandSecondary):
		default:
			return false
		}
	}
	return primaries == w.target()
}
