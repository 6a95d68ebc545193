package replicatedstatefulset

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// reporter reports the results of passes: events, metrics and the status.
type reporter struct {
	// reader has the memory of this process.
	reader *reader
	runner *action.Runner
	events events.EventRecorder
}

// report writes events, metrics, and one status patch for users. It returns the outcome of the
// pass.
func (r *reporter) report(ctx context.Context, p *plan, outcomes []action.Outcome) report.Outcome {
	w := p.on.world
	overtaken, untried, failed := false, false, error(nil)
	for _, o := range outcomes {
		if r.reader.of(w.set).learnResize(&o) {
			overtaken = true // the member is recreated
			continue
		}
		if r.reader.of(w.set).learnTrial(w, &o) {
			untried = true
			continue
		}
		switch report.Judge(o.Err) {
		case report.Succeeded:
			r.tell(p, &o)
		case report.Overtaken:
			overtaken = true
		case report.Failed:
			failed = errors.Join(failed, o.Err)
			refusedTotal.WithLabelValues(o.Reason).Inc()
		}
	}
	known := r.reader.of(w.set)
	known.refused.Learn(failed)
	w.refused = known.refused.Text()
	for _, o := range known.undone.Learn(outcomes, w.now) {
		r.event(w, o.Object, corev1.EventTypeWarning, v1alpha1.EventWriteUndone, "Keep", "%s", excerpt.Message(undone.About(o)))
	}
	w.undone = known.undone.Held(w.set.Generation, w.now)
	switch {
	case failed != nil, untried, p.asksOnly():
		if err := errors.Join(failed, r.writeStatus(ctx, p)); err != nil {
			return report.Retry(err)
		}
		if untried {
			return report.Wait(report.Sooner(p.Wait, trialPause))
		}
		return report.Wait(p.Wait)
	case overtaken:
		return report.Wait(conflictRequeue)
	}
	return report.Wait(report.Sooner(p.Wait, writeRequeue)) // the watch event of the write triggers the next pass
}

// tell counts, emits and remembers a successful action.
func (r *reporter) tell(p *plan, o *action.Outcome) {
	actionsTotal.WithLabelValues(o.Verb.Label(), o.Reason).Inc()
	r.emit(p, o)
	r.reader.remember(p.on.world, o)
}

// writeStatus patches the status if it differs.
func (r *reporter) writeStatus(ctx context.Context, p *plan) error {
	w := p.on.world
	key, status := client.ObjectKeyFromObject(w.set), summarize(p)
	setGauges(key, &status)
	if apiequality.Semantic.DeepEqual(w.set.Status, status) {
		return nil
	}
	set := w.set.DeepCopy()
	set.Status = status
	for _, o := range r.runner.Run(ctx, key, action.Steps{{{{Verb: action.PatchStatus, Object: set, From: w.set, Rebase: true, Reason: "Observed"}}}}) {
		switch report.Judge(o.Err) {
		case report.Succeeded:
			r.announce(w, &status)
		case report.Ending, report.Failed:
			return o.Err
		}
	}
	return nil
}

func (r *reporter) event(w *world, about client.Object, kind, reason, act, format string, args ...any) {
	if r.events != nil {
		r.events.Eventf(w.set, about, kind, reason, act, format, args...)
	}
}

