package replicatedstatefulset

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// facts is what rules look at: a world, and what follows from it. They are made once a
// pass, by derive, and no rule changes them.
type facts struct {
	*world
	// members are those of the world, with what is known of each.
	members
	// record is what the status remembers, brought up to date with the world.
	record record
}

// members are the pods of a set, by ordinal.
type members []*member

// known is what follows for one member from the world and the record.
type known struct {
	// state is what its application is known to be. shown is the same, or while that is
	// unknown, what it was last shown as.
	state, shown state
	// command is the one of the record in its pod, and failure what failed in it lately;
	// nil if there is none.
	command *v1alpha1.RunningCommand
	failure *v1alpha1.Failure
	// granted is true if a container of the pod may be primary, grantedHere if the one
	// that runs may.
	granted, grantedHere bool
	// poweredOff is what an administrator says of its machine. fenced is true if the pod
	// will not start either when the machine is on again: it is deleted, or has ended.
	poweredOff, fenced bool
	// toLeave is true of one that is to leave its Node: that is cordoned, or its eviction was
	// asked for lately.
	toLeave bool
	// upToDate is true of a pod that was made from the present template, or brought to it.
	upToDate bool
	// written is true if the status, as it is stored or should be, speaks of the pod.
	written bool
	// stranger says why the pod was not made for this set; "" if nothing says so.
	stranger string
	// version is how new its copy is.
	version version
	// retained is true of one that is not wanted, and stays until another has its data;
	// leaves of one that goes.
	retained, leaves bool
	// listed is true of one that is in spec.maintenance, parked of one that a person may
	// work on: nothing is told to it.
	listed, parked bool
	// cannotRunHere is true of one that may not be started in this pod: its exit code said
	// that it cannot work there.
	cannotRunHere bool
	// retryAt is when it may be started again after starts or stops that failed.
	retryAt time.Time
	// notAnswering is true if it runs, and status has not answered for answersWithin.
	notAnswering bool
	// unreadySince is since when its pod has not been Ready, and not before it was told
	// to be primary.
	unreadySince time.Time
	// hindrance is the first of startChecks that it does not pass; "" if it may be told
	// to start, or to take a role.
	hindrance string
}

// derive finds out what follows from a world, and leaves the world as it is.
func derive(w *world) *facts {
	f := &facts{world: w}
	for _, m := range w.members {
		copied := *m
		f.members = append(f.members, &copied)
	}
	f.judgePods()
	f.record = recordOf(&w.set.Status)
	f.record.before = restore{w}.epochBefore()
	f.record.endCommands(f)
	f.judgeStates()
	f.record.endGrants(f)
	f.record.grantPrimaries(f)
	f.judgeGrants()
	parking{f}.judge()
	f.record.noteOrders(f)
	f.record.forgive(f)
	f.judgeFailures()
	f.record.noteVersions(f)
	f.judgeCopies()
	for _, m := range f.members {
		m.hindrance = whyNotStartable(f, m)
	}
	return f
}

// judgePods finds out what needs neither a state nor the record.
func (f *facts) judgePods() {
	for _, m := range f.members {
		m.poweredOff = f.isPoweredOff(m)
		m.fenced = m.poweredOff && m.goesForGood()
		m.toLeave = m.node.Cordoned || f.wasToBeEvicted(m)
		m.upToDate = f.isUpToDate(m)
		m.notAnswering = m.reachable() && f.answersTooLate(m)
	}
}

// judgeStates is for after the commands are known whose end was not seen: no answer of a
// member in which one may run proves anything.
func (f *facts) judgeStates() {
	for _, m := range f.members {
		m.command = commandOf(f.record.commands, m.pod.UID)
		m.state = f.stateOf(m, m.command)
	}
}

// judgeGrants is for after the grants are known.
func (f *facts) judgeGrants() {
	for _, m := range f.members {
		m.granted = f.record.grants(m)
		m.grantedHere = f.record.grantsRunning(m)
		m.written = m.granted || f.isStored(m)
		m.stranger = f.whyStranger(m, m.written)
		m.shown = f.shownAs(m)
		m.unreadySince = f.unreadySince(m)
	}
}

// judgeFailures is for after the failures are known.
func (f *facts) judgeFailures() {
	for _, m := range f.members {
		m.failure = f.record.failureOf(m)
		if m.failure != nil {
			m.cannotRunHere = cannotRun(m.failure, f.set.Generation)
			m.retryAt = m.failure.Last.Add(again(int(m.failure.Count)))
		}
	}
}

// judgeCopies is for after all states and grants are known.
func (f *facts) judgeCopies() {
	for _, m := range f.members {
		m.version = f.versionOf(m)
	}
	for _, m := range f.members {
		m.retained = f.isRetained(m)
		m.leaves = m.ordinal >= f.wanted() && !m.retained
	}
}

