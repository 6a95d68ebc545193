package rules

import (
	"slices"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Plan is the result of Decide: the wanted actions and the reasons that are reported with them.
type Plan struct {
	engine.Plan

	// On is the input of the decision.
	On *facts.Facts
	// Record is the record to store in the status: the record of the facts, changed by what this
	// plan does about copies that are given up or were seen in another pod.
	Record record.Record
	// Risk states why the newest copy is not available. SequenceUnknown names the members whose
	// sequence is unknown.
	Risk, SequenceUnknown string
	// Uncompared names the former primary whose copy was not compared with that of the secondary
	// that this plan promotes. It is "" if there is none.
	Uncompared string
	// Handover states which member's role is handed over in this plan, and why.
	Handover string

	// dryRun is the dry run that precedes the stop of a member that this plan recreates.
	dryRun action.Chain

	// Asked are the pods to which this plan sends a query, by name.
	Asked map[string]bool
	// writesRecord is true if this plan writes the record, with or without a command. A second
	// write in the same pass would be bound to an outdated version of the object.
	writesRecord bool
	// proven is true if another member is known to have all data of the member that this plan
	// stops.
	proven bool
	// leavesLater is true if a scale-down waits only until members have left. They can leave when a
	// member is primary, so the first primary is started before.
	leavesLater bool
	// NewTemplate is true if the StatefulSet gets a template from which members must be recreated.
	NewTemplate bool
	// ConfigEvent is the reason of the event about the configuration stamp of the StatefulSet. It
	// is "" if there is no event.
	ConfigEvent string
	// LooksLive is true if the decision depends on data that the cache does not have. The pass is
	// then repeated on live objects, even if the plan only sends queries.
	LooksLive bool
	// NotInPlace states why a member is recreated whose resources were to be resized in place.
	NotInPlace string
}

// AsksOnly reports whether the plan only sends queries. Queries are safe to decide on stale data.
func (p *Plan) AsksOnly() bool {
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
func changes(a action.Action) bool { return a.Verb != action.Exec || !spec.Asks(a.Command.Name) }

// lookAgainFor requeues the set for deadlines that no watch event announces.
func (p *Plan) lookAgainFor(f *facts.Facts) {
	for _, m := range f.Members {
		if m.Node.Missing {
			p.LookAgain(f.Watch.Deadline(m.Node.MissingSince, spec.FenceAfter).Sub(f.Now))
		}
		if f.MayRunCommands() {
			p.LookAgain(m.RetryAt.Sub(f.Now))
		}
		if !m.AskedAt.IsZero() && !m.NotAnswering {
			p.LookAgain(f.Watch.Deadline(m.AskedAt, spec.AnswersWithin).Sub(f.Now))
		}
		if (m.Shown == record.Primary || m.Shown == record.Secondary) && !podstate.Ready(m.Pod) {
			p.LookAgain(m.ReadyChangedAt.Add(spec.UnreadyAfter).Sub(f.Now))
		}
		if m.Serves() {
			p.LookAgain(m.ReadyChangedAt.Add(f.MinReady()).Sub(f.Now)) // for status.availableReplicas
			p.LookAgain(f.AvailableAt(m).Sub(f.Now))
		}
	}
	for _, c := range f.Record.Commands {
		p.LookAgain(spec.StrayUntil(c.StartedAt, c.BeginWithin).Sub(f.Now))
		p.LookAgain(c.StartedAt.Add(c.Timeout.Duration).Sub(f.Now))
	}
	for _, g := range f.Record.Granted {
		p.LookAgain(spec.StrayUntil(g.Since, g.BeginWithin).Sub(f.Now))
	}
	p.LookAgain(evictionDeadline(f).Sub(f.Now))
	p.LookAgain(f.Config.Target.Wait)
	p.LookAgain(f.Causes.Again)
	if f.Deleting() {
		p.LookAgain(f.Deadline().Sub(f.Now))
	}
}
