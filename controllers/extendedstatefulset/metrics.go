package extendedstatefulset

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
)

var (
	versionGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "extendedstatefulset_version", Help: "The version of an ExtendedStatefulSet, by role: current, update.",
	}, []string{"namespace", "name", "role"})
	phaseGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "extendedstatefulset_phase", Help: "1 for the phase of an ExtendedStatefulSet.",
	}, []string{"namespace", "name", "phase"})
	upgradesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "extendedstatefulset_upgrades_total", Help: "Steps of upgrades: begun, upgraded, retried, stale, aborted, superseded.",
	}, []string{"step"})
	actionsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "extendedstatefulset_actions_total", Help: "Writes for ExtendedStatefulSets, by verb and reason.",
	}, []string{"verb", "reason"})
	refusedTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "extendedstatefulset_refused_total", Help: "Writes that failed, by the reason of the write.",
	}, []string{"reason"})
)

func init() {
	metrics.Registry.MustRegister(versionGauge, phaseGauge, upgradesTotal, actionsTotal, refusedTotal)
}

func forgetMetrics(key types.NamespacedName) {
	labels := prometheus.Labels{"namespace": key.Namespace, "name": key.Name}
	versionGauge.DeletePartialMatch(labels)
	phaseGauge.DeletePartialMatch(labels)
}

func gauge(key types.NamespacedName, s *v1alpha1.ExtendedStatefulSetStatus) {
	forgetMetrics(key)
	versionGauge.WithLabelValues(key.Namespace, key.Name, "current").Set(float64(s.CurrentVersion))
	versionGauge.WithLabelValues(key.Namespace, key.Name, "update").Set(float64(s.UpdateVersion))
	phaseGauge.WithLabelValues(key.Namespace, key.Name, string(s.Phase)).Set(1)
}

// soon is when a pass is made again that another overtook, afterActs one that
// wrote something, should the event of that get lost.
const (
	soon      = 50 * time.Millisecond
	afterActs = 5 * time.Second
)

// report tells users what happened and what is: events, metrics, one status
// patch. It turns the pass into an outcome.
func (r *Reconciler) report(ctx context.Context, w *world, p *plan, outcomes []action.Outcome) report.Outcome {
	var failed error
	overtaken := false
	for _, o := range outcomes {
		switch {
		case o.Err == nil:
			actionsTotal.WithLabelValues(string(o.Verb), o.Reason).Inc()
			r.emit(w, &o)
		case apierrors.IsConflict(o.Err), apierrors.IsNotFound(o.Err), errors.Is(o.Err, action.ErrNotBegun):
			overtaken = true // the world is another than we read
		case apierrors.HasStatusCause(o.Err, corev1.NamespaceTerminatingCause):
			// Nothing new can be made, and our own deletion is on its way.
		default:
			failed = errors.Join(failed, o.Err)
			refusedTotal.WithLabelValues(o.Reason).Inc()
		}
	}
	refusal, _ := r.memory.Get(client.ObjectKeyFromObject(w.set), w.set.UID)
	refusal.Learn(failed)
	w.refused = refusal.Text()
	if failed == nil && !p.asksOnly() && len(outcomes) > 0 {
		if overtaken {
			return report.Wait(soon)
		}
		return report.Wait(afterActs) // what was written wakes the key
	}
	written, err := r.writeStatus(ctx, w, p)
	switch {
	case failed != nil || err != nil:
		return report.Retry(errors.Join(failed, err))
	case !written && p.books:
		return report.Wait(soon)
	}
	return report.Wait(p.Wait)
}

