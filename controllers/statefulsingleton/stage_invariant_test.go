package statefulsingleton

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/simulate"
)

// invariant checks the guarantee at every step of every story.
type invariant struct {
	s *stage
	// covered are the pods that the guarantee covers. It does not cover pods that were
	// created without an object, until there is one.
	covered map[types.UID]bool
	// rivals are the pods next to which a pod must never run: those that may have been
	// running when it was granted.
	rivals map[types.UID]map[types.UID]bool
	// under is the object that granted each pod.
	under map[types.UID]types.UID
	// epochs are the highest epochs of each object.
	epochs map[types.UID]int64
	// orders are the ids in spec.release of each object, by generation.
	orders map[types.UID]map[int64]string
	// ignored is the id in the generation of the first status of each object. The object was
	// created with this order, and it must not take effect.
	ignored map[types.UID]string
}

func newInvariant(s *stage) *invariant {
	return &invariant{s: s, covered: map[types.UID]bool{}, rivals: map[types.UID]map[types.UID]bool{}, under: map[types.UID]types.UID{},
		epochs: map[types.UID]int64{}, orders: map[types.UID]map[int64]string{}, ignored: map[types.UID]string{}}
}

// lives is called when the program of a pod really changes its state.
func (l *invariant) lives(b *simulate.Body) {
	if b.Main != simulate.AtWork {
		return
	}
	for _, uid := range l.s.UIDs() {
		other := l.s.Bodies[uid]
		if uid != b.Pod.UID && other.Main == simulate.AtWork && (l.rivals[uid][b.Pod.UID] || l.rivals[b.Pod.UID][uid]) {
			l.s.Breaks("%s runs its program at the same time as %s", b.Pod.Name, other.Pod.Name)
		}
	}
}

// changed is called for every change in the API.
func (l *invariant) changed(act *action.Action, was, is client.Object) {
	if act != nil && act.Verb == action.Delete {
		l.deleted(act)
	}
	switch {
	case is == nil:
		if _, isObject := was.(*v1.StatefulSingleton); isObject {
			l.forgets()
		}
		if pod, isPod := was.(*corev1.Pod); isPod && act != nil && act.Verb == action.Patch {
			l.released(act, pod)
		}
	case was == nil:
		l.born(is)
	default:
		switch o := is.(type) {
		case *corev1.Pod:
			l.patched(act, was.(*corev1.Pod), o)
		case *v1.StatefulSingleton:
			l.ordered(o)
			l.decided(o)
		}
	}
}

// forgets is called when an object and its selector are removed. Pods without a gate that
// were not marked before are no longer covered.
func (l *invariant) forgets() {
	for _, p := range l.s.Pods() {
		if p.Labels[v1.LabelSingleton] == "" && !controllerutil.ContainsFinalizer(p, v1.FinalizerPod) {
			delete(l.covered, p.UID)
		}
	}
}

func (l *invariant) born(obj client.Object) {
	switch o := obj.(type) {
	case *v1.StatefulSingleton:
		l.ordered(o)
		for _, p := range l.s.Pods() {
			l.covered[p.UID] = true
		}
		for uid := range l.s.Bodies {
			l.covered[uid] = true
		}
	case *corev1.Pod:
		object := l.s.Object()
		l.covered[o.UID] = object != nil && l.covers(object)
		if l.covered[o.UID] && !simulate.CameHeld(o) {
			// The operator cannot prevent a pod without a gate, but it must not grant
			// another one while such a pod can still be created.
			for uid, under := range l.under {
				if under == object.UID {
					l.rivals[uid][o.UID] = true
				}
			}
		}
	}
}

// covers reports whether the guarantee covers pods that are created now.
func (l *invariant) covers(object *v1.StatefulSingleton) bool {
	if l.hasEnded(object) {
		return false
	}
	return object.DeletionTimestamp == nil || controllerutil.ContainsFinalizer(object, v1.FinalizerSingleton)
}

// hasEnded reports whether the user has ended the guarantee: the object is being deleted, and
// has annotation release-now, or an order other than the one that it was created with. Before
// the first status no order takes effect. The results in the status are not used, because an
// operator that executes an order by mistake also reports it as executed.
func (l *invariant) hasEnded(object *v1.StatefulSingleton) bool {
	if object.DeletionTimestamp == nil {
		return false
	}
	if object.Annotations[v1.AnnotationReleaseNow] == v1.True {
		return true
	}
	ignored, observed := l.ignored[object.UID]
	id := l.orders[object.UID][object.Generation]
	return id != "" && observed && id != ignored
}

// ordered records the order in the spec of an object, and whether it is ignored.
func (l *invariant) ordered(object *v1.StatefulSingleton) {
	if l.orders[object.UID] == nil {
		l.orders[object.UID] = map[int64]string{}
	}
	l.orders[object.UID][object.Generation] = ""
	if release := object.Spec.Release; release != nil {
		l.orders[object.UID][object.Generation] = release.ID
	}
	if _, observed := l.ignored[object.UID]; !observed && object.Status.ObservedGeneration > 0 {
		l.ignored[object.UID] = l.orders[object.UID][object.Status.ObservedGeneration]
	}
}

