package replicatedstatefulset

import (
	"fmt"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// scale brings the number of pods to what is wanted. Up at once; down when the members that
// go have stopped, and their roles are with others.
func scale(f *facts, p *plan) {
	if !f.serves() || !f.hasStatefulSet() || f.tooFew() { // of too few status says so
		return
	}
	have := int(*f.stateful.Spec.Replicas)
	leavers := f.among(func(m *member) bool { return m.leaves })
	if have > f.wanted() || len(leavers) > 0 {
		if !f.mayShrink(leavers) {
			waitToShrink(f, p, leavers)
			return
		}
		p.askVersions(f, f.stayersToAsk(leavers))
		p.WaitFor(v1alpha1.ReasonScaling, fmt.Sprintf("of %d pods %d shall stay", max(have, len(f.members)), f.wanted()))
	}
	if retained := f.among(func(m *member) bool { return m.retained }); len(retained) > 0 && !noHeir() {
		p.askVersions(f, f.among((*member).couldBeFirst))
		p.WaitFor(v1alpha1.ReasonScaling, "nobody who stays is known to have all of the data of "+namesOf(retained))
		return
	}
	if d := departureOf(leavers); !d.over && !f.overdue() {
		stopLeavers(f, p, d)
		return
	}
	if have != f.wanted() {
		resize(f, p, have)
	}
}

// hasStatefulSet reports whether there is a StatefulSet of the set that stays.
func (w *world) hasStatefulSet() bool {
	return w.stateful != nil && w.ours(w.stateful) && w.stateful.DeletionTimestamp == nil
}

// resize gives the StatefulSet its number of pods. That is bound to what was read: a
// scale-down that arrives late must not meet a scale-up.
func resize(f *facts, p *plan, have int) {
	set := f.stateful.DeepCopy()
	replicas := int32(f.wanted())
	set.Spec.Replicas = &replicas
	p.Do(action.Chain{{
		Verb: action.Patch, Object: set, From: f.stateful, Unchanged: true,
		Reason: reasonScale, Detail: fmt.Sprintf("from %d to %d", have, replicas),
	}})
}

// mayShrink reports whether members may go, as far as roles and data are known.
func (f *facts) mayShrink(leavers []*member) bool {
	return !f.primaryIsUnknown() && f.whatIsMissed(leavers) == ""
}

// primaryIsUnknown reports whether members may be primary, and none is known to be.
func (f *facts) primaryIsUnknown() bool {
	return f.wanted() > 0 && f.record.hasGrants() && len(f.primaries()) == 0
}

// waitToShrink says what members that are to go are kept for.
func waitToShrink(f *facts, p *plan, leavers []*member) {
	if f.primaryIsUnknown() {
		p.WaitFor(v1alpha1.ReasonScaling, f.whoMayRun()+"; nobody goes before that is known")
		return
	}
	p.askVersions(f, f.stayersToAsk(leavers))
	why := f.whatIsMissed(leavers)
	p.WaitFor(v1alpha1.ReasonScaling, why)
	if f.watch.Elapsed(f.lossAt, f.now) > returnsWithin {
		p.risk = why
	}
}

// whatIsMissed says whose data could go with the members that go, while none is primary:
// those of one that has run and cannot say now how new its copy is, or of the newest copy
// that was ever seen; "" if none could.
func (f *facts) whatIsMissed(leavers []*member) string {
	if f.record.hasGrants() || f.wanted() == 0 {
		return ""
	}
	if why := whyUnsaid(leavers); why != "" {
		return why
	}
	newest, pod := f.newestLeaves()
	if pod == "" || f.stayerHas(newest) {
		return ""
	}
	return fmt.Sprintf("nobody who stays is known to have all of the data of %s, which had sequence %d", pod, newest)
}

// stayersToAsk are the members that stay, if it depends on their copies whether others may
// go.
func (f *facts) stayersToAsk(leavers []*member) []*member {
	if f.record.hasGrants() || f.wanted() == 0 || whyUnsaid(leavers) != "" {
		return nil
	}
	if _, pod := f.newestLeaves(); pod == "" {
		return nil
	}
	return f.stayers()
}

// stayers are the members that stay and can say how new their copies are.
func (f *facts) stayers() []*member {
	return f.among(func(m *member) bool { return m.ordinal < f.wanted() && m.couldBeFirst() })
}

// whyUnsaid says which of the members that go has run and cannot say now how new its copy
// is; "" if none.
func whyUnsaid(leavers []*member) string {
	for _, m := range leavers {
		c := m.container()
		switch {
		case m.terminating():
			return "its pod is made anew before it goes, because it may have what nobody else has: " + m.name()
		case m.state == pending && c != nil && c.ContainerID != "":
			return "its container has ended, and it may have what nobody else has: " + m.name()
		}
	}
	return ""
}

// newestLeaves is the newest copy that was ever seen, if it is on a member that goes; "" if
// it is not.
func (f *facts) newestLeaves() (sequence uint64, pod string) {
	sequence, pod = f.record.newest()
	if ordinal, ok := ordinalOf(f.set, pod); !ok || ordinal < f.wanted() {
		return 0, ""
	}
	return sequence, pod
}

// stayerHas reports whether a member that stays says, or is on record, that it has a copy of
// that sequence.
func (f *facts) stayerHas(sequence uint64) bool {
	if slices.ContainsFunc(f.stayers(), func(m *member) bool { return m.version.known && m.version.sequence >= sequence }) {
		return true
	}
	return slices.ContainsFunc(f.record.versions, func(v v1alpha1.Sequence) bool {
		ordinal, ok := ordinalOf(f.set, v.Pod)
		return ok && ordinal < f.wanted() && recorded(v) >= sequence
	})
}
