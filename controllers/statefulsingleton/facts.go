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

// facts is the input of rules and conditions: the world that a pass has read, and
// everything derived from it. derive computes it once per pass; afterwards it is read-only.
type facts struct {
	*world
	// blockers are the pods that may be running a program, oldest first.
	blockers []*member
	// waiting are the pods that wait for a grant, next one first.
	waiting []*member
	// active is the pod that may run its program: the holder, or else the oldest blocker;
	// nil if there are no blockers.
	active *member
	// started are the blockers whose program has started, or may have started on an
	// unreachable Node.
	started []*member
	// leaving is the active pod if its Node is cordoned and it has to hand over to a pod on
	// another Node; nil otherwise.
	leaving *member
	// handover is true while a handover is in progress. late is true if the handover has
	// exceeded spec.maxTransitionTime.
	handover, late bool
}

// verdict is the part of a member that derive computes.
type verdict struct {
	standing standing
	// holder is true for the pod named in status.holder.
	holder bool
	// poweredOff is true for a pod whose machine is off.
	poweredOff bool
	// replaced is true if no other pod may be deleted for this one, because onTimeout has
	// already deleted a pod of the same owner and revision (see wasReplaced).
	replaced bool
	// rests is true if the gate has been running for restsAfter, so that the kubelet would
	// show it a grant at once.
	rests bool
}

// standing is the state of a pod, see doc.go.
type standing uint8

const (
	// out is a pod that has stopped, that will never run its program, or that the guarantee
	// does not cover.
	out standing = iota
	// waits is a pod that can be granted.
	waits
	// mayRun is a pod that may be running its program, or may start it at any time.
	mayRun
)

// derive computes the facts from a world. It is pure.
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

// activeOf returns the holder if it is a blocker, else the oldest blocker.
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

// Facts about time. Time during which this process was frozen, was not the leader, or could
// not reach the API server does not count towards any deadline.

// since returns the time elapsed since from.
func (w *world) since(from time.Time) time.Duration {
	return w.watch.Elapsed(from, w.now)
}

// until returns the remaining time until from+d.
func (w *world) until(from time.Time, d time.Duration) time.Duration {
	return w.watch.Deadline(from, d).Sub(w.now)
}

// reviews returns the delays after which to reconcile again although no watch event is
// expected: a Node has been missing long enough, a new object has settled, a gate has been
// running long enough, a handover times out.
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

// mirrorMayReturn returns for how long the mirror of a missing static pod may still
// reappear.
func (w *world) mirrorMayReturn() time.Duration {
	if w.mirrorGone.IsZero() {
		return 0
	}
	return max(w.until(w.mirrorGone, mirrorReturns), 0)
}

// settlesIn returns how long a new object has to wait before it may start pods; 0 if it
// may. The time counts from when this process first saw the object, because the clock of
// the API server may differ. An object that has started a pod is not new.
func (w *world) settlesIn() time.Duration {
	if w.object.Status.Holder != nil {
		return 0
	}
	return max(w.until(w.firstSeen, settleAfter), 0)
}

// patience returns the max duration of a handover.
func (w *world) patience() time.Duration {
	return time.Duration(*w.object.Spec.MaxTransitionTime) * time.Second
}

// isLate reports whether the handover has exceeded spec.maxTransitionTime.
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

// releasesAll reports whether all pods are released at once, by a user's request or because
// the namespace is terminating.
func (w *world) releasesAll() bool {
	if !w.deleting() {
		return false
	}
	if w.namespaceGoes || w.object.Annotations[v1.AnnotationReleaseNow] == v1.True {
		return true
	}
	return releaseOrder{w.object}.isOrdered()
}

// serves reports whether this object manages its pods: its spec is valid, the namespace
// limit is not exceeded, and no older object overlaps.
func (w *world) serves() bool {
	switch {
	case w.object == nil, w.invalid != "", w.crowded:
		return false
	}
	return w.elder() == nil
}

// grants reports whether this object may start a pod now, or delete one to let another
// start.
func (w *world) grants() bool {
	if !w.serves() || w.releasesAll() {
		return false
	}
	return w.settlesIn() == 0 && w.mirrorMayReturn() == 0
}

