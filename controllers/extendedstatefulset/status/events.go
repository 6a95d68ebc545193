package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/decisions"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unstored"
)

// Reporter reports the results of passes.
type Reporter struct {
	// Reader has the memory of the objects.
	Reader *observe.Reader
	Runner action.Writer
	Events events.EventRecorder
	// unstored has the fields of the status that the API server does not store.
	unstored unstored.Memory
}

// Report writes events, metrics and one status patch, and returns the outcome of the pass.
func (r *Reporter) Report(ctx context.Context, f *facts.Facts, p *rules.Plan, outcomes []action.Outcome) report.Outcome {
	var failed error
	overtaken := false
	for _, o := range outcomes {
		switch report.Judge(o.Err) {
		case report.Succeeded:
			actionsTotal.WithLabelValues(o.Verb.Label(), o.Reason).Inc()
			r.emit(f, &o)
		case report.Overtaken:
			overtaken = true
		case report.Failed:
			failed = errors.Join(failed, o.Err)
			refusedTotal.WithLabelValues(o.Reason).Inc()
		}
	}
	// The conditions report the results of this pass.
	remembered := r.Reader.Of(f.Set)
	remembered.Refusal.Learn(failed)
	f.Refused = remembered.Refusal.Text()
	for _, o := range remembered.Undone.Learn(outcomes, f.Now) {
		r.event(f, o.Object, corev1.EventTypeWarning, v1alpha1.EventWriteUndone, "Write", "%s", excerpt.Message(undone.About(o)))
	}
	f.Undone = remembered.Undone.Held(f.Set.Generation, f.Now)
	if failed == nil && !p.ProbesOnly() && len(outcomes) > 0 {
		if overtaken {
			return report.Wait(spec.RetrySoon)
		}
		return report.Wait(spec.AfterWrites) // the watch event of the write triggers the next pass
	}
	written, err := r.writeStatus(ctx, f, p)
	switch {
	case failed != nil || err != nil:
		return report.Retry(errors.Join(failed, err))
	case !written && p.RecordFirst:
		return report.Wait(spec.RetrySoon)
	}
	return report.Wait(p.Wait)
}

// writeStatus patches the status if it differs. It returns false if the patch failed because the object
// changed in the meantime.
func (r *Reporter) writeStatus(ctx context.Context, f *facts.Facts, p *rules.Plan) (bool, error) {
	key := client.ObjectKeyFromObject(f.Set)
	// The decisions of earlier passes, and those that this write records. The latter are sent after it.
	earlier, news := &r.Reader.Of(f.Set).Decisions, &decisions.Pending{Now: f.Now}
	Announce(news, f)
	steps := StatusPatch(f, p, slices.Concat(earlier.Of(f.Set.UID), news.Decisions())...)
	gauge(key, f.Record)
	if len(steps) == 0 {
		return true, nil
	}
	if !p.RecordFirst && r.isStored(f, p) { // decisions depend on the record: it is written until it is stored
		return true, nil
	}
	outcomes := r.Runner.Run(ctx, key, steps)
	if len(outcomes) == 0 {
		return true, nil
	}
	err := outcomes[0].Err
	if err == nil {
		if answer, ok := outcomes[0].Answer.(*v1alpha1.ExtendedStatefulSet); ok {
			r.unstored.Learn(&outcomes[0].Object.(*v1alpha1.ExtendedStatefulSet).Status, &answer.Status, f.Now)
		}
		earlier.Clear()
		for _, step := range StepsOf(&f.Set.Status, f.Record) {
			upgradesTotal.WithLabelValues(step.label).Inc()
		}
		news.Send(r.Events)
	}
	if report.Judge(err) == report.Overtaken {
		return false, nil
	}
	return err == nil, err
}

// isStored reports whether the status is stored, apart from the fields that the API server does not store.
func (r *Reporter) isStored(f *facts.Facts, p *rules.Plan) bool {
	status := Summarize(f, p)
	return r.unstored.Same(&f.Set.Status, &status, f.Now)
}

