package status

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/decisions"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unstored"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// Reporter publishes the results of passes.
type Reporter struct {
	// Reader has the memory of the objects.
	Reader *observe.Reader
	Runner action.Writer
	Events events.EventRecorder
	// unstored has the fields of the status that the API server does not store.
	unstored unstored.Memory
}

// Report publishes the result of a pass: events, metrics, and one status patch. It returns
// the outcome of the pass.
func (r *Reporter) Report(ctx context.Context, key types.NamespacedName, f *facts.Facts, p *rules.Plan, outcomes []action.Outcome) report.Outcome {
	overtaken, failed := judgeWrites(outcomes)
	memory := r.Reader.Of(key)
	memory.Refused.Learn(failed)
	f.Refused = memory.Refused.Text()
	r.emit(f, outcomes)
	r.learnUndone(memory, f, outcomes)
	if f.Object == nil {
		return r.afterDeletion(ctx, key, len(p.Steps) == 0 && len(f.Waiting) == 0, failed)
	}
	if failed == nil && len(outcomes) > 0 {
		if overtaken {
			return report.Wait(spec.Again)
		}
		return report.Wait(report.Sooner(p.Wait, spec.AfterActs)) // the watch event of the write triggers the next pass
	}
	if err := errors.Join(failed, r.writeStatus(ctx, key, f)); err != nil {
		return report.Retry(err)
	}
	return report.Wait(p.Wait)
}

// learnUndone records which writes were reverted, and emits an event for each new one.
func (r *Reporter) learnUndone(memory *observe.Remembered, f *facts.Facts, outcomes []action.Outcome) {
	news := memory.Undone.Learn(outcomes, f.Now)
	if f.Object == nil {
		return
	}
	for _, o := range news {
		warn(memory.Decisions.Recorder(r.Events, f.Now), f, o.Object, v1.EventWriteUndone, "Write", undone.About(o))
	}
	f.Undone = memory.Undone.Held(f.Object.Generation, f.Now)
}

// judgeWrites reports whether a write failed because the object had changed since it was
// read, and joins all other errors.
func judgeWrites(outcomes []action.Outcome) (overtaken bool, failed error) {
	for _, o := range outcomes {
		switch report.Judge(o.Err) {
		case report.Succeeded:
			actionsTotal.WithLabelValues(o.Verb.Label(), o.Reason).Inc()
		case report.Overtaken:
			overtaken = true
		case report.Failed:
			failed = errors.Join(failed, o.Err)
		}
	}
	return overtaken, failed
}

// afterDeletion reschedules the search for pods of a deleted object. atRest is true if
// there was nothing to do and no pod waits for the object.
func (r *Reporter) afterDeletion(ctx context.Context, key types.NamespacedName, atRest bool, failed error) report.Outcome {
	forgetMetrics(key)
	looks := 0
	if atRest {
		memory := r.Reader.Of(key)
		memory.Orphans++
		looks = memory.Orphans
	}
	switch {
	case failed != nil:
		return report.Retry(failed)
	case looks >= observe.OrphanLooks:
		r.Reader.Forget(ctx, key)
		return report.Done()
	}
	return report.Wait(spec.OrphanLook << looks)
}

// writeStatus patches the status if it differs.
func (r *Reporter) writeStatus(ctx context.Context, key types.NamespacedName, f *facts.Facts) error {
	status := Summarize(f)
	gauge(key, f, meta.IsStatusConditionTrue(status.Conditions, v1.ConditionAvailable))
	if r.unstored.Same(&f.Object.Status, &status, f.Now) {
		return nil
	}
	now := metav1.NewTime(f.Now)
	status.StatusTimestamp = &now
	object := f.Object.DeepCopy()
	object.Status = status
	// The decisions of earlier passes, and those that this write shows. The latter are sent after it.
	earlier, news := &r.Reader.Of(key).Decisions, &decisions.Pending{Now: f.Now}
	announce(news, f, &status)
	object.Status.Decisions = decisions.Append(status.Decisions, slices.Concat(earlier.Of(object.UID), news.Decisions())...)
	for _, o := range r.Runner.Run(ctx, key, action.Steps{{{
		{Verb: action.PatchStatus, Object: object, From: f.Object, Rebase: true, Reason: "Observed"}}}}) {
		switch report.Judge(o.Err) {
		case report.Succeeded:
			if answer, ok := o.Answer.(*v1.StatefulSingleton); ok {
				r.unstored.Learn(&object.Status, &answer.Status, f.Now)
			}
			earlier.Clear()
			measure(f, &status)
			news.Send(r.Events)
		case report.Ending, report.Failed:
			return o.Err
		}
	}
	return nil
}

// announce emits events for changes of the status.
func announce(to events.EventRecorder, f *facts.Facts, status *v1.StatefulSingletonStatus) {
	before := &f.Object.Status
	announceUnmanaged(to, f, before, status)
	if exceedsNow(f) {
		var first client.Object
		if f.Active != nil {
			first = f.Active.Pod
		}
		warn(to, f, first, v1.EventTransitionTimeout, "Handover", lateText(f))
	}
	if is := meta.FindStatusCondition(status.Conditions, v1.ConditionDegraded); is.Reason == v1.ReasonWriteRefused && degradedReason(before) != is.Reason {
		warn(to, f, nil, v1.EventWriteRefused, "Write", is.Message)
	}
}

