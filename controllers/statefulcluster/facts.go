package statefulcluster

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// facts are the observed state of a set in one pass and the conclusions from it. They are derived
// once and then read by the rules.
type facts struct {
	*world

	// spec is the revision of the current spec. It has no UID before it is created.
	spec *appsv1.ControllerRevision
	// target is the revision that members are updated to. It is the revision of the spec, or the
	// newest recorded one while the API server refuses to create the revision of the spec. Lost
	// members are replaced in either case.
	target *appsv1.ControllerRevision

	// Every member is in exactly one of the next four lists.

	alive []*member
	// lost members will be replaced, now or when maxConcurrent allows it.
	lost []loss
	// returning members have a pod that is terminating or gone, and will be recreated under the
	// same name.
	returning []v1alpha1.UpdatingMember
	// departed members are being deleted and never come back.
	departed []*member

	// up is when the member that has been Ready longest became Ready; zero in an outage. kept are
	// members that count as lost but are kept because of an outage.
	up   time.Time
	kept []string
	// pendingEnds are members whose pod is gone and that will be recreated, unless the pod watch
	// shows that a user deleted the pod.
	pendingEnds []string

	// succeeded holds the names of members that have a successor.
	succeeded map[string]bool
	// returnFailed is true if a returning member counts as lost. Its entry in status.updating must
	// be removed before its successor is created.
	returnFailed bool

	// failing are members that passed a deadline and are not replaced, because their template may
	// be the cause.
	failing []string
	// manyUnready is the number of members that are not Ready, if that is too many to replace any
	// of them; otherwise 0.
	manyUnready int
	// crashing are members whose containers crash repeatedly since the member got its revision.
	crashing []string
	// unsettled are members of the target revision that restarted since they got it. The update
	// waits until they have been Ready for a while.
	unsettled []string
	// down are the members that were Ready before, if no member of the set is Ready now.
	down []string
	// ignored are members that have not been Ready for a long time and have no deadline for
	// replacement.
	ignored []string

	// draining is true while any member, lost or not, is leaving its Node.
	draining bool
	// leaving are the alive members on cordoned Nodes that will be retired when new members are
	// available.
	leaving []*member
	// stays is the reason why members stay on cordoned Nodes although onEviction is ReplaceFirst;
	// "" if there is none.
	stays string
	// roomless are new members that cannot be scheduled while Nodes are cordoned. They are not
	// replaced, because a replacement could not be scheduled either.
	roomless []string

	// changes are the times at which the facts will change without an event.
	changes []time.Time
	// claimRecord holds the entries of status.claims.
	claimRecord map[v1alpha1.RecordedClaim]bool
}

// loss is a member with the reason why it counts as lost.
type loss struct {
	*member
	reason v1alpha1.LossReason
	due    time.Time
	// wall is when the loss would be due if the operator had observed the cluster without
	// interruption. It is set only for unreadiness.
	wall time.Time
}

// derive returns the facts that follow from the observed state. It has no side effects.
func derive(w *world) *facts {
	f := &facts{world: w, succeeded: map[string]bool{}, claimRecord: map[v1alpha1.RecordedClaim]bool{}}
	for _, recorded := range w.set.Status.Claims {
		f.claimRecord[recorded] = true
	}
	if !w.served() {
		return f
	}
	f.spec = specRevision(w)
	f.target = f.spec
	if n := len(w.revisions); n > 0 && f.specRefused() {
		f.target = w.revisions[n-1]
	}
	f.stays = f.startsAgain()
	for _, m := range w.members {
		if old := m.replaces(); old != "" {
			f.succeeded[old] = true
		}
	}
	f.up = findUp(w)
	f.pendingEnds = pendingEnds(f)
	taken := f.sortMembers()
	f.sortLosses()
	f.takeIn(taken)
	f.findLeaving()
	f.findCrashes()
	f.findOutage()
	return f
}

// served reports whether the set is not being deleted and its spec is valid.
func (w *world) served() bool { return w.invalid == "" && w.set.DeletionTimestamp == nil }

// specRefused reports whether the API server recently refused to create the revision of the spec.
func (f *facts) specRefused() bool { return f.spec.UID == "" && f.refusedNow(reasonRevision) }

// sortMembers sorts the members into alive, returning and departed. It returns the members that the
// control plane evicts from a lost Node, which are sorted last.
func (f *facts) sortMembers() (taken []*member) {
	f.returning = stillReturning(f.world)
	reasons := map[types.UID]v1alpha1.UpdatingReason{}
	for _, e := range f.returning {
		reasons[e.UID] = cmp.Or(e.Reason, v1alpha1.UpdatingUpdate)
	}
	for _, m := range f.members {
		why, returns := reasons[m.pod.UID]
		switch {
		case !m.terminating():
			f.alive = append(f.alive, m)
		case returns:
			failsAt := returnFailsAt(f, m, why)
			if failsAt.IsZero() || !f.reached(failsAt) {
				f.changes = append(f.changes, failsAt)
				continue // it is already counted as returning
			}
			f.returning = slices.DeleteFunc(f.returning, func(e v1alpha1.UpdatingMember) bool { return e.Name == m.name() })
			f.returnFailed = true
			taken = append(taken, m)
		case f.waitsToBeReplaced(m):
			taken = append(taken, m)
		default:
			f.departed = append(f.departed, m)
		}
	}
	return taken
}

