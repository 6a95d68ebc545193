package observe

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

const (
	// theTurn is the name under which the causes of the pod whose turn it is are tracked.
	// An owner recreates that pod under different names.
	theTurn = "turn"
	// endedLately is how long a pod that was ended by its Node counts as the reason why its
	// successor has not started.
	endedLately = 15 * time.Second
)

// ReadCauses finds out why the pod whose turn it is does not run. No decision depends on
// it, so errors are only logged.
func (r *Reader) ReadCauses(ctx context.Context, w *facts.World, mem *Remembered) {
	if !w.Serves() {
		mem.causes, mem.lacking = causes.Known{}, facts.LackingOwner{}
		return
	}
	f := facts.Derive(w)
	m := turnOf(f)
	if m != nil && r.isLeftOver(ctx, m) {
		m = nil
	}
	tracked := causes.Named{Name: theTurn}
	if m == nil || len(f.Blockers)+len(f.Waiting) == 0 {
		if text := r.readRefusal(ctx, w, &mem.lacking); text != "" {
			m, tracked.Refused = nil, causes.Refused(text)
		}
	} else {
		mem.lacking = facts.LackingOwner{}
	}
	if owner := mem.lacking.Owner; owner != nil {
		w.Delay.What = "pod of " + kindOf(owner) + " " + owner.GetName()
	}
	if m != nil {
		tracked.Pod = m.Pod
	}
	found := mem.causes.Read(ctx, r.Live, w.Now, []causes.Named{tracked}, v1.FinalizerPod)
	if due := mem.lacking.Refusal.Due; !due.IsZero() {
		found.LookAgain(due.Sub(w.Now))
	}
	w.Delay.Again, w.Delay.Unread = found.Again, found.Unread || (mem.lacking.Owner != nil && mem.lacking.Refusal.Result == "")
	if len(found.All) > 0 {
		w.Delay.Found = found.All[0].Found
	}
	if ended := f.LastEnded(); m != nil && ended != nil && causes.Of(ended.Pod) == w.Delay.Cause {
		m = ended // its successor has not started yet
	}
	if m != nil {
		w.Delay.What, w.Delay.Pod = "pod "+m.Name(), m.Name()
	}
}

// turnOf returns the pod whose turn it is to run: the active pod, or else the next waiting one. If
// a Node ended a pod and its successor has no status yet, it returns the ended pod. If
// there is no other pod, it returns the newest terminating one; nil if there is none.
func turnOf(f *facts.Facts) *facts.Member {
	m, ended := f.Active, f.LastEnded()
	if m == nil && len(f.Waiting) > 0 {
		m = f.Waiting[0]
	}
	switch {
	case m == nil && ended == nil:
		return lastTerminating(f)
	case m == nil:
		return ended
	case ended == nil, m.Begun(), m.AtGate(), podstate.Ready(m.Pod), causes.Of(m.Pod).Known():
		return m
	}
	if since, _ := podstate.Since(ended.Pod, corev1.PodReady); f.Now.Sub(since) < endedLately {
		return ended
	}
	return m
}

// lastTerminating returns the newest pod that is being deleted; nil if there is none.
func lastTerminating(f *facts.Facts) *facts.Member {
	for _, m := range slices.Backward(f.Pods) {
		if m.Terminating() {
			return m
		}
	}
	return nil
}

// isLeftOver reports whether a pod has ended or is terminating, and its Deployment is
// scaled to 0.
func (r *Reader) isLeftOver(ctx context.Context, m *facts.Member) bool {
	if m.Lives() || m.Standing != facts.Out {
		return false
	}
	of, err := r.readFamily(ctx, m.Pod, map[types.UID]*facts.Family{})
	if err != nil {
		log.FromContext(ctx).Info("Failed to read the owner of a pod that has ended", "error", err.Error())
	}
	return of.Unwanted
}

// readRefusal returns why the API server refuses the pod of an owner that lacks one; "" if
// unknown. It reads the reason again at increasing intervals, and keeps it in between.
func (r *Reader) readRefusal(ctx context.Context, w *facts.World, of *facts.LackingOwner) string {
	if of.Owner == nil {
		if len(w.RefusedOwners) == 0 {
			return ""
		}
		*of = facts.LackingOwner{Owner: w.RefusedOwners[0]}
	}
	if of.Refusal.Begin(w.Now); w.Now.Before(of.Refusal.Due) {
		return of.Refusal.Result
	}
	text, err := r.readCurrentRefusal(ctx, w, of.Owner)
	switch {
	case err != nil:
		log.FromContext(ctx).Info("Failed to read the events of an owner that lacks pods", "error", err.Error())
		of.Refusal.Learn(of.Refusal.Result, w.Now)
	case text == "":
		*of = facts.LackingOwner{}
	default:
		of.Refusal.Learn(text, w.Now)
	}
	return of.Refusal.Result
}

// readCurrentRefusal reads why the API server refuses the pod of an owner; "" if the owner lacks no
// pod any more, or if the reason is not recorded. The condition of a ReplicaSet keeps the
// first reason, and its events contain the latest.
func (r *Reader) readCurrentRefusal(ctx context.Context, w *facts.World, owner facts.Object) (string, error) {
	now, lacks, first := owner.DeepCopyObject().(facts.Object), false, ""
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(owner), now); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	switch set := now.(type) {
	case *appsv1.ReplicaSet:
		lacks, first = isRefused(set) && w.LacksPods(&set.Spec.Template, set.Status.Replicas, set.Spec.Replicas), refusalOf(set)
	case *appsv1.StatefulSet:
		lacks = w.LacksPods(&set.Spec.Template, set.Status.Replicas, set.Spec.Replicas)
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

// refusalOf returns the API server's first error about a pod of the ReplicaSet.
func refusalOf(set *appsv1.ReplicaSet) string {
	for _, c := range set.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// kindOf returns the kind of an owner that lacks pods.
func kindOf(owner facts.Object) string {
	if _, is := owner.(*appsv1.StatefulSet); is {
		return "StatefulSet"
	}
	return "ReplicaSet"
}
