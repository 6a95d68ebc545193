package replicatedstatefulset

import (
	"fmt"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// scale sets the number of pods. It scales up at once. It scales down when the members to remove
// have stopped and others have their roles.
func scale(f *facts, p *plan) {
	if !f.serves() || !f.hasStatefulSet() || f.tooFew() { // the status reports tooFew
		return
	}
	if kept := listedSurplus(f); len(kept) > 0 {
		p.WaitFor(v1alpha1.ReasonScaling, "scale-down is blocked while members to remove are in spec.maintenance: "+namesOf(kept))
		return
	}
	have := int(*f.stateful.Spec.Replicas)
	s := scaling{facts: f, leavers: f.among(func(m *member) bool { return m.leaves })}
	if have > f.wanted() || len(s.leavers) > 0 {
		if !s.mayShrink() {
			waitToShrink(s, p)
			return
		}
		p.askVersions(f, s.stayersToAsk())
		p.WaitFor(
			v1alpha1.ReasonScaling,
			fmt.Sprintf("scaling down from %d to %d pods", s.ordinals(have), f.wanted()),
		)
	}
	if retained := f.among(func(m *member) bool { return m.retained }); len(retained) > 0 {
		p.askVersions(f, f.among((*member).couldBeFirst))
		p.WaitFor(
			v1alpha1.ReasonScaling,
			"no remaining member is known to have all data of "+namesOf(retained),
		)
		return
	}
	if d := departureOf(s.leavers); !d.over && !f.overdue() {
		stopLeavers(f, p, d)
		return
	}
	if have != f.wanted() {
		resize(f, p, have)
		return
	}
	s.removeSurplus(p)
}

// ordinals returns how many members the scale-down starts from, including those whose pods are
// missing now.
func (s scaling) ordinals(have int) int {
	if n := len(s.members); n > 0 {
		return max(have, s.members[n-1].ordinal+1)
	}
	return have
}

// removeSurplus deletes the pods of stopped members, the highest ordinal first, if the StatefulSet
// controller does not. That controller creates missing pods first, and deletes none while a quota
// or a policy refuses their creation (kubernetes#140858).
func (s scaling) removeSurplus(p *plan) {
	present := s.among(func(m *member) bool { return m.ordinal < s.wanted() })
	if len(s.leavers) == 0 || len(present) >= s.wanted() || !s.templateIsSeen() {
		return
	}
	if left := s.watch.Deadline(s.statefulSince, surplusAfter).Sub(s.now); left > 0 {
		p.LookAgain(left)
		return
	}
	last := s.leavers[len(s.leavers)-1]
	if last.terminating() || last.stranger != "" {
		return
	}
	p.Do(remove(last, reasonSurplus, fmt.Sprintf(
		"it is scaled down, and the StatefulSet controller deletes no pod until it has created the %d missing pods", s.wanted()-len(present),
	)))
}

// hasStatefulSet reports whether the set has a StatefulSet that is not terminating.
func (w *world) hasStatefulSet() bool {
	return w.stateful != nil && w.ours(w.stateful) && w.stateful.DeletionTimestamp == nil
}

// resize sets the replicas of the StatefulSet, and its claim retention policy in the same write.
// The write is bound to the version that was read, so that a late scale-down does not revert a
// scale-up.
func resize(f *facts, p *plan, have int) {
	set := f.stateful.DeepCopy()
	replicas := int32(f.wanted())
	set.Spec.Replicas = &replicas
	set.Spec.PersistentVolumeClaimRetentionPolicy = retentionAfterResize(f.world, have)
	p.Do(action.Chain{{
		Verb: action.Patch, Object: set, From: f.stateful, Unchanged: true,
		Reason: reasonScale, Detail: fmt.Sprintf("from %d to %d", have, replicas),
	}})
}

// scaling is a change of the number of members. leavers are the members to remove.
type scaling struct {
	*facts
	leavers []*member
}

// mayShrink reports whether members may be removed, as far as roles and data are known.
func (s scaling) mayShrink() bool {
	return !s.primaryIsUnknown() && s.whatIsMissed() == ""
}

// primaryIsUnknown reports whether members may be primary, and none is known to be.
func (s scaling) primaryIsUnknown() bool {
	return s.wanted() > 0 && s.record.hasGrants() && len(s.primaries()) == 0
}

// waitToShrink states why members are not removed yet.
func waitToShrink(s scaling, p *plan) {
	if s.primaryIsUnknown() {
		p.WaitFor(v1alpha1.ReasonScaling, s.whoMayRun()+"; scale-down is blocked until then")
		return
	}
	p.askVersions(s.facts, s.stayersToAsk())
	why := s.whatIsMissed()
	p.WaitFor(v1alpha1.ReasonScaling, why)
	if s.watch.Elapsed(s.lossAt, s.now) > returnsWithin {
		p.risk = why
	}
}

// whatIsMissed states whose data could be lost with the members to remove, while none is primary:
// the data of a member that has run and cannot report its sequence now, or the newest copy on
// record. It is "" if none could.
func (s scaling) whatIsMissed() string {
	if s.record.hasGrants() || s.wanted() == 0 {
		return ""
	}
	if why := whyUnsaid(s.leavers); why != "" {
		return why
	}
	newest, pod := s.newestLeaves()
	if pod == "" || s.stayerHas(newest) {
		return ""
	}
	return fmt.Sprintf(
		"no remaining member is known to have all data of %s, which had sequence %d",
		pod, newest,
	)
}

// stayersToAsk returns the staying members if the decision to remove others depends on their
// copies.
func (s scaling) stayersToAsk() []*member {
	if s.record.hasGrants() || s.wanted() == 0 || whyUnsaid(s.leavers) != "" {
		return nil
	}
	if _, pod := s.newestLeaves(); pod == "" {
		return nil
	}
	return s.stayers()
}

// stayers returns the staying members that can report their sequence.
func (s scaling) stayers() []*member {
	return s.among(func(m *member) bool { return m.ordinal < s.wanted() && m.couldBeFirst() })
}

// whyUnsaid states which of the members to remove has run and cannot report its sequence now. It is
// "" if there is none.
func whyUnsaid(leavers []*member) string {
	for _, m := range leavers {
		c := m.container()
		switch {
		case m.terminating():
			return m.name() + " may have data that no other member has: its pod is being deleted and will be recreated before the member is removed"
		case m.state == pending && c != nil && c.ContainerID != "":
			return m.name() + " may have data that no other member has: its container has ended and must run again before the member is removed"
		}
	}
	return ""
}

// newestLeaves returns the newest copy on record if it is on a member to remove. Otherwise it
// returns "".
func (s scaling) newestLeaves() (sequence uint64, pod string) {
	sequence, pod = s.record.newest()
	if ordinal, ok := ordinalOf(s.set, pod); !ok || ordinal < s.wanted() {
		return 0, ""
	}
	return sequence, pod
}

// stayerHas reports whether a staying member has a copy of that sequence, by its last response or
// by the record.
func (s scaling) stayerHas(sequence uint64) bool {
	if slices.ContainsFunc(s.stayers(), func(m *member) bool { return m.version.known && m.version.sequence >= sequence }) {
		return true
	}
	return slices.ContainsFunc(s.record.versions, func(v v1alpha1.Sequence) bool {
		ordinal, ok := ordinalOf(s.set, v.Pod)
		return ok && ordinal < s.wanted() && parseSequence(v) >= sequence
	})
}
