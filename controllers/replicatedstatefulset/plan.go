package replicatedstatefulset

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// plan is the result of decide: the wanted actions and the reasons that are reported with them.
type plan struct {
	engine.Plan

	// on is the input of the decision.
	on *facts
	// record is the record to store in the status: the record of the facts, changed by what this
	// plan does about copies that are given up or were seen in another pod.
	record record
	// risk states why the newest copy is not available. blind names the members whose sequence is
	// unknown.
	risk, blind string
	// uncompared names the former primary whose copy was not compared with that of the secondary
	// that this plan promotes. It is "" if there is none.
	uncompared string
	// handover states which member's role is handed over in this plan, and why.
	handover string

	// trial is the dry run that precedes the stop of a member that this plan recreates.
	trial action.Chain

	asked map[string]bool // pods to which this plan sends a query
	sent  bool            // whether this plan sends a mutating command
	// proven is true if another member is known to have all data of the member that this plan
	// stops.
	proven bool
	// newTemplate is true if the StatefulSet gets a template from which members must be recreated.
	newTemplate bool
	// configEvent is the reason of the event about the configuration stamp of the StatefulSet. It
	// is "" if there is no event.
	configEvent string
	// looksLive is true if the decision needs a live read of the cluster.
	looksLive bool
	// notInPlace states why a member is recreated whose resources were to be resized in place.
	notInPlace string
}

// rules are in order of importance. No action starts before new observations are on record.
var rules = []engine.Rule[*facts, plan]{
	{Name: "release pods of an unmanaged set", Act: letGo},
	{Name: "store the record", Act: keepRecord},
	{Name: "release pods that have stopped", Act: release, Mode: engine.Beside},
	{Name: "protect pods that may run", Act: protect, Mode: engine.Beside},
	{Name: "restore the labels of pods", Act: keepLabels, Mode: engine.Beside},
	{Name: "update the role labels", Act: showRoles, Mode: engine.Beside},
	{Name: "query the status of members", Act: askStatus, Mode: engine.Beside},
	{Name: "add the finalizer to the object", Act: keepObject},
	{Name: "create and repair children", Act: keepChildren, Mode: engine.Beside},
	{Name: "remove labels from pods that are not members", Act: removeLabels, Mode: engine.Beside},
	{Name: "expand claims", Act: growClaims, Mode: engine.Beside},
	{Name: "delete pods on machines that are off", Act: deleteFenced},
	{Name: "resolve commands with unknown outcome", Act: endUnseen},
	{Name: "stop failed members", Act: repair},
	{Name: "stop terminating primaries", Act: stopTerminating},
	{Name: "finish the deletion", Act: finishDeletion},
	{Name: "scale", Act: scale},
	{Name: "complete orders", Act: takeOverrides},
	{Name: "stop surplus primaries", Act: stopSurplus},
	{Name: "recreate outdated pods without a running member", Act: renewIdle},
	{Name: "start the first primary", Act: startFirst},
	{Name: "start another primary", Act: startPrimary},
	{Name: "start a secondary", Act: startSecondary},
	{Name: "switch over to the ordered member", Act: switchOver},
	{Name: "park a primary", Act: parkPrimary},
	{Name: "hand over primaries that leave their Node", Act: leaveCordoned},
	{Name: "finish updates in place", Act: finishInPlace},
	{Name: "update a pod", Act: renew},
	{Name: "reopen the eviction budget", Act: openBudget, Mode: engine.Beside},
}

// decide returns the plan for a world. It is pure: the same world gives the same plan.
func decide(w *world) plan {
	f := derive(w)
	p := plan{on: f, record: f.record, asked: map[string]bool{}}
	p.Undone = f.undone
	engine.Decide(rules, f, &p, &p.Plan)
	p.lookAgainFor(f)
	return p
}

// asksOnly reports whether the plan only sends queries. Queries are safe to decide on stale data.
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

// changes reports whether an action does more than send a query.
func changes(a action.Action) bool { return a.Verb != action.Exec || !asks(a.Command.Name) }

// lookAgainFor requeues the set for deadlines that no watch event announces.
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
	p.LookAgain(evictionDeadline(f).Sub(f.now))
	p.LookAgain(f.config.target.Wait)
	p.LookAgain(f.causes.Again)
	if f.deleting() {
		p.LookAgain(f.deadline().Sub(f.now))
	}
}

func (w *world) deleting() bool { return w.set.DeletionTimestamp != nil }

func (w *world) held() bool { return controllerutil.ContainsFinalizer(w.set, v1alpha1.FinalizerStop) }

// serves reports whether the operator may run commands.
func (w *world) serves() bool {
	if w.invalid != "" || w.namespaceGoes || w.letsGo() {
		return false
	}
	return w.deleting() || !w.set.Spec.Paused
}

// keeps reports whether the operator maintains pods and children.
func (w *world) keeps() bool { return w.invalid == "" && !w.namespaceGoes }

// wanted returns the wanted number of members. It is 0 while the set is being deleted, and while a
// stopped set may not start (see tooFew).
func (w *world) wanted() int {
	if w.deleting() || w.tooFew() {
		return 0
	}
	return int(*w.set.Spec.Replicas)
}

// target returns the wanted number of primaries.
func (w *world) target() int {
	if w.wanted() == 0 {
		return 0
	}
	return max(1, int(primariesWanted(w.set)))
}

// tooFew reports whether a stopped set would restart with fewer members than it had. The newest
// copy may be on one of the missing members.
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

// configured reports whether the spec has the command.
func (w *world) configured(name string) bool {
	return hasCommand(w.set, name)
}
