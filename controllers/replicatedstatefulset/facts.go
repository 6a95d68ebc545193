package replicatedstatefulset

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// facts is the input of all rules: a world and everything derived from it. derive creates it once
// per pass. Rules do not change it.
type facts struct {
	*world
	// members are those of the world, with the derived facts of each.
	members
	// observed is the part of the world by which the record was updated.
	observed *observation
	// record is the record in the status, updated from the world.
	record record
}

// members are the pods of a set, sorted by ordinal.
type members []*member

// known are the facts of one member that derive computes from the world and the record.
type known struct {
	// state is the known state of the application. shown is the same; while state is unknown, shown
	// is the last reported state.
	state, shown state
	// command is the recorded command in the pod, and failure its recent failure. Both are nil if
	// there is none.
	command *v1alpha1.RunningCommand
	failure *v1alpha1.Failure
	// granted is true if any container of the pod may be primary. grantedHere is true if the
	// running container may.
	granted, grantedHere bool
	// poweredOff is true if an administrator declared the machine off. fenced is true if the pod
	// also cannot start after the machine is on again, because the pod is terminating or has ended.
	poweredOff, fenced bool
	// toLeave is true if the member should leave its Node: the Node is cordoned, or an eviction was
	// requested recently.
	toLeave bool
	// upToDate is true if the pod was created from the current template or updated to it in place.
	upToDate bool
	// written is true if the pod is in the status, as stored or as it should be.
	written bool
	// stranger states why the pod was not created for this set. It is "" if no reason is found.
	stranger string
	// version is the version of the member's copy.
	version version
	// retained is true if the member is not wanted, but stays until another member has its data.
	// leaves is true if the member will be removed.
	retained, leaves bool
	// listed is true if the member is in spec.maintenance. parked is true if the operator sends it
	// no mutating command, so that a user can work on it.
	listed, parked bool
	// cannotRunHere is true if the member may not be started in this pod, because the exit code of
	// a command reported that it cannot work there.
	cannotRunHere bool
	// retryAt is when the member may be started again after failed starts or stops.
	retryAt time.Time
	// notAnswering is true if the member runs, and status has not answered for answersWithin.
	notAnswering bool
	// unreadySince is when the pod became unready, but not before the command to become primary.
	unreadySince time.Time
	// hindrance is the first of startChecks that fails. It is "" if the member may be started or
	// take a role.
	hindrance string
}

// derive computes the facts of a world. It does not change the world.
func derive(w *world) *facts {
	f := &facts{world: w}
	for _, m := range w.members {
		copied := *m
		f.members = append(f.members, &copied)
	}
	f.judgePods()
	f.observed = f.observe()
	f.record = update(&w.set.Status, f.observed)
	f.judgeStates()
	f.judgeGrants()
	judgeParking(f)
	f.judgeFailures()
	f.judgeCopies()
	for _, m := range f.members {
		m.hindrance = whyNotStartable(f, m)
	}
	return f
}

// observe returns the part of the world by which the record is updated. It runs after judgePods.
func (f *facts) observe() *observation {
	o := &observation{set: f.set, now: f.now, watch: f.watch, invalid: f.invalid != "", wanted: f.wanted(), target: f.target()}
	for _, m := range f.members {
		o.members = append(o.members, m.observed())
	}
	return o
}

// judgePods sets the facts that need neither a state nor the record.
func (f *facts) judgePods() {
	for _, m := range f.members {
		m.poweredOff = f.isPoweredOff(m)
		m.fenced = m.poweredOff && m.goesForGood()
		m.toLeave = m.node.Cordoned || f.wasToBeEvicted(m)
		m.upToDate = f.isUpToDate(m)
		m.notAnswering = m.reachable() && f.answersTooLate(m)
	}
}

// judgeStates sets the commands and states.
func (f *facts) judgeStates() {
	for _, m := range f.members {
		m.command = commandOf(f.record.commands, m.pod.UID)
		m.state = f.stateOf(m, m.command)
	}
}

// judgeGrants runs after the states are known.
func (f *facts) judgeGrants() {
	for _, m := range f.members {
		m.granted = f.record.grants(m.identity())
		m.grantedHere = f.record.grantsRunning(m.identity())
		m.written = m.granted || f.isStored(m)
		m.stranger = f.whyStranger(m, m.written)
		m.shown = f.shownAs(m)
		m.unreadySince = f.unreadySince(m)
	}
}

// judgeFailures sets the facts about recent failures.
func (f *facts) judgeFailures() {
	for _, m := range f.members {
		m.failure = f.record.failureOf(m.identity())
		if m.failure != nil {
			m.cannotRunHere = cannotRun(m.failure, f.set.Generation)
			m.retryAt = m.failure.Last.Add(backoff(int(m.failure.Count)))
		}
	}
}

// judgeCopies runs after all states and grants are known.
func (f *facts) judgeCopies() {
	for _, m := range f.members {
		m.version = f.versionOf(m)
	}
	for _, m := range f.members {
		m.retained = f.isRetained(m)
		m.leaves = m.ordinal >= f.wanted() && !m.retained
	}
}

// isPoweredOff reports whether an administrator declared the member's machine off, or its Node has
// been missing for fenceAfter.
func (c *clock) isPoweredOff(m *member) bool {
	if m.node.Missing {
		return c.watch.Elapsed(m.node.MissingSince, c.now) >= fenceAfter
	}
	return m.node.OutOfService && !m.node.Ready
}

// wasToBeEvicted reports whether the eviction of the member was requested recently.
func (c *clock) wasToBeEvicted(m *member) bool {
	return entry{At: m.evictionAt}.isWithin(evictionFor, c.now)
}

