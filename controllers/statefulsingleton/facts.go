package statefulsingleton

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// facts are what a pass knows: the world as it was read, and what follows from it. They
// are derived once; rules and conditions read them, and change nothing in them.
type facts struct {
	*world
	// blockers are the pods that may be running a program, the oldest first.
	blockers []*member
	// waiting are the pods that wait for their turn, the next one first.
	waiting []*member
	// active is the pod that may run its program: the holder, or the oldest blocker; nil
	// if there is none.
	active *member
	// started are the blockers whose program has been started, as far as is known.
	started []*member
	// leaving is the active pod while it is to leave its cordoned Node, once another one
	// can take its place; nil if there is none.
	leaving *member
	// handover is true while one is in progress; late is true of one that has taken
	// longer than the spec allows.
	handover, late bool
}

// verdict is what derive finds out about a pod.
type verdict struct {
	standing standing
	// holder is true of the pod that status.holder names.
	holder bool
	// poweredOff is true of a pod whose machine is off.
	poweredOff bool
	// replaced is true of a pod for which no other is deleted: one of its owner and revision
	// was deleted for another one before.
	replaced bool
	// rests is true of a pod to which the kubelet would show a grant at once.
	rests bool
}

// standing is where a pod stands in the states of doc.go.
type standing uint8

const (
	// out is a pod that has stopped or will never run its program, or one that the
	// promise does not cover.
	out standing = iota
	// waits is a pod that could be granted, once it is its turn.
	waits
	// mayRun is a pod that may be running its program now, or start it without asking.
	mayRun
)

// derive finds out what follows from a world. It is pure.
func derive(w *world) *facts {
	f := &facts{world: w}
	for _, m := range w.pods {
		m.verdict = w.judge(m)
		switch m.standing {
		case mayRun:
			f.blockers = append(f.blockers, m)
		case waits:
			f.waiting = append(f.waiting, m)
		}
	}
	slices.SortStableFunc(f.waiting, byTurn)
	f.active = activeOf(f.blockers)
	f.started = slices.DeleteFunc(slices.Clone(f.blockers), func(m *member) bool { return !m.mayHaveStarted() })
	f.leaving = f.leaver()
	f.handover = f.inHandover()
	f.late = f.handover && w.isLate()
	return f
}

func (w *world) judge(m *member) verdict {
	return verdict{
		standing:   w.standingOf(m),
		holder:     w.isHolder(m),
		replaced:   wasReplaced(w, m),
		poweredOff: w.isPoweredOff(m),
		rests:      m.held() && w.since(m.heldSince) >= restsAfter,
	}
}

// activeOf is the holder, or else the oldest.
func activeOf(blockers []*member) *member {
	for _, m := range blockers {
		if m.holder {
			return m
		}
	}
	if len(blockers) > 0 {
		return blockers[0]
	}
	return nil
}

// Facts about time. Time in which this process could not look, because it was frozen,
// did not lead or had no API server, does not count: no pod is blamed for it.

// since is how much time has passed.
func (w *world) since(from time.Time) time.Duration {
	return w.watch.Elapsed(from, w.now)
}

// until is how much is left of a time that began then.
func (w *world) until(from time.Time, d time.Duration) time.Duration {
	return w.watch.Deadline(from, d).Sub(w.now)
}

// reviews are the times after which to look again for what no event tells: a Node's
// absence, a new object that settles, a gate that comes to rest, a handover that takes
// too long.
func (f *facts) reviews() []time.Duration {
	after := f.podReviews()
	if f.object == nil {
		return after
	}
	after = append(after, f.settlesIn(), f.mirrorMayReturn(), f.ownersDue.Sub(f.now))
	if f.unguarded.Message != "" {
		after = append(after, guardReview)
	}
	if slices.ContainsFunc(f.blockers, (*member).detached) {
		after = append(after, detachedReview)
	}
	if began := f.object.Status.TransitionTimestamp; began != nil && f.handover {
		after = append(after, f.until(began.Time, f.patience()))
	}
	return after
}