func (l *invariant) decided(object *v1.StatefulSingleton) {
	if l.hasEnded(object) {
		clear(l.covered)
	}
	h := object.Status.Holder
	if h == nil {
		if l.epochs[object.UID] > 0 {
			l.s.Breaks("status.holder was removed")
		}
		return
	}
	if h.Epoch < l.epochs[object.UID] {
		l.s.Breaks("the epoch decreases from %d to %d", l.epochs[object.UID], h.Epoch)
	}
	l.epochs[object.UID] = h.Epoch
}

func (l *invariant) patched(act *action.Action, was, is *corev1.Pod) {
	before, after := &facts.Member{Pod: was}, &facts.Member{Pod: is}
	if act == nil {
		return
	}
	if before.Granted() && was.Annotations[v1.AnnotationGrant] != is.Annotations[v1.AnnotationGrant] {
		l.s.Breaks("%s had a grant, which was changed or removed", is.Name)
	}
	if !before.Granted() && after.Granted() {
		l.granted(act, is)
	}
	if controllerutil.ContainsFinalizer(was, v1.FinalizerPod) && !controllerutil.ContainsFinalizer(is, v1.FinalizerPod) {
		l.released(act, is)
	}
}

// granted records the pods that may be running now as rivals.
func (l *invariant) granted(act *action.Action, pod *corev1.Pod) {
	rivals := map[types.UID]bool{}
	epoch := (&facts.Member{Pod: pod}).Epoch()
	consider := func(p *corev1.Pod) {
		m := &facts.Member{Pod: p}
		if p.UID == pod.UID || !l.covered[p.UID] || simulate.CameHeld(p) && !m.Granted() {
			return
		}
		rivals[p.UID] = true
		if m.Epoch() >= epoch && act.Reason == rules.ReasonGrant {
			l.s.Breaks("%s got epoch %d, and %s has %d", pod.Name, epoch, p.Name, m.Epoch())
		}
	}
	for _, p := range l.s.Pods() {
		consider(p)
	}
	for _, b := range l.s.Bodies {
		if !rivals[b.Pod.UID] && !b.Over {
			consider(b.Pod)
		}
	}
	l.rivals[pod.UID] = rivals
	if object := l.s.Object(); object != nil && act.Reason == rules.ReasonGrant {
		l.under[pod.UID] = object.UID
	}
	if !controllerutil.ContainsFinalizer(pod, v1.FinalizerPod) && act.Reason != rules.ReasonLetGo {
		l.s.Breaks("%s got a grant without the finalizer", pod.Name)
	}
}

// MayRun reports whether a pod really runs something, or could.
func (l *invariant) mayRun(pod *corev1.Pod) bool {
	b := l.s.Bodies[pod.UID]
	if b == nil {
		return !podstate.Terminating(pod)
	}
	if b.Main == simulate.Crashed && (podstate.Ended(b.Pod) || b.Refused) {
		return false // its kubelet does not restart it
	}
	return !b.Over && l.s.Machine(pod.Spec.NodeName).On && (b.Main != simulate.NotStarted || !podstate.Terminating(b.Pod))
}

// released is called when the finalizer of a pod is removed.
func (l *invariant) released(act *action.Action, pod *corev1.Pod) {
	object := l.s.Object()
	ends := object == nil || object.DeletionTimestamp != nil
	if l.mayRun(pod) && (!ends || act.Reason != rules.ReasonLetGo) {
		l.s.Breaks("the finalizer of %s was removed although it may be running", pod.Name)
	}
}

func (l *invariant) deleted(act *action.Action) {
	switch pod, isPod := act.Object.(*corev1.Pod); {
	case !isPod:
		if act.Reason != rules.ReasonBudget {
			l.s.Breaks("the operator deletes: %s", act)
		}
	case act.Reason == rules.ReasonUnwanted:
		if !(&facts.Member{Pod: pod}).Detached() {
			l.s.Breaks("the operator deletes a pod that it did not detach from its ReplicaSet: %s", act)
		}
	case act.Reason == rules.ReasonFenced && !l.s.Machine(pod.Spec.NodeName).WasOff,
		!slices.Contains([]string{rules.ReasonSuperseded, rules.ReasonTimeout, rules.ReasonRejected, rules.ReasonFenced, rules.ReasonCordoned}, act.Reason):
		l.s.Breaks("the operator deletes: %s", act)
	}
}

// comeToRest lets all moves finish, and checks the final state.
func (s *stage) comeToRest() {
	s.t.Helper()
	s.settle(10 * time.Minute)
	s.ends()
	s.Check(s.t)
}

