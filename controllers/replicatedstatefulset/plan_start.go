package replicatedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// startCheck says what keeps a member from being told to start, or to take a role; "" if it
// passes.
type startCheck func(*facts, *member) string

// startChecks are all that a member must pass. The first that it does not pass is the
// reason that people read.
var startChecks = []startCheck{
	notReachable, beingDeleted, leaving, inMaintenance, commandRunning, stopNeeded, stateUnfit, notForThisPod, unprotected, backingOff,
}

// whyNotStartable is what the first check says that a member does not pass; "" if it may be
// told to start, or to take a role.
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
		return "its Node does not answer"
	case !m.owned:
		return "its pod is not this object's"
	case !m.reachable():
		return "its container does not run"
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
		return m.command.Name + " has not ended, as far as is known"
	}
	return ""
}

func stopNeeded(_ *facts, m *member) string {
	if m.needsStop() {
		return m.failure.Command + " failed, and it has to be stopped first"
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
		return "status says that it failed"
	}
	return "status has not answered"
}

func notForThisPod(f *facts, m *member) string {
	if m.cannotRunHere {
		return fmt.Sprintf(
			"%s said with exit code %d that it cannot run in this pod",
			m.failure.Command, m.failure.Code,
		)
	}
	return ""
}

// unprotected: a pod that is deleted by force must stay visible until it has stopped.
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

// startFirst starts the first primary: the best of the secondaries that run, or where
// nothing runs the newest copy of all. No member may be primary then.
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
			"these are not this object's, and may run as primary: "+namesOf(foreign),
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
		awaitStatus(f, p, "status has not answered yet", unsaid)
		return
	}
	running := f.among((*member).isSecondary)
	if slices.ContainsFunc(running, func(m *member) bool { return !m.parked }) {
		succeed(f, p, running)
		return
	}
	seed(f, p)
}

// choosesFirst reports whether no member is primary or may be, and one is wanted.
func choosesFirst(f *facts) bool {
	return f.starts() && f.target() > 0 && !f.record.hasGrants()
}

// isForeignAndRuns reports whether a pod that is not this object's may run as primary.
func isForeignAndRuns(m *member) bool { return !m.owned && !stopped(m) }

// startUnderWay says which start is on its way, or ended unseen: the next one waits; "" if
// none is. Where there is no primary, or on a node that does not answer, a start as
// secondary holds up no other.
func (f *facts) startUnderWay() string {
	for _, c := range f.record.commands {
		if startsPrimary(c.Name) || f.holdsUp(&c) {
			return fmt.Sprintf("%s of %s has not ended, as far as is known", c.Name, c.Pod)
		}
	}
	return ""
}

// holdsUp reports whether a start as secondary is waited for.
func (f *facts) holdsUp(c *v1alpha1.RunningCommand) bool {
	if c.Name != v1alpha1.CommandSecondary || !f.record.hasGrants() {
		return false
	}
	m := f.byUID(c.UID)
	return m == nil || !m.lost()
}

// unsaid are members that run and have not said yet, in this container, what they are: none
// becomes primary beside them.
func (all members) unsaid() []*member { return all.among(isUnsaid) }

func isUnsaid(m *member) bool {
	if m.state != unknown || m.command != nil || m.terminating() {
		return false
	}
	return m.reachable() && !m.answers(v1alpha1.CommandStatus)
}

// neverAsked reports whether the member has not been asked yet, in this container, what it
// is. One that does not answer holds up no person.
func neverAsked(m *member) bool {
	_, asked := m.result(v1alpha1.CommandStatus)
	return !asked
}

// seedAsTold starts the member that a person named. Copies that are lost when it has an
// older one are not waited for again.
func seedAsTold(f *facts, p *plan, m *member, o override) {
	before := p.record
	p.record.versions = f.notNewerThan(m)
	p.record.orders = p.record.orders.begun(o, nil)
	if p.start(f, m, "as requested"); !p.sent {
		p.record = before
	}
}

// notNewerThan are the versions on record without those that are newer than a member's.
func (f *facts) notNewerThan(m *member) []v1alpha1.Sequence {
	r, _ := m.answer(v1alpha1.CommandSequence)
	n, _ := sequenceOf(r)
	return slices.DeleteFunc(
		slices.Clone(f.record.versions),
		func(v v1alpha1.Sequence) bool { return recorded(v) > n },
	)
}

