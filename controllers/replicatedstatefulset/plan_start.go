package replicatedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// startCheck states why a member may not be started or take a role. It returns "" if the check
// passes.
type startCheck func(*facts, *member) string

// startChecks are all checks that a member must pass. The first failure is the reported reason.
var startChecks = []startCheck{
	notReachable, beingDeleted, leaving, inMaintenance, commandRunning, stopNeeded, stateUnfit, notForThisPod, unprotected, backingOff,
}

// whyNotStartable returns the reason of the first failed check. It is "" if the member may be
// started or take a role.
func whyNotStartable(f *facts, m *member) string {
	for _, check := range startChecks {
		if why := check(f, m); why != "" {
			return why
		}
	}
	return ""
}

func notReachable(_ *facts, m *member) string {
	switch {
	case m.lost():
		return "its Node is unreachable"
	case !m.owned:
		return "its pod belongs to another object"
	case !m.reachable():
		return "its container is not running"
	}
	return ""
}

func beingDeleted(_ *facts, m *member) string {
	if m.terminating() {
		return "its pod is being deleted"
	}
	return ""
}

func leaving(_ *facts, m *member) string {
	if m.leaves {
		return "it is being scaled down"
	}
	return ""
}

func commandRunning(_ *facts, m *member) string {
	if m.command != nil {
		return "waiting for command " + m.command.Name
	}
	return ""
}

func stopNeeded(_ *facts, m *member) string {
	if m.needsStop() {
		return m.failure.Command + " failed, and the member must be stopped first"
	}
	return ""
}

func stateUnfit(_ *facts, m *member) string {
	switch m.state {
	case idle, secondary:
		return ""
	case primary:
		return "it is primary"
	case failed:
		return "status reports that it failed"
	}
	return "status has not responded"
}

func notForThisPod(f *facts, m *member) string {
	if m.cannotRunHere {
		return fmt.Sprintf(
			"%s reported with exit code %d that the member cannot run in this pod",
			m.failure.Command, m.failure.Code,
		)
	}
	return ""
}

// unprotected checks for the finalizer: a force-deleted pod must stay visible until it has stopped.
func unprotected(f *facts, m *member) string {
	if exclusive(f.set) && !m.protected() {
		return "its pod has no finalizer yet"
	}
	return ""
}

func backingOff(f *facts, m *member) string {
	if f.now.Before(m.retryAt) {
		return "backing off until " + m.retryAt.UTC().Format("15:04:05")
	}
	return ""
}

// startFirst starts the first primary while no member may be primary: the best running secondary,
// or if none runs, the member with the newest copy.
func startFirst(f *facts, p *plan) {
	if !choosesFirst(f) {
		return
	}
	if wait := f.startUnderWay(); wait != "" {
		p.WaitFor(v1alpha1.ReasonWaitingForCommand, wait)
		return
	}
	if foreign := f.among(isForeignAndRuns); len(foreign) > 0 {
		p.WaitFor(
			v1alpha1.ReasonWaitingForStop,
			"pods of another object may run as primary: "+namesOf(foreign),
		)
		return
	}
	unsaid := f.unsaid()
	o := overrideOf(f, v1alpha1.OrderSeedFrom)
	if m := f.named(o.name); m != nil && m.startable() && !slices.ContainsFunc(unsaid, neverAsked) && !o.isSpent() {
		seedAsTold(f, p, m, o)
		return
	}
	if len(unsaid) > 0 {
		awaitStatus(f, p, "waiting for a response from status", unsaid)
		return
	}
	running := f.among((*member).isSecondary)
	if slices.ContainsFunc(running, func(m *member) bool { return !m.parked }) {
		succeed(f, p, running)
		return
	}
	seed(f, p)
}

// choosesFirst reports whether a primary is wanted and no member may be primary.
func choosesFirst(f *facts) bool {
	return f.starts() && f.target() > 0 && !f.record.hasGrants()
}

// isForeignAndRuns reports whether a pod that does not belong to this object may run as primary.
func isForeignAndRuns(m *member) bool { return !m.owned && !stopped(m) }

// startUnderWay states which pending start blocks the next one. It is "" if there is none. A start
// as secondary does not block if there is no primary, or its node is unreachable.
func (f *facts) startUnderWay() string {
	for _, c := range f.record.commands {
		if startsPrimary(c.Name) || f.holdsUp(&c) {
			return fmt.Sprintf("waiting for command %s in %s", c.Name, c.Pod)
		}
	}
	return ""
}

// holdsUp reports whether a pending start as secondary blocks other starts.
func (f *facts) holdsUp(c *v1alpha1.RunningCommand) bool {
	if c.Name != v1alpha1.CommandSecondary || !f.record.hasGrants() {
		return false
	}
	m := f.byUID(c.UID)
	return m == nil || !m.lost()
}

// unsaid returns the running members that have not answered status in this container. No member
// becomes primary before they have.
func (all members) unsaid() []*member { return all.among(isUnsaid) }

