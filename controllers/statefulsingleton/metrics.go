package statefulsingleton

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
)

var (
	actionsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "statefulsingleton_actions_total",
		Help: "Writes for StatefulSingletons that took effect, by verb and reason; reason Grant counts handovers.",
	}, []string{"verb", "reason"})
	waitingGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "statefulsingleton_waiting_pods",
		Help: "Pods of a StatefulSingleton that wait for their turn.",
	}, []string{"namespace", "name"})
	availableGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "statefulsingleton_available",
		Help: "1 while the active pod of a StatefulSingleton is Ready, else 0.",
	}, []string{"namespace", "name"})
	runningGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "statefulsingleton_running_pods",
		Help: "Pods of a StatefulSingleton that may be running the program now; more than 1 is a breach of its promise.",
	}, []string{"namespace", "name"})
	transitionSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "statefulsingleton_transition_seconds",
		Help:    "Seconds from the begin of a handover to the grant, the old program's own shutdown included.",
		Buckets: prometheus.ExponentialBuckets(0.5, 2, 13),
	})
	timeoutsTotal = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "statefulsingleton_timeouts_total",
		Help: "Handovers that took longer than maxTransitionTime.",
	})
)

func init() {
	metrics.Registry.MustRegister(actionsTotal, waitingGauge, availableGauge, runningGauge, transitionSeconds, timeoutsTotal)
}

func forgetMetrics(key types.NamespacedName) {
	labels := prometheus.Labels{"namespace": key.Namespace, "name": key.Name}
	waitingGauge.DeletePartialMatch(labels)
	availableGauge.DeletePartialMatch(labels)
	runningGauge.DeletePartialMatch(labels)
}

// again is when to look after a write that another one overtook, and after one
// whose event gets lost.
const (
	again     = 100 * time.Millisecond
	afterActs = 5 * time.Second
)

// report tells users what happened and what is: events, metrics, one status
// patch. It turns the pass into an outcome.
func (r *Reconciler) report(ctx context.Context, key types.NamespacedName, w *world, p *plan, outcomes []action.Outcome) report.Outcome {
	var failed error
	overtaken := false
	for _, o := range outcomes {
		switch {
		case o.Err == nil:
			actionsTotal.WithLabelValues(string(o.Verb), o.Reason).Inc()
		case apierrors.IsConflict(o.Err), apierrors.IsNotFound(o.Err):
			overtaken = true // the world is another than we read
		case apierrors.HasStatusCause(o.Err, corev1.NamespaceTerminatingCause):
			// Nothing new can be made, and our own deletion is on its way.
		default:
			failed = errors.Join(failed, o.Err)
		}
	}
	known := r.of(key)
	known.refused.Learn(failed)
	w.refused = known.refused.Text()
	r.emit(w, outcomes)
	if w.object == nil {
		return r.afterDeletion(ctx, key, p, failed)
	}
	if failed == nil && len(outcomes) > 0 {
		if overtaken {
			return report.Wait(again)
		}
		return report.Wait(sooner(p.Wait, afterActs)) // what was written wakes the key
	}
	if err := errors.Join(failed, r.writeStatus(ctx, key, w, p)); err != nil {
		return report.Retry(err)
	}
	return report.Wait(p.Wait)
}

func sooner(a, b time.Duration) time.Duration {
	if a <= 0 {
		return b
	}
	return min(a, b)
}

// orphanLooks is how often the pods of an object that is gone are looked for
// again: one may have been on its way when it went.
const orphanLooks = 5

func (r *Reconciler) afterDeletion(ctx context.Context, key types.NamespacedName, p *plan, failed error) report.Outcome {
	forgetMetrics(key)
	looks := 0
	if p.rests() {
		known := r.of(key)
		known.orphans++
		looks = known.orphans
	}
	switch {
	case failed != nil:
		return report.Retry(failed)
	case looks >= orphanLooks:
		r.memory.Forget(key)
		if len(r.inNamespace(ctx, key.Namespace, func(*v1.StatefulSingleton) bool { return true })) == 0 {
			r.pods.leave(key.Namespace)
		}
		return report.Done()
	}
	return report.Wait(time.Second << looks)
}

