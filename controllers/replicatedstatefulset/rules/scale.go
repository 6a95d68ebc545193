package rules

import (
	"fmt"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// scale sets the number of pods. It scales up at once. It scales down when the members to remove
// have stopped and others have their roles.
func scale(f *facts.Facts, p *Plan) {
	if !f.MayRunCommands() || !f.HasStatefulSet() || f.TooFew() { // the status reports TooFew
		return
	}
	s := scalingOf(f)
	s.step(p)
	if s.shrinks() {
		p.WaitFor(
			v1alpha1.ReasonScaling,
			fmt.Sprintf("scaling down from %d to %d pods", s.ordinals(int(*f.Stateful.Spec.Replicas)), f.Wanted()),
		)
	}
}

// step does the next step of a change of the number of pods.
func (s scaling) step(p *Plan) {
	f := s.Facts
	if kept := listedSurplus(f); len(kept) > 0 {
		p.WaitFor(v1alpha1.ReasonScaling, "scale-down is blocked while members to remove are in spec.maintenance: "+facts.NamesOf(kept))
		return
	}
	have := int(*f.Stateful.Spec.Replicas)
	if s.shrinks() {
		if !s.mayShrink() {
			waitToShrink(s, p)
			return
		}
		p.askVersions(f, s.stayersToAsk())
	}
	if retained := f.Among(func(m *facts.Member) bool { return m.Retained }); len(retained) > 0 {
		p.askVersions(f, f.Among((*facts.Member).CouldBeFirst))
		p.WaitFor(
			v1alpha1.ReasonScaling,
			"no remaining member is known to have all data of "+facts.NamesOf(retained),
		)
		return
	}
	if d := departureOf(s.leavers); !d.over && !f.Overdue() {
		p.leavesLater = s.waitsToLeave()
		stopLeavers(f, p, d)
		return
	}
	if slices.ContainsFunc(s.leavers, f.MustBeCompared) {
		p.WaitFor(v1alpha1.ReasonScaling, "the next primary is chosen before the former one is removed")
		return
	}
	if ordinal := s.leaverWithoutPod(); ordinal >= 0 {
		awaitLeaver(f, p, have, ordinal)
		return
	}
	if have != f.Wanted() {
		resize(f, p, have, f.Wanted())
		return
	}
	s.removeSurplus(p)
}

// scaling is a change of the number of members. leavers are the members to remove (ScaledDown).
type scaling struct {
	*facts.Facts
	leavers []*facts.Member
}

// scalingOf returns the change of the number of members. It has no leavers if none is removed.
func scalingOf(f *facts.Facts) scaling {
	return scaling{Facts: f, leavers: f.Among(func(m *facts.Member) bool { return m.ScaledDown })}
}

// shrinks reports whether members are being removed.
func (s scaling) shrinks() bool {
	return int(*s.Stateful.Spec.Replicas) > s.Wanted() || len(s.leavers) > 0
}

// ordinals returns how many members the scale-down starts from, including those whose pods are
// missing now.
func (s scaling) ordinals(have int) int {
	if n := len(s.Members); n > 0 {
		return max(have, s.Members[n-1].Ordinal+1)
	}
	return have
}

// removeSurplus deletes the pods of stopped members, the highest ordinal first, if the StatefulSet
// controller does not. That controller creates missing pods first, and deletes none while a quota
// or a policy refuses their creation (kubernetes#140858).
func (s scaling) removeSurplus(p *Plan) {
	present := s.Among(func(m *facts.Member) bool { return m.Ordinal < s.Wanted() })
	if len(s.leavers) == 0 || len(present) >= s.Wanted() || !s.TemplateIsSeen() {
		return
	}
	if left := s.Watch.Deadline(s.StatefulSince, spec.SurplusAfter).Sub(s.Now); left > 0 {
		p.LookAgain(left)
		return
	}
	last := s.leavers[len(s.leavers)-1]
	if last.Terminating() || last.WhyForeign != "" {
		return
	}
	p.Do(deletePod(last, facts.ReasonSurplus, fmt.Sprintf(
		"it is scaled down, and the StatefulSet controller deletes no pod until it has created the %d missing pods", s.Wanted()-len(present),
	)))
}

// resize sets the replicas of the StatefulSet, and its claim retention policy in the same write.
// The write is bound to the version that was read, so that a late scale-down does not revert a
// scale-up.
func resize(f *facts.Facts, p *Plan, have, want int) {
	set := f.Stateful.DeepCopy()
	replicas := int32(want)
	set.Spec.Replicas = &replicas
	set.Spec.PersistentVolumeClaimRetentionPolicy = retentionAfterResize(f.World, have)
	p.Do(action.Chain{{
		Verb: action.Patch, Object: set, From: f.Stateful, Unchanged: true,
		Reason: facts.ReasonScale, Detail: fmt.Sprintf("from %d to %d", have, replicas),
	}})
}

// mayShrink reports whether members may be removed, as far as roles and data are known.
func (s scaling) mayShrink() bool {
	return !s.primaryIsUnknown() && s.whoseDataIsMissed() == ""
}

// primaryIsUnknown reports whether members have grants, but no member is known to be primary.
func (s scaling) primaryIsUnknown() bool {
	return s.Wanted() > 0 && s.Record.HasGrants() && len(s.Primaries()) == 0
}

// waitToShrink states why members are not removed yet.
func waitToShrink(s scaling, p *Plan) {
	if s.primaryIsUnknown() {
		p.WaitFor(v1alpha1.ReasonScaling, s.WhoMayRun()+"; scale-down is blocked until then")
		return
	}
	p.askVersions(s.Facts, s.stayersToAsk())
	why := s.whoseDataIsMissed()
	p.WaitFor(v1alpha1.ReasonScaling, why)
	if s.Watch.Elapsed(s.LossAt, s.Now) > spec.ReturnsWithin {
		p.Risk = why
	}
}

// whoseDataIsMissed states whose data could be lost with the members to remove, while none is
// primary: the data of a member that has run and cannot report its sequence now, or the newest copy
// on record. It is "" if none could.
func (s scaling) whoseDataIsMissed() string {
	if s.Record.HasGrants() || s.Wanted() == 0 {
		return ""
	}
	if why := whyNotComparable(s.leavers); why != "" {
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
func (s scaling) stayersToAsk() []*facts.Member {
	if s.Record.HasGrants() || s.Wanted() == 0 || whyNotComparable(s.leavers) != "" {
		return nil
	}
	if _, pod := s.newestLeaves(); pod == "" {
		return nil
	}
	return s.stayers()
}

// stayers returns the members within the wanted number that can report their sequence.
func (s scaling) stayers() []*facts.Member {
	return s.Among(func(m *facts.Member) bool { return m.Ordinal < s.Wanted() && m.CouldBeFirst() })
}

// whyNotComparable states which of the members to remove has run and cannot report its sequence
// now. It is "" if there is none.
func whyNotComparable(leavers []*facts.Member) string {
	for _, m := range leavers {
		c := m.Container()
		switch {
		case m.Terminating():
			return m.Name() + " may have data that no other member has: its pod is being deleted and will be recreated before the member is removed"
		case m.State == record.Pending && c != nil && c.ContainerID != "":
			return m.Name() + " may have data that no other member has: its container has ended and must run again before the member is removed"
		}
	}
	return ""
}

// newestLeaves returns the newest copy on record if it is on a member to remove. Otherwise it
// returns "".
func (s scaling) newestLeaves() (sequence uint64, pod string) {
	sequence, pod = s.Record.Newest()
	if ordinal, ok := spec.OrdinalOf(s.Set, pod); !ok || ordinal < s.Wanted() {
		return 0, ""
	}
	return sequence, pod
}

// stayerHas reports whether a staying member has a copy of that sequence, by its last response or
// by the record.
func (s scaling) stayerHas(sequence uint64) bool {
	if slices.ContainsFunc(s.stayers(), func(m *facts.Member) bool { return m.Version.Known && m.Version.Sequence >= sequence }) {
		return true
	}
	return slices.ContainsFunc(s.Record.Versions, func(v v1alpha1.Sequence) bool {
		ordinal, ok := spec.OrdinalOf(s.Set, v.Pod)
		return ok && ordinal < s.Wanted() && record.ParseSequence(v) >= sequence
	})
}

// departure is the progress of members that are being removed.
type departure struct {
	// over is true if all of them have stopped.
	over bool
	// busy is true while waiting for a command in one of them. They are stopped one after another.
	busy bool
	// waiting is the reason why the removal is delayed.
	waiting string
	// stopped are members that do not run and must leave. secondaries and primaries are the running
	// members. In all three the highest ordinal is first.
	stopped, secondaries, primaries []*facts.Member
}

// departureOf returns the progress of members that are being removed.
func departureOf(leavers []*facts.Member) departure {
	d := departure{over: true}
	for _, m := range slices.Backward(leavers) {
		if needsNoStop(m) && !m.MustLeave {
			continue
		}
		d.over = false
		switch {
		case m.MustLeave && m.Command == nil && whyCannotLeave(m) != "":
			d.wait(fmt.Sprintf("leave must run in %s, and %s%s", m.Name(), whyCannotLeave(m), HowToSkipLeave))
		case m.State == record.Idle && m.Command == nil:
			d.stopped = append(d.stopped, m)
		case m.State == record.Secondary:
			d.secondaries = append(d.secondaries, m)
		case m.State == record.Primary:
			d.primaries = append(d.primaries, m)
		case m.Command != nil:
			d.busy = true
			d.wait(fmt.Sprintf(
				"waiting for command %s in %s",
				m.Command.Name, m.Name(),
			))
			return d
		default:
			d.wait("cannot determine whether " + m.Name() + " runs: status does not respond")
		}
	}
	return d
}

// wait sets the reason of the delay, unless it is set already.
func (d *departure) wait(what string) {
	if d.waiting == "" {
		d.waiting = what
	}
}

// needsNoStop reports whether nothing must be stopped in a member that is being removed. The pod of a
// silent member is deleted, and its finalizer stays until the kubelet has stopped it.
func needsNoStop(m *facts.Member) bool {
	switch {
	case m.State == record.Pending, m.CannotRestart(), m.NeverAnswers():
		return true
	case m.State == record.Idle:
		return m.Command == nil
	}
	return m.NodeUnreachable() && !m.Granted
}

// stopLeavers removes members from the application and stops them, one after another: members that
// do not run, then secondaries, then primaries, the highest ordinal first. If no member stays, the
// newest copy is stopped last. A primary is stopped when another member can take its role.
func stopLeavers(f *facts.Facts, p *Plan, d departure) {
	if d.waiting != "" {
		p.WaitFor(v1alpha1.ReasonStopping, d.waiting)
	}
	why := "scaled down"
	if f.Deleting() {
		why = "the set is being deleted"
	}
	switch {
	case d.busy:
	case len(d.stopped) > 0:
		p.leave(f, d.stopped[0], why)
	case len(d.secondaries) > 0:
		stopFollower(f, p, d.secondaries[0], why)
	case len(d.primaries) == 0:
	case f.Wanted() == 0:
		p.askVersions(f, d.primaries)
		if all := copiesOf(d.primaries); all.answered() {
			p.stop(f, all.oldest(), why)
		}
	default:
		stopPrimary(f, p, d.primaries[0], why)
	}
}

// stopPrimary stops a primary that is being removed. If members can follow a primary, it is demoted, so
// that it runs while it leaves. Otherwise all members are primaries, and it leaves before.
func stopPrimary(f *facts.Facts, p *Plan, m *facts.Member, why string) {
	r := transfer{Facts: f, primary: m}
	others := r.otherPrimaries()
	switch {
	case f.LeavesAsPrimary(m) && others > 0:
		p.leave(f, m, why)
	case m.MustLeave && f.Configured(v1alpha1.CommandSecondary) && others < f.WantedPrimaries():
		demoteWithSuccessor(f, p, r, why)
	default:
		stopWithSuccessor(f, p, m, why)
	}
}

// stopFollower stops a secondary that is being removed, after it has left the application. Its
// sequence must be on record first, because the staying members may lack its data.
func stopFollower(f *facts.Facts, p *Plan, m *facts.Member, why string) {
	if f.Wanted() > 0 {
		p.askVersions(f, []*facts.Member{m})
		if !m.Version.Answered {
			p.WaitFor(v1alpha1.ReasonStopping, "waiting for a response from sequence in "+m.Name())
			return
		}
	}
	if m.MustLeave {
		p.leave(f, m, why)
		return
	}
	p.stop(f, m, why)
}

// Command leave runs in a member that a scale-down removes, so that the application forgets the
// member. It runs before the member is stopped, because the application may need the member to
// agree. A primary hands over its role before, unless all members are primaries. In a member that
// does not run, it runs in the idle container. The member is removed only after leave has succeeded.

// whyCannotLeave states why leave cannot run in a member now. It is "" if it can.
func whyCannotLeave(m *facts.Member) string {
	switch {
	case m.Terminating():
		return "its pod is being deleted"
	case m.NodeUnreachable():
		return "its Node is unreachable"
	case !m.Reachable():
		return "its container does not run"
	case m.State == record.Unknown:
		return "status has not responded yet"
	}
	return ""
}

// leaverWithoutPod returns the member with the highest ordinal that must leave, and whose pod does not
// exist. It returns -1 if there is none.
func (s scaling) leaverWithoutPod() int {
	highest := -1
	if s.Wanted() == 0 || !s.Configured(v1alpha1.CommandLeave) {
		return highest
	}
	for _, m := range s.Record.Memberships {
		ordinal, ok := spec.OrdinalOf(s.Set, m.Pod)
		if ok && ordinal >= s.Wanted() && m.State != v1alpha1.MembershipLeft && s.Named(m.Pod) == nil {
			highest = max(highest, ordinal)
		}
	}
	return highest
}

// awaitLeaver waits for the pod of a member that must leave. If the StatefulSet does not create it, it is
// scaled up.
func awaitLeaver(f *facts.Facts, p *Plan, have, ordinal int) {
	p.WaitFor(v1alpha1.ReasonScaling, fmt.Sprintf("leave must run in %s, whose pod does not exist yet%s", spec.MemberName(f.Set, ordinal), HowToSkipLeave))
	if have <= ordinal {
		resize(f, p, have, ordinal+1)
	}
}

// waitsToLeave reports whether members must leave, and the state of all members to remove is known. It is
// called when mayShrink is true.
func (s scaling) waitsToLeave() bool {
	if slices.ContainsFunc(s.leavers, func(m *facts.Member) bool { return m.State == record.Unknown }) {
		return false
	}
	return slices.ContainsFunc(s.leavers, func(m *facts.Member) bool { return m.MustLeave })
}