// succeed promotes the best of the secondaries that run. One that said nothing of its copy
// holds this up, and so may those that do not run (search).
func succeed(f *facts, p *plan, running []*member) {
	if old := f.unheard(running); len(old) > 0 {
		for _, m := range old {
			p.ask(f, m, v1alpha1.CommandStatus)
		}
		awaitStatus(f, p, "status has not answered since the last primary went", old)
		return
	}
	p.askVersions(f, running)
	all := copiesOf(running)
	p.blind = cmp.Or(all.unknown(), p.blind)
	if !all.answered() || all.unknown() != "" {
		p.WaitFor(
			v1alpha1.ReasonSeeding,
			"sequence has not answered yet in all of "+namesOf(running),
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
	if elsewhere := (search{f, running, sequence}).find(); !elsewhere.isNothing() {
		p.follow(f, elsewhere)
		if elsewhere.holdsUp {
			return
		}
	}
	promote(f, p, all.newest())
}

// promote promotes one of secondaries that are equally new: the one that a person wants, or
// that was made from the present template, or is not to leave its Node.
func promote(f *facts, p *plan, newest copies) {
	o := overrideOf(f, v1alpha1.OrderSwitchoverTo)
	wanted := o.name
	if m := f.named(wanted); m != nil && !slices.Contains(newest, m) {
		// Now or never: else its turn would come again and again.
		why := newest[0].name() + " has newer data"
		if m.state != secondary {
			why = "it does not run as secondary"
		}
		p.takeOverride(o, reasonRefused, fmt.Sprintf("%s does not take over: %s. The old primary has stopped or was demoted for it already, and %s becomes primary",
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
		p.start(f, m, fmt.Sprintf("the newest of those that run, sequence %d", m.version.sequence))
		p.noteUncompared(f, m)
		return
	}
	p.waitForNewest(newest)
}

// cannotStart says why the member with the newest copy is not started.
func cannotStart(m *member) string {
	return fmt.Sprintf("cannot start %s, which has the newest data: %s", m.name(), m.hindrance)
}

// unheard are those of members whose answer to status is older than the loss of the last
// primary: they may have lost it long before, and be far behind.
func (f *facts) unheard(members []*member) (old []*member) {
	for _, m := range members {
		r, ok := m.answer(v1alpha1.CommandStatus)
		if !ok || !r.Began.After(f.lossAt) {
			old = append(old, m)
		}
	}
	return old
}

// startReturned starts an idle member beside secondaries that run, if it has the newest
// copy of all that were ever seen: the one that was missed is back.
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
			fmt.Sprintf("the newest copy is back, sequence %d", first.version.sequence),
		)
	}
}

// seed starts the newest copy of all. All wanted members have to say how new theirs are, or
// a majority of them.
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
				"nothing is started before %d more members, of %d, have said how new their copies are",
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

// missingOf is how many copies are missing before one is seeded: those of all wanted
// members, or of a majority.
func (f *facts) missingOf(all copies) int {
	have := len(all.those(func(m *member) bool { return m.ordinal < f.wanted() }))
	if f.set.Spec.Seeding == v1alpha1.SeedingQuorum {
		return f.majority() - have
	}
	missing := f.wanted() - have
	if len(f.members) > f.wanted() && len(f.among(func(m *member) bool { return m.retained })) == 0 {
		missing = max(missing, 1) // they go, or their ordinals do not fit
	}
	return missing
}

// majority is the least number of wanted members that are more than half of them.
func (w *world) majority() int {
	return w.wanted()/2 + 1
}

// startPrimary starts another primary beside those that run: the best secondary, else the
// best idle member.
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
		p.WaitFor(v1alpha1.ReasonStarting, "status has not answered yet: "+namesOf(unsaid))
		return
	}
	name, candidates := v1alpha1.CommandPromote, f.candidates(secondary)
	if len(candidates) == 0 {
		name, candidates = v1alpha1.CommandPrimary, f.candidates(idle)
	}
	startBest(f, p, candidates, name, v1alpha1.CommandPrimary, "another primary is wanted")
}

// startSecondary starts an idle member as secondary, once the primaries run.
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

// startBest starts the one of members that a person wants to be primary, else the one with
// the newest copy, of equals one that is well placed. Those that cannot say how new theirs are come last: what they have, they
// get from a primary.
func startBest(f *facts, p *plan, candidates []*member, name, instead, why string) {
	if len(candidates) == 0 {
		return
	}
	p.askVersions(f, candidates)
	all := copiesOf(candidates)
	if !all.answered() {
		p.WaitFor(
			v1alpha1.ReasonStarting,
			"sequence has not answered yet in all of "+namesOf(candidates),
		)
		return
	}
	m := all.named(overrideOf(f, v1alpha1.OrderSwitchoverTo).name)
	p.send(f, m, name, instead, m.name()+": "+why)
}

// whoMayRun names those that may be primary and of which it is not known.
func (f *facts) whoMayRun() string {
	var names []string
	for _, g := range f.record.granted {
		if m := f.byUID(g.UID); m == nil || !m.isPrimary() {
			names = append(names, g.Pod)
		}
	}
	return "these may still be primary, and are not known to have stopped: " + strings.Join(names, ", ")
}
