package status

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/decisions"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unstored"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Reporter reports the results of passes: events, metrics and the status.
type Reporter struct {
	// Reader has the memory of this process.
	Reader *observe.Reader
	Runner action.Writer
	Events events.EventRecorder
	// unstored has the fields of the status that the API server does not store.
	unstored unstored.Memory
}

// Report writes events, metrics, and one status patch for users. It returns the outcome of the
// pass.
func (r *Reporter) Report(ctx context.Context, p *rules.Plan, outcomes []action.Outcome) report.Outcome {
	w := p.On.World
	overtaken, untried, failed := false, false, error(nil)
	for _, o := range outcomes {
		if r.Reader.MemoryOf(w.Set).LearnResize(&o) {
			overtaken = true // the member is recreated
			continue
		}
		if r.Reader.MemoryOf(w.Set).LearnDryRun(w, &o) {
			untried = true
			continue
		}
		switch report.Judge(o.Err) {
		case report.Succeeded:
			r.reportSuccess(p, &o)
		case report.Overtaken:
			overtaken = true
		case report.Failed:
			failed = errors.Join(failed, o.Err)
			refusedTotal.WithLabelValues(o.Reason).Inc()
		}
	}
	known := r.Reader.MemoryOf(w.Set)
	known.Refused.Learn(failed)
	w.Refused = known.Refused.Text()
	for _, o := range known.Undone.Learn(outcomes, w.Now) {
		r.event(w, o.Object, corev1.EventTypeWarning, v1alpha1.EventWriteUndone, "Keep", "%s", excerpt.Message(undone.About(o)))
	}
	w.Undone = known.Undone.Held(w.Set.Generation, w.Now)
	switch {
	case failed != nil, untried, p.AsksOnly():
		if err := errors.Join(failed, r.writeStatus(ctx, p)); err != nil {
			return report.Retry(err)
		}
		if untried {
			return report.Wait(report.Sooner(p.Wait, spec.TrialPause))
		}
		return report.Wait(p.Wait)
	case overtaken:
		return report.Wait(spec.ConflictRequeue)
	}
	return report.Wait(report.Sooner(p.Wait, spec.WriteRequeue)) // the watch event of the write triggers the next pass
}

// reportSuccess counts, emits and remembers a successful action.
func (r *Reporter) reportSuccess(p *rules.Plan, o *action.Outcome) {
	actionsTotal.WithLabelValues(o.Verb.Label(), o.Reason).Inc()
	r.Emit(p, o)
	r.Reader.Remember(p.On.World, o)
}

// writeStatus patches the status if it differs.
func (r *Reporter) writeStatus(ctx context.Context, p *rules.Plan) error {
	w := p.On.World
	key, status := client.ObjectKeyFromObject(w.Set), Summarize(p)
	SetGauges(key, &status)
	if r.unstored.Same(&w.Set.Status, &status, w.Now) {
		return nil
	}
	// The decisions of earlier passes, and those that this write shows. The latter are sent after it.
	earlier, news := &r.Reader.MemoryOf(w.Set).Decisions, &decisions.Pending{Now: w.Now}
	announce(news, w, &status)
	set := w.Set.DeepCopy()
	set.Status = status
	set.Status.Decisions = decisions.Append(status.Decisions, slices.Concat(earlier.Of(w.Set.UID), news.Decisions())...)
	for _, o := range r.Runner.Run(ctx, key, action.Steps{{{{Verb: action.PatchStatus, Object: set, From: w.Set, Rebase: true, Reason: "Observed"}}}}) {
		switch report.Judge(o.Err) {
		case report.Succeeded:
			if answer, ok := o.Answer.(*v1alpha1.ReplicatedStatefulSet); ok {
				r.unstored.Learn(&set.Status, &answer.Status, w.Now)
			}
			earlier.Clear()
			count(&w.Set.Status, &status)
			news.Send(r.Events)
		case report.Ending, report.Failed:
			return o.Err
		}
	}
	return nil
}

// event emits an event of a set, and keeps it for the next status write. about is a related object, or nil.
func (r *Reporter) event(w *facts.World, about client.Object, kind, reason, act, format string, args ...any) {
	r.Reader.MemoryOf(w.Set).Decisions.Recorder(r.Events, w.Now).Eventf(w.Set, about, kind, reason, act, format, args...)
}

