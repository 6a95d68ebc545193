package replicatedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// scale brings the number of pods to what is wanted. Up at once; down when the
// members that go have stopped, and their roles are with others.
func scale(w *world, p *plan) {
	if !w.serves() || w.stateful == nil || !w.ours(w.stateful) || w.stateful.DeletionTimestamp != nil {
		return
	}
	have := int(*w.stateful.Spec.Replicas)
	leavers := w.among(w.leaver)
	if w.tooFew() {
		return // status says so
	}
	down := have > w.wanted() || len(leavers) > 0
	if down {
		if w.wanted() > 0 && len(w.books.grants) > 0 && len(w.primaries()) == 0 {
			p.WaitFor(v1alpha1.ReasonScaling, w.whoMayRun()+"; nobody goes before that is known")
			return
		}
		if why := w.missed(p, leavers); why != "" {
			p.WaitFor(v1alpha1.ReasonScaling, why)
			if w.watch.Elapsed(w.lossAt, w.now) > returnsWithin {
				p.risk = why
			}
			return
		}
		p.WaitFor(v1alpha1.ReasonScaling, fmt.Sprintf("of %d pods %d shall stay", max(have, len(w.members)), w.wanted()))
	}
	if kept := w.among(w.kept); len(kept) > 0 {
		w.copies(p, w.among(w.candid))
		p.WaitFor(v1alpha1.ReasonScaling, "nobody who stays is known to have all of the data of "+namesOf(kept))
		return
	}
	if !w.overdue() && len(leavers) > 0 && !w.stopLeavers(p, leavers) {
		return
	}
	if have == w.wanted() {
		return
	}
	set := w.stateful.DeepCopy()
	replicas := int32(w.wanted())
	set.Spec.Replicas = &replicas
	// Bound to what was read: a scale-down that arrives late must not meet a scale-up.
	p.Do(action.Chain{{Verb: action.Patch, Object: set, From: w.stateful, Unchanged: true, Reason: reasonScale, Detail: fmt.Sprintf("from %d to %d", have, replicas)}})
}

// missed says whose data could go with the members that go, while nobody is primary:
// those of one that has run and cannot say now how new its copy is, or of the newest
// copy that was ever seen; "" if nobody's.
func (w *world) missed(p *plan, leavers []*member) string {
	if len(w.books.grants) > 0 || w.wanted() == 0 {
		return ""
	}
	for _, m := range leavers {
		c := m.container()
		switch {
		case m.terminating():
			return "its pod is made anew before it goes, because it may have what nobody else has: " + m.name()
		case w.state(m) == pending && c != nil && c.ContainerID != "":
			return "its container has ended, and it may have what nobody else has: " + m.name()
		}
	}
	newest, pod := w.books.newest()
	if ordinal, ok := ordinalOf(w.set, pod); !ok || ordinal < w.wanted() || w.stayerHas(p, newest) {
		return ""
	}
	return fmt.Sprintf("nobody who stays is known to have all of the data of %s, which had sequence %d", pod, newest)
}

// stayerHas tells whether a member that stays says, or is on record, that it has a
// copy of that sequence.
func (w *world) stayerHas(p *plan, sequence uint64) bool {
	said, _ := w.copies(p, w.among(func(m *member) bool { return m.ordinal < w.wanted() && w.candid(m) }))
	if slices.ContainsFunc(said, func(c copyOf) bool { return c.known && c.sequence >= sequence }) {
		return true
	}
	return slices.ContainsFunc(w.books.sequences, func(s v1alpha1.Sequence) bool {
		ordinal, ok := ordinalOf(w.set, s.Pod)
		return ok && ordinal < w.wanted() && recorded(s) >= sequence
	})
}

