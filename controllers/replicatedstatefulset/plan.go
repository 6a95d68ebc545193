package replicatedstatefulset

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// plan is what decide wants done, and what it knows about why.
type plan struct {
	engine.Plan

	// on is what it was decided on.
	on *facts
	// record is what the status is to remember: that of the facts, with what this plan
	// does about copies that are given up, or were seen elsewhere.
	record record
	// risk says why the newest copy is not at hand; blind, whose sequence is not
	// known.
	risk, blind string
	// uncompared says whose copy may have been newer than that of the secondary that this plan
	// promotes; "" if none.
	uncompared string
	// handover says whose role another member takes in this plan, and why.
	handover string

	// trial is a dry run that comes before the member is stopped that this plan recreates.
	trial action.Chain

	asked map[string]bool // pods in which this plan asks something
	sent  bool            // whether it sends a command that changes something
	// proven is true when another member is known to have all of the data of the
	// one that the plan stops.
	proven bool
	// newTemplate is true when the StatefulSet gets a template that members are to be
	// recreated from.
	newTemplate bool
	// configEvent is the reason of the event about what the StatefulSet carries of the
	// configuration; "" if there is none.
	configEvent string
	// looksLive is true when only a live world says what is to be done.
	looksLive bool
	// notInPlace says why a member is recreated whose resources were to be changed in place.
	notInPlace string
}

// rules in order of importance. Nothing is begun before what was learned is on record.
var rules = []engine.Rule[*facts, plan]{
	{Name: "let the pods of an object go that is not served", Act: letGo},
	{Name: "keep the record", Act: keepRecord},
	{Name: "release pods that have stopped", Act: release, Mode: engine.Beside},
	{Name: "protect pods that may run", Act: protect, Mode: engine.Beside},
	{Name: "find the pods again", Act: keepLabels, Mode: engine.Beside},
	{Name: "show the roles", Act: showRoles, Mode: engine.Beside},
	{Name: "ask how members are", Act: askStatus, Mode: engine.Beside},
	{Name: "keep the object until its members were stopped", Act: keepObject},
	{Name: "keep the children", Act: keepChildren, Mode: engine.Beside},
	{Name: "remove our labels from pods that are no members", Act: removeLabels, Mode: engine.Beside},
	{Name: "let claims grow", Act: growClaims, Mode: engine.Beside},
	{Name: "delete pods whose machine is off", Act: deleteFenced},
	{Name: "end commands whose end was not seen", Act: endUnseen},
	{Name: "clean members that failed", Act: repair},
	{Name: "stop what is being deleted", Act: stopTerminating},
	{Name: "finish the deletion", Act: finishDeletion},
	{Name: "scale", Act: scale},
	{Name: "end orders that were met, or cannot be", Act: takeOverrides},
	{Name: "stop a primary too many", Act: stopSurplus},
	{Name: "recreate pods in which nothing runs", Act: renewIdle},
	{Name: "start the first primary", Act: startFirst},
	{Name: "start another primary", Act: startPrimary},
	{Name: "start a secondary", Act: startSecondary},
	{Name: "hand a role over", Act: switchOver},
	{Name: "park a primary", Act: parkPrimary},
	{Name: "leave a cordoned Node", Act: leaveCordoned},
	{Name: "take note of resources that were changed in place", Act: finishInPlace},
	{Name: "update a pod", Act: renew},
	{Name: "let members be evicted again", Act: openBudget, Mode: engine.Beside},
}

// decide says what to do about a world. It is pure: the same world gives the same plan.
func decide(w *world) plan {
	f := derive(w)
	p := plan{on: f, record: f.record, asked: map[string]bool{}}
	p.Undone = f.undone
	engine.Decide(rules, f, &p, &p.Plan)
	p.lookAgainFor(f)
	return p
}

// asksOnly reports whether the plan does nothing but ask, which an old world cannot make
// wrong.
func (p *plan) asksOnly() bool {
	for _, step := range p.Steps {
		for _, chain := range step {
			if slices.ContainsFunc(chain, changes) {
				return false
			}
		}
	}
	return true
}

// changes reports whether an action does more than ask.
func changes(a action.Action) bool { return a.Verb != action.Exec || !asks(a.Command.Name) }

// lookAgainFor wakes the key for what no event tells.
func (p *plan) lookAgainFor(f *facts) {
	for _, m := range f.members {
		if m.node.Missing {
			p.LookAgain(f.watch.Deadline(m.node.MissingSince, fenceAfter).Sub(f.now))
		}
		if f.serves() {
			p.LookAgain(m.retryAt.Sub(f.now))
		}
		if !m.askedAt.IsZero() && !m.notAnswering {
			p.LookAgain(f.watch.Deadline(m.askedAt, answersWithin).Sub(f.now))
		}
		if (m.shown == primary || m.shown == secondary) && !podstate.Ready(m.pod) {
			p.LookAgain(m.unreadySince.Add(unreadyAfter).Sub(f.now))
		}
	}
	for _, c := range f.record.commands {
		p.LookAgain(strayUntil(c.StartedAt, c.BeginWithin).Sub(f.now))
		p.LookAgain(c.StartedAt.Add(c.Timeout.Duration).Sub(f.now))
	}
	for _, g := range f.record.granted {
		p.LookAgain(strayUntil(g.Since, g.BeginWithin).Sub(f.now))
	}
	p.LookAgain(drain{f}.deadline().Sub(f.now))
	p.LookAgain(f.config.target.Wait)
	p.LookAgain(f.causes.Again)
	if f.deleting() {
		p.LookAgain(f.deadline().Sub(f.now))
	}
}

// Questions about the object.

func (w *world) deleting() bool { return w.set.DeletionTimestamp != nil }

func (w *world) held() bool { return controllerutil.ContainsFinalizer(w.set, v1alpha1.FinalizerStop) }

// serves reports whether commands may be run.
func (w *world) serves() bool {
	if w.invalid != "" || w.namespaceGoes || w.letsGo() {
		return false
	}
	return w.deleting() || !w.set.Spec.Paused
}

// keeps reports whether the operator keeps pods and children as they should be.
func (w *world) keeps() bool { return w.invalid == "" && !w.namespaceGoes }

// wanted is how many members there should be: none of a set that goes, and none more while
// a stopped one may not come back.
func (w *world) wanted() int {
	if w.deleting() || w.tooFew() {
		return 0
	}
	return int(*w.set.Spec.Replicas)
}

// target is how many primaries there should be.
func (w *world) target() int {
	if w.wanted() == 0 {
		return 0
	}
	return max(1, int(primariesWanted(w.set)))
}

// tooFew reports whether a stopped set is to come back with fewer members than it had: the
// newest copy may be on one that is left out.
func (w *world) tooFew() bool {
	want := *w.set.Spec.Replicas
	if want <= 0 || want >= w.set.Status.RestoreReplicas {
		return false
	}
	if w.stateful == nil {
		return len(w.members) == 0
	}
	return *w.stateful.Spec.Replicas == 0
}

// configured reports whether the user gave that command.
func (w *world) configured(name string) bool {
	_, ok := w.set.Spec.Pod.Commands[name]
	return ok
}
