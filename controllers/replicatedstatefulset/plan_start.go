package replicatedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// copyOf is a member with what it said of its copy.
type copyOf struct {
	*member
	sequence uint64
	// said is false as long as no answer came, known also of one that is no number.
	said, known bool
	failures    int32
}

// copies are those members with what they say of their copies, the newest first,
// of equals the one in which fewest starts failed, then that with the lowest
// ordinal. It is false while one has not answered; all are asked at once.
func (w *world) copies(p *plan, members []*member) (all []copyOf, answered bool) {
	answered = true
	for _, m := range members {
		n, ok, known := w.sequence(p, m)
		answered = answered && ok
		c := copyOf{member: m, sequence: n, said: ok, known: known}
		if f := w.failure(m); f != nil {
			c.failures = f.Count
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b copyOf) int {
		if a.known != b.known {
			return cmp.Compare(truth(b.known), truth(a.known))
		}
		return cmp.Or(cmp.Compare(b.sequence, a.sequence), cmp.Compare(a.failures, b.failures), a.ordinal-b.ordinal)
	})
	return all, answered
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (w *world) among(is func(*member) bool) (found []*member) {
	for _, m := range w.members {
		if is(m) {
			found = append(found, m)
		}
	}
	return found
}

// starting tells whether a start is on its way, or its end was not seen: the next
// one waits. Where there is no primary, or on a node that does not answer, a start as
// secondary holds up nobody.
func (w *world) starting(p *plan) bool {
	for _, c := range w.books.commands {
		m := w.byUID(c.UID)
		if startsPrimary(c.Name) || c.Name == v1alpha1.CommandSecondary && len(w.books.grants) > 0 && (m == nil || !m.lost()) {
			p.WaitFor(v1alpha1.ReasonWaitingForCommand, fmt.Sprintf("%s of %s has not ended, as far as is known", c.Name, c.Pod))
			return true
		}
	}
	return false
}

// unsaid are members that run and have not said yet, in this container, what they
// are: nobody becomes primary beside them.
func (w *world) unsaid() []*member {
	return w.among(func(m *member) bool {
		if !m.reachable() || m.terminating() || w.commandIn(m) != nil {
			return false
		}
		_, ok := m.answer(v1alpha1.CommandStatus)
		return !ok && w.state(m) == unknown
	})
}

// neverAsked tells whether nobody has asked the member yet, in this container, what
// it is. One that does not answer holds up no person.
func neverAsked(m *member) bool {
	_, asked := m.result(v1alpha1.CommandStatus)
	return !asked
}

// startFirst starts the first primary: the best of the secondaries that run, or
// where nothing runs the newest copy of all. Nobody may be primary then.
func startFirst(w *world, p *plan) {
	if !w.starts() || w.target() == 0 || len(w.books.grants) > 0 || w.starting(p) {
		return
	}
	if strangers := w.among(func(m *member) bool { return !m.owned && !podstate.Stopped(m.pod, true) && !w.fenced(m) }); len(strangers) > 0 {
		p.WaitFor(v1alpha1.ReasonWaitingForStop, "these are not this object's, and may run as primary: "+namesOf(strangers))
		return
	}
	unsaid := w.unsaid()
	if m := w.named(w.set.Annotations[v1alpha1.AnnotationSeedFrom]); m != nil && w.startable(m) && !slices.ContainsFunc(unsaid, neverAsked) {
		kept := w.books.sequences
		w.books.sequences = w.givenUp(m)
		if w.startAs(p, m, v1alpha1.CommandSeed, "as a person said"); !p.sent {
			w.books.sequences = kept
		}
		return
	}
	if len(unsaid) > 0 {
		p.WaitFor(v1alpha1.ReasonSeeding, "status has not answered yet: "+namesOf(unsaid))
		return
	}
	if running := w.among(func(m *member) bool { return w.state(m) == secondary && !m.terminating() }); len(running) > 0 {
		succeed(w, p, running)
		return
	}
	seed(w, p)
}

// givenUp are the records without the copies that are lost when an older one is
// seeded all the same: nobody waits for them again.
func (w *world) givenUp(seeded *member) []v1alpha1.Sequence {
	r, _ := seeded.answer(v1alpha1.CommandSequence)
	n, _ := sequenceOf(r)
	return slices.DeleteFunc(slices.Clone(w.books.sequences), func(s v1alpha1.Sequence) bool { return recorded(s) > n })
}

// startAs starts a first primary: a secondary is promoted, an idle member seeded.
func (w *world) startAs(p *plan, m *member, name, why string) {
	if w.state(m) == secondary {
		name = v1alpha1.CommandPromote
	}
	w.send(p, m, name, v1alpha1.CommandPrimary, fmt.Sprintf("%s: %s", m.name(), why))
}

// succeed promotes the best of the secondaries that run. One that said nothing of
// its copy holds this up, and so may those that do not run (newerElsewhere).
func succeed(w *world, p *plan, running []*member) {
	if old := w.unheard(running); len(old) > 0 {
		for _, m := range old {
			p.ask(w, m, v1alpha1.CommandStatus)
		}
		p.WaitFor(v1alpha1.ReasonSeeding, "status has not answered since the last primary went: "+namesOf(old))
		return
	}
	all, answered := w.copies(p, running)
	if p.blind = cmp.Or(unknownAmong(all), p.blind); !answered || unknownAmong(all) != "" {
		p.WaitFor(v1alpha1.ReasonSeeding, "sequence has not answered yet in all of "+namesOf(running))
		return
	}
	if risk := w.outdone(all[0].sequence); risk != "" {
		p.risk = risk
		w.startReturned(p)
		return
	}
	if w.newerElsewhere(p, running, all[0].sequence) {
		return
	}
	newest, wish := all[0].sequence, w.set.Annotations[v1alpha1.AnnotationSwitchoverTo]
	all = slices.DeleteFunc(all, func(c copyOf) bool { return c.sequence < newest })
	if m := w.named(wish); m != nil && !slices.ContainsFunc(all, func(c copyOf) bool { return c.member == m }) {
		// Now or never: else its turn would come again and again.
		why := all[0].name() + " has newer data"
		if w.state(m) != secondary {
			why = "it does not run as secondary"
		}
		w.takeOverride(p, v1alpha1.AnnotationSwitchoverTo, reasonRefused, fmt.Sprintf("%s does not take over: %s. The old primary has stopped or was demoted for it already, and %s becomes primary", wish, why, all[0].name()))
		return
	}
	slices.SortStableFunc(all, func(a, b copyOf) int {
		return cmp.Or(truth(b.name() == wish)-truth(a.name() == wish), truth(w.fresher(b.member))-truth(w.fresher(a.member)))
	})
	for _, c := range all {
		if w.startable(c.member) {
			w.startAs(p, c.member, v1alpha1.CommandPromote, fmt.Sprintf("the newest of those that run, sequence %d", c.sequence))
			return
		}
	}
	p.WaitFor(v1alpha1.ReasonRecovering, "the newest copy cannot be started yet: "+all[0].name())
}

// unheard are those of members whose answer to status is older than the loss of the
// last primary: they may have lost it long before, and be far behind.
func (w *world) unheard(members []*member) (old []*member) {
	for _, m := range members {
		if r, ok := m.answer(v1alpha1.CommandStatus); !ok || !r.Began.After(w.lossAt) {
			old = append(old, m)
		}
	}
	return old
}

// startReturned starts an idle member beside secondaries that run, if it has the
// newest copy of all that were ever seen: the one that was missed is back.
func (w *world) startReturned(p *plan) {
	all, _ := w.copies(p, w.candidates(idle))
	if len(all) > 0 && all[0].known && w.outdone(all[0].sequence) == "" {
		p.risk = ""
		w.startAs(p, all[0].member, v1alpha1.CommandSeed, fmt.Sprintf("the newest copy is back, sequence %d", all[0].sequence))
	}
}

// unknownAmong names the members that answered, and not how new their copies are.
func unknownAmong(all []copyOf) string {
	var names []string
	for _, c := range all {
		if c.said && !c.known {
			names = append(names, fmt.Sprintf("%s (%s)", c.name(), whyUnknown(c.member)))
		}
	}
	return strings.Join(names, ", ")
}

// whyUnknown is what came of the last sequence of a member that said no number.
func whyUnknown(m *member) string {
	r, _ := m.result(v1alpha1.CommandSequence)
	switch r.Outcome {
	case podexec.Unknown:
		return "sequence: " + cmp.Or(r.Why, "nobody knows how it ended")
	case podexec.Failed:
		return fmt.Sprintf("sequence failed with exit code %d", r.Code)
	}
	// Who reads the status need not be one who may read what is in the pod.
	const wrong = "sequence printed something else than one unsigned whole number"
	switch n := len(strings.TrimSpace(r.Stdout)); {
	case r.Cut:
		return fmt.Sprintf("%s (more than %d bytes)", wrong, mostSequence)
	case n == 0:
		return "sequence printed nothing, and has to print one unsigned whole number"
	default:
		return fmt.Sprintf("%s (%d bytes)", wrong, n)
	}
}

// seed starts the newest copy of all. All wanted members have to say how new
// theirs are, or a majority of them.
func seed(w *world, p *plan) {
	present := w.among(func(m *member) bool { return w.state(m) == idle && !m.terminating() && !w.leaver(m) })
	all, answered := w.copies(p, present)
	missing := w.wanted() - w.staying(all)
	if w.set.Spec.Seeding == v1alpha1.SeedingQuorum {
		all = slices.DeleteFunc(all, func(c copyOf) bool { return !c.known })
		answered, missing = true, w.wanted()/2+1-w.staying(all)
	} else if len(w.members) > w.wanted() && len(w.among(w.kept)) == 0 {
		missing = max(missing, 1) // they go, or their ordinals do not fit
	}
	p.blind = unknownAmong(all)
	switch {
	case missing > 0:
		p.WaitFor(v1alpha1.ReasonWaitingForPods, fmt.Sprintf("nothing is started before %d more members, of %d, have said how new their copies are", missing, w.wanted()))
		return
	case p.blind != "":
		p.WaitFor(v1alpha1.ReasonSeeding, "nobody knows how new the copies of these are: "+p.blind)
		return
	case !answered:
		p.WaitFor(v1alpha1.ReasonSeeding, "nobody knows yet how new the copies of all of these are: "+namesOf(present))
		return
	}
	if p.risk = w.outdone(all[0].sequence); p.risk != "" {
		return
	}
	for _, c := range all {
		if c.sequence == all[0].sequence && w.startable(c.member) {
			w.startAs(p, c.member, v1alpha1.CommandSeed, fmt.Sprintf("the newest copy, sequence %d", c.sequence))
			return
		}
	}
	p.WaitFor(v1alpha1.ReasonRecovering, "the newest copy cannot be started yet: "+all[0].name())
}

// staying counts the copies of wanted members. Those of members that go may be the
// newest, but do not stand for a wanted one that has not said anything.
func (w *world) staying(all []copyOf) (n int) {
	for _, c := range all {
		if c.ordinal < w.wanted() {
			n++
		}
	}
	return n
}

// outdone says whose copy was newer than that sequence when it was last seen; ""
// if none was.
func (w *world) outdone(sequence uint64) string {
	if newest, pod := w.books.newest(); newest > sequence {
		return fmt.Sprintf("the newest copy at hand has sequence %d, and %s had %d", sequence, pod, newest)
	}
	return ""
}

// startPrimary starts another primary beside those that run: the best secondary,
// else the best idle member.
func startPrimary(w *world, p *plan) {
	if !w.starts() || len(w.books.grants) == 0 || len(w.books.grants) >= w.target() || w.starting(p) {
		return
	}
	if len(w.primaries()) == 0 {
		p.WaitFor(v1alpha1.ReasonWaitingForStop, w.whoMayRun())
		return
	}
	if unsaid := w.unsaid(); len(unsaid) > 0 {
		p.WaitFor(v1alpha1.ReasonStarting, "status has not answered yet: "+namesOf(unsaid))
		return
	}
	from, name := idle, v1alpha1.CommandPrimary
	if len(w.candidates(secondary)) > 0 {
		from, name = secondary, v1alpha1.CommandPromote
	}
	if m := w.best(p, from); m != nil {
		w.send(p, m, name, v1alpha1.CommandPrimary, m.name()+": another primary is wanted")
	}
}

// startSecondary starts an idle member as secondary, once the primaries run.
func startSecondary(w *world, p *plan) {
	if !w.starts() || !w.configured(v1alpha1.CommandSecondary) || len(w.books.grants) < w.target() || len(w.primaries()) == 0 || w.starting(p) {
		return
	}
	if m := w.best(p, idle); m != nil {
		w.send(p, m, v1alpha1.CommandSecondary, v1alpha1.CommandSecondary, m.name()+": another secondary is wanted")
	}
}

// best is the member of that state with the newest copy; nil while there is none,
// or not all have said how new theirs are. Those that cannot say come last: what
// they have, they get from a primary.
func (w *world) best(p *plan, s state) *member {
	candidates := w.candidates(s)
	if len(candidates) == 0 {
		return nil
	}
	all, answered := w.copies(p, candidates)
	if !answered {
		p.WaitFor(v1alpha1.ReasonStarting, "sequence has not answered yet in all of "+namesOf(candidates))
		return nil
	}
	wish := w.set.Annotations[v1alpha1.AnnotationSwitchoverTo]
	for _, c := range all {
		if c.name() == wish {
			return c.member
		}
	}
	return all[0].member
}

func (w *world) candidates(s state) []*member {
	return w.among(func(m *member) bool { return w.state(m) == s && w.startable(m) })
}

// whoMayRun names those that may be primary and of whom nobody knows.
func (w *world) whoMayRun() string {
	var names []string
	for _, g := range w.books.grants {
		if m := w.byUID(g.UID); m == nil || w.state(m) != primary || m.terminating() {
			names = append(names, g.Pod)
		}
	}
	return "these may still be primary, and nobody knows that they have stopped: " + strings.Join(names, ", ")
}