// StatusPatch returns the patch of a status that differs, with new decisions; nil if it does not differ.
func StatusPatch(f *facts.Facts, p *rules.Plan, news ...decisions.Decision) action.Steps {
	status := Summarize(f, p)
	if apiequality.Semantic.DeepEqual(f.Set.Status, status) {
		return nil
	}
	set := f.Set.DeepCopy()
	set.Status = status
	set.Status.Decisions = decisions.Append(status.Decisions, news...)
	return action.Steps{{{{
		Verb:   action.PatchStatus,
		Object: set,
		From:   f.Set,
		Rebase: !p.RecordFirst,
		Reason: "Observed",
		Detail: RecordLine(&f.Set.Status, &status),
	}}}}
}

// event records an event of the set, and keeps it for the next status write. about is a related object, or
// nil.
func (r *Reporter) event(f *facts.Facts, about client.Object, kind, reason, act, format string, args ...any) {
	r.Reader.Of(f.Set).Decisions.Recorder(r.Events, f.Now).Eventf(f.Set, about, kind, reason, act, format, args...)
}

// writeEvent has the type, the action and the text of an event.
type writeEvent struct{ kind, verb, text string }

// writeEvents are the events about writes, by the reason of the write. The text is formatted with the
// name of the object.
var writeEvents = map[string]writeEvent{
	v1alpha1.EventVersionCreated: {corev1.EventTypeNormal, "Create", "created StatefulSet %s"},
	v1alpha1.EventEditUndone: {corev1.EventTypeWarning, "Patch",
		"StatefulSet %s was edited by another client; the edit was undone"},
	v1alpha1.EventEditKept: {corev1.EventTypeWarning, "Patch",
		"StatefulSet %s was edited by another client; its replicas were restored, and other changes are kept until spec.template has the content of its version again"},
	v1alpha1.EventConfigRestart: {corev1.EventTypeNormal, "Patch",
		"the pods of StatefulSet %s are restarted because a referenced ConfigMap or Secret changed"},
	v1alpha1.EventConfigKeyLost: {corev1.EventTypeWarning, "Patch",
		"the pods of StatefulSet %s are restarted as a precaution: the operator's hash key changed, and a referenced ConfigMap or Secret was edited"},
	v1alpha1.EventConfigKeyChanged: {corev1.EventTypeNormal, "Patch",
		"the operator's hash key changed; the pods of StatefulSet %s are not restarted because no referenced ConfigMap or Secret was edited"},
	v1alpha1.EventTracked:   {corev1.EventTypeNormal, "Patch", "added the owner reference of %s to this object"},
	v1alpha1.EventUntracked: {corev1.EventTypeNormal, "Patch", "removed the owner reference of %s to this object"},
	v1alpha1.EventStrayReplaced: {corev1.EventTypeWarning, "Delete",
		"pod %s was created while the webhook was unavailable, so it had no claim and could not start; it is replaced"},
	v1alpha1.EventSurplusDeleted: {corev1.EventTypeNormal, "Delete",
		"deleted surplus pod %s: its StatefulSet controller cannot delete it while the API server refuses a missing pod"},
	v1alpha1.EventForeignPod: {corev1.EventTypeWarning, "Patch",
		"removed the labels of this object from pod %s: it belongs to no version, but would have received client traffic"},
	rules.ReasonOld:      {corev1.EventTypeNormal, "Delete", "deleted %s"},
	rules.ReasonZoneGone: {corev1.EventTypeNormal, "Delete", "deleted %s"},
}

// emit records an event for a write that has one.
func (r *Reporter) emit(f *facts.Facts, o *action.Outcome) {
	event, has := writeEvents[o.Reason]
	if !has {
		return
	}
	name, related := o.Object.GetName(), o.Object
	switch o.Reason {
	case v1alpha1.EventVersionCreated:
		name += " with " + o.Detail
	case v1alpha1.EventForeignPod:
		related = nil // so that the events of all such pods become one series
	}
	r.event(f, related, event.kind, o.Reason, event.verb, event.text, name)
}