func isUnsaid(m *member) bool {
	if m.state != unknown || m.command != nil || m.terminating() {
		return false
	}
	return m.reachable() && !m.answers(v1alpha1.CommandStatus)
}

// neverAsked reports whether no status command was sent to this container. A member that does not
// answer does not block a user's order.
func neverAsked(m *member) bool {
	_, asked := m.result(v1alpha1.CommandStatus)
	return !asked
}

// seedAsTold starts the member that a user ordered. Newer copies that are lost by this no longer
// count as missing.
func seedAsTold(f *facts, p *plan, m *member, o override) {
	before := p.record
	p.record.versions = f.notNewerThan(m)
	p.record.orders = o.begin(p.record.orders, nil)
	if p.start(f, m, "as requested"); !p.sent {
		p.record = before
	}
}

// notNewerThan returns the recorded versions that are not newer than the member's copy.
func (f *facts) notNewerThan(m *member) []v1alpha1.Sequence {
	r, _ := m.answer(v1alpha1.CommandSequence)
	n, _ := sequenceOf(r)
	return slices.DeleteFunc(
		slices.Clone(f.record.versions),
		func(v v1alpha1.Sequence) bool { return parseSequence(v) > n },
	)
}

// succeed promotes the best running secondary. A secondary whose sequence is unknown blocks this,
// and members that do not run may block it too (search).
func succeed(f *facts, p *plan, running []*member) {
	if old := f.unheard(running); len(old) > 0 {
		for _, m := range old {
			p.ask(f, m, v1alpha1.CommandStatus)
		}
		awaitStatus(f, p, "no response from status since the last primary was lost", old)
		return
	}
	p.askVersions(f, running)
	all := copiesOf(running)
	p.blind = cmp.Or(all.unknown(), p.blind)
	if !all.answered() || all.unknown() != "" {
		p.WaitFor(
			v1alpha1.ReasonSeeding,
			"waiting for a response from sequence in "+namesOf(running),
		)
		return
	}
	sequence := all[0].version.sequence
	if p.awaitHeld(f, running, sequence) {
		return
	}
	if risk := f.outdone(sequence); risk != "" {
		p.risk = risk
		startReturned(f, p)
		return
	}
	if elsewhere := (search{facts: f, running: running, sequence: sequence}).find(); !elsewhere.isNothing() {
		p.follow(f, elsewhere)
		if elsewhere.holdsUp {
			return
		}
	}
	promote(f, p, all.newest())
}

// promote promotes one of several equally new secondaries: the one that a user ordered, or the best
// placed one (isBetterPlaced).
func promote(f *facts, p *plan, newest copies) {
	o := overrideOf(f, v1alpha1.OrderSwitchoverTo)
	wanted := o.name
	if m := f.named(wanted); m != nil && !slices.Contains(newest, m) {
		// The order ends now. Otherwise its switchover would be attempted repeatedly.
		why := newest[0].name() + " has newer data"
		if m.state != secondary {
			why = "it is not running as secondary"
		}
		p.takeOverride(o, reasonRefused, fmt.Sprintf("%s was not promoted: %s. The former primary was already stopped or demoted for it; promoting %s",
			wanted, why, newest[0].name()))
		return
	}
	slices.SortStableFunc(newest, func(a, b *member) int {
		return cmp.Or(
			truth(b.name() == wanted)-truth(a.name() == wanted),
			isBetterPlaced(b, a),
		)
	})
	if m := newest.startable(); m != nil {
		p.start(f, m, fmt.Sprintf("it has the newest copy of the running members, sequence %d", m.version.sequence))
		p.noteUncompared(f, m)
		return
	}
	p.waitForNewest(newest)
}

// cannotStart states why the member with the newest copy is not started.
func cannotStart(m *member) string {
	return fmt.Sprintf("cannot start %s, which has the newest data: %s", m.name(), m.hindrance)
}

// unheard returns the members whose last status result is older than the loss of the last primary.
// They may have lost their connection to it long before, and be far behind.
func (f *facts) unheard(members []*member) (old []*member) {
	for _, m := range members {
		r, ok := m.answer(v1alpha1.CommandStatus)
		if !ok || !r.Began.After(f.lossAt) {
			old = append(old, m)
		}
	}
	return old
}

// startReturned starts an idle member, although secondaries run, if it has the newest copy on
// record, which was missing before.
func startReturned(f *facts, p *plan) {
	idlers := f.candidates(idle)
	if len(idlers) == 0 {
		return
	}
	p.askVersions(f, idlers)
	first := copiesOf(idlers)[0]
	if first.version.known && f.outdone(first.version.sequence) == "" {
		p.risk = ""
		p.start(
			f,
			first,
			fmt.Sprintf("the newest copy is available again, sequence %d", first.version.sequence),
		)
	}
}

