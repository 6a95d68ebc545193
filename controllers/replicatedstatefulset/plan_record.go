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

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// record is what must not be forgotten. Which members may be primary, and which commands
// may still run, is in it before it is so, and leaves it on proof only: it is a superset
// of the truth, always.
type record struct {
	epoch int64
	// before is the least epoch that the next one has to be above.
	before   int64
	granted  []v1alpha1.Grant
	commands []v1alpha1.RunningCommand
	failures []v1alpha1.Failure
	versions []v1alpha1.Sequence
	// maintenance is how far the members of spec.maintenance are.
	maintenance []v1alpha1.MemberMaintenance
	// orders are those of the spec, and what became of them.
	orders orderBook
	// learned is what was found out in this pass, for people.
	learned []Learned
}

// Learned is something that was found out. Kind and Reason are those of its event.
type Learned struct{ Kind, Reason, Text string }

// recordOf is the record as it is stored. It shares nothing with the status.
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

// into puts the record into a status.
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

// Questions.

// primaries is how many members may be primary.
func (r *record) primaries() int { return len(r.granted) }

func (r *record) hasGrants() bool { return len(r.granted) > 0 }

// grants reports whether a container of the member may be primary.
func (r *record) grants(m *member) bool {
	return slices.ContainsFunc(r.granted, func(g v1alpha1.Grant) bool { return g.UID == m.pod.UID })
}

// grantsRunning reports whether the container of the member that runs may be primary.
func (r *record) grantsRunning(m *member) bool {
	return slices.ContainsFunc(r.granted, func(g v1alpha1.Grant) bool {
		return g.UID == m.pod.UID && g.ContainerID == m.running()
	})
}

// grantsName reports whether a pod of that name may be primary.
func (r *record) grantsName(pod string) bool {
	return slices.ContainsFunc(r.granted, func(g v1alpha1.Grant) bool { return g.Pod == pod })
}

// startsIn reports whether a start whose end was not seen may make a primary of the
// container that a grant is for.
func (r *record) startsIn(g *v1alpha1.Grant) bool {
	return slices.ContainsFunc(r.commands, func(c v1alpha1.RunningCommand) bool {
		return startsPrimary(c.Name) && c.Pod == g.Pod && c.ContainerID == g.ContainerID
	})
}

// failureOf is what failed in the member's pod; nil if nothing did lately.
func (r *record) failureOf(m *member) *v1alpha1.Failure {
	for i := range r.failures {
		x := &r.failures[i]
		if x.UID == m.pod.UID {
			return x
		}
		if x.Pod == m.name() && isUnconfirmedStart(x) {
			return x
		}
	}
	return nil
}

// isUnconfirmedStart reports whether a start ended with 0 and made no primary. Its pod was
// recreated for that, and the next one of the name is no better for it.
func isUnconfirmedStart(x *v1alpha1.Failure) bool { return x.Code == 0 && startsPrimary(x.Command) }

// hasUnconfirmed reports whether it is on record that this very start made no primary.
func (r *record) hasUnconfirmed(c *v1alpha1.RunningCommand) bool {
	return slices.ContainsFunc(r.failures, func(x v1alpha1.Failure) bool {
		return isUnconfirmedStart(&x) && x.ContainerID == c.ContainerID
	})
}

// newest is the highest sequence ever recorded, and whose it is.
func (r *record) newest() (highest uint64, pod string) {
	for _, v := range r.versions {
		if n := recorded(v); n > highest {
			highest, pod = n, v.Pod
		}
	}
	return highest, pod
}

