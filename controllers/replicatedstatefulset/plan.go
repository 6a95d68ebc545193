package replicatedstatefulset

import (
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// plan is what decide wants done, and what it knows about why.
type plan struct {
	engine.Plan

	// risk says why the newest copy is not at hand; blind, whose sequence is not
	// known.
	risk, blind string

	asked map[string]bool // pods in which this plan asks something
	sent  bool            // whether it sends a command that changes something
	// proven is true when another member is known to have all of the data of the
	// one that the plan stops.
	proven bool
}

// rules in order of importance. Nothing is begun before what was learned is in the books.
var rules = []engine.Rule[*world, plan]{
	{Name: "let the pods of an object go that is not served", Act: letGo},
	{Name: "keep the books", Act: keepBooks},
	{Name: "release pods that have stopped", Act: release, Mode: engine.Beside},
	{Name: "protect pods that may run", Act: protect, Mode: engine.Beside},
	{Name: "find the pods again", Act: keepLabels, Mode: engine.Beside},
	{Name: "show the roles", Act: showRoles, Mode: engine.Beside},
	{Name: "ask how members are", Act: askStatus, Mode: engine.Beside},
	{Name: "keep the object until its members were stopped", Act: keepObject},
	{Name: "keep the children", Act: keepChildren, Mode: engine.Beside},
	{Name: "delete pods whose machine is off", Act: deleteFenced},
	{Name: "end commands whose end nobody saw", Act: endUnseen},
	{Name: "clean members that failed", Act: repair},
	{Name: "stop what is being deleted", Act: stopTerminating},
	{Name: "finish the deletion", Act: finishDeletion},
	{Name: "scale", Act: scale},
	{Name: "take what a person asked for off the object", Act: takeOverrides},
	{Name: "stop a primary too many", Act: stopSurplus},
	{Name: "make pods anew that serve nobody", Act: renewIdle},
	{Name: "start the first primary", Act: startFirst},
	{Name: "start another primary", Act: startPrimary},
	{Name: "start a secondary", Act: startSecondary},
	{Name: "hand a role over", Act: switchOver},
	{Name: "make a pod anew", Act: renew},
}

// decide says what to do about a world. It is pure: the same world gives the
// same plan.
func decide(w *world) plan {
	p := plan{asked: map[string]bool{}}
	w.books = learn(w)
	engine.Decide(rules, w, &p, &p.Plan)
	p.lookAgainFor(w)
	return p
}

// asksOnly tells whether the plan does nothing but ask, which an old world
// cannot make wrong.
func (p *plan) asksOnly() bool {
	for _, step := range p.Steps {
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

// lookAgainFor wakes the key for what no event tells.
func (p *plan) lookAgainFor(w *world) {
	for _, m := range w.members {
		if m.node.Missing {
			p.LookAgain(w.watch.Deadline(m.node.MissingSince, fenceAfter).Sub(w.now))
		}
		if w.serves() {
			p.LookAgain(w.retryAt(m).Sub(w.now))
		}
		if !m.askedAt.IsZero() && !w.unanswered(m) {
			p.LookAgain(w.watch.Deadline(m.askedAt, answersWithin).Sub(w.now))
		}
		if w.shown(m) == primary && !podstate.Ready(m.pod) {
			p.LookAgain(w.unreadySince(m).Add(unreadyAfter).Sub(w.now))
		}
	}
	for _, c := range w.books.commands {
		p.LookAgain(strayUntil(c.StartedAt, c.BeginWithin).Sub(w.now))
		p.LookAgain(c.StartedAt.Add(c.Timeout.Duration).Sub(w.now))
	}
	for _, g := range w.books.grants {
		p.LookAgain(strayUntil(g.Since, g.BeginWithin).Sub(w.now))
	}
	if w.deleting() {
		p.LookAgain(w.deadline().Sub(w.now))
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