// elder returns an older object whose selector overlaps; nil if there is none. The older
// object manages the pods of both.
func (w *world) elder() *v1.StatefulSingleton {
	for _, other := range w.rivals {
		if older(other, w.object) {
			return other
		}
	}
	return nil
}

// epoch returns the highest known epoch of this object's grants.
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

// Facts about a pod in relation to its object.

// standingOf returns the state of a pod.
func (w *world) standingOf(m *member) standing {
	switch {
	case w.mayRun(m):
		return mayRun
	case m.gated && m.lives():
		return waits
	}
	return out
}

// mayRun reports whether the pod may be running its program, or may start it at any time.
func (w *world) mayRun(m *member) bool {
	switch {
	case podstate.Stopped(m.pod, m.protected()):
		return false
	case w.isFenced(m):
		return false
	case m.granted(), m.protectedForItself():
		return true
	case m.gated:
		// The pod is named in status.holder, and its grant is pending. A terminating pod
		// can no longer be granted, because the API server rejects the patch. An ended pod
		// can neither, because its resourceVersion has changed.
		return w.isHolder(m) && m.lives()
	}
	return !w.isNewcomer(m)
}

// needsGrant reports whether the pod cannot start its program before it gets a grant.
func (w *world) needsGrant(m *member) bool {
	return m.gated && !m.granted() && !m.protectedForItself() && !w.isHolder(m)
}

// isHolder reports whether status.holder names the pod.
func (w *world) isHolder(m *member) bool {
	if w.object == nil || w.object.Status.Holder == nil {
		return false
	}
	return w.object.Status.Holder.UID == m.pod.UID
}

// isFenced reports whether the pod can no longer run: its machine is off, and the pod was
// deleted or has ended, so that it does not start when the machine is switched on again.
func (w *world) isFenced(m *member) bool {
	return w.isPoweredOff(m) && !m.lives()
}

// isPoweredOff reports whether the machine of the pod is off, as stated by an
// administrator: its Node has the out-of-service taint, or was deleted. The taint is
// removed only after the machine is on again, so it is ignored on a Ready Node.
func (w *world) isPoweredOff(m *member) bool {
	if m.node.OutOfService && !m.node.Ready {
		return true
	}
	return m.node.Missing && w.since(m.node.MissingSince) >= fenceAfter
}

// isNewcomer reports whether the pod may have been created after its object lost our
// finalizer, while another finalizer still keeps the object. The guarantee does not cover
// such a pod.
func (w *world) isNewcomer(m *member) bool {
	if w.object == nil || holdsNewPods(w.object) {
		return false
	}
	return w.object.DeletionTimestamp.Before(&m.pod.CreationTimestamp)
}

// madeUnder reports whether the pod was created under this object: it has the gate, and the
// webhook recorded the object's UID in it. Any other pod existed before the object or
// bypassed the webhook, and this object has no right to delete it. Labels and creation
// times are no proof.
func (w *world) madeUnder(m *member) bool {
	return m.gated && m.pod.Annotations[v1.AnnotationSingletonUID] == string(w.object.UID)
}

// isAlsoOfAnother reports whether another object with an overlapping selector also selects
// the pod.
func (w *world) isAlsoOfAnother(m *member) bool {
	return slices.ContainsFunc(w.rivals, func(s *v1.StatefulSingleton) bool { return selects(s, labelsOf(m.pod)) })
}

// inHandover reports whether a handover is in progress: a pod waits, and either no other
// pod may be running or a blocker has to stop. The same is true while the active pod has to
// leave its Node.
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

// hasToGo reports whether a blocker has to stop so that a waiting pod can start: it is
// terminating or has ended without proof, it has no gate, another revision replaces it, or
// it cannot start its program while another pod could.
func (f *facts) hasToGo(m *member) bool {
	switch {
	case !m.lives(), m.isUnmanaged(), f.isIdle(m):
		return true
	case f.deletesOnTimeout() && f.mayBeReplaced(m):
		return true
	}
	return len(f.successors(m)) > 0
}