// writeStatus patches the status if it differs.
func (r *Reconciler) writeStatus(ctx context.Context, key types.NamespacedName, w *world, p *plan) error {
	status := summarize(w, p)
	waitingGauge.WithLabelValues(key.Namespace, key.Name).Set(float64(status.WaitingCount))
	runningGauge.WithLabelValues(key.Namespace, key.Name).Set(float64(len(mayBeRunning(p))))
	available := 0.0
	if meta.IsStatusConditionTrue(status.Conditions, v1.ConditionAvailable) {
		available = 1
	}
	availableGauge.WithLabelValues(key.Namespace, key.Name).Set(available)
	if apiequality.Semantic.DeepEqual(w.object.Status, status) {
		return nil
	}
	now := metav1.NewTime(w.now)
	status.StatusTimestamp = &now
	object := w.object.DeepCopy()
	object.Status = status
	for _, o := range r.Runner.Run(ctx, key, action.Steps{{{
		{Verb: action.PatchStatus, Object: object, From: w.object, Rebase: true, Reason: "Observed"}}}}) {
		if o.Err == nil {
			r.announce(w, p, &status)
		}
		if !apierrors.IsConflict(o.Err) && !apierrors.IsNotFound(o.Err) {
			return o.Err
		}
	}
	return nil
}

// announce tells what a new status says for the first time.
func (r *Reconciler) announce(w *world, p *plan, status *v1.StatefulSingletonStatus) {
	before := meta.FindStatusCondition(w.object.Status.Conditions, v1.ConditionDegraded)
	after := meta.FindStatusCondition(status.Conditions, v1.ConditionDegraded)
	isNew := func(reason string) bool { return after.Reason == reason && (before == nil || before.Reason != reason) }
	unmanaged := func(s *v1.StatefulSingletonStatus) bool {
		return meta.IsStatusConditionTrue(s.Conditions, v1.ConditionUnmanagedPod)
	}
	switch {
	case isNew(v1.ReasonSeveralRunning):
		r.Events.Eventf(w.object, nil, corev1.EventTypeWarning, v1.EventSeveralRunning, "Look", "%s", short(after.Message))
	case after.Reason != v1.ReasonSeveralRunning && unmanaged(status) && !unmanaged(&w.object.Status):
		found := meta.FindStatusCondition(status.Conditions, v1.ConditionUnmanagedPod)
		r.Events.Eventf(w.object, nil, corev1.EventTypeWarning, v1.EventUnmanagedPod, "Look", "%s", short(found.Message))
	}
	toldBefore := w.object.Status.Phase == v1.PhaseFailed && before != nil && before.Reason != v1.ReasonSeveralRunning
	if timedOut(w, p) && len(together(p)) == 0 && !toldBefore {
		timeoutsTotal.Inc()
		var first client.Object
		if active := activePod(w, p); active != nil {
			first = active.pod
		}
		r.Events.Eventf(w.object, first, corev1.EventTypeWarning, v1.EventTransitionTimeout, "Handover", "%s", short(fmt.Sprintf(
			"the handover takes longer than maxTransitionTime (%d s): %s; waiting: %s", *w.object.Spec.MaxTransitionTime, whatHolds(w, p), someOf(p.waiting))))
	}
	if isNew(v1.ReasonWriteRefused) {
		r.Events.Eventf(w.object, nil, corev1.EventTypeWarning, v1.EventWriteRefused, "Write", "%s", short(after.Message))
	}
	if status.TransitionTimestamp == nil && w.object.Status.TransitionTimestamp != nil && status.Holder != nil && status.Holder.Since != nil {
		transitionSeconds.Observe(max(status.Holder.Since.Sub(w.object.Status.TransitionTimestamp.Time).Seconds(), 0))
	}
}