// isUpToDate reports whether the pod was created from the current template or updated to it in
// place.
func (w *world) isUpToDate(m *member) bool {
	if w.stateful == nil {
		return true
	}
	if isChangedInPlace(m.pod) {
		return false // it may have the resources of another template
	}
	return m.pod.Annotations[v1alpha1.AnnotationTemplate] == w.stateful.Spec.Template.Annotations[v1alpha1.AnnotationTemplate]
}

// answersTooLate reports whether status has not answered for answersWithin. An entry in the status
// of the object stays until the member answers, because a new operator process has not been asking
// for that long.
func (c *clock) answersTooLate(m *member) bool {
	if m.askedAt.IsZero() {
		return m.unheard
	}
	return m.unheard || c.watch.Elapsed(m.askedAt, c.now) >= answersWithin
}

// shownAs returns the state of a member, or the last reported state while it is unknown. So a
// restart of the operator or a lost response changes no reported state.
func (w *world) shownAs(m *member) state {
	was, name := &w.set.Status.Members, m.name()
	wasPrimary := slices.Contains(was.Primary, name)
	switch {
	case m.state != unknown:
		return m.state
	case wasPrimary && m.grantedHere:
		return primary
	case slices.Contains(was.Secondary, name):
		return secondary
	case slices.Contains(was.Failed, name):
		return failed
	case slices.Contains(was.Ready, name) && !wasPrimary && !w.configured(v1alpha1.CommandSecondary):
		return idle
	}
	return unknown
}

// isRetained reports whether an unwanted member stays until another member has its data: no member
// is primary, and no wanted member is known to have an equally new copy.
func (f *facts) isRetained(m *member) bool {
	wanted := f.wanted()
	if wanted == 0 || m.ordinal < wanted || f.record.hasGrants() || !m.couldBeFirst() {
		return false
	}
	mine, known := f.sinceLoss(m)
	if !known {
		return true
	}
	return !slices.ContainsFunc(f.members, func(o *member) bool {
		n, said := f.sinceLoss(o)
		return o.ordinal < wanted && o.couldBeFirst() && said && n >= mine
	})
}

// sinceLoss returns the sequence of the member if it was read after the loss of the last primary.
func (w *world) sinceLoss(m *member) (n uint64, said bool) {
	r, ok := m.answer(v1alpha1.CommandSequence)
	n, known := sequenceOf(r)
	return n, ok && known && r.Began.After(w.lossAt)
}

// wasHandedOver reports whether the member is the last lost primary and was stopped when another
// member had all of its data.
func (f *facts) wasHandedOver(m *member) bool {
	if m.pod.UID != f.lossOf {
		return false
	}
	r, ok := m.result(v1alpha1.CommandStop)
	if !ok || r.Outcome != podexec.Succeeded || r.Ended.Before(m.changedAt()) {
		return false
	}
	return r.Proven
}

func (all members) among(is func(*member) bool) (found []*member) {
	for _, m := range all {
		if is(m) {
			found = append(found, m)
		}
	}
	return found
}

func (all members) named(name string) *member {
	for _, m := range all {
		if m.name() == name {
			return m
		}
	}
	return nil
}

func (all members) byUID(uid types.UID) *member {
	for _, m := range all {
		if m.pod.UID == uid {
			return m
		}
	}
	return nil
}

// primaries returns the members that run as primary and are not about to stop.
func (all members) primaries() []*member { return all.among((*member).isPrimary) }

// candidates returns the members in the state that may be started or take a role.
func (all members) candidates(s state) []*member {
	return all.among(func(m *member) bool { return m.state == s && m.startable() })
}

// peers returns the DNS names of the primaries.
func (f *facts) peers() (names []string) {
	for _, m := range f.primaries() {
		names = append(names, m.name()+"."+serviceName(f.set))
	}
	return names
}

// fatal states why no member may be started before the spec changes. It is "" if members may be
// started. OCF calls exit code 6 "not configured".
func (f *facts) fatal() string {
	for _, x := range f.record.failures {
		if x.Code == ocfNotConfigured && x.Generation == f.set.Generation {
			return "the application reports a configuration error (exit code 6 of " + x.Command + " in " + x.Pod + "); edit the spec"
		}
	}
	return ""
}

// starts reports whether any member may be started.
func (f *facts) starts() bool { return f.serves() && !f.deleting() && f.fatal() == "" }

// wellStaffed reports whether nothing is missing: the wanted number of members is primary, and all
// others are secondary or parked, or idle where there is no secondary command.
func (f *facts) wellStaffed() bool {
	return f.staffed(func(m *member) state { return m.state })
}

// shownWellStaffed is wellStaffed for the reported states.
func (f *facts) shownWellStaffed() bool {
	return f.staffed(func(m *member) state { return m.shown })
}

func (f *facts) staffed(stateOf func(*member) state) bool {
	expected := expectedPrimaries(f)
	switch {
	case len(f.members) != f.wanted():
		return false
	case len(f.record.commands) > 0:
		return false
	case f.record.primaries() != expected:
		return false
	}
	primaries := 0
	for _, m := range f.members {
		s := stateOf(m)
		switch {
		case s == primary:
			primaries++
		case m.parked:
			// A user works on it.
		case !f.isAtRest(s):
			return false
		}
	}
	return primaries == expected
}

// isAtRest reports whether the state is the expected one of a member that is not primary.
func (w *world) isAtRest(s state) bool {
	if w.configured(v1alpha1.CommandSecondary) {
		return s == secondary
	}
	return s == secondary || s == idle
}