func recorded(v v1alpha1.Sequence) uint64 {
	n, err := strconv.ParseUint(v.Sequence, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// What is learned.

// endCommands drops the commands of which nothing can happen any more.
func (r *record) endCommands(f *facts) {
	r.commands = slices.DeleteFunc(
		r.commands,
		func(c v1alpha1.RunningCommand) bool { return r.isOver(f.ending(&c)) },
	)
}

// endGrants drops the grants of containers that are not primary any more.
func (r *record) endGrants(f *facts) {
	var left []v1alpha1.Grant
	for i := range r.granted {
		g := &r.granted[i]
		why := r.whyRevoked(f, g)
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

// whyRevoked says why a container that was granted is not primary any more; "" if that is
// not proven.
func (r *record) whyRevoked(f *facts, g *v1alpha1.Grant) string {
	const ended = "its container has ended"
	m := f.byUID(g.UID)
	switch {
	case r.startsIn(g):
		return "" // a start whose end was not seen may take effect
	case stopped(m):
		return ended
	case f.containerGone(g.UID, g.ContainerID):
		if r.mayBePrimaryNext(f, g) {
			return ""
		}
		return ended
	case m.running() != g.ContainerID:
		return ""
	case m.state == idle:
		return "status says that it has stopped"
	case m.state == secondary:
		return "status says that it is secondary"
	}
	return ""
}

// mayBePrimaryNext reports whether a start that was meant for a container that has ended
// may have reached the next one of the same pod, whose kubelet may not have told of that
// yet. In another pod's container its end would not count as seen, and it would be on
// record still.
func (r *record) mayBePrimaryNext(f *facts, g *v1alpha1.Grant) bool {
	next := f.nextContainer(g.Pod, g.ContainerID)
	if next == nil {
		return !f.now.After(strayUntil(g.Since, g.BeginWithin))
	}
	switch next.state {
	case idle, secondary:
		return false
	case primary:
		return !r.grantsRunning(next)
	}
	return true
}

// grantPrimaries gives grants to members that are found running as primary, and confirms
// the grants that they have.
func (r *record) grantPrimaries(f *facts) {
	for _, m := range f.members {
		if m.state != primary {
			continue
		}
		if !r.grantsRunning(m) {
			r.granted = append(r.granted, f.grant(m, r.epoch))
			r.tell(v1alpha1.EventRoleChanged, "%s is found running as primary", m.name())
		}
		r.confirm(m)
	}
}

// confirm notes that a member was seen running as primary.
func (r *record) confirm(m *member) {
	for i := range r.granted {
		g := &r.granted[i]
		if g.UID == m.pod.UID && g.ContainerID == m.running() {
			g.Confirmed = true
		}
	}
}

func (c *clock) grant(m *member, epoch int64) v1alpha1.Grant {
	return v1alpha1.Grant{
		Pod:         m.name(),
		UID:         m.pod.UID,
		ContainerID: m.running(),
		Epoch:       epoch,
		Since:       metav1.NewMicroTime(c.now),
	}
}

// fail puts down that a command failed: code is 0 for one that status denies.
func (r *record) fail(f *facts, c *v1alpha1.RunningCommand, code int) {
	r.warn(v1alpha1.EventMemberFailed, "%s of %s %s", c.Name, c.Pod, howFailed(code))
	i := slices.IndexFunc(r.failures, func(x v1alpha1.Failure) bool { return x.Pod == c.Pod })
	if i < 0 {
		i = len(r.failures)
		r.failures = append(r.failures, v1alpha1.Failure{Pod: c.Pod})
	}
	x := &r.failures[i]
	if !continues(x, c, code) || f.now.Sub(x.Last.Time) > failureWindow(&f.set.Spec) {
		*x = v1alpha1.Failure{Pod: c.Pod}
	}
	x.UID, x.ContainerID = c.UID, c.ContainerID
	x.Command, x.Code, x.Generation = c.Name, int32(code), f.set.Generation
	x.Last = metav1.NewTime(f.now)
	x.Count++
	x.Unclean = x.Unclean || starts(c.Name)
}

// continues reports whether a command failed as others did before: in the same pod, or as
// a start that made no primary in a pod that took the place of its.
func continues(x *v1alpha1.Failure, c *v1alpha1.RunningCommand, code int) bool {
	again := isUnconfirmedStart(x) && code == 0 && startsPrimary(c.Name)
	return again || x.UID == c.UID
}

func howFailed(code int) string {
	if code == 0 {
		return "failed: it ended with 0, and status never agreed"
	}
	return fmt.Sprintf("failed with exit code %d", code)
}

// clean takes back that a member needs a stop before it is started again.
func (r *record) clean(m *member) {
	for i := range r.failures {
		if m != nil && r.failures[i].UID == m.pod.UID {
			r.failures[i].Unclean = false
		}
	}
}

// forgive drops the failures that say nothing any more.
func (r *record) forgive(f *facts) {
	for _, m := range f.members {
		if cameUp(m, r.failureOf(m)) {
			r.clean(m)
		}
	}
	r.failures = slices.DeleteFunc(
		r.failures,
		func(x v1alpha1.Failure) bool { return r.hasLapsed(f, &x) },
	)
	slices.SortFunc(
		r.failures,
		func(a, b v1alpha1.Failure) int { return strings.Compare(a.Pod, b.Pod) },
	)
}

// cameUp reports whether a member runs in which a start failed: it came up late.
func cameUp(m *member, x *v1alpha1.Failure) bool {
	switch m.state {
	case primary:
		return true
	case secondary:
		return x != nil && x.Code == 0 && starts(x.Command)
	}
	return false
}

// hasLapsed reports whether a failure says nothing any more.
func (r *record) hasLapsed(f *facts, x *v1alpha1.Failure) bool {
	if x.Code == ocfNotConfigured && x.Generation == f.set.Generation {
		return false // another pod makes the spec no better
	}
	if m := f.named(x.Pod); m != nil {
		if r.isDisproved(f, x, m) {
			return true
		}
		if needsStopIn(x, m) {
			return false
		}
	}
	if cannotRun(x, f.set.Generation) {
		return false
	}
	return f.now.Sub(x.Last.Time) > failureWindow(&f.set.Spec)
}

// isDisproved reports whether a failure is none of the pod that a member has now.
func (r *record) isDisproved(f *facts, x *v1alpha1.Failure, m *member) bool {
	if isUnconfirmedStart(x) {
		return m.isPrimary() || x.Generation != f.set.Generation
	}
	return m.pod.UID != x.UID
}

// noteVersions keeps what members said of their copies while it could be compared. What an
// idle member says beside one that runs is about to be overwritten, and a lower number than
// before is a copy that lost something.
func (r *record) noteVersions(f *facts) {
	runs := r.hasGrants() || slices.ContainsFunc(f.members, func(m *member) bool {
		return m.shown == secondary || m.shown == primary
	})
	for _, m := range f.members {
		if runs && m.state == idle {
			continue
		}
		answer, ok := m.answer(v1alpha1.CommandSequence)
		if n, known := sequenceOf(answer); ok && known {
			r.noteVersion(m, n)
		}
	}
}

// noteVersion puts down how new the copy of a member is, if it is newer than what is on
// record, or as new in a later epoch.
func (r *record) noteVersion(m *member, n uint64) {
	answer, _ := m.answer(v1alpha1.CommandSequence)
	now := v1alpha1.Sequence{
		Pod:      m.name(),
		Sequence: strconv.FormatUint(n, 10),
		Epoch:    r.epoch,
		Time:     metav1.NewTime(answer.Began.Truncate(time.Second)),
	}
	r.versions = slices.Clone(r.versions)
	i := slices.IndexFunc(r.versions, func(v v1alpha1.Sequence) bool { return v.Pod == m.name() })
	switch {
	case i < 0:
		r.versions = append(r.versions, now)
	case n > recorded(r.versions[i]):
		r.versions[i] = now
	case n == recorded(r.versions[i]) && now.Epoch > r.versions[i].Epoch && r.allBefore(answer.Began):
		r.versions[i] = now
	}
	slices.SortFunc(r.versions, func(x, y v1alpha1.Sequence) int {
		return cmp.Or(len(x.Pod)-len(y.Pod), strings.Compare(x.Pod, y.Pod))
	})
}

// allBefore reports whether all grants are older than that.
func (r *record) allBefore(then time.Time) bool {
	return !slices.ContainsFunc(
		r.granted,
		func(g v1alpha1.Grant) bool { return !then.After(g.Since.Time) },
	)
}

// Writing.

// keepRecord writes what was learned of grants, commands, orders and who is parked, before
// anything else is decided on it. The rest waits for the next write of the status.
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

// sameGrants reports whether two lists grant the same. That a grant is confirmed is for
// people, and nothing is decided on it.
func sameGrants(a, b []v1alpha1.Grant) bool {
	return slices.EqualFunc(a, b, func(x, y v1alpha1.Grant) bool {
		x.Confirmed = y.Confirmed
		return apiequality.Semantic.DeepEqual(x, y)
	})
}

// store is the patch that puts a record into the status, bound to what was read.
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