// seed starts the newest copy. All wanted members, or with seeding Quorum a majority, must report
// their sequence first.
func seed(f *facts, p *plan) {
	present := f.among(func(m *member) bool {
		runsParked := m.parked && m.isSecondary()
		return (m.isIdle() || runsParked) && !m.leaves
	})
	p.askVersions(f, present)
	all := copiesOf(present)
	if f.set.Spec.Seeding == v1alpha1.SeedingQuorum {
		all = all.those(func(m *member) bool { return m.version.known })
	}
	missing := f.missingOf(all)
	p.blind = all.unknown()
	switch {
	case missing > 0:
		p.WaitFor(
			v1alpha1.ReasonWaitingForPods,
			fmt.Sprintf(
				"waiting for the data version (command sequence) of %d of %d members",
				missing, f.wanted(),
			),
		)
		return
	case p.blind != "":
		p.WaitFor(v1alpha1.ReasonSeeding, all.whyWaiting(p.blind))
		return
	case !all.answered():
		p.WaitFor(v1alpha1.ReasonSeeding, all.whyWaiting(""))
		return
	}
	if p.risk = f.outdone(all[0].version.sequence); p.risk != "" {
		return
	}
	if m := all.newest().startable(); m != nil {
		p.start(f, m, fmt.Sprintf("the newest copy, sequence %d", m.version.sequence))
		return
	}
	p.waitForNewest(all.newest())
}

// missingOf returns how many more copies are needed before one is seeded: those of all wanted
// members, or of a majority.
func (f *facts) missingOf(all copies) int {
	have := len(all.those(func(m *member) bool { return m.ordinal < f.wanted() }))
	if f.set.Spec.Seeding == v1alpha1.SeedingQuorum {
		return f.majority() - have
	}
	missing := f.wanted() - have
	if len(f.members) > f.wanted() && len(f.among(func(m *member) bool { return m.retained })) == 0 {
		missing = max(missing, 1) // surplus members are about to be removed, or have ordinals that are not wanted
	}
	return missing
}

// majority returns the min number of members that is more than half of the wanted ones.
func (w *world) majority() int {
	return w.wanted()/2 + 1
}

// startPrimary starts another primary: it promotes the best secondary, or starts the best idle
// member if there is none.
func startPrimary(f *facts, p *plan) {
	if !f.starts() || !f.record.hasGrants() || f.record.primaries() >= f.target() {
		return
	}
	if wait := f.startUnderWay(); wait != "" {
		p.WaitFor(v1alpha1.ReasonWaitingForCommand, wait)
		return
	}
	if len(f.primaries()) == 0 {
		p.WaitFor(v1alpha1.ReasonWaitingForStop, f.whoMayRun())
		return
	}
	if unsaid := f.unsaid(); len(unsaid) > 0 {
		p.WaitFor(v1alpha1.ReasonStarting, "waiting for a response from status: "+namesOf(unsaid))
		return
	}
	name, candidates := v1alpha1.CommandPromote, f.candidates(secondary)
	if len(candidates) == 0 {
		name, candidates = v1alpha1.CommandPrimary, f.candidates(idle)
	}
	startBest(f, p, candidates, name, v1alpha1.CommandPrimary, "another primary is wanted")
}

// startSecondary starts an idle member as secondary once the primaries run.
func startSecondary(f *facts, p *plan) {
	if !f.starts() || !f.configured(v1alpha1.CommandSecondary) {
		return
	}
	if f.record.primaries() < f.target() || len(f.primaries()) == 0 {
		return
	}
	if wait := f.startUnderWay(); wait != "" {
		p.WaitFor(v1alpha1.ReasonWaitingForCommand, wait)
		return
	}
	startBest(f, p, f.candidates(idle), v1alpha1.CommandSecondary, v1alpha1.CommandSecondary, "another secondary is wanted")
}

// startBest starts the member that a user ordered to be primary. Otherwise it starts a member with
// the newest copy, preferably a well placed one. Members with an unknown sequence come last,
// because they get their data from a primary.
func startBest(f *facts, p *plan, candidates []*member, name, instead, why string) {
	if len(candidates) == 0 {
		return
	}
	p.askVersions(f, candidates)
	all := copiesOf(candidates)
	if !all.answered() {
		p.WaitFor(
			v1alpha1.ReasonStarting,
			"waiting for a response from sequence in "+namesOf(candidates),
		)
		return
	}
	m := all.named(overrideOf(f, v1alpha1.OrderSwitchoverTo).name)
	p.send(f, m, name, instead, m.name()+": "+why)
}

// whoMayRun names the members that may be primary and are not confirmed as primary.
func (f *facts) whoMayRun() string {
	var names []string
	for _, g := range f.record.granted {
		if m := f.byUID(g.UID); m == nil || !m.isPrimary() {
			names = append(names, g.Pod)
		}
	}
	return "waiting for members that may still be primary to stop: " + strings.Join(names, ", ")
}