func (f *facts) podReviews() []time.Duration {
	var after []time.Duration
	for _, m := range f.blockers {
		if m.node.Missing {
			after = append(after, f.until(m.node.MissingSince, fenceAfter))
		}
	}
	for _, m := range f.waiting {
		if m.held() && f.object != nil {
			after = append(after, f.until(m.heldSince, restsAfter))
		}
		if m.held() && m.family.unknown != "" {
			after = append(after, f.until(m.heldSince, unknownOwnerPatience))
		}
	}
	return after
}

// mirrorMayReturn is for how long a static pod that is not shown may be shown again.
func (w *world) mirrorMayReturn() time.Duration {
	if w.mirrorGone.IsZero() {
		return 0
	}
	return max(w.until(w.mirrorGone, mirrorReturns), 0)
}

// settlesIn is how long the object needs to settle; 0 if it has. What counts is when
// this process saw it first: the clock of the API server may be another. One that has
// started a pod is not new.
func (w *world) settlesIn() time.Duration {
	if w.object.Status.Holder != nil {
		return 0
	}
	return max(w.until(w.firstSeen, settleAfter), 0)
}

// patience is how long a handover may take.
func (w *world) patience() time.Duration {
	return time.Duration(*w.object.Spec.MaxTransitionTime) * time.Second
}

// isLate reports whether a handover has taken longer than the spec allows.
func (w *world) isLate() bool {
	if w.object == nil || w.invalid != "" {
		return false
	}
	began := w.object.Status.TransitionTimestamp
	return began != nil && w.since(began.Time) >= w.patience()
}

// Facts about the object.

func (w *world) deleting() bool {
	return w.object != nil && w.object.DeletionTimestamp != nil
}

// releasesAll reports whether a person, or the end of the namespace, has ended the
// promise for all pods at once.
func (w *world) releasesAll() bool {
	if !w.deleting() {
		return false
	}
	if w.namespaceGoes || w.object.Annotations[v1.AnnotationReleaseNow] == v1.True {
		return true
	}
	return releaseOrder{w.object}.isOrdered()
}

// serves reports whether this object decides about pods.
func (w *world) serves() bool {
	switch {
	case w.object == nil, w.invalid != "", w.crowded:
		return false
	}
	return w.elder() == nil
}

// grants reports whether this object may start a pod now, and delete one for it.
func (w *world) grants() bool {
	if !w.serves() || w.releasesAll() {
		return false
	}
	return w.settlesIn() == 0 && w.mirrorMayReturn() == 0
}

// elder is an older object whose selector overlaps; it decides about the pods
// of both.
func (w *world) elder() *v1.StatefulSingleton {
	for _, other := range w.rivals {
		if older(other, w.object) {
			return other
		}
	}
	return nil
}

// epoch is the highest that any grant of this object is known to have.
func (w *world) epoch() int64 {
	var highest int64
	if w.object != nil && w.object.Status.Holder != nil {
		highest = w.object.Status.Holder.Epoch
	}
	for _, m := range w.pods {
		highest = max(highest, m.epoch())
	}
	return highest
}

// Facts about a pod of the object.

// standingOf is where a pod stands.
func (w *world) standingOf(m *member) standing {
	switch {
	case w.mayRun(m):
		return mayRun
	case m.gated && m.lives():
		return waits
	}
	return out
}

// mayRun reports whether the pod may be running its program now, or start it
// without asking.
func (w *world) mayRun(m *member) bool {
	switch {
	case podstate.Stopped(m.pod, m.protected()):
		return false
	case w.isFenced(m):
		return false
	case m.granted(), m.protectedForItself():
		return true
	case m.gated:
		// Named, and its grant is still to come, or on its way. One that is being
		// deleted cannot be granted any more: the API server refuses it. One that has
		// ended is another version than the grant is bound to, and gets none.
		return w.isHolder(m) && m.lives()
	}
	return !w.isNewcomer(m)
}

// isHolder reports whether status.holder names the pod.
func (w *world) isHolder(m *member) bool {
	if w.object == nil || w.object.Status.Holder == nil {
		return false
	}
	return w.object.Status.Holder.UID == m.pod.UID
}

// isFenced reports whether the pod cannot run any more, by an administrator's word:
// its machine is off, and it will not start when that is switched on again,
// because the pod was deleted, or has ended.
func (w *world) isFenced(m *member) bool {
	return w.isPoweredOff(m) && !m.lives()
}

