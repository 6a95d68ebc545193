package replicatedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// judgeParking sets the maintenance facts. It runs after the states and grants are known. A set that is
// being deleted stops all members, so none is listed.
func judgeParking(f *facts) {
	for _, m := range f.members {
		m.listed = isListed(f.set, m.name())
		m.parked = m.listed && f.record.maintenanceOf(m.name()).State == v1alpha1.MaintenanceParked
	}
}

// maintained returns the members of spec.maintenance by ordinal, including those without a pod.
func maintained(set *v1alpha1.ReplicatedStatefulSet) (names []string) {
	if set.DeletionTimestamp != nil {
		return nil
	}
	for _, name := range set.Spec.Maintenance {
		if _, ok := ordinalOf(set, name); ok {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(len(a)-len(b), strings.Compare(a, b))
	})
	return slices.Compact(names)
}

// impossibleNames returns the names in spec.maintenance that no member of the set can have.
func impossibleNames(f *facts) (names []string) {
	for _, name := range f.set.Spec.Maintenance {
		if _, ok := ordinalOf(f.set, name); !ok && !f.deleting() {
			names = append(names, name)
		}
	}
	return names
}

// maintenanceState returns the maintenance state of a member of spec.maintenance. was is its previous state.
func (r *record) maintenanceState(o *observation, pod string, was v1alpha1.MaintenanceState) v1alpha1.MaintenanceState {
	switch {
	case r.grantsName(pod):
		return v1alpha1.MaintenanceHandingOver
	case was == v1alpha1.MaintenanceHandingOver && !r.rolesAreFilled(o):
		return v1alpha1.MaintenanceHandingOver // it may still have the newest copy
	case r.runsIn(pod):
		return v1alpha1.MaintenanceWaiting
	}
	return v1alpha1.MaintenanceParked
}

// rolesAreFilled reports whether the other members have all primary roles that members can take
// over. If no members follow the primaries, all primaries have the same data, and one is enough.
func (r *record) rolesAreFilled(o *observation) bool {
	need := o.target
	if !hasFollowers(o.set, o.wanted, o.target) {
		need = min(need, 1)
	}
	filled := 0
	for i := range o.members {
		m := &o.members[i]
		if r.stateOf(o, m) == primary && !m.terminating && !isListed(o.set, m.name) {
			filled++
		}
	}
	return filled >= need
}

// unlistedPrimaries returns the primaries that are not to be parked.
func unlistedPrimaries(f *facts) []*member {
	return f.among(func(m *member) bool { return m.isPrimary() && !m.listed && !m.leaves })
}

// expectedPrimaries returns the expected number of primaries. If all members are primary, parked members
// reduce it.
func expectedPrimaries(f *facts) int {
	if f.target() == 0 {
		return 0
	}
	return max(1, min(f.target(), f.wanted()-len(parkedMembers(f))))
}

func parkedMembers(f *facts) []*member { return f.among(func(m *member) bool { return m.parked }) }

// primaryToPark returns the first primary that must hand its role over to be parked. It returns nil if
// there is none.
func primaryToPark(f *facts) *member {
	for _, m := range f.members {
		if m.listed && m.shown == primary && !m.terminating() && !m.leaves {
			return m
		}
	}
	return nil
}

// listedSurplus returns the unwanted members that stay because they are in spec.maintenance.
func listedSurplus(f *facts) []*member {
	return f.among(func(m *member) bool { return m.listed && m.ordinal >= f.wanted() })
}

// park updates the states of the members of spec.maintenance.
func (r *record) park(o *observation) {
	if o.invalid {
		return
	}
	before := r.maintenance
	r.maintenance = nil
	for _, pod := range maintained(o.set) {
		i := slices.IndexFunc(before, func(x v1alpha1.MemberMaintenance) bool { return x.Pod == pod })
		now := v1alpha1.MemberMaintenance{Pod: pod}
		if i >= 0 {
			now = before[i]
		}
		if is := r.maintenanceState(o, pod, now.State); is != now.State {
			now.State, now.Since = is, metav1.NewTime(o.now)
			r.tellParked(now)
		}
		r.maintenance = append(r.maintenance, now)
	}
	for _, x := range before {
		if x.State == v1alpha1.MaintenanceParked && r.maintenanceOf(x.Pod).State != x.State {
			r.tell(v1alpha1.EventMemberUnparked, "%s is no longer parked", x.Pod)
		}
	}
}

func (r *record) tellParked(now v1alpha1.MemberMaintenance) {
	if now.State == v1alpha1.MaintenanceParked {
		r.tell(v1alpha1.EventMemberParked, "%s is parked, as spec.maintenance requires", now.Pod)
	}
}

// maintenanceOf returns the maintenance state of a member. It is empty if the member is not in
// spec.maintenance.
func (r *record) maintenanceOf(pod string) v1alpha1.MemberMaintenance {
	for _, x := range r.maintenance {
		if x.Pod == pod {
			return x
		}
	}
	return v1alpha1.MemberMaintenance{}
}

// runsIn reports whether a command in a pod of that name is on record.
func (r *record) runsIn(pod string) bool {
	return slices.ContainsFunc(r.commands, func(c v1alpha1.RunningCommand) bool { return c.Pod == pod })
}

// parkPrimary hands over the role of a listed primary, which is parked afterwards. Like the
// switchover of a primary on a cordoned Node, it begins only at rest.
func parkPrimary(f *facts, p *plan) {
	m := primaryToPark(f)
	if m == nil {
		return
	}
	p.LookAgain(triedUntil(m).Sub(f.now))
	if whyNotParked(f, m).Reason != "" {
		return
	}
	const why = "it is in spec.maintenance"
	if isSpareToPark(f) {
		p.stop(f, m, why+", and other primaries are running")
		return
	}
	handOver(f, p, relief{facts: f, old: m, away: true}, why)
}

