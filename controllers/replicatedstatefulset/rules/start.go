package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// startFirst starts the first primary while no member may be primary: the best running secondary,
// or if none runs, the member with the newest copy.
func startFirst(f *facts.Facts, p *Plan) {
	if !facts.ChoosesFirst(f) {
		return
	}
	if wait := startUnderWay(f); wait != "" {
		p.WaitFor(v1alpha1.ReasonWaitingForCommand, wait)
		return
	}
	if foreign := f.Among(isForeignAndMayRun); len(foreign) > 0 {
		p.WaitFor(
			v1alpha1.ReasonWaitingForStop,
			"pods of another object may run as primary: "+facts.NamesOf(foreign),
		)
		return
	}
	unsaid := f.WithoutStatus()
	o := openOrderOf(f, v1alpha1.OrderSeedFrom)
	if m := f.Named(o.name); m != nil && m.Startable() && !slices.ContainsFunc(unsaid, neverAsked) && !o.isSpent() {
		seedOrdered(f, p, m, o)
		return
	}
	if len(unsaid) > 0 {
		awaitStatus(f, p, "waiting for a response from status", unsaid)
		return
	}
	if names := leaveUnderWay(f); names != "" {
		p.WaitFor(v1alpha1.ReasonSeeding, "waiting for the end of leave in "+names+", which may have the newest copy")
		return
	}
	running := f.Among((*facts.Member).IsSecondary)
	if slices.ContainsFunc(running, func(m *facts.Member) bool { return !m.Parked }) {
		succeed(f, p, running)
		return
	}
	seed(f, p)
}

// isForeignAndMayRun reports whether a pod that does not belong to this object may run as primary.
func isForeignAndMayRun(m *facts.Member) bool { return !m.Owned && !facts.Stopped(m) }

// startUnderWay states which start on record blocks the next one. It is "" if there is none.
// Members start one after another. But a start as secondary does not block if there is no primary,
// because it may be waiting for one, or if its Node is unreachable.
func startUnderWay(f *facts.Facts) string {
	for _, c := range f.Record.Commands {
		if spec.StartsPrimary(c.Name) || blocksStarts(f, &c) {
			return fmt.Sprintf("waiting for command %s in %s", c.Name, c.Pod)
		}
	}
	return ""
}

// blocksStarts reports whether a pending start as secondary blocks other starts.
func blocksStarts(f *facts.Facts, c *v1alpha1.RunningCommand) bool {
	if c.Name != v1alpha1.CommandSecondary || !f.Record.HasGrants() {
		return false
	}
	m := f.ByUID(c.UID)
	return m == nil || !m.NodeUnreachable()
}

// seedOrdered starts the member that a user ordered. Newer copies on record are given up: their
// sequences are removed from the record, so that they no longer count as missing.
func seedOrdered(f *facts.Facts, p *Plan, m *facts.Member, o openOrder) {
	before := p.Record
	p.Record.Versions = notNewerThan(f, m)
	p.Record.Orders = o.begin(p.Record.Orders, nil)
	if p.startFirstPrimary(f, m, "as requested"); !p.writesRecord {
		p.Record = before
	}
}

// notNewerThan returns the recorded versions that are not newer than the member's copy.
func notNewerThan(f *facts.Facts, m *facts.Member) []v1alpha1.Sequence {
	r, _ := m.Answer(v1alpha1.CommandSequence)
	n, _ := record.SequenceOf(r)
	return slices.DeleteFunc(
		slices.Clone(f.Record.Versions),
		func(v v1alpha1.Sequence) bool { return record.ParseSequence(v) > n },
	)
}

// succeed promotes the running secondary with the newest copy, after the loss of the last primary.
// A secondary whose sequence is unknown blocks this, and members that do not run may block it too
// (search).
func succeed(f *facts.Facts, p *Plan, running []*facts.Member) {
	if old := withOldStatus(f, running); len(old) > 0 && !slices.Contains(running, f.ByUID(f.LossOf)) {
		for _, m := range old {
			p.ask(f, m, v1alpha1.CommandStatus)
		}
		awaitStatus(f, p, "no response from status since the last primary was lost", old)
		return
	}
	p.askVersions(f, running)
	all := copiesOf(running)
	p.SequenceUnknown = cmp.Or(all.unknownNames(), p.SequenceUnknown)
	if !all.answered() || all.unknownNames() != "" {
		p.WaitFor(
			v1alpha1.ReasonSeeding,
			"waiting for a response from sequence in "+facts.NamesOf(running),
		)
		return
	}
	sequence := all[0].Version.Sequence
	if p.awaitHeld(f, running, sequence) {
		return
	}
	if newest, _ := f.Record.Newest(); f.IsTooNew(newest, sequence) {
		p.Risk = newerOnRecord(f, sequence)
		startReturned(f, p)
		return
	}
	if result := (search{Facts: f, running: running, sequence: sequence}).find(); !result.isNothing() {
		p.actOnSearch(f, result)
		if result.blocks {
			return
		}
	}
	promote(f, p, all.newest())
}

