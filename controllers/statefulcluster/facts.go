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

// facts are what is known about a set in one pass: the world as it was read, and
// what follows from it. They are derived once, and rules read them.
type facts struct {
	*world

	// spec is the revision of the present spec. It has no UID before it is created.
	spec *appsv1.ControllerRevision
	// target is the revision that members are brought to: that of the spec, or the newest
	// on record while the API server refuses to create that of the spec. What is lost is
	// replaced all the same.
	target *appsv1.ControllerRevision

	// Every member is in one of the next four lists.

	alive []*member
	// lost members are to be replaced, now or when it is their turn.
	lost []loss
	// returning members have a pod that goes, or has gone, and comes back.
	returning []v1alpha1.UpdatingMember
	// departed members are being deleted and never come back.
	departed []*member

	// up is since when a member that is Ready has been so; zero in an outage. kept are
	// members that count as lost, and are kept because of an outage.
	up   time.Time
	kept []string
	// pendingEnds are members whose pod is gone, and that come back unless the watch says
	// that a user deleted it.
	pendingEnds []string

	// succeeded holds the names of members that have a successor.
	succeeded map[string]bool
	// returnFailed is true when a returning member counts as lost: that must be on
	// record before its successor is made.
	returnFailed bool

	// failing are members whose deadline passed and that are not replaced, because
	// their template is to blame.
	failing []string
	// manyUnready is how many members are not Ready, when they are too many to
	// replace any for it; 0 otherwise.
	manyUnready int
	// crashing are members whose containers crash again and again since they have
	// their revision.
	crashing []string
	// unsettled are members of the target revision that restarted since they have it:
	// the update goes on when they have been Ready for a while.
	unsettled []string
	// down are the members that were Ready, in a set none of which is Ready now.
	down []string
	// ignored are members that are not Ready for long and never replaced for it.
	ignored []string

	// draining is true while any member leaves its Node, lost or not.
	draining bool
	// leaving are the alive members that are on a cordoned Node and go when new ones are
	// available.
	leaving []*member
	// stays is why members stay on cordoned Nodes though the set replaces first; "" if
	// nothing speaks against it.
	stays string
	// roomless are new members that no Node takes while others are cordoned. They are not
	// replaced, because the next ones would find no room either.
	roomless []string

	// changes are the times at which the facts become others without any event.
	changes []time.Time
	// claimRecord is status.claims as a set.
	claimRecord map[v1alpha1.RecordedClaim]bool
}

// loss is a member and why it counts as lost.
type loss struct {
	*member
	reason v1alpha1.LossReason
	due    time.Time
	// wall is when it would be due if the operator had looked all the time; only
	// unreadiness has it.
	wall time.Time
}

// derive says what follows from a world. It is pure.
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

// served reports whether the set is there to stay and its spec says how.
func (w *world) served() bool { return w.invalid == "" && w.set.DeletionTimestamp == nil }

// specRefused reports whether the API server refused just now to create the revision
// of the spec.
func (f *facts) specRefused() bool { return f.spec.UID == "" && f.refusedNow(reasonRevision) }

// sortMembers sorts the members into alive, returning and departed. It returns those
// that the control plane takes from a lost Node, which are sorted last.
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
				continue // it is counted as returning
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

// reached reports whether a time has come.
func (w *world) reached(at time.Time) bool { return !at.After(w.now) }

// returnFailsAt is when a member that is to come back counts as lost, because its Node
// was lost before its kubelet ended the old pod: it may never end it. It is zero if
// nothing is wrong with the Node. Of a Node that is gone or out of service the control
// plane removes the pod; after an eviction its volumes can move, or else onEviction
// would not be Keep.
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

// waitsToBeReplaced reports whether the control plane takes a member from a lost Node
// and the member may have to wait for its turn to be replaced.
func (f *facts) waitsToBeReplaced(m *member) bool {
	return f.parallel() && m.takenByTaint() && !f.succeeded[m.name()] && !f.wasRetired(m) && !f.keepsEvicted(m)
}

// takeIn sorts members that the control plane takes from a lost Node: they are
// lost as far as slots are empty without them. The others were succeeded long
// ago, by members that are no more or came back without saying so.
func (f *facts) takeIn(taken []*member) {
	for _, m := range taken {
		if f.occupied() < f.wanted() {
			f.lost = append(f.lost, loss{member: m, reason: m.takenBecause(), due: f.now})
		} else {
			f.departed = append(f.departed, m)
		}
	}
}

// findOutage names the members of a set none of which is Ready though some were,
// and those that are not Ready for long and never replaced for it.
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

// stillReturning are the entries of status.updating that still wait: their old
// pod is going or gone and no new one is there. An entry whose old pod lives
// on was written by a pass that did not get to the delete; the rules write it
// again if it is still wanted.
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

// occupied is how many slots of the set have a member, or will have one again
// without a create of a new name, or may have.
func (f *facts) occupied() int {
	return len(f.alive) + len(f.lost) + len(f.returning) + len(f.pendingEnds)
}