// reached reports whether a time is not in the future.
func (w *world) reached(at time.Time) bool { return !at.After(w.now) }

// returnFailsAt returns when a returning member counts as lost, because its Node was lost before
// the kubelet ended the old pod, which it may then never do. It returns zero if the Node is
// healthy. The control plane removes the pod from a Node that is gone or out of service. After an
// eviction the volumes of the member can move to another Node, since otherwise onEviction would not
// be Keep.
func returnFailsAt(f *facts, m *member, why v1alpha1.UpdatingReason) time.Time {
	kept, until := keptInOutage(f, m)
	switch {
	case kept && m.nodeLost():
		return until
	case m.node.removed():
		if why == v1alpha1.UpdatingEviction {
			return time.Time{}
		}
		if m.node.outOfService {
			return f.now
		}
		return f.nodeGoneAt(m)
	case m.node.notReadySince.IsZero():
		return time.Time{}
	}
	return f.nodeLostAt(m)
}

// waitsToBeReplaced reports whether the control plane evicts a member from a lost Node and its
// replacement is subject to maxConcurrent.
func (f *facts) waitsToBeReplaced(m *member) bool {
	return f.parallel() && m.takenByTaint() && !f.succeeded[m.name()] && !f.wasRetired(m) && !f.keepsEvicted(m)
}

// takeIn sorts the members that the control plane evicts from a lost Node. They are lost as far as
// slots are empty without them. The others already had successors, which are gone or were recreated
// without the annotation that names their predecessor.
func (f *facts) takeIn(taken []*member) {
	for _, m := range taken {
		if f.occupied() < f.wanted() {
			f.lost = append(f.lost, loss{member: m, reason: m.takenBecause(), due: f.now})
		} else {
			f.departed = append(f.departed, m)
		}
	}
}

// findOutage finds the members that were Ready before in a set with no Ready member, and the
// members that have not been Ready for a long time and have no deadline for replacement.
func (f *facts) findOutage() {
	ready := false
	var down []string
	for _, m := range f.alive {
		switch {
		case m.ready():
			ready = true
		case m.wasReady() && !m.patching():
			down = append(down, m.name())
		}
		if u, unready := unreadinessOf(f.world, m); unready && u.seconds == 0 {
			at := u.since.Add(attentionTime)
			f.changes = append(f.changes, at)
			if f.reached(at) {
				f.ignored = append(f.ignored, m.name())
			}
		}
	}
	if !ready && len(f.returning) == 0 {
		f.down = down
	}
}

// stillReturning returns the entries of status.updating that are still pending: the old pod is
// terminating or gone, and no new pod exists. An entry whose old pod is still running was written
// by a pass that did not reach the deletion. The rules write it again if it is still needed.
func stillReturning(w *world) []v1alpha1.UpdatingMember {
	byName := map[string]*member{}
	for _, m := range w.members {
		byName[m.name()] = m
	}
	var waiting []v1alpha1.UpdatingMember
	for _, e := range w.set.Status.Updating {
		m := byName[e.Name]
		livesOn := m != nil && !m.terminating()
		isNew := m != nil && m.pod.UID != e.UID
		if !livesOn && !isNew {
			waiting = append(waiting, e)
		}
	}
	return waiting
}

// occupied returns the number of slots that have a member, or will or may have one again without
// the creation of a member with a new name.
func (f *facts) occupied() int {
	return len(f.alive) + len(f.lost) + len(f.returning) + len(f.pendingEnds)
}

// wanted returns the number of members that the set should have now: the replicas, and the members
// that are added before others are retired, in a surge update or during a drain.
func (f *facts) wanted() int {
	going := len(f.leaving)
	if f.maxSurge() > 0 {
		for _, m := range f.outdated() {
			if !f.leaves(m) {
				going++
			}
		}
	}
	return f.replicas() + min(f.maxExtra(), going)
}

// unsucceeded returns the departed members whose slot is still empty. A member retired by a
// scale-down has no slot.
func (f *facts) unsucceeded() []*member {
	var waiting []*member
	for _, m := range f.departed {
		if !f.succeeded[m.name()] && !f.wasRetired(m) {
			waiting = append(waiting, m)
		}
	}
	return waiting[:min(len(waiting), max(0, f.wanted()-f.occupied()))]
}

// notAt returns the members that do not have the given revision.
func (f *facts) notAt(revision *appsv1.ControllerRevision) []*member {
	var old []*member
	for _, m := range f.alive {
		if m.revision() != revision.Name {
			old = append(old, m)
		}
	}
	return old
}

// outdated returns the members that still have to be updated. Members that are not Ready come
// first, because updating them costs no availability. The members that the partition keeps are left
// out.
func (f *facts) outdated() []*member {
	old := f.notAt(f.target)
	slices.SortStableFunc(old, func(a, b *member) int {
		return cmp.Or(yesFirst(a.deleteFirst(), b.deleteFirst()),
			yesFirst(!a.ready(), !b.ready()),
			b.pod.CreationTimestamp.Compare(a.pod.CreationTimestamp.Time),
			cmp.Compare(a.name(), b.name()))
	})
	return old[:max(0, len(old)-f.partition())]
}