// writeStatus patches the status if it differs. It is false when that came to
// nothing, since the object was changed meanwhile.
func (r *Reconciler) writeStatus(ctx context.Context, w *world, p *plan) (bool, error) {
	key := client.ObjectKeyFromObject(w.set)
	steps := statusPatch(w, p)
	gauge(key, w.books)
	outcomes := r.Runner.Run(ctx, key, steps)
	if len(outcomes) == 0 {
		return true, nil
	}
	err := outcomes[0].Err
	if err == nil {
		r.announce(w)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// statusPatch is the write of a status that differs.
func statusPatch(w *world, p *plan) action.Steps {
	status := summarize(w, p)
	if apiequality.Semantic.DeepEqual(w.set.Status, status) {
		return nil
	}
	set := w.set.DeepCopy()
	set.Status = status
	return action.Steps{{{{Verb: action.PatchStatus, Object: set, From: w.set, Rebase: !p.books, Reason: "Observed", Detail: bookLine(&w.set.Status, &status)}}}}
}

func (r *Reconciler) event(w *world, about client.Object, kind, reason, act, format string, args ...any) {
	if r.Events != nil {
		r.Events.Eventf(w.set, about, kind, reason, act, format, args...)
	}
}

// emit writes an event for each act that users should know of.
func (r *Reconciler) emit(w *world, o *action.Outcome) {
	switch o.Reason {
	case v1alpha1.EventVersionCreated:
		r.event(w, o.Object, corev1.EventTypeNormal, o.Reason, "Create", "StatefulSet %s with %s", o.Object.GetName(), o.Detail)
	case v1alpha1.EventEditUndone:
		r.event(w, o.Object, corev1.EventTypeWarning, o.Reason, "Patch", "StatefulSet %s was edited by somebody else, and is as the template says again", o.Object.GetName())
	case v1alpha1.EventEditKept:
		r.event(w, o.Object, corev1.EventTypeWarning, o.Reason, "Patch",
			"StatefulSet %s was edited by somebody else; its replicas are put back, and what else was edited stays until spec.template is that of its version again", o.Object.GetName())
	case v1alpha1.EventConfigRestart:
		r.event(w, o.Object, corev1.EventTypeNormal, o.Reason, "Patch", "the pods of StatefulSet %s are restarted, since a ConfigMap or Secret that they reference changed", o.Object.GetName())
	case v1alpha1.EventConfigKeyLost:
		r.event(w, o.Object, corev1.EventTypeWarning, o.Reason, "Patch",
			"the pods of StatefulSet %s are restarted to be safe: the operator has another key for its hashes, and something that they reference was edited", o.Object.GetName())
	case v1alpha1.EventConfigKeyChanged:
		r.event(w, o.Object, corev1.EventTypeNormal, o.Reason, "Patch",
			"the operator has another key for its hashes; nothing that the pods of StatefulSet %s reference was edited, and they run on", o.Object.GetName())
	case v1alpha1.EventTracked:
		r.event(w, o.Object, corev1.EventTypeNormal, o.Reason, "Patch", "%s has an owner reference to this object", o.Object.GetName())
	case v1alpha1.EventUntracked:
		r.event(w, o.Object, corev1.EventTypeNormal, o.Reason, "Patch", "%s has no owner reference to this object any more", o.Object.GetName())
	case v1alpha1.EventStrayReplaced:
		r.event(w, o.Object, corev1.EventTypeWarning, o.Reason, "Delete",
			"pod %s was created while the webhook was not there, so it had no claim and could not start; it is replaced", o.Object.GetName())
	case reasonOld, reasonZoneGone:
		r.event(w, o.Object, corev1.EventTypeNormal, o.Reason, "Delete", "%s is deleted", o.Object.GetName())
	}
}

// announce tells what the books say for the first time.
func (r *Reconciler) announce(w *world) {
	was, now := &w.set.Status, w.books
	had, has := was.Update, now.Update
	tell := func(kind, reason, step, format string, args ...any) {
		upgradesTotal.WithLabelValues(step).Inc()
		r.event(w, nil, kind, reason, "Upgrade", format, args...)
	}
	switch {
	case has != nil && has.Returning && (had == nil || !had.Returning):
		tell(corev1.EventTypeWarning, v1alpha1.EventAttemptFailed, "retried", "attempt %d with version %d failed: %s", now.Attempts, now.UpdateVersion, short(has.Message))
	case now.Phase == v1alpha1.PhaseStale && was.Phase != now.Phase:
		tell(corev1.EventTypeWarning, v1alpha1.EventStale, "stale", "version %d was given up: %s", now.UpdateVersion, short(has.Message))
	case now.Phase == v1alpha1.PhaseAborted && was.Phase != now.Phase:
		tell(corev1.EventTypeWarning, v1alpha1.EventAborted, "aborted", "the upgrade to version %d was stopped: %s", now.UpdateVersion, short(has.Message))
	case has == nil && had != nil && now.CurrentVersion == was.UpdateVersion:
		tell(corev1.EventTypeNormal, v1alpha1.EventUpgraded, "upgraded", "version %d serves", now.CurrentVersion)
	case has == nil && had != nil:
		tell(corev1.EventTypeNormal, v1alpha1.EventSuperseded, "superseded", "version %d is not wanted any more", was.UpdateVersion)
	case has != nil && (had == nil || now.UpdateVersion != was.UpdateVersion):
		if had != nil && was.Phase != v1alpha1.PhaseStale && was.Phase != v1alpha1.PhaseAborted {
			tell(corev1.EventTypeNormal, v1alpha1.EventSuperseded, "superseded", "version %d is not wanted any more", was.UpdateVersion)
		}
		tell(corev1.EventTypeNormal, v1alpha1.EventUpgradeBegun, "begun", "upgrade from version %d to %d", now.CurrentVersion, now.UpdateVersion)
	}
}
