package replicatedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// record is the persistent state of a set in its status. It contains the members that may be
// primary and the commands that may still run. An entry is written before it becomes true and
// removed only on proof, so the record is always a superset of the truth.
type record struct {
	epoch int64
	// before is the epoch that the next epoch must exceed.
	before   int64
	granted  []v1alpha1.Grant
	commands []v1alpha1.RunningCommand
	failures []v1alpha1.Failure
	versions []v1alpha1.Sequence
	// maintenance are the states of the members of spec.maintenance.
	maintenance []v1alpha1.MemberMaintenance
	// orders are the orders in the spec, with their results.
	orders orderBook
	// learned are the observations of this pass, for users.
	learned []Learned
}

// Learned is an observation that is reported as an event. Kind and Reason are the type and reason
// of the event.
type Learned struct{ Kind, Reason, Text string }

// update advances a stored record by what a pass has read. The order matters: an answer of a member
// proves nothing while a command with an unknown outcome may still run in it.
func update(stored *v1alpha1.ReplicatedStatefulSetStatus, o *observation) record {
	r := recordOf(stored)
	r.before = o.formerEpoch()
	r.endCommands(o)
	r.endGrants(o)
	r.grantPrimaries(o)
	r.park(o)
	r.noteOrders(o)
	r.forgive(o)
	r.noteVersions(o)
	return r
}

// recordOf returns the stored record. It shares no memory with the status.
func recordOf(status *v1alpha1.ReplicatedStatefulSetStatus) record {
	s := status.DeepCopy()
	return record{
		epoch:       s.Epoch,
		granted:     s.Grants,
		commands:    s.Commands,
		failures:    s.Failures,
		versions:    s.Sequences,
		maintenance: s.Maintenance,
		orders:      s.Orders,
	}
}

// into writes the record into a status.
func (r *record) into(s *v1alpha1.ReplicatedStatefulSetStatus) {
	s.Epoch, s.Grants, s.Commands, s.Failures, s.Sequences = r.epoch, r.granted, r.commands, r.failures, r.versions
	s.Maintenance, s.Orders = r.maintenance, r.orders
}

func (r *record) tell(reason, format string, args ...any) {
	r.learned = append(
		r.learned,
		Learned{corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...)},
	)
}

func (r *record) warn(reason, format string, args ...any) {
	r.learned = append(
		r.learned,
		Learned{corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...)},
	)
}

// primaries returns how many members may be primary.
func (r *record) primaries() int { return len(r.granted) }

func (r *record) hasGrants() bool { return len(r.granted) > 0 }

// grants reports whether a container of the member may be primary.
func (r *record) grants(m identity) bool {
	return slices.ContainsFunc(r.granted, func(g v1alpha1.Grant) bool { return g.UID == m.podUID })
}

// grantsRunning reports whether the running container of the member may be primary.
func (r *record) grantsRunning(m identity) bool {
	return slices.ContainsFunc(r.granted, func(g v1alpha1.Grant) bool {
		return g.UID == m.podUID && g.ContainerID == m.container
	})
}

// grantedAt returns when the running container of the member got its grant. It returns nil if it has
// none.
func (r *record) grantedAt(m identity) *metav1.MicroTime {
	for _, g := range r.granted {
		if g.UID == m.podUID && g.ContainerID == m.container {
			return &g.Since
		}
	}
	return nil
}

// stateOf returns the state of a member. It is unknown while a command with an unknown outcome may
// run in it.
func (r *record) stateOf(o *observation, m *observedMember) state {
	return o.stateOf(m, commandOf(r.commands, m.podUID))
}

// grantsName reports whether a pod of that name may be primary.
func (r *record) grantsName(pod string) bool {
	return slices.ContainsFunc(r.granted, func(g v1alpha1.Grant) bool { return g.Pod == pod })
}

// startsIn reports whether a start with an unknown outcome may make the grant's container primary.
func (r *record) startsIn(g *v1alpha1.Grant) bool {
	return slices.ContainsFunc(r.commands, func(c v1alpha1.RunningCommand) bool {
		return startsPrimary(c.Name) && c.Pod == g.Pod && c.ContainerID == g.ContainerID
	})
}