// Announce records events for the steps that the record has taken.
func Announce(to events.EventRecorder, f *facts.Facts) {
	for _, step := range StepsOf(&f.Set.Status, f.Record) {
		to.Eventf(f.Set, nil, step.kind, step.Reason, "Upgrade", "%s", step.Text)
	}
}

// step is a step of an upgrade that gets an event.
type step struct {
	label              string // of the metric
	kind, Reason, Text string // of the event
}

// StepsOf returns the steps from one record to the next.
func StepsOf(was, now *v1alpha1.ExtendedStatefulSetStatus) []step {
	switch {
	case now.Update == nil && was.Update == nil:
		return nil
	case now.Update == nil:
		return []step{ended(was, now)}
	case now.Update.Returning && (was.Update == nil || !was.Update.Returning):
		return []step{{"retried", corev1.EventTypeWarning, v1alpha1.EventAttemptFailed,
			fmt.Sprintf("attempt %d with version %d failed: %s", now.Attempts, now.UpdateVersion, excerpt.Message(now.Update.Message))}}
	case heldFirst(was, now):
		return []step{{
			"held",
			corev1.EventTypeNormal,
			v1alpha1.EventWaitingForApproval,
			fmt.Sprintf("the canaries of version %d are good; waiting for approval of revision %s", now.UpdateVersion, record.UpdateRevision(now)),
		}}
	case approvedNow(was, now):
		return []step{{
			"approved",
			corev1.EventTypeNormal,
			v1alpha1.EventApproved,
			fmt.Sprintf("revision %s was approved", record.UpdateRevision(now)),
		}}
	case was.Phase == now.Phase:
		return begun(was, now)
	case now.Phase == v1alpha1.PhaseStale:
		return []step{{"stale", corev1.EventTypeWarning, v1alpha1.EventStale,
			fmt.Sprintf("version %d was marked stale: %s", now.UpdateVersion, excerpt.Message(now.Update.Message))}}
	case now.Phase == v1alpha1.PhaseAborted:
		return []step{{"aborted", corev1.EventTypeWarning, v1alpha1.EventAborted,
			fmt.Sprintf("the upgrade to version %d was aborted: %s", now.UpdateVersion, excerpt.Message(now.Update.Message))}}
	}
	return begun(was, now)
}

// heldFirst reports whether an upgrade starts to wait for approval.
func heldFirst(was, now *v1alpha1.ExtendedStatefulSetStatus) bool {
	earlier := cmp.Or(was.Update, &v1alpha1.UpdateStatus{})
	return earlier.HeldAt == nil && now.Update.HeldAt != nil
}

// approvedNow reports whether an upgrade was approved and continues.
func approvedNow(was, now *v1alpha1.ExtendedStatefulSetStatus) bool {
	earlier := cmp.Or(was.Update, &v1alpha1.UpdateStatus{})
	return !earlier.Approved && now.Update.Approved
}

// ended returns the step for an upgrade that succeeded or was superseded.
func ended(was, now *v1alpha1.ExtendedStatefulSetStatus) step {
	if now.CurrentVersion == was.UpdateVersion {
		return step{"upgraded", corev1.EventTypeNormal, v1alpha1.EventUpgraded, fmt.Sprintf("version %d serves", now.CurrentVersion)}
	}
	return superseded(was.UpdateVersion)
}

// begun returns the step for the start of an upgrade, and the step for an upgrade that it supersedes.
func begun(was, now *v1alpha1.ExtendedStatefulSetStatus) (steps []step) {
	if was.Update != nil && now.UpdateVersion == was.UpdateVersion {
		return nil
	}
	if was.Update != nil && !facts.GivenUp(was) {
		steps = append(steps, superseded(was.UpdateVersion))
	}
	return append(steps, step{"begun", corev1.EventTypeNormal, v1alpha1.EventUpgradeBegun,
		fmt.Sprintf("upgrade from version %d to %d", now.CurrentVersion, now.UpdateVersion)})
}

// superseded returns the step for an upgrade that another one supersedes.
func superseded(number int64) step {
	return step{"superseded", corev1.EventTypeNormal, v1alpha1.EventSuperseded, fmt.Sprintf("version %d was superseded by another template", number)}
}