// available reports whether the member counts as available: Ready for minReadySeconds, on an
// existing Node, and not in an in-place update. If it is Ready for a shorter time, available also
// returns the remaining time.
func (w *world) available(m *member) (bool, time.Duration) {
	if m.patching() || m.node.removed() {
		return false, 0
	}
	return podstate.Available(m.pod, time.Duration(w.set.Spec.MinReadySeconds)*time.Second, w.now)
}

// serves reports whether the member is available now.
func (w *world) serves(m *member) bool {
	ok, _ := w.available(m)
	return ok
}

// countAvailable returns the number of available members, and the times at which more become
// available.
func (f *facts) countAvailable() (n int, changes []time.Time) {
	for _, m := range f.alive {
		ok, missing := f.available(m)
		if ok {
			n++
		} else if missing > 0 {
			changes = append(changes, f.now.Add(missing))
		}
	}
	return n, changes
}

// wasRetired reports whether the pod is deleted by a scale-down.
func (w *world) wasRetired(m *member) bool {
	if w.retired[m.pod.UID] {
		return true
	}
	for _, c := range m.claims {
		if retainedAs(c, v1alpha1.RetainedScaled) {
			return true
		}
	}
	return false
}

// refusedNow reports whether a write for that reason was refused recently.
func (w *world) refusedNow(reason string) bool {
	_, refused := w.refusedUntil(reason)
	return refused
}

// refusedUntil returns the time at which a recently refused write may be retried.
func (w *world) refusedUntil(reason string) (at time.Time, refused bool) {
	r, known := w.refused[reason]
	return r.until, known && r.until.After(w.now)
}

// Properties of a single member.

func (m *member) name() string      { return m.pod.Name }
func (m *member) revision() string  { return revisionOf(m.pod) }
func (m *member) ready() bool       { return podstate.Ready(m.pod) }
func (m *member) wasReady() bool    { return podstate.WasReady(m.pod) }
func (m *member) scheduled() bool   { return podstate.Scheduled(m.pod) }
func (m *member) terminating() bool { return podstate.Terminating(m.pod) }
func (m *member) ended() bool       { return podstate.Ended(m.pod) }
func (m *member) evicted() bool     { return podstate.Evicted(m.pod) }

// replaces returns the name of the member whose slot this one fills; "" if the slot was empty.
func (m *member) replaces() string { return m.pod.Annotations[v1alpha1.AnnotationReplaces] }

// patching reports whether an in-place update of the member is in progress.
func (m *member) patching() bool { return m.pod.Annotations[v1alpha1.AnnotationInPlace] != "" }

// works reports whether the member is Ready with its own revision. A member in an in-place update
// may still run the previous one.
func (m *member) works() bool { return m.ready() && !m.patching() }

// deleteFirst reports whether the user marked this member to be deleted first.
func (m *member) deleteFirst() bool { return m.pod.Annotations[v1alpha1.AnnotationDeleteFirst] == yes }

// nodeLost reports whether the member's Node has a problem, no matter for how long.
func (m *member) nodeLost() bool { return m.node.lostNow() }

// since returns when a condition of the pod last changed its status.
func (m *member) since(kind corev1.PodConditionType) time.Time {
	t, _ := podstate.Since(m.pod, kind)
	return t
}

// stillReplacing reports whether the member fills the slot of a lost one and was never Ready.
func (m *member) stillReplacing() bool { return m.replaces() != "" && !m.wasReady() }

// replacements returns the number of successive replacements in the member's slot.
func (m *member) replacements() int {
	n, err := strconv.Atoi(m.pod.Annotations[v1alpha1.AnnotationReplacements])
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// hasRun reports whether the member may have data: it was Ready, a container was started, or the
// pod was recreated for an existing member.
func (m *member) hasRun() bool {
	if m.wasReady() || m.pod.Annotations[v1alpha1.AnnotationUpdated] != "" {
		return true
	}
	return slices.ContainsFunc(slices.Concat(m.pod.Status.InitContainerStatuses, m.pod.Status.ContainerStatuses),
		func(s corev1.ContainerStatus) bool { return s.ContainerID != "" })
}

// takenByTaint reports whether the control plane evicts the pod from a lost Node. The pod stays
// terminating until the Node returns. Its replacement is subject to maxConcurrent, like that of any
// member of that Node.
func (m *member) takenByTaint() bool {
	return m.terminating() && podstate.TaintEvicted(m.pod) && m.nodeLost()
}

// takenBecause returns the loss reason of a member that the control plane evicts from its Node.
func (m *member) takenBecause() v1alpha1.LossReason {
	switch {
	case m.node.gone:
		return v1alpha1.LossNodeGone
	case m.node.outOfService:
		return v1alpha1.LossNodeOutOfService
	}
	return v1alpha1.LossNodeNotReady
}