// failureOf returns the recent failure in the member's pod. It returns nil if there is none.
func (r *record) failureOf(m identity) *v1alpha1.Failure {
	for i := range r.failures {
		x := &r.failures[i]
		if x.UID == m.podUID {
			return x
		}
		if x.Pod == m.name && isUnconfirmedStart(x) {
			return x
		}
	}
	return nil
}

// isUnconfirmedStart reports whether a start ended with 0 and made no primary. Its pod was
// recreated because of it. The failure also counts for the next pod of that name.
func isUnconfirmedStart(x *v1alpha1.Failure) bool { return x.Code == 0 && startsPrimary(x.Command) }

// hasUnconfirmed reports whether it is on record that this start made no primary.
func (r *record) hasUnconfirmed(c *v1alpha1.RunningCommand) bool {
	return slices.ContainsFunc(r.failures, func(x v1alpha1.Failure) bool {
		return isUnconfirmedStart(&x) && x.ContainerID == c.ContainerID
	})
}

// newest returns the highest sequence on record, and its member.
func (r *record) newest() (highest uint64, pod string) {
	for _, v := range r.versions {
		if n := parseSequence(v); n > highest {
			highest, pod = n, v.Pod
		}
	}
	return highest, pod
}

func parseSequence(v v1alpha1.Sequence) uint64 {
	n, err := strconv.ParseUint(v.Sequence, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// endCommands removes the commands that can have no further effect.
func (r *record) endCommands(o *observation) {
	r.commands = slices.DeleteFunc(
		r.commands,
		func(c v1alpha1.RunningCommand) bool { return r.isOver(endingOf(o, &c)) },
	)
}

// endGrants removes the grants of containers that are no longer primary.
func (r *record) endGrants(o *observation) {
	var left []v1alpha1.Grant
	for i := range r.granted {
		g := &r.granted[i]
		why := r.whyRevoked(o, g)
		if why == "" {
			left = append(left, *g)
			continue
		}
		reason := v1alpha1.EventNotPromoted
		if g.Confirmed {
			reason = v1alpha1.EventDemoted
		}
		r.tell(reason, "%s is not primary: %s", g.Pod, why)
	}
	r.granted = left
}

// whyRevoked states why a container with a grant is no longer primary. It is "" if that is not
// proven.
func (r *record) whyRevoked(o *observation, g *v1alpha1.Grant) string {
	const ended = "its container has ended"
	m := o.byUID(g.UID)
	switch {
	case r.startsIn(g):
		return "" // a start with an unknown outcome may still take effect
	case m == nil || m.stopped:
		return ended
	case o.containerGone(g.UID, g.ContainerID):
		if r.mayBePrimaryNext(o, g) {
			return ""
		}
		return ended
	case m.container != g.ContainerID:
		return ""
	}
	switch r.stateOf(o, m) {
	case idle:
		return "status reports that it has stopped"
	case secondary:
		return "status reports that it is secondary"
	}
	return ""
}

// mayBePrimaryNext reports whether a start for an ended container may have reached the next
// container of the same pod, which the kubelet may not have reported yet. If it had reached the
// container of another pod, its end would not count as seen, and the command would still be on
// record.
func (r *record) mayBePrimaryNext(o *observation, g *v1alpha1.Grant) bool {
	next := o.nextContainer(g.Pod, g.ContainerID)
	if next == nil {
		return !o.now.After(strayUntil(g.Since, g.BeginWithin))
	}
	switch r.stateOf(o, next) {
	case idle, secondary:
		return false
	case primary:
		return !r.grantsRunning(next.identity)
	}
	return true
}

// grantPrimaries adds grants for members that are found running as primary, and confirms their
// existing grants.
func (r *record) grantPrimaries(o *observation) {
	for i := range o.members {
		m := &o.members[i]
		if r.stateOf(o, m) != primary {
			continue
		}
		if !r.grantsRunning(m.identity) {
			r.granted = append(r.granted, newGrant(m.identity, r.epoch, o.now))
			r.tell(v1alpha1.EventRoleChanged, "%s was found running as primary", m.name)
		}
		r.confirm(m.identity)
	}
}

// confirm marks the grant of a member that was seen running as primary.
func (r *record) confirm(m identity) {
	for i := range r.granted {
		g := &r.granted[i]
		if g.UID == m.podUID && g.ContainerID == m.container {
			g.Confirmed = true
		}
	}
}

// fail records a failed command. code is 0 if the command ended with 0 and status contradicted it.
func (r *record) fail(o *observation, c *v1alpha1.RunningCommand, code int) {
	r.warn(v1alpha1.EventMemberFailed, "%s of %s %s", c.Name, c.Pod, howFailed(code))
	i := slices.IndexFunc(r.failures, func(x v1alpha1.Failure) bool { return x.Pod == c.Pod })
	if i < 0 {
		i = len(r.failures)
		r.failures = append(r.failures, v1alpha1.Failure{Pod: c.Pod})
	}
	x := &r.failures[i]
	if !continues(x, c, code) || o.now.Sub(x.Last.Time) > failureWindow(&o.set.Spec) {
		*x = v1alpha1.Failure{Pod: c.Pod}
	}
	x.UID, x.ContainerID = c.UID, c.ContainerID
	x.Command, x.Code, x.Generation = c.Name, int32(code), o.set.Generation
	x.Last = metav1.NewTime(o.now)
	x.Count++
	x.Unclean = x.Unclean || starts(c.Name)
}

// continues reports whether a failure continues earlier ones: in the same pod, or as a start that
// made no primary in the replacement pod.
func continues(x *v1alpha1.Failure, c *v1alpha1.RunningCommand, code int) bool {
	again := isUnconfirmedStart(x) && code == 0 && startsPrimary(c.Name)
	return again || x.UID == c.UID
}

func howFailed(code int) string {
	if code == 0 {
		return "failed: it exited with 0, but status did not confirm it"
	}
	return fmt.Sprintf("failed with exit code %d", code)
}

// clean allows the member to start without a prior stop.
func (r *record) clean(pod types.UID) {
	for i := range r.failures {
		if r.failures[i].UID == pod {
			r.failures[i].Unclean = false
		}
	}
}

// forgive removes the failures that no longer apply.
func (r *record) forgive(o *observation) {
	for i := range o.members {
		m := &o.members[i]
		if cameUp(r.stateOf(o, m), r.failureOf(m.identity)) {
			r.clean(m.podUID)
		}
	}
	r.failures = slices.DeleteFunc(
		r.failures,
		func(x v1alpha1.Failure) bool { return r.hasLapsed(o, &x) },
	)
	slices.SortFunc(
		r.failures,
		func(a, b v1alpha1.Failure) int { return strings.Compare(a.Pod, b.Pod) },
	)
}

// cameUp reports whether a member with a failed start runs after all.
func cameUp(now state, x *v1alpha1.Failure) bool {
	switch now {
	case primary:
		return true
	case secondary:
		return x != nil && x.Code == 0 && starts(x.Command)
	}
	return false
}

// hasLapsed reports whether a failure no longer applies.
func (r *record) hasLapsed(o *observation, x *v1alpha1.Failure) bool {
	if x.Code == ocfNotConfigured && x.Generation == o.set.Generation {
		return false // a new pod does not correct the spec
	}
	if m := o.named(x.Pod); m != nil {
		if r.isDisproved(o, x, m) {
			return true
		}
		if needsStopIn(x, m.identity) {
			return false
		}
	}
	if cannotRun(x, o.set.Generation) {
		return false
	}
	return o.now.Sub(x.Last.Time) > failureWindow(&o.set.Spec)
}

// isDisproved reports whether a failure does not apply to the member's current pod.
func (r *record) isDisproved(o *observation, x *v1alpha1.Failure, m *observedMember) bool {
	if isUnconfirmedStart(x) {
		return (r.stateOf(o, m) == primary && !m.terminating) || x.Generation != o.set.Generation
	}
	return m.podUID != x.UID
}

// noteVersions records the sequences that are comparable. It skips idle members while other members
// run, because their copies are about to be overwritten. It keeps the higher number if a sequence
// decreases, because that copy lost data.
func (r *record) noteVersions(o *observation) {
	runs := r.hasGrants() || slices.ContainsFunc(o.members, func(m observedMember) bool { return r.showsSecondary(o, &m) })
	for i := range o.members {
		m := &o.members[i]
		if m.sequence == nil || (runs && r.stateOf(o, m) == idle) {
			continue
		}
		if n, known := sequenceOf(*m.sequence); known {
			r.noteVersion(m.name, n, m.sequence.Began)
		}
	}
}

// showsSecondary reports whether a member is secondary, or its state is unknown and it was secondary
// when its state was last known.
func (r *record) showsSecondary(o *observation, m *observedMember) bool {
	switch r.stateOf(o, m) {
	case secondary:
		return true
	case unknown:
		return slices.Contains(o.set.Status.Members.Secondary, m.name)
	}
	return false
}

// noteVersion records the sequence of a member if it is higher than the recorded one, or equal in a
// later epoch.
func (r *record) noteVersion(pod string, n uint64, read time.Time) {
	now := v1alpha1.Sequence{
		Pod:      pod,
		Sequence: strconv.FormatUint(n, 10),
		Epoch:    r.epoch,
		Time:     metav1.NewTime(read.Truncate(time.Second)),
	}
	r.versions = slices.Clone(r.versions)
	i := slices.IndexFunc(r.versions, func(v v1alpha1.Sequence) bool { return v.Pod == pod })
	switch {
	case i < 0:
		r.versions = append(r.versions, now)
	case n > parseSequence(r.versions[i]):
		r.versions[i] = now
	case n == parseSequence(r.versions[i]) && now.Epoch > r.versions[i].Epoch && r.allBefore(read):
		r.versions[i] = now
	}
	slices.SortFunc(r.versions, func(x, y v1alpha1.Sequence) int {
		return cmp.Or(len(x.Pod)-len(y.Pod), strings.Compare(x.Pod, y.Pod))
	})
}

// allBefore reports whether all grants are older than then.
func (r *record) allBefore(then time.Time) bool {
	return !slices.ContainsFunc(
		r.granted,
		func(g v1alpha1.Grant) bool { return !then.After(g.Since.Time) },
	)
}

// keepRecord writes changes of grants, commands, orders and maintenance before any decision uses
// them. Other changes wait for the next status update.
func keepRecord(f *facts, p *plan) {
	s := &f.set.Status
	same := apiequality.Semantic.DeepEqual
	running := sameGrants(s.Grants, f.record.granted) && same(s.Commands, f.record.commands)
	asked := same(s.Maintenance, f.record.maintenance) && same(orderBook(s.Orders), f.record.orders)
	if running && asked {
		return
	}
	var texts []string
	for _, learned := range f.record.learned {
		texts = append(texts, learned.Text)
	}
	p.Do(action.Chain{f.store(f.record, reasonLearned, strings.Join(texts, "; "))})
}

// sameGrants reports whether two lists contain the same grants. It ignores Confirmed, which is only
// informative.
func sameGrants(a, b []v1alpha1.Grant) bool {
	return slices.EqualFunc(a, b, func(x, y v1alpha1.Grant) bool {
		x.Confirmed = y.Confirmed
		return apiequality.Semantic.DeepEqual(x, y)
	})
}

// store returns the patch that writes a record into the status, bound to the version that was read.
func (w *world) store(r record, reason, detail string) action.Action {
	set := w.set.DeepCopy()
	r.into(&set.Status)
	return action.Action{
		Verb:   action.PatchStatus,
		Object: set,
		From:   w.set,
		Reason: reason,
		Detail: detail,
	}
}