// relieve takes its role from a primary when somebody is there to take it, whose
// copy is as new as the primary's was a moment before.
func (w *world) relieve(p *plan, m *member, why string) {
	others := 0
	for _, o := range w.primaries() {
		if o != m && !w.leaver(o) {
			others++
		}
	}
	follow := w.target() < w.wanted() && w.configured(v1alpha1.CommandSecondary)
	switch {
	case others >= w.target(), others > 0 && !follow, w.wanted() == 1 && !w.leaver(m):
		w.stop(p, m, why)
		return
	case others == 0 && !follow && !w.leaver(m):
		// Nobody else has its data, so it comes back itself. How new that is has to
		// be on record before.
		if _, _, known := w.sequence(p, m); known {
			w.stop(p, m, why+", and nobody follows it")
		} else {
			p.WaitFor(v1alpha1.ReasonHandingOver, "sequence has not answered yet in "+m.name())
		}
		return
	}
	if len(w.primaries()) < w.target() {
		p.WaitFor(v1alpha1.ReasonHandingOver, "another primary is started before this one stops: "+m.name())
		return
	}
	if heir := w.heir(p, m, ""); heir != nil {
		p.proven = true
		w.stop(p, m, fmt.Sprintf("%s, and %s can take its place", why, heir.name()))
	}
}

// heir is a member that can take the place of a primary, that one if it is named;
// nil while there is none that has all that the primary had when it was asked.
func (w *world) heir(p *plan, m *member, name string) *member {
	mine, answered, known := w.sequence(p, m)
	if !answered || !known {
		p.WaitFor(v1alpha1.ReasonHandingOver, "sequence has not answered yet in "+m.name())
		return nil
	}
	asked, _ := m.answer(v1alpha1.CommandSequence)
	if then := w.changedAt(); !asked.Began.After(then) {
		// Entries that only a member had that was stopped since are not in it.
		p.WaitFor(v1alpha1.ReasonHandingOver, "sequence has not answered yet in "+m.name())
		w.askSince(p, m, then)
		return nil
	}
	var first *member
	for _, o := range w.members {
		s := w.state(o)
		if name != "" && o.name() != name || !w.startable(o) || s != secondary && w.configured(v1alpha1.CommandSecondary) {
			continue
		}
		r, said := o.answer(v1alpha1.CommandSequence)
		n, known := sequenceOf(r)
		if !said || !known || !r.Began.After(asked.Ended) || n < mine {
			p.WaitFor(v1alpha1.ReasonHandingOver, fmt.Sprintf("%s has not all of the data of %s yet", o.name(), m.name()))
			w.askSince(p, o, asked.Ended)
			continue
		}
		if first == nil || w.fresher(o) && !w.fresher(first) {
			first = o
		}
	}
	if first == nil {
		p.WaitFor(v1alpha1.ReasonHandingOver, "no member can take the place of "+m.name())
	}
	return first
}

// changedAt is when the last command ended that changed something, in any member.
func (w *world) changedAt() (last time.Time) {
	for _, m := range w.members {
		if at := m.changedAt(); at.After(last) {
			last = at
		}
	}
	return last
}

// askSince asks a member for its sequence: at once if it was not asked since then,
// else a second after its last answer, which was too old a copy's.
func (w *world) askSince(p *plan, m *member, then time.Time) {
	if r, ok := m.result(v1alpha1.CommandSequence); ok && r.Began.After(then) {
		if wait := r.Ended.Add(again(1)).Sub(w.now); wait > 0 {
			p.LookAgain(wait)
			return
		}
	}
	p.ask(w, m, v1alpha1.CommandSequence)
}

// switchOver gives the role of a primary to the member that a person named.
func switchOver(w *world, p *plan) {
	m := w.named(w.set.Annotations[v1alpha1.AnnotationSwitchoverTo])
	if m == nil || !w.starts() || w.state(m) == primary {
		return
	}
	if !w.wellStaffed() {
		p.WaitFor(v1alpha1.ReasonHandingOver, fmt.Sprintf("%s takes over, as annotation %s says, when no member is missing; missing now: %s", m.name(), v1alpha1.AnnotationSwitchoverTo, w.whoIsMissing()))
		return
	}
	all, answered := w.copies(p, w.primaries())
	if !answered || len(all) == 0 {
		p.WaitFor(v1alpha1.ReasonHandingOver, "sequence has not answered yet in "+namesOf(w.primaries()))
		return
	}
	old := all[len(all)-1].member
	if w.heir(p, old, m.name()) != nil {
		w.demote(p, old, m.name()+" takes its place, as a person said")
	}
}