// wanted is how many members there should be now: the replicas, and those that are
// added before others go, in a surge update or from cordoned Nodes.
func (f *facts) wanted() int {
	going := len(f.leaving)
	if f.maxSurge() > 0 {
		for _, m := range f.outdated() {
			if !f.leaves(m) {
				going++
			}
		}
	}
	return f.replicas() + min(f.mostExtra(), going)
}

// unsucceeded are the departed members whose slot is still empty. One that a
// scale-down retired has no slot.
func (f *facts) unsucceeded() []*member {
	var waiting []*member
	for _, m := range f.departed {
		if !f.succeeded[m.name()] && !f.wasRetired(m) {
			waiting = append(waiting, m)
		}
	}
	return waiting[:min(len(waiting), max(0, f.wanted()-f.occupied()))]
}

// notAt are the members that have another revision.
func (f *facts) notAt(revision *appsv1.ControllerRevision) []*member {
	var old []*member
	for _, m := range f.alive {
		if m.revision() != revision.Name {
			old = append(old, m)
		}
	}
	return old
}

// outdated are the members that the update has still to reach, those that are
// not Ready first: they cost nothing. The partition stays out of it.
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

// available reports whether the member counts as available: Ready for
// minReadySeconds, on a Node that is there, and not in the middle of an
// in-place update. If it is not yet, it says how long that will take.
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

// countAvailable counts the members that are available, and says when the next ones
// will be.
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

// wasRetired reports whether the pod goes because of a scale-down.
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

// refusedNow reports whether a write for that reason was refused just now.
func (w *world) refusedNow(reason string) bool {
	_, refused := w.refusedUntil(reason)
	return refused
}

// refusedUntil is when a write that was refused just now may be tried again.
func (w *world) refusedUntil(reason string) (at time.Time, refused bool) {
	r, known := w.refused[reason]
	return r.until, known && r.until.After(w.now)
}

// What is asked of one member.

func (m *member) name() string      { return m.pod.Name }
func (m *member) revision() string  { return revisionOf(m.pod) }
func (m *member) ready() bool       { return podstate.Ready(m.pod) }
func (m *member) wasReady() bool    { return podstate.WasReady(m.pod) }
func (m *member) scheduled() bool   { return podstate.Scheduled(m.pod) }
func (m *member) terminating() bool { return podstate.Terminating(m.pod) }
func (m *member) ended() bool       { return podstate.Ended(m.pod) }
func (m *member) evicted() bool     { return podstate.Evicted(m.pod) }

// replaces is the name of the member whose slot this one fills; "" if it is the first
// there.
func (m *member) replaces() string { return m.pod.Annotations[v1alpha1.AnnotationReplaces] }

// patching reports whether an in-place update of the member is under way.
func (m *member) patching() bool { return m.pod.Annotations[v1alpha1.AnnotationInPlace] != "" }

// works reports whether the member is Ready with the revision that it has, not with
// one that an in-place update takes away.
func (m *member) works() bool { return m.ready() && !m.patching() }

// deleteFirst reports whether the user wants this member to go first.
func (m *member) deleteFirst() bool { return m.pod.Annotations[v1alpha1.AnnotationDeleteFirst] == yes }

// nodeLost reports whether anything is wrong with the member's Node, however short.
func (m *member) nodeLost() bool { return m.node.lostNow() }

// since is when a condition of the pod got its status.
func (m *member) since(kind corev1.PodConditionType) time.Time {
	t, _ := podstate.Since(m.pod, kind)
	return t
}

// stillReplacing reports whether the member fills the slot of a lost one and was not
// Ready yet: its slot is taken.
func (m *member) stillReplacing() bool { return m.replaces() != "" && !m.wasReady() }

// replacements is how many successive replacements the member's slot has seen.
func (m *member) replacements() int {
	n, err := strconv.Atoi(m.pod.Annotations[v1alpha1.AnnotationReplacements])
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// hasRun reports whether the member's data may exist: it was Ready, a container
// was started, or the pod was recreated for a member that has been there before.
func (m *member) hasRun() bool {
	if m.wasReady() || m.pod.Annotations[v1alpha1.AnnotationUpdated] != "" {
		return true
	}
	return slices.ContainsFunc(slices.Concat(m.pod.Status.InitContainerStatuses, m.pod.Status.ContainerStatuses),
		func(s corev1.ContainerStatus) bool { return s.ContainerID != "" })
}

// takenByTaint reports whether the control plane evicts the pod from a Node that
// is lost. Its pod hangs until the Node returns; it waits for its turn like
// any member of that Node.
func (m *member) takenByTaint() bool {
	return m.terminating() && podstate.TaintEvicted(m.pod) && m.nodeLost()
}

// takenBecause is what is wrong with the Node that the control plane takes a
// member from.
func (m *member) takenBecause() v1alpha1.LossReason {
	switch {
	case m.node.gone:
		return v1alpha1.LossNodeGone
	case m.node.outOfService:
		return v1alpha1.LossNodeOutOfService
	}
	return v1alpha1.LossNodeNotReady
}
