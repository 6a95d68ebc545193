package replicatedstatefulset

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
)

// report tells users what happened and what is: events, metrics, one status
// patch. It turns the pass into an outcome.
func (r *Reconciler) report(ctx context.Context, w *world, p *plan, outcomes []action.Outcome) report.Outcome {
	key := client.ObjectKeyFromObject(w.set)
	var failed error
	overtaken := false
	for _, o := range outcomes {
		switch {
		case o.Err == nil:
			actionsTotal.WithLabelValues(string(o.Verb), o.Reason).Inc()
			r.emit(w, &o)
			r.remember(w, &o)
		case apierrors.IsConflict(o.Err), apierrors.IsNotFound(o.Err), errors.Is(o.Err, action.ErrNotBegun):
			overtaken = true // the world is another than we read
		case apierrors.HasStatusCause(o.Err, corev1.NamespaceTerminatingCause):
			// Nothing new can be made, and our own deletion is on its way.
		default:
			failed = errors.Join(failed, o.Err)
			refusedTotal.WithLabelValues(o.Reason).Inc()
		}
	}
	known := r.of(w.set)
	known.refused.Learn(failed)
	w.refused = known.refused.Text()
	if failed == nil && !p.asksOnly() {
		if overtaken {
			return report.Wait(soon)
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

// writeStatus patches the status if it differs.
func (r *Reconciler) writeStatus(ctx context.Context, key types.NamespacedName, w *world, p *plan) error {
	status := summarize(w, p)
	gauge(key, &status)
	if apiequality.Semantic.DeepEqual(w.set.Status, status) {
		return nil
	}
	set := w.set.DeepCopy()
	set.Status = status
	for _, o := range r.Runner.Run(ctx, key, action.Steps{{{{Verb: action.PatchStatus, Object: set, From: w.set, Rebase: true, Reason: "Observed"}}}}) {
		if o.Err == nil {
			r.announce(w, &status)
		}
		if !apierrors.IsConflict(o.Err) && !apierrors.IsNotFound(o.Err) {
			return o.Err
		}
	}
	return nil
}

func (r *Reconciler) event(w *world, about client.Object, kind, reason, act, format string, args ...any) {
	if r.Events != nil {
		r.Events.Eventf(w.set, about, kind, reason, act, format, args...)
	}
}

// emit writes an event for each act that users should know of.
func (r *Reconciler) emit(w *world, o *action.Outcome) {
	name := o.Object.GetName()
	switch {
	case o.Verb == action.Delete && o.Reason == reasonRenew:
		r.event(w, o.Object, corev1.EventTypeNormal, v1alpha1.EventMemberUpdated, "Delete", "pod %s is made anew: %s", name, o.Detail)
	case o.Verb == action.Delete:
		r.event(w, o.Object, corev1.EventTypeWarning, v1alpha1.EventMemberReplaced, "Delete", "pod %s is made anew: %s", name, o.Detail)
	case o.Verb == action.PatchStatus && o.Reason == reasonUnseen:
		r.event(w, nil, corev1.EventTypeWarning, v1alpha1.EventMemberFailed, "Learn", "%s", o.Detail)
	case o.Reason == reasonOverride:
		r.event(w, nil, corev1.EventTypeNormal, v1alpha1.EventOverrideUsed, "Override", "%s", o.Detail)
	case o.Reason == reasonRefused:
		r.event(w, nil, corev1.EventTypeWarning, v1alpha1.EventOverrideRefused, "Override", "%s", o.Detail)
	case o.Reason == reasonLearned:
		for _, n := range w.books.news {
			r.event(w, nil, n.kind(), n.reason, "Learn", "%s", short(n.text))
		}
	}
}

// announce tells what a new status says for the first time.
func (r *Reconciler) announce(w *world, now *v1alpha1.ReplicatedStatefulSetStatus) {
	was := &w.set.Status
	if was.ObservedGeneration != now.ObservedGeneration {
		modifiedTotal.Inc()
	}
	if now.Phase == v1alpha1.PhaseFailed && was.Phase != now.Phase {
		failedTotal.Inc()
	}
	tell := func(have, had []string, kind, reason, text string) {
		for _, name := range have {
			if !slices.Contains(had, name) {
				r.event(w, nil, kind, reason, "Observe", text, name)
			}
		}
	}
	all := func(s *v1alpha1.ReplicatedStatefulSetStatus) []string {
		return slices.Concat(s.Members.Ready, s.Members.Unready)
	}
	a, b := &now.Members, &was.Members
	tell(all(now), all(was), corev1.EventTypeNormal, v1alpha1.EventMemberAdded, "%s is a member")
	tell(all(was), all(now), corev1.EventTypeNormal, v1alpha1.EventMemberRemoved, "%s is no member any more")
	tell(a.Failed, b.Failed, corev1.EventTypeWarning, v1alpha1.EventMemberFailed, "%s failed")
	tell(a.Primary, b.Primary, corev1.EventTypeNormal, v1alpha1.EventPromoted, "%s is primary")
	tell(b.Primary, a.Primary, corev1.EventTypeNormal, v1alpha1.EventDemoted, "%s is not primary any more")
	tell(a.Secondary, b.Secondary, corev1.EventTypeNormal, v1alpha1.EventMemberStarted, "%s is secondary")
}