// emit writes an event for each act that users should know of.
func (r *Reconciler) emit(w *world, outcomes []action.Outcome) {
	if w.object == nil {
		return
	}
	for _, o := range outcomes {
		if o.Err != nil {
			continue
		}
		name := o.Object.GetName()
		switch {
		case o.Reason == reasonGrant && o.Detail == epochDetail(1):
			r.Events.Eventf(w.object, o.Object, corev1.EventTypeNormal, v1.EventPodStarted, "Grant", "pod %s may run its program", name)
		case o.Reason == reasonGrant:
			r.Events.Eventf(w.object, o.Object, corev1.EventTypeNormal, v1.EventPodTransition, "Grant",
				"pod %s may run its program, and no other does", name)
		case o.Verb == action.Delete:
			r.Events.Eventf(w.object, o.Object, corev1.EventTypeNormal, v1.EventPodDeleted, "Delete", "pod %s: %s", name, o.Detail)
		case o.Reason == reasonLetGo && o.Verb == action.Patch:
			r.Events.Eventf(w.object, o.Object, corev1.EventTypeNormal, v1.EventPodReleased, "Release",
				"pod %s is let go, because the StatefulSingleton is being deleted", name)
		}
	}
}

// remembered is what no object says, by its name: what is known of the pods of one that is
// gone stays. A restart counts the rest of gates anew, and looks for refused owners once
// more.
type remembered struct {
	uid     types.UID
	first   time.Time // when this object was first seen
	refused memory.Refusal
	orphans int       // how often the pods of an object that is gone were looked for
	looks   int       // how often refused owners were looked for
	due     time.Time // when to look for them again
	hadPods bool
	held    map[types.UID]time.Time // since when the gates of pods are known to run
	mirrors map[string]time.Time    // static pods that may run, and since when they are not shown; zero while they are
}

// of returns what is remembered of a name.
func (r *Reconciler) of(key types.NamespacedName) *remembered {
	known, _ := r.memory.Get(key, "")
	return known
}

// Refused owners are looked for when an object is first seen by this process,
// and then, while it has no pods, at growing intervals.
const (
	firstOwnerLook = 5 * time.Second
	ownerLooks     = 9 // half an hour
)

// dueForOwners tells whether to look for refused owners now, and when next.
func (known *remembered) dueForOwners(w *world) (bool, time.Time) {
	if len(w.pods) == 0 && known.hadPods { // mostly for a moment
		known.looks, known.due = 0, w.now.Add(firstOwnerLook)
	}
	known.hadPods = len(w.pods) > 0
	// An outage of the webhook is mostly one of this process: the first looks
	// are for pods of a rollout, whose old pod is there still.
	if known.looks >= ownerLooks || known.hadPods && known.looks >= 3 {
		return false, time.Time{}
	}
	due := !known.due.After(w.now)
	if due {
		known.due = w.now.Add(min(firstOwnerLook<<known.looks, 8*time.Minute))
		known.looks++
	}
	return due, known.due
}

// recall puts what is remembered into a world.
func (known *remembered) recall(w *world) {
	w.refused = known.refused.Text()
	if w.object == nil {
		return
	}
	known.orphans = 0
	if known.uid != w.object.UID {
		known.uid, known.first, known.mirrors = w.object.UID, w.now, nil
	}
	w.firstSeen = known.first
	known.recallMirrors(w)
	before := known.held
	known.held = map[types.UID]time.Time{}
	for _, m := range w.pods {
		if !m.held() {
			continue
		}
		if m.heldSince = w.now; !before[m.pod.UID].IsZero() {
			m.heldSince = before[m.pod.UID]
		}
		known.held[m.pod.UID] = m.heldSince
	}
}

// recallMirrors finds out which static pods are not shown any more. One that is
// seen to have ended is not missed.
func (known *remembered) recallMirrors(w *world) {
	if known.mirrors == nil {
		known.mirrors = map[string]time.Time{}
	}
	shown := map[string]bool{}
	for _, m := range w.pods {
		if !isMirror(m.pod) {
			continue
		}
		shown[m.name()] = true
		delete(known.mirrors, m.name())
		if w.mayRun(m) {
			known.mirrors[m.name()] = time.Time{}
		}
	}
	for name, gone := range known.mirrors {
		switch {
		case shown[name]:
			continue
		case gone.IsZero():
			gone = w.now
			known.mirrors[name] = gone
		case w.until(gone, mirrorReturns) <= 0:
			delete(known.mirrors, name)
			continue
		}
		if gone.After(w.mirrorGone) {
			w.mirrorGone = gone
		}
	}
}