// ends checks the final state of a story.
func (s *stage) ends() {
	if object := s.Object(); object == nil {
		s.endsFree()
	} else {
		s.endsWell(object)
	}
	for _, o := range s.operators {
		before := s.Writes()
		for _, restart := range []bool{false, true} {
			if restart {
				o.Restart() // even a new process has nothing to do
			}
			o.Look()
			o.Woken = true
			if o.Pass(); s.Writes() != before || !o.Rests {
				s.Breaks("operator %s does not come to rest (restarted: %t)", o.Name, restart)
			}
		}
	}
}

// endsFree checks the final state without an object: no pod has our finalizer, and a pod
// waits only while another program runs.
func (s *stage) endsFree() {
	running := s.running()
	for _, p := range s.Pods() {
		m := &facts.Member{Pod: p}
		if m.Protected() {
			s.Breaks("%s still has our finalizer", p.Name)
		}
		if simulate.CameHeld(p) && !m.Granted() && !m.Terminating() && !podstate.Ended(p) && len(running) == 0 {
			s.Breaks("%s waits forever", p.Name)
		}
	}
}

// running returns the covered pods whose programs really run.
func (s *stage) running() (found []*simulate.Body) {
	for _, uid := range s.UIDs() {
		if b := s.Bodies[uid]; b.Main == simulate.AtWork && s.invariant.covered[uid] {
			found = append(found, b)
		}
	}
	return found
}

// endsWell checks the final state with an object: one program runs if one could, and the
// status reports that.
func (s *stage) endsWell(object *v1.StatefulSingleton) {
	st, running, could, wait := &object.Status, s.running(), 0, 0
	for _, p := range s.Pods() {
		if s.invariant.covered[p.UID] && podstate.Scheduled(p) && !podstate.Terminating(p) && !podstate.Ended(p) && s.Knows(p.Spec.NodeName) && p.Spec.Containers[0].Image != kubelet.BadImage {
			could++
		}
		if m := (&facts.Member{Pod: p}); s.invariant.covered[p.UID] && simulate.CameHeld(p) && !m.Granted() && !m.Terminating() && !podstate.Ended(p) {
			wait++
		}
		if podstate.Ended(p) && controllerutil.ContainsFinalizer(p, v1.FinalizerPod) {
			s.Breaks("%s has ended, and still has our finalizer", p.Name)
		}
	}
	want := map[string]string{v1.ConditionAvailable: "True", v1.ConditionProgressing: "False", v1.ConditionDegraded: "False",
		v1.ConditionUnmanagedPod: "False", v1.ConditionSelectorConflict: "False", v1.ConditionRolloutHeld: "False", v1.ConditionGuardMissing: "False",
		v1.ConditionReady: "True", v1.ConditionReconciling: "False", v1.ConditionStalled: "False"}
	switch {
	case could == 0 && len(running) == 0:
		want[v1.ConditionAvailable] = "False"
	case len(running) == 0 || slices.ContainsFunc(running[1:], func(b *simulate.Body) bool { return simulate.CameHeld(b.Pod) }):
		s.Breaks("%d programs run, want %d", len(running), could)
		return
	default:
		b := running[0]
		now := s.Current(b)
		if now == nil || !controllerutil.ContainsFinalizer(now, v1.FinalizerPod) {
			s.Breaks("%s runs without our finalizer", b.Pod.Name)
		}
		if !slices.ContainsFunc(running, func(b *simulate.Body) bool { return b.Pod.Name == st.ActivePod }) || st.Holder != nil && st.Holder.UID != b.Pod.UID && simulate.CameHeld(b.Pod) {
			s.Breaks("%s runs, but the active pod in the status is %s, and the holder %v", b.Pod.Name, st.ActivePod, st.Holder)
		}
		if !simulate.CameHeld(b.Pod) {
			want[v1.ConditionUnmanagedPod] = "True"
			if st.WaitingCount > 0 { // and the handover is late until a user deletes the pod
				return
			}
		}
		if object.DeletionTimestamp != nil && st.WaitingCount > 0 {
			want[v1.ConditionProgressing], want[v1.ConditionReady], want[v1.ConditionReconciling] = "True", "False", "True"
		}
		if int(st.WaitingCount) != wait {
			s.Breaks("%d pods wait, but the status has %d", wait, st.WaitingCount)
		}
	}
	phase := v1.PhaseRunning
	if len(running) > 1 { // created before the object
		want[v1.ConditionAvailable], want[v1.ConditionDegraded], phase = "False", "True", v1.PhaseFailed
		want[v1.ConditionReady], want[v1.ConditionReconciling], want[v1.ConditionStalled] = "False", "False", "True"
	}
	if st.Phase != phase {
		s.Breaks("the phase is %s", st.Phase)
	}
	for _, c := range st.Conditions {
		if c.Reason == v1.ReasonNotReplacedFirst {
			want[c.Type] = "True"
		}
		if expected := want[c.Type]; string(c.Status) != expected {
			s.Breaks("condition %s is %s, want %q: %s", c.Type, c.Status, expected, c.Message)
		}
		delete(want, c.Type)
	}
	for missing := range want {
		s.Breaks("condition %s is missing", missing)
	}
}