// promote promotes one of several equally new secondaries: the one that a user ordered, or the best
// placed one (comparePlacement).
func promote(f *facts.Facts, p *Plan, newest copies) {
	o := openOrderOf(f, v1alpha1.OrderSwitchoverTo)
	wanted := o.name
	if m := f.Named(wanted); m != nil && !slices.Contains(newest, m) {
		// The order ends now. Otherwise its switchover would be attempted repeatedly.
		why := newest[0].Name() + " has newer data"
		if m.State != record.Secondary {
			why = "it is not running as secondary"
		}
		p.endOrder(o, facts.ReasonRefused, fmt.Sprintf("%s was not promoted: %s. The former primary was already stopped or demoted for it; promoting %s",
			wanted, why, newest[0].Name()))
		return
	}
	slices.SortStableFunc(newest, func(a, b *facts.Member) int {
		return cmp.Or(
			boolToInt(b.Name() == wanted)-boolToInt(a.Name() == wanted),
			comparePlacement(b, a),
		)
	})
	if m := newest.startable(); m != nil {
		before := p.Record
		if f.LimitsLoss() { // what is lost must not count as missing
			p.Record.Versions = notNewerThan(f, m)
		}
		p.startFirstPrimary(f, m, fmt.Sprintf("it has the newest copy of the running members, sequence %d", m.Version.Sequence))
		if !p.writesRecord {
			p.Record = before
		}
		p.noteNotCompared(f, m)
		return
	}
	p.waitForNewest(newest)
}

// withOldStatus returns the members whose last status result is older than the loss of the last
// primary. They may have lost their connection to it long before, and be far behind. That does not matter
// if the former primary is one of the running secondaries, because their sequences are compared with its
// sequence.
func withOldStatus(f *facts.Facts, members []*facts.Member) (old []*facts.Member) {
	for _, m := range members {
		r, ok := m.Answer(v1alpha1.CommandStatus)
		if !ok || !r.Began.After(f.LossAt) {
			old = append(old, m)
		}
	}
	return old
}

// startReturned starts an idle member, although secondaries run, if no copy on record is newer than
// its copy. It is called while the copies of all running secondaries are older than one on record.
func startReturned(f *facts.Facts, p *Plan) {
	idlers := f.Candidates(record.Idle)
	if len(idlers) == 0 {
		return
	}
	p.askVersions(f, idlers)
	first := copiesOf(idlers)[0]
	if first.Version.Known && newerOnRecord(f, first.Version.Sequence) == "" {
		p.Risk = ""
		p.startFirstPrimary(
			f,
			first,
			fmt.Sprintf("the newest copy is available again, sequence %d", first.Version.Sequence),
		)
	}
}

// seed starts the newest copy. All wanted members, or with seeding Quorum a majority, must report
// their sequence first.
func seed(f *facts.Facts, p *Plan) {
	present := f.Among(func(m *facts.Member) bool {
		runsParked := m.Parked && m.IsSecondary()
		return (m.IsIdle() || runsParked) && !m.ScaledDown
	})
	p.askVersions(f, present)
	all := copiesOf(present)
	if f.Set.Spec.Seeding == v1alpha1.SeedingQuorum {
		all = all.matching(func(m *facts.Member) bool { return m.Version.Known })
	}
	missing := missingOf(f, p, all)
	p.SequenceUnknown = all.unknownNames()
	switch {
	case missing > 0:
		p.WaitFor(
			v1alpha1.ReasonWaitingForPods,
			fmt.Sprintf(
				"waiting for the data version (command sequence) of %d of %d members",
				missing, f.Wanted(),
			),
		)
		return
	case p.SequenceUnknown != "":
		p.WaitFor(v1alpha1.ReasonSeeding, all.whyWaiting(p.SequenceUnknown))
		return
	case !all.answered():
		p.WaitFor(v1alpha1.ReasonSeeding, all.whyWaiting(""))
		return
	}
	if p.Risk = newerOnRecord(f, all[0].Version.Sequence); p.Risk != "" {
		return
	}
	if m := all.newest().startable(); m != nil {
		p.startFirstPrimary(f, m, fmt.Sprintf("the newest copy, sequence %d", m.Version.Sequence))
		return
	}
	p.waitForNewest(all.newest())
}

