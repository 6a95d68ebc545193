package statefulsingleton

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

const (
	// theTurn is the name under which the pod is followed whose turn it is: an owner
	// recreates it under other names.
	theTurn = "turn"
	// endedLately is for how long a pod that its Node ended counts as the reason why its
	// successor has not started yet.
	endedLately = 15 * time.Second
)

// delay is what keeps the pod whose turn it is from running.
type delay struct {
	causes.Found
	// what is what the message calls the pod, and pod its name; "" of one that was not created.
	what, pod string
	// unread is true while the events that would say why were not read yet.
	unread bool
	// again is when to look again; zero: it need not be.
	again time.Duration
}

// lackingOwner is an owner whose pod the API server refused, and when its events are read.
type lackingOwner struct {
	owner object
	said  causes.Turns[string]
}

// readCauses finds out what keeps the pod whose turn it is from running. Nothing is decided
// by it, so errors are logged.
func (r *Reconciler) readCauses(ctx context.Context, w *world, known *remembered) {
	if !w.serves() {
		known.causes, known.lacking = causes.Known{}, lackingOwner{}
		return
	}
	f := derive(w)
	m := turnOf(f)
	if m != nil && r.isLeftOver(ctx, m) {
		m = nil
	}
	follows := causes.Named{Name: theTurn}
	if m == nil || len(f.blockers)+len(f.waiting) == 0 {
		if text := r.readRefusal(ctx, w, &known.lacking); text != "" {
			m, follows.Refused = nil, causes.Refused(text)
		}
	} else {
		known.lacking = lackingOwner{}
	}
	if owner := known.lacking.owner; owner != nil {
		w.delay.what = "pod of " + kindOf(owner) + " " + owner.GetName()
	}
	if m != nil {
		follows.Pod = m.pod
	}
	found := known.causes.Read(ctx, r.Live, w.now, []causes.Named{follows}, v1.FinalizerPod)
	if due := known.lacking.said.Due; !due.IsZero() {
		found.LookAgain(due.Sub(w.now))
	}
	w.delay.again, w.delay.unread = found.Again, found.Unread || (known.lacking.owner != nil && known.lacking.said.Said == "")
	if len(found.All) > 0 {
		w.delay.Found = found.All[0].Found
	}
	if ended := lastEnded(f); m != nil && ended != nil && causes.Of(ended.pod) == w.delay.Cause {
		m = ended // and not its successor, which has not started yet
	}
	if m != nil {
		w.delay.what, w.delay.pod = "pod "+m.name(), m.name()
	}
}

// turnOf is the pod whose turn it is: the one that may run, or the next one while none may. It
// is the last one that a Node ended while its successor shows nothing yet, and one that does
// not go where there is no other; nil if there is none.
func turnOf(f *facts) *member {
	m, ended := f.active, lastEnded(f)
	if m == nil && len(f.waiting) > 0 {
		m = f.waiting[0]
	}
	switch {
	case m == nil && ended == nil:
		return lastTerminating(f)
	case m == nil:
		return ended
	case ended == nil, m.begun(), m.held(), podstate.Ready(m.pod), causes.Of(m.pod).Known():
		return m
	}
	if since, _ := podstate.Since(ended.pod, corev1.PodReady); f.now.Sub(since) < endedLately {
		return ended
	}
	return m
}

// lastEnded is the newest pod that has ended if its kubelet refused or evicted it; nil if it
// did not.
func lastEnded(f *facts) *member {
	for _, m := range slices.Backward(f.pods) {
		if !podstate.Ended(m.pod) {
			continue
		}
		if s := &m.pod.Status; s.Phase == corev1.PodFailed && s.Reason != "" {
			return m
		}
		return nil
	}
	return nil
}

func lastTerminating(f *facts) *member {
	for _, m := range slices.Backward(f.pods) {
		if m.terminating() {
			return m
		}
	}
	return nil
}

// isLeftOver reports whether a pod has ended or goes, and its Deployment wants no other.
func (r *Reconciler) isLeftOver(ctx context.Context, m *member) bool {
	if m.lives() || m.standing != out {
		return false
	}
	of, err := r.readFamily(ctx, m.pod, map[types.UID]*family{})
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("the owner of a pod that has ended cannot be read", "error", err.Error())
	}
	return of.unwanted
}

// readRefusal returns why the API server refuses the pod of an owner that lacks one; "" if it
// is not known that it does.
func (r *Reconciler) readRefusal(ctx context.Context, w *world, of *lackingOwner) string {
	if of.owner == nil {
		if len(w.refusedOwners) == 0 {
			return ""
		}
		*of = lackingOwner{owner: w.refusedOwners[0]}
	}
	if of.said.Begin(w.now); w.now.Before(of.said.Due) {
		return of.said.Said
	}
	text, err := r.askOwner(ctx, w, of.owner)
	switch {
	case err != nil:
		ctrl.LoggerFrom(ctx).Info("the events of an owner that lacks pods cannot be read", "error", err.Error())
		of.said.Learn(of.said.Said, w.now)
	case text == "":
		*of = lackingOwner{}
	default:
		of.said.Learn(text, w.now)
	}
	return of.said.Said
}

// askOwner returns why the API server refuses the pod of an owner; "" if it lacks none any
// more, or does not say. The condition of a ReplicaSet keeps the first reason, and its events
// have the last one.
func (r *Reconciler) askOwner(ctx context.Context, w *world, owner object) (string, error) {
	now, lacks, first := owner.DeepCopyObject().(object), false, ""
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(owner), now); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	switch set := now.(type) {
	case *appsv1.ReplicaSet:
		lacks, first = isRefused(set) && w.lacksPods(&set.Spec.Template, set.Status.Replicas, set.Spec.Replicas), refusalOf(set)
	case *appsv1.StatefulSet:
		lacks = w.lacksPods(&set.Spec.Template, set.Status.Replicas, set.Spec.Replicas)
	}
	if !lacks || now.GetUID() != owner.GetUID() {
		return "", nil
	}
	events, err := causes.ReadEvents(ctx, r.Live, owner.GetNamespace(), kindOf(owner), owner.GetUID())
	if text := causes.RefusalIn(events); text != "" {
		return text, nil
	}
	if first != "" {
		return causes.RefusalText(first), nil
	}
	return "", err
}

// refusalOf is what the API server said first of the pod of a ReplicaSet.
func refusalOf(set *appsv1.ReplicaSet) string {
	for _, c := range set.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

func kindOf(owner object) string {
	if _, is := owner.(*appsv1.StatefulSet); is {
		return "StatefulSet"
	}
	return "ReplicaSet"
}
