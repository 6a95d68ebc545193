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
	// theTurn is the name under which the causes of the pod whose turn it is are tracked.
	// An owner recreates that pod under different names.
	theTurn = "turn"
	// endedLately is how long a pod that was ended by its Node counts as the reason why its
	// successor has not started.
	endedLately = 15 * time.Second
)

// delay is the reason why the pod whose turn it is does not run.
type delay struct {
	causes.Found
	// what describes the pod in messages. pod is its name; "" if it was not created.
	what, pod string
	// unread is true while the events that may contain the reason have not been read.
	unread bool
	// again is the delay until the next look; zero for none.
	again time.Duration
}

// lackingOwner is an owner whose pod the API server refused, and the schedule for reading
// its events.
type lackingOwner struct {
	owner object
	said  causes.Turns[string]
}

// readCauses finds out why the pod whose turn it is does not run. No decision depends on
// it, so errors are only logged.
func (r *reader) readCauses(ctx context.Context, w *world, known *remembered) {
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
	found := known.causes.Read(ctx, r.live, w.now, []causes.Named{follows}, v1.FinalizerPod)
	if due := known.lacking.said.Due; !due.IsZero() {
		found.LookAgain(due.Sub(w.now))
	}
	w.delay.again, w.delay.unread = found.Again, found.Unread || (known.lacking.owner != nil && known.lacking.said.Said == "")
	if len(found.All) > 0 {
		w.delay.Found = found.All[0].Found
	}
	if ended := lastEnded(f); m != nil && ended != nil && causes.Of(ended.pod) == w.delay.Cause {
		m = ended // its successor has not started yet
	}
	if m != nil {
		w.delay.what, w.delay.pod = "pod "+m.name(), m.name()
	}
}

// turnOf returns the pod whose turn it is: the active pod, or else the next waiting one. If
// a Node ended a pod and its successor has no status yet, it returns the ended pod. If
// there is no other pod, it returns the newest terminating one; nil if there is none.
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

// lastEnded returns the newest ended pod if its kubelet refused or evicted it; nil if it
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

// isLeftOver reports whether a pod has ended or is terminating, and its Deployment is
// scaled to 0.
func (r *reader) isLeftOver(ctx context.Context, m *member) bool {
	if m.lives() || m.standing != out {
		return false
	}
	of, err := r.readFamily(ctx, m.pod, map[types.UID]*family{})
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Failed to read the owner of a pod that has ended", "error", err.Error())
	}
	return of.unwanted
}

// readRefusal returns why the API server refuses the pod of an owner that lacks one; "" if
// unknown.
func (r *reader) readRefusal(ctx context.Context, w *world, of *lackingOwner) string {
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
		ctrl.LoggerFrom(ctx).Info("Failed to read the events of an owner that lacks pods", "error", err.Error())
		of.said.Learn(of.said.Said, w.now)
	case text == "":
		*of = lackingOwner{}
	default:
		of.said.Learn(text, w.now)
	}
	return of.said.Said
}

// askOwner returns why the API server refuses the pod of an owner; "" if the owner lacks no
// pod any more, or if the reason is not recorded. The condition of a ReplicaSet keeps the
// first reason, and its events contain the latest.
func (r *reader) askOwner(ctx context.Context, w *world, owner object) (string, error) {
	now, lacks, first := owner.DeepCopyObject().(object), false, ""
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(owner), now); err != nil {
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
	events, err := causes.ReadEvents(ctx, r.live, owner.GetNamespace(), kindOf(owner), owner.GetUID())
	if text := causes.RefusalIn(events); text != "" {
		return text, nil
	}
	if first != "" {
		return causes.RefusalText(first), nil
	}
	return "", err
}

// refusalOf returns the API server's first error about a pod of the ReplicaSet.
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