// isPoweredOff reports whether the machine of the pod is off. The taint is to be
// taken off after the machine is on again, so that it says nothing about a Node
// that is Ready.
func (w *world) isPoweredOff(m *member) bool {
	if m.node.OutOfService && !m.node.Ready {
		return true
	}
	return m.node.Missing && w.since(m.node.MissingSince) >= fenceAfter
}

// isNewcomer reports whether the pod may have been created after its object had lost our
// finalizer, and another one still keeps the object: the promise does not cover the pod.
func (w *world) isNewcomer(m *member) bool {
	if w.object == nil || holdsNewPods(w.object) {
		return false
	}
	return w.object.DeletionTimestamp.Before(&m.pod.CreationTimestamp)
}

// madeUnder reports whether the pod was created under this very object: it has the
// gate, and the webhook wrote the object's UID into it. A pod that was there before,
// or came past the webhook, is not the object's to delete; labels and times can be
// had otherwise.
func (w *world) madeUnder(m *member) bool {
	return m.gated && m.pod.Annotations[v1.AnnotationSingletonUID] == string(w.object.UID)
}

// isAlsoOfAnother reports whether another object, whose selector overlaps,
// watches the pod too.
func (w *world) isAlsoOfAnother(m *member) bool {
	return slices.ContainsFunc(w.rivals, func(s *v1.StatefulSingleton) bool { return selects(s, labelsOf(m.pod)) })
}

// inHandover reports whether a handover is in progress: a pod waits, and no other may
// be running, or one that may be has to go.
func (f *facts) inHandover() bool {
	switch {
	case f.leaving != nil:
		return true
	case len(f.waiting) == 0:
		return false
	case len(f.blockers) == 0:
		return true
	}
	return slices.ContainsFunc(f.blockers, f.hasToGo)
}

// hasToGo reports whether a pod goes, or stands in the way of those that wait: it ended
// without proof, it has no gate, a newer revision takes its place, or it cannot come as
// far as its program while another could.
func (f *facts) hasToGo(m *member) bool {
	switch {
	case !m.lives(), m.isUnmanaged(), f.isIdle(m):
		return true
	case f.deletesOnTimeout() && f.mayBeReplaced(m):
		return true
	}
	return len(f.successors(m)) > 0
}

// isIdle reports whether a pod has its turn and cannot come as far as its program,
// while another could.
func (f *facts) isIdle(m *member) bool {
	return m.granted() && !m.begun() && slices.ContainsFunc(f.waiting, (*member).held)
}

// several reports whether the programs of more than one pod may be running now. Of pods
// with the gate they cannot, unless a person let them go.
func (f *facts) several() bool {
	return len(f.started) > 1
}

// Facts about a pod by itself.

func (m *member) name() string { return m.pod.Name }

func (m *member) terminating() bool { return podstate.Terminating(m.pod) }

// lives reports whether the pod is not being deleted and has not ended: the API server
// takes a grant for it.
func (m *member) lives() bool {
	return !m.terminating() && !podstate.Ended(m.pod)
}

// granted reports whether the gate of this pod lets its program start.
func (m *member) granted() bool {
	uid, _, ok := strings.Cut(m.pod.Annotations[v1.AnnotationGrant], " ")
	return ok && uid == string(m.pod.UID)
}

// epoch is that of the pod's grant; 0 without one.
func (m *member) epoch() int64 {
	_, text, _ := strings.Cut(m.pod.Annotations[v1.AnnotationGrant], " ")
	epoch, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !m.granted() {
		return 0
	}
	return epoch
}

// protected reports whether the pod has our finalizer.
func (m *member) protected() bool {
	return controllerutil.ContainsFinalizer(m.pod, v1.FinalizerPod)
}

// protectedForItself reports whether the finalizer counts as a grant: it came with one,
// unless the pod was made from the text of another.
func (m *member) protectedForItself() bool {
	if m.gated && m.isCopy() {
		return false
	}
	return m.protected()
}

// isCopy reports whether the pod was made from the text of another, whose grant it
// carries; the finalizer came with it and says nothing.
func (m *member) isCopy() bool {
	return m.pod.Annotations[v1.AnnotationGrant] != "" && !m.granted()
}

// isUnmanaged reports whether nothing held back the program of the pod.
func (m *member) isUnmanaged() bool {
	return !m.gated && !m.granted()
}