// whoIsMissing says what keeps the set from being well staffed.
func (w *world) whoIsMissing() string {
	var parts []string
	for _, m := range w.members {
		s := w.state(m)
		switch c := w.commandIn(m); {
		case c != nil:
			parts = append(parts, fmt.Sprintf("%s (%s has not ended)", m.name(), c.Name))
		case m.terminating():
			parts = append(parts, m.name()+" (its pod is being deleted)")
		case s != primary && s != secondary && (s != idle || w.configured(v1alpha1.CommandSecondary)):
			parts = append(parts, fmt.Sprintf("%s (%s)", m.name(), s))
		}
	}
	if n := w.wanted() - len(w.members); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d pods", n, w.wanted()))
	}
	if n := w.target() - len(w.primaries()); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d primaries", n, w.target()))
	}
	return cmp.Or(strings.Join(parts, ", "), "nobody, but the roles of all are not known yet")
}

// takeOverrides takes annotations off the object that were obeyed, or cannot be.
func takeOverrides(w *world, p *plan) {
	if !w.serves() || w.deleting() {
		return
	}
	if name := w.set.Annotations[v1alpha1.AnnotationSeedFrom]; name != "" {
		if reason, detail := w.seedingEnds(name); reason != "" {
			w.takeOverride(p, v1alpha1.AnnotationSeedFrom, reason, detail)
			return
		}
	}
	if name := w.set.Annotations[v1alpha1.AnnotationSwitchoverTo]; name != "" {
		if reason, detail := w.switchoverEnds(name); reason != "" {
			w.takeOverride(p, v1alpha1.AnnotationSwitchoverTo, reason, detail)
		}
	}
}

func (w *world) takeOverride(p *plan, annotation, reason, detail string) {
	set := w.set.DeepCopy()
	delete(set.Annotations, annotation)
	p.Do(action.Chain{{Verb: action.Patch, Object: set, From: w.set, Unchanged: true, Reason: reason, Detail: detail}})
}

// seedingEnds says how a seeding by hand ended, and why; "" while it may go on.
func (w *world) seedingEnds(name string) (reason, detail string) {
	ordinal, ok := ordinalOf(w.set, name)
	switch {
	case w.named(name) == nil && (!ok || ordinal >= int(*w.set.Spec.Replicas)):
		return reasonRefused, name + " was not seeded: there is no such member"
	case len(w.books.grants) == 0:
		return "", ""
	case w.grantedPod(name): // written before the seed was sent: it is never used twice
		return reasonOverride, name + " is seeded, as a person said"
	}
	return reasonRefused, name + " was not seeded: a primary runs, or may"
}

// switchoverEnds says how a switchover ended, and why; "" while it may go on.
func (w *world) switchoverEnds(name string) (reason, detail string) {
	m := w.named(name)
	switch {
	case m == nil:
		return reasonRefused, name + " does not take over: there is no such member"
	case w.grantedIn(m) && w.commandIn(m) == nil && w.state(m) == primary:
		return reasonOverride, name + " is primary, as a person said"
	case len(w.books.grants) < w.target() || len(w.books.commands) > 0 || w.state(m) == unknown:
		return "", ""
	case w.state(m) != secondary:
		return reasonRefused, name + " does not take over: it does not run as secondary"
	}
	for _, o := range w.primaries() {
		// Whoever asks again after that has it stopped (demote).
		if f := w.failure(o); f != nil && f.Command == v1alpha1.CommandDemote && !f.Last.Time.Before(w.wishAt.Truncate(time.Second)) {
			return reasonRefused, fmt.Sprintf("%s does not take over: demote of %s %s", name, o.name(), howFailed(int(f.Code)))
		}
	}
	return "", ""
}