// measure updates the metrics of handovers.
func measure(f *facts.Facts, status *v1.StatefulSingletonStatus) {
	if exceedsNow(f) {
		timeoutsTotal.Inc()
	}
	before := &f.Object.Status
	if before.TransitionTimestamp == nil || status.TransitionTimestamp != nil {
		return
	}
	if took, granted := handoverTook(status.Holder, before.TransitionTimestamp); granted {
		transitionSeconds.Observe(took.Seconds())
	}
}

// announceUnmanaged emits an event if several programs may be running, or else if a pod has
// no gate.
func announceUnmanaged(to events.EventRecorder, f *facts.Facts, before, status *v1.StatefulSingletonStatus) {
	if is := meta.FindStatusCondition(status.Conditions, v1.ConditionDegraded); is.Reason == v1.ReasonSeveralRunning {
		if degradedReason(before) != is.Reason {
			warn(to, f, nil, v1.EventSeveralRunning, "Look", is.Message)
		}
		return
	}
	found := meta.FindStatusCondition(status.Conditions, v1.ConditionUnmanagedPod)
	if found.Status == metav1.ConditionTrue && !meta.IsStatusConditionTrue(before.Conditions, v1.ConditionUnmanagedPod) {
		warn(to, f, nil, v1.EventUnmanagedPod, "Look", found.Message)
	}
}

// exceedsNow reports whether a handover exceeds spec.maxTransitionTime, and the status does not report it
// yet.
func exceedsNow(f *facts.Facts) bool {
	return f.Late && !f.Several() && !timeoutReported(&f.Object.Status)
}

// timeoutReported reports whether a status already reports a handover that exceeds
// spec.maxTransitionTime: its phase is Failed, for a reason other than several running pods.
func timeoutReported(s *v1.StatefulSingletonStatus) bool {
	switch degradedReason(s) {
	case "", v1.ReasonSeveralRunning:
		return false
	}
	return s.Phase == v1.PhaseFailed
}

// degradedReason returns the reason of condition Degraded; "" if the condition is missing.
func degradedReason(s *v1.StatefulSingletonStatus) string {
	if c := meta.FindStatusCondition(s.Conditions, v1.ConditionDegraded); c != nil {
		return c.Reason
	}
	return ""
}

// warn emits a Warning event for the object. about may be nil.
func warn(to events.EventRecorder, f *facts.Facts, about client.Object, reason, doing, note string) {
	to.Eventf(f.Object, about, corev1.EventTypeWarning, reason, doing, "%s", excerpt.Message(note))
}

// emit emits an event for each successful action that matters to users.
func (r *Reporter) emit(f *facts.Facts, outcomes []action.Outcome) {
	if f.Object == nil {
		return
	}
	to := r.Reader.Of(client.ObjectKeyFromObject(f.Object)).Decisions.Recorder(r.Events, f.Now)
	for _, o := range outcomes {
		if o.Err != nil {
			continue
		}
		if reason, doing, note := EventOf(o); reason != "" {
			to.Eventf(f.Object, o.Object, corev1.EventTypeNormal, reason, doing, "%s", note)
		}
	}
}

// isFirstGrant reports whether the pod has the first grant of its object.
func isFirstGrant(object client.Object) bool {
	pod, ok := object.(*corev1.Pod)
	return ok && (&facts.Member{Pod: pod}).Epoch() == 1
}

// EventOf returns the event for a successful action; empty strings for none.
func EventOf(o action.Outcome) (reason, doing, note string) {
	pod := "pod " + o.Object.GetName()
	switch {
	case o.Reason == rules.ReasonGrant && isFirstGrant(o.Object):
		return v1.EventPodStarted, "Grant", pod + " may run its program"
	case o.Reason == rules.ReasonGrant:
		return v1.EventPodTransition, "Grant", pod + " may run its program, and no other pod may"
	case o.Reason == rules.ReasonAssign:
		return v1.EventPodTransition, "Grant", "the Lease names " + o.Detail
	case o.Reason == rules.ReasonCrashLoop:
		return v1.EventPodTransition, "Handover", pod + ": " + o.Detail
	case o.Reason == rules.ReasonBudget, o.Reason == rules.ReasonLease:
		return "", "", ""
	case o.Reason == rules.ReasonDetach:
		return v1.EventPodDetached, "Drain", pod + ": " + o.Detail
	case o.Reason == rules.ReasonReturn:
		return v1.EventPodReturned, "Drain", pod + " keeps running and is returned " + o.Detail
	case o.Verb == action.Delete:
		return v1.EventPodDeleted, "Delete", pod + ": " + o.Detail
	case o.Reason == rules.ReasonLetGo && o.Verb == action.Patch:
		return v1.EventPodReleased, "Release", pod + " is released: the StatefulSingleton is being deleted"
	}
	return "", "", ""
}