// isSpareToPark reports whether a primary may stop without a successor because other primaries have the
// same data.
func isSpareToPark(f *facts) bool { return len(unlistedPrimaries(f)) > 0 && !f.hasFollowers() }

// parkChecks are the conditions under which a primary cannot hand its role over now, the
// longest-lasting first.
var parkChecks = []func(*facts, *member) notice{
	notServed, isHandingOver, isMissing, demoteFailed, noneFollows, askedOtherwise, beingUpdated, triedLately,
}

// whyNotParked returns the notice of the first of parkChecks that fails.
func whyNotParked(f *facts, m *member) notice { return firstNotice(f, parkChecks, m) }

// noneFollows checks that a member exists that can have the data of the primary. Without one, no
// member can take its role.
func noneFollows(f *facts, m *member) notice {
	switch {
	case isSpareToPark(f):
		return notice{}
	case !f.hasFollowers():
		return notice{Reason: v1alpha1.ReasonNoSuccessor, Message: "it has no secondary, so no other member has its data"}
	}
	return noSuccessorLeft(f, m)
}

// inMaintenance is the start check that a member is not parked.
func inMaintenance(_ *facts, m *member) string {
	if m.parked {
		return "it is in spec.maintenance"
	}
	return ""
}

// maintenance returns condition Maintenance, which lists the parked members, and how to end
// maintenance.
func maintenance(p *plan) metav1.Condition {
	k := p.on
	c := metav1.Condition{Type: v1alpha1.ConditionMaintenance, Status: metav1.ConditionTrue}
	if len(maintained(k.set))+len(impossibleNames(k)) == 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNoMaintenance, "spec.maintenance is empty"
		return c
	}
	all := []notice{parkingUnderWay(k, p), parkedNotice(k), absentNotice(k), impossibleNotice(k)}
	var texts []string
	for _, found := range all {
		if found.Reason != "" {
			c.Reason = cmp.Or(c.Reason, found.Reason)
			texts = append(texts, found.Message)
		}
	}
	c.Message = strings.Join(texts, ". ") + fmt.Sprintf(
		". To end maintenance, remove members from the list, or all of them: kubectl -n %s patch rss %s --type=merge -p '{\"spec\":{\"maintenance\":null}}'",
		k.set.Namespace, k.set.Name)
	return c
}

// parkingUnderWay states what must happen before all listed members are parked. It is empty if all are.
func parkingUnderWay(f *facts, p *plan) notice {
	if m := primaryToPark(f); m != nil {
		found := whyNotParked(f, m)
		text := fmt.Sprintf("%s is primary and will be parked when another member has its role: %s",
			m.name(), cmp.Or(found.Message, p.Waiting.Message, "the handover is in progress"))
		if found.Reason == v1alpha1.ReasonNoSuccessor {
			text += fmt.Sprintf(". To work on it as primary, without failovers: kubectl -n %s patch rss %s --type=merge -p '{\"spec\":{\"paused\":true}}'",
				f.set.Namespace, f.set.Name)
		}
		return notice{Reason: cmp.Or(found.Reason, v1alpha1.ReasonHandingOver), Message: text}
	}
	for _, x := range f.record.maintenance {
		switch x.State {
		case v1alpha1.MaintenanceHandingOver:
			return notice{Reason: v1alpha1.ReasonHandingOver, Message: x.Pod + " will be parked when another member has its role"}
		case v1alpha1.MaintenanceWaiting:
			return notice{Reason: v1alpha1.ReasonWaitingForCommand, Message: x.Pod + " will be parked when its command has ended"}
		}
	}
	return notice{}
}

// parkedNotice lists the members on which a user can work.
func parkedNotice(f *facts) notice {
	parked := parkedMembers(f)
	if len(parked) == 0 {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonParked, Message: "parked: " + namesOf(parked) +
		"; they get no command except status and sequence, no clients, and no role"}
}

// absentNotice lists the members of spec.maintenance that do not exist now. They are parked when they
// appear.
func absentNotice(f *facts) notice {
	var names []string
	for _, name := range maintained(f.set) {
		if f.named(name) == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonNoSuchMember, Message: "without a pod, and parked when it is created: " + strings.Join(names, ", ")}
}

// impossibleNotice lists the names in spec.maintenance that no member of this set can have.
func impossibleNotice(f *facts) notice {
	names := impossibleNames(f)
	if len(names) == 0 {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonNoSuchMember, Message: fmt.Sprintf(
		"no member of this set can have the name %s; correct it", strings.Join(names, ", "))}
}

// waitForNewest states why no member with the newest copy is started. Members in maintenance still
// block the start of older copies.
func (p *plan) waitForNewest(newest copies) {
	p.WaitFor(v1alpha1.ReasonRecovering, cannotStart(newest[0]))
	if !slices.ContainsFunc(newest, func(m *member) bool { return !m.parked }) {
		p.risk = fmt.Sprintf("%s has the newest copy, sequence %d, and is in spec.maintenance", newest[0].name(), newest[0].version.sequence)
	}
}

// isListed reports whether a member is in spec.maintenance of a set that is not being deleted.
func isListed(set *v1alpha1.ReplicatedStatefulSet, member string) bool {
	return set.DeletionTimestamp == nil && slices.Contains(set.Spec.Maintenance, member)
}

// hasFollowers reports whether some of the wanted members are not primary and run as secondaries.
func hasFollowers(set *v1alpha1.ReplicatedStatefulSet, wanted, target int) bool {
	return target < wanted && hasCommand(set, v1alpha1.CommandSecondary)
}