// isPoweredOff reports whether an administrator says that the member's machine is off, or
// its Node has been gone for long.
func (c *clock) isPoweredOff(m *member) bool {
	if m.node.Missing {
		return c.watch.Elapsed(m.node.MissingSince, c.now) >= fenceAfter
	}
	return m.node.OutOfService && !m.node.Ready
}

// wasToBeEvicted reports whether the eviction of the member was asked for lately.
func (c *clock) wasToBeEvicted(m *member) bool {
	return entry{At: m.evictionAt}.isWithin(evictionFor, c.now)
}

// isUpToDate reports whether the member was made from the present template, or brought to it.
func (w *world) isUpToDate(m *member) bool {
	if w.stateful == nil {
		return true
	}
	if isChangedInPlace(m.pod) {
		return false // it may have the resources of another one
	}
	return m.pod.Annotations[v1alpha1.AnnotationTemplate] == w.stateful.Spec.Template.Annotations[v1alpha1.AnnotationTemplate]
}

// answersTooLate reports whether status has not answered for answersWithin. What the
// status of the object says of that stays until it answers: a new operator has not asked
// that long.
func (c *clock) answersTooLate(m *member) bool {
	if m.askedAt.IsZero() {
		return m.unheard
	}
	return m.unheard || c.watch.Elapsed(m.askedAt, c.now) >= answersWithin
}

// shownAs is the state of a member, or while that is not known what it was last shown as:
// a restart of the operator changes nothing, nor does an answer that was lost.
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

// isRetained reports whether a member that is not wanted stays until another has its data:
// no member is primary, and no wanted member is known to have a copy as new.
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

// sinceLoss is how new the member's copy is, by what it said since the last primary went.
func (w *world) sinceLoss(m *member) (n uint64, said bool) {
	r, ok := m.answer(v1alpha1.CommandSequence)
	n, known := sequenceOf(r)
	return n, ok && known && r.Began.After(w.lossAt)
}

// containerGone reports whether a container has ended, by the kubelet's word, or can be
// taken to have by an administrator's.
func (all members) containerGone(pod types.UID, id string) bool {
	m := all.byUID(pod)
	if stopped(m) {
		return true
	}
	for i := range m.pod.Status.ContainerStatuses {
		s := &m.pod.Status.ContainerStatuses[i]
		last := s.LastTerminationState.Terminated
		switch {
		case last != nil && last.ContainerID == id:
			return true
		case s.ContainerID == id:
			return s.State.Terminated != nil
		}
	}
	// The kubelet names the newest container that it made: the one before is gone.
	c := m.container()
	return c != nil && c.ContainerID != ""
}

// nextContainer is the member in which another container runs under the name of a pod, in
// the place of the one with that id; nil if none does.
func (all members) nextContainer(pod, id string) *member {
	m := all.named(pod)
	if m == nil || m.running() == "" || m.running() == id {
		return nil
	}
	if all.containerGone(m.pod.UID, m.running()) {
		return nil
	}
	return m
}

// wasHandedOver reports whether the member is the primary that went last, and was stopped
// when another member had all of its data.
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

// Members of a kind.

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

// primaries are the members that run as primary and will go on to.
func (all members) primaries() []*member { return all.among((*member).isPrimary) }

// candidates are the members of a state that may be started, or take a role.
func (all members) candidates(s state) []*member {
	return all.among(func(m *member) bool { return m.state == s && m.startable() })
}

// peers are the names under which the primaries are found.
func (f *facts) peers() (names []string) {
	for _, m := range f.primaries() {
		names = append(names, m.name()+"."+serviceName(f.set))
	}
	return names
}

// Questions about the set.

// fatal says why no member may be started before the spec is another; "" if they may. OCF
// calls exit code 6 "not configured".
func (f *facts) fatal() string {
	for _, x := range f.record.failures {
		if x.Code == ocfNotConfigured && x.Generation == f.set.Generation {
			return "the application says that it is configured wrongly (exit code 6 of " + x.Command + " in " + x.Pod + "); edit the spec"
		}
	}
	return ""
}

// starts reports whether a member may be started at all.
func (f *facts) starts() bool { return f.serves() && !f.deleting() && f.fatal() == "" }

// wellStaffed reports whether nothing is missing: that many primaries, and all other wanted
// members as secondaries, or idle where there is no such command, or parked.
func (f *facts) wellStaffed() bool {
	return f.staffed(func(m *member) state { return m.state })
}

// shownWellStaffed is the same by what members are shown as.
func (f *facts) shownWellStaffed() bool {
	return f.staffed(func(m *member) state { return m.shown })
}

func (f *facts) staffed(stateOf func(*member) state) bool {
	expected := parking{f}.expected()
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
			// A person works on it.
		case !f.isAtRest(s):
			return false
		}
	}
	return primaries == expected
}

// isAtRest reports whether a state is what a member should be in that is no primary.
func (w *world) isAtRest(s state) bool {
	if w.configured(v1alpha1.CommandSecondary) {
		return s == secondary
	}
	return s == secondary || s == idle
}