// Emit writes an event for each action that is relevant to users.
func (r *Reporter) Emit(p *rules.Plan, o *action.Outcome) {
	w := p.On.World
	if o.Verb == action.Delete {
		r.emitDeletion(w, o)
		return
	}
	switch o.Reason {
	case facts.ReasonUnseen:
		r.event(w, nil, corev1.EventTypeWarning, v1alpha1.EventMemberFailed, "Learn", "%s", o.Detail)
	case facts.ReasonForeign:
		// Without a related object, the events of any number of pods become one series.
		r.event(w, nil, corev1.EventTypeWarning, v1alpha1.EventForeignPod, "RemoveLabels",
			"removed the member labels from pod %s, which is not a member: Services would have sent clients to it", o.Object.GetName())
	case facts.ReasonOverride:
		r.event(w, nil, corev1.EventTypeNormal, v1alpha1.EventOverrideUsed, "Override", "%s", o.Detail)
	case facts.ReasonRefused:
		r.event(w, nil, corev1.EventTypeWarning, v1alpha1.EventOverrideRefused, "Override", "%s", o.Detail)
	case facts.ReasonChild, facts.ReasonTemplate:
		if _, is := o.Object.(*appsv1.StatefulSet); is && p.ConfigEvent != "" {
			r.event(w, o.Object, corev1.EventTypeNormal, p.ConfigEvent, "Follow", "%s", explainConfig(p.ConfigEvent))
		}
	case facts.ReasonOf(v1alpha1.CommandDemote), facts.ReasonOf(v1alpha1.CommandStop):
		if o.Verb == action.PatchStatus && p.NotInPlace != "" {
			r.event(w, nil, corev1.EventTypeWarning, v1alpha1.EventNotInPlace, "Update", "%s", p.NotInPlace)
		}
		if o.Verb == action.PatchStatus && p.Handover != "" { // the event of the command follows when it has ended
			r.event(w, nil, corev1.EventTypeNormal, v1alpha1.EventHandingOver, "HandOver", "%s", p.Handover)
		}
	case facts.ReasonOf(v1alpha1.CommandPromote), facts.ReasonOf(v1alpha1.CommandSeed):
		if o.Verb == action.PatchStatus && p.Uncompared != "" {
			r.event(w, nil, corev1.EventTypeWarning, v1alpha1.EventPrimaryNotCompared, "Promote", "%s", p.Uncompared)
		}
	case facts.ReasonExpired:
		r.event(w, o.Object, corev1.EventTypeWarning, v1alpha1.EventFenced, "TakeOver", "took over Lease %s: %s", o.Object.GetName(), o.Detail)
	case facts.ReasonResized:
		r.event(
			w, o.Object, corev1.EventTypeNormal, v1alpha1.EventMemberUpdated, "Resize",
			"changed the resources of pod %s in place: %s",
			o.Object.GetName(), o.Detail,
		)
	case facts.ReasonLearned:
		for _, learned := range p.On.Record.Events {
			r.event(w, nil, learned.Kind, learned.Reason, "Learn", "%s", excerpt.Message(learned.Text))
		}
	}
}

// emitDeletion writes the event about a pod that was deleted to be recreated.
func (r *Reporter) emitDeletion(w *facts.World, o *action.Outcome) {
	if _, ok := o.Object.(*corev1.Pod); !ok {
		return
	}
	kind, reason := corev1.EventTypeWarning, v1alpha1.EventMemberReplaced
	if o.Reason == facts.ReasonRenew {
		kind, reason = corev1.EventTypeNormal, v1alpha1.EventMemberUpdated
	}
	r.event(w, o.Object, kind, reason, "Delete", "recreating pod %s: %s", o.Object.GetName(), o.Detail)
}

// count counts changes of the status in the metrics.
func count(was, now *v1alpha1.ReplicatedStatefulSetStatus) {
	if was.ObservedGeneration != now.ObservedGeneration {
		modifiedTotal.Inc()
	}
	if now.Phase == v1alpha1.PhaseFailed && was.Phase != now.Phase {
		failedTotal.Inc()
	}
}

// announce emits events for changes of the status.
func announce(to events.EventRecorder, w *facts.World, now *v1alpha1.ReplicatedStatefulSetStatus) {
	was := &w.Set.Status
	emit := func(have, had []string, kind, reason, text string) {
		for _, name := range have {
			if !slices.Contains(had, name) {
				to.Eventf(w.Set, nil, kind, reason, "Observe", text, name)
			}
		}
	}
	all := func(s *v1alpha1.ReplicatedStatefulSetStatus) []string {
		return slices.Concat(s.Members.Ready, s.Members.Unready)
	}
	a, b := &now.Members, &was.Members
	emit(all(now), all(was), corev1.EventTypeNormal, v1alpha1.EventMemberAdded, "%s is a member")
	emit(all(was), all(now), corev1.EventTypeNormal, v1alpha1.EventMemberRemoved, "%s is no longer a member")
	emit(a.Failed, b.Failed, corev1.EventTypeWarning, v1alpha1.EventMemberFailed, "%s failed")
	emit(a.Primary, b.Primary, corev1.EventTypeNormal, v1alpha1.EventPromoted, "%s is primary")
	emit(b.Primary, a.Primary, corev1.EventTypeNormal, v1alpha1.EventDemoted, "%s is no longer primary")
	emit(a.Secondary, b.Secondary, corev1.EventTypeNormal, v1alpha1.EventMemberStarted, "%s is secondary")
	announceNoSuccessor(to, w, now, v1alpha1.ConditionDraining)
	announceNoSuccessor(to, w, now, v1alpha1.ConditionMaintenance)
}

// announceNoSuccessor emits an event when the condition's reason becomes NoSuccessor: a primary
// cannot leave its Node, or cannot be parked.
func announceNoSuccessor(to events.EventRecorder, w *facts.World, now *v1alpha1.ReplicatedStatefulSetStatus, condition string) {
	reason := func(s *v1alpha1.ReplicatedStatefulSetStatus) metav1.Condition {
		return ptr.Deref(meta.FindStatusCondition(s.Conditions, condition), metav1.Condition{})
	}
	if c := reason(now); c.Reason == v1alpha1.ReasonNoSuccessor && reason(&w.Set.Status).Reason != c.Reason {
		to.Eventf(w.Set, nil, corev1.EventTypeWarning, v1alpha1.EventNoSuccessor, "Observe", "%s", c.Message)
	}
}

// explainConfig returns the message of the event about a change of the StatefulSet's configuration
// stamp.
func explainConfig(event string) string {
	switch event {
	case configuration.EventFollowed:
		return "started to watch the ConfigMaps and Secrets that the members use"
	case configuration.EventRestart:
		return "recreating the members one at a time, because a ConfigMap or Secret that they use changed"
	case configuration.EventKeyChanged:
		return "the operator has a new key for its configuration hashes; the configuration did not change, and no member is restarted"
	}
	return "recreating the members one at a time: the operator has a new key for its configuration hashes, and a ConfigMap or Secret that they use was edited"
}