// missingOf returns how many more copies are needed before one is seeded: those of all wanted
// members, or of a majority.
func missingOf(f *facts.Facts, p *Plan, all copies) int {
	have := len(all.matching(func(m *facts.Member) bool { return m.Ordinal < f.Wanted() }))
	if f.Set.Spec.Seeding == v1alpha1.SeedingQuorum {
		return f.Majority() - have
	}
	missing := f.Wanted() - have
	surplus := len(f.Members) > f.Wanted() && len(f.Among(func(m *facts.Member) bool { return m.Retained })) == 0
	if surplus && !p.leavesLater {
		missing = max(missing, 1) // surplus members are about to be removed, or have ordinals that are not wanted
	}
	return missing
}

// startPrimary starts another primary: it promotes the best secondary, or starts the best idle
// member if there is none.
func startPrimary(f *facts.Facts, p *Plan) {
	if !f.MayStartMembers() || !f.Record.HasGrants() || f.Record.Primaries() >= f.WantedPrimaries() {
		return
	}
	if wait := startUnderWay(f); wait != "" {
		p.WaitFor(v1alpha1.ReasonWaitingForCommand, wait)
		return
	}
	if len(f.Primaries()) == 0 {
		p.WaitFor(v1alpha1.ReasonWaitingForStop, f.WhoMayRun())
		return
	}
	if unsaid := f.WithoutStatus(); len(unsaid) > 0 {
		p.WaitFor(v1alpha1.ReasonStarting, "waiting for a response from status: "+facts.NamesOf(unsaid))
		return
	}
	name, candidates := v1alpha1.CommandPromote, f.Candidates(record.Secondary)
	if len(candidates) == 0 {
		name, candidates = v1alpha1.CommandPrimary, f.Candidates(record.Idle)
	}
	startBest(f, p, candidates, name, v1alpha1.CommandPrimary, "another primary is wanted")
}

// startSecondary starts an idle member as secondary once the primaries run.
func startSecondary(f *facts.Facts, p *Plan) {
	if !f.MayStartMembers() || !f.Configured(v1alpha1.CommandSecondary) {
		return
	}
	if f.Record.Primaries() < f.WantedPrimaries() || len(f.Primaries()) == 0 {
		return
	}
	if wait := startUnderWay(f); wait != "" {
		p.WaitFor(v1alpha1.ReasonWaitingForCommand, wait)
		return
	}
	startBest(f, p, f.Candidates(record.Idle), v1alpha1.CommandSecondary, v1alpha1.CommandSecondary, "another secondary is wanted")
}

// startBest starts the member that a user ordered to be primary. Otherwise it starts a member with
// the newest copy, preferably a well placed one. Members with an unknown sequence come last,
// because they get their data from a primary.
func startBest(f *facts.Facts, p *Plan, candidates []*facts.Member, name, instead, why string) {
	if len(candidates) == 0 {
		return
	}
	p.askVersions(f, candidates)
	all := copiesOf(candidates)
	if !all.answered() {
		p.WaitFor(
			v1alpha1.ReasonStarting,
			"waiting for a response from sequence in "+facts.NamesOf(candidates),
		)
		return
	}
	m := all.pick(openOrderOf(f, v1alpha1.OrderSwitchoverTo).name)
	p.Send(f, m, name, instead, m.Name()+": "+why)
}

// leaveUnderWay names the reachable members in which leave may still run. Their copies are unknown, and
// may be the newest. It is "" if there are none.
func leaveUnderWay(f *facts.Facts) string {
	var names []string
	for _, m := range f.Members {
		if m.Command != nil && m.Command.Name == v1alpha1.CommandLeave && m.Reachable() && !m.Terminating() {
			names = append(names, m.Name())
		}
	}
	return strings.Join(names, ", ")
}