// isIdle reports whether a granted pod cannot start its program while a waiting pod could.
func (f *facts) isIdle(m *member) bool {
	return m.granted() && !m.begun() && slices.ContainsFunc(f.waiting, (*member).held)
}

// several reports whether the programs of several pods may be running. Pods with the gate
// run at the same time only if a user released them.
func (f *facts) several() bool {
	return len(f.started) > 1
}

// Facts about a single pod.

func (m *member) name() string { return m.pod.Name }

func (m *member) terminating() bool { return podstate.Terminating(m.pod) }

// lives reports whether the pod is neither terminating nor ended, so that the API server
// accepts a grant for it.
func (m *member) lives() bool {
	return !m.terminating() && !podstate.Ended(m.pod)
}

// granted reports whether the gate of this pod lets its program start.
func (m *member) granted() bool {
	uid, _, ok := strings.Cut(m.pod.Annotations[v1.AnnotationGrant], " ")
	return ok && uid == string(m.pod.UID)
}

// epoch returns the epoch of the pod's grant; 0 without a grant.
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

// protectedForItself reports whether the finalizer counts as a grant. It is set together
// with a grant, unless the pod is a copy.
func (m *member) protectedForItself() bool {
	if m.gated && m.isCopy() {
		return false
	}
	return m.protected()
}

// isCopy reports whether the pod was created from the manifest of another pod, including
// its grant. The finalizer was copied as well, so it proves nothing.
func (m *member) isCopy() bool {
	return m.pod.Annotations[v1.AnnotationGrant] != "" && !m.granted()
}

// isUnmanaged reports whether nothing held back the program of the pod.
func (m *member) isUnmanaged() bool {
	return !m.gated && !m.granted()
}

// ready reports whether our readiness gate of the pod is True.
func (m *member) ready() bool {
	return slices.ContainsFunc(m.pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == v1.ReadinessGate && c.Status == corev1.ConditionTrue
	})
}

// held reports whether the gate of the pod is running, so that its program would start at
// once.
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

// statusOf returns the status of the named container; nil if the kubelet has reported none.
func statusOf(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &statuses[i]
}

// lasts reports whether the gate is known to keep running. In an image without a shell the
// script ends shortly after it is reported as running. Before the grant this is known to be
// the script's fault. After the grant it could be the program's.
func (m *member) lasts() bool {
	return m.rests || !slices.ContainsFunc(m.pod.Spec.Containers, runsScript)
}

func runsScript(c corev1.Container) bool {
	return len(c.Command) > 0 && c.Command[0] == v1.ScriptInPod
}

// eligible reports whether a waiting pod could start its program now: its Node is Ready,
// the kubelet has reported container statuses, and no container fails to start.
func (m *member) eligible() bool {
	switch {
	case !podstate.Scheduled(m.pod), podstate.Silent(m.pod):
		return false
	case !m.node.Ready, m.node.OutOfService:
		return false
	}
	return m.stuckOn() == ""
}

// stuckOn returns why a waiting pod cannot reach its gate; "" if nothing blocks it. The
// program has not run yet, so it is not the cause.
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

// stuckStart returns why a container does not start; "" if it has started or is being
// created.
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

// begun reports whether a container of the program has ever started. If the pod has no
// container named in spec.containers, any container counts.
func (m *member) begun() bool {
	return slices.ContainsFunc(m.pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		if len(m.program) > 0 && !slices.Contains(m.program, s.Name) {
			return false
		}
		return s.ContainerID != "" || s.State.Running != nil || s.State.Terminated != nil
	})
}

// mayHaveStarted reports whether the program of a blocker has started, or may have started
// because its kubelet has not reported.
func (m *member) mayHaveStarted() bool {
	if m.begun() {
		return true
	}
	heard := !podstate.Scheduled(m.pod) || !podstate.Silent(m.pod)
	return !heard && (!m.node.Ready || podstate.Ended(m.pod))
}

// Facts about pairs of pods.

// needsClaimOf reports whether the pod cannot reach its gate because another pod uses its
// volume: the pod is on a different Node, or it is unscheduled because the claim has mode
// ReadWriteOncePod.
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