// ready reports whether the readiness condition of the pod is True.
func (m *member) ready() bool {
	return slices.ContainsFunc(m.pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == v1.ReadinessGate && c.Status == corev1.ConditionTrue
	})
}

// held reports whether the gate of the pod runs, so that its program would start
// at once.
func (m *member) held() bool {
	if wait := statusOf(m.pod.Status.InitContainerStatuses, v1.ContainerWait); wait != nil {
		return wait.State.Running != nil
	}
	running := 0
	for _, name := range m.program {
		if s := statusOf(m.pod.Status.ContainerStatuses, name); s != nil && s.State.Running != nil {
			running++
		}
	}
	return running > 0 && running == len(m.program)
}

// statusOf is what the kubelet says of the container of a name; nil if it says nothing.
func statusOf(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &statuses[i]
}

// lasts reports whether the gate does not end by itself. The script does, in an
// image without a shell, after a moment in which it is seen to run. Before the
// pod's turn that is known to be the script's fault; after it, it could be the
// program's.
func (m *member) lasts() bool {
	return m.rests || !slices.ContainsFunc(m.pod.Spec.Containers, runsScript)
}

func runsScript(c corev1.Container) bool {
	return len(c.Command) > 0 && c.Command[0] == v1.ScriptInPod
}

// eligible reports whether a waiting pod could start its program now: it is on a
// Node that answers, whose kubelet has taken it, and no container of it fails to
// start.
func (m *member) eligible() bool {
	switch {
	case !podstate.Scheduled(m.pod), podstate.Silent(m.pod):
		return false
	case !m.node.Ready, m.node.OutOfService:
		return false
	}
	return m.stuckOn() == ""
}

// stuckOn says why a waiting pod cannot come as far as its gate; "" if nothing
// is in the way. Its program has not run yet, so that it is not to blame.
func (m *member) stuckOn() string {
	for _, s := range m.pod.Status.InitContainerStatuses {
		if why := stuckStart(&s); why != "" {
			return why
		}
	}
	for _, s := range m.pod.Status.ContainerStatuses {
		if why := stuckStart(&s); why != "" && slices.Contains(m.program, s.Name) {
			return why
		}
	}
	return ""
}

// stuckStart says why a container does not start; "" if it does, or is about to.
func stuckStart(s *corev1.ContainerStatus) string {
	if s.State.Waiting == nil {
		return ""
	}
	switch reason := s.State.Waiting.Reason; reason {
	case "", "PodInitializing", "ContainerCreating":
		return ""
	default:
		return reason + " of container " + s.Name
	}
}

// begun reports whether a container of the program has ever started. Where none of
// the names in spec.containers is in the pod, that is any container.
func (m *member) begun() bool {
	return slices.ContainsFunc(m.pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		if len(m.program) > 0 && !slices.Contains(m.program, s.Name) {
			return false
		}
		return s.ContainerID != "" || s.State.Running != nil || s.State.Terminated != nil
	})
}

// mayHaveStarted reports whether the program of a pod that may run has been started, as
// far as is known: where no kubelet answers, it may have been.
func (m *member) mayHaveStarted() bool {
	if m.begun() {
		return true
	}
	heard := !podstate.Scheduled(m.pod) || !podstate.Silent(m.pod)
	return !heard && (!m.node.Ready || podstate.Ended(m.pod))
}

// Facts about pods beside each other.

// needsClaimOf reports whether the pod cannot come as far as its gate because
// another has its volume: it is on another node, or found none, as the scheduler
// leaves a pod whose claim has mode ReadWriteOncePod.
func (m *member) needsClaimOf(other *member) bool {
	switch {
	case !podstate.Scheduled(m.pod):
		return m.sharesClaim(other, corev1.ReadWriteOncePod)
	case m.held(), !m.eligible(), m.pod.Spec.NodeName == other.pod.Spec.NodeName:
		return false
	}
	return m.sharesClaim(other, corev1.ReadWriteOnce)
}

// sharesClaim reports whether both pods mount a claim of that mode.
func (m *member) sharesClaim(other *member, as corev1.PersistentVolumeAccessMode) bool {
	for name, mode := range m.claims {
		if _, shared := other.claims[name]; shared && mode == as {
			return true
		}
	}
	return false
}