// emit writes an event for each action that is relevant to users.
func (r *reporter) emit(p *plan, o *action.Outcome) {
	w := p.on.world
	if o.Verb == action.Delete {
		r.emitDeletion(w, o)
		return
	}
	switch o.Reason {
	case reasonUnseen:
		r.event(w, nil, corev1.EventTypeWarning, v1alpha1.EventMemberFailed, "Learn", "%s", o.Detail)
	case reasonForeign:
		// Without a related object, the events of any number of pods become one series.
		r.event(w, nil, corev1.EventTypeWarning, v1alpha1.EventForeignPod, "RemoveLabels",
			"removed the member labels from pod %s, which is not a member: Services would have sent clients to it", o.Object.GetName())
	case reasonOverride:
		r.event(w, nil, corev1.EventTypeNormal, v1alpha1.EventOverrideUsed, "Override", "%s", o.Detail)
	case reasonRefused:
		r.event(w, nil, corev1.EventTypeWarning, v1alpha1.EventOverrideRefused, "Override", "%s", o.Detail)
	case reasonChild, reasonTemplate:
		if _, is := o.Object.(*appsv1.StatefulSet); is && p.configEvent != "" {
			r.event(w, o.Object, corev1.EventTypeNormal, p.configEvent, "Follow", "%s", explainConfig(p.configEvent))
		}
	case reasonOf(v1alpha1.CommandDemote), reasonOf(v1alpha1.CommandStop):
		if o.Verb == action.PatchStatus && p.notInPlace != "" {
			r.event(w, nil, corev1.EventTypeWarning, v1alpha1.EventNotInPlace, "Update", "%s", p.notInPlace)
		}
		if o.Verb == action.PatchStatus && p.handover != "" { // the event of the command follows when it has ended
			r.event(w, nil, corev1.EventTypeNormal, v1alpha1.EventHandingOver, "HandOver", "%s", p.handover)
		}
	case reasonOf(v1alpha1.CommandPromote), reasonOf(v1alpha1.CommandSeed):
		if o.Verb == action.PatchStatus && p.uncompared != "" {
			r.event(w, nil, corev1.EventTypeWarning, v1alpha1.EventPrimaryNotCompared, "Promote", "%s", p.uncompared)
		}
	case reasonResized:
		r.event(
			w, o.Object, corev1.EventTypeNormal, v1alpha1.EventMemberUpdated, "Resize",
			"changed the resources of pod %s in place: %s",
			o.Object.GetName(), o.Detail,
		)
	case reasonLearned:
		for _, learned := range p.on.record.learned {
			r.event(w, nil, learned.Kind, learned.Reason, "Learn", "%s", excerpt.Message(learned.Text))
		}
	}
}

// emitDeletion writes the event about a pod that was deleted to be recreated.
func (r *reporter) emitDeletion(w *world, o *action.Outcome) {
	if _, ok := o.Object.(*corev1.Pod); !ok {
		return
	}
	kind, reason := corev1.EventTypeWarning, v1alpha1.EventMemberReplaced
	if o.Reason == reasonRenew {
		kind, reason = corev1.EventTypeNormal, v1alpha1.EventMemberUpdated
	}
	r.event(w, o.Object, kind, reason, "Delete", "recreating pod %s: %s", o.Object.GetName(), o.Detail)
}

// announce emits events for changes of the status.
func (r *reporter) announce(w *world, now *v1alpha1.ReplicatedStatefulSetStatus) {
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
	tell(all(was), all(now), corev1.EventTypeNormal, v1alpha1.EventMemberRemoved, "%s is no longer a member")
	tell(a.Failed, b.Failed, corev1.EventTypeWarning, v1alpha1.EventMemberFailed, "%s failed")
	tell(a.Primary, b.Primary, corev1.EventTypeNormal, v1alpha1.EventPromoted, "%s is primary")
	tell(b.Primary, a.Primary, corev1.EventTypeNormal, v1alpha1.EventDemoted, "%s is no longer primary")
	tell(a.Secondary, b.Secondary, corev1.EventTypeNormal, v1alpha1.EventMemberStarted, "%s is secondary")
	r.announceNoSuccessor(w, was, now, v1alpha1.ConditionDraining)
	r.announceNoSuccessor(w, was, now, v1alpha1.ConditionMaintenance)
}

// announceNoSuccessor emits an event when the condition's reason becomes NoSuccessor: a primary
// cannot leave its Node, or cannot be parked.
func (r *reporter) announceNoSuccessor(w *world, was, now *v1alpha1.ReplicatedStatefulSetStatus, condition string) {
	reason := func(s *v1alpha1.ReplicatedStatefulSetStatus) metav1.Condition {
		return ptr.Deref(meta.FindStatusCondition(s.Conditions, condition), metav1.Condition{})
	}
	if c := reason(now); c.Reason == v1alpha1.ReasonNoSuccessor && reason(was).Reason != c.Reason {
		r.event(w, nil, corev1.EventTypeWarning, v1alpha1.EventNoSuccessor, "Observe", "%s", c.Message)
	}
}
