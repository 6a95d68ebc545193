package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/decisions"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unstored"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// Reporter reports passes to users.
type Reporter struct {
	// Reader remembers the results of writes.
	Reader *observe.Reader
	Runner action.Writer
	Events events.EventRecorder
	// unstored has the fields of the status that the API server does not store.
	unstored unstored.Memory
}

// Report reports the pass to users, with events, metrics and at most one status patch. It returns
// the outcome of the pass.
func (r *Reporter) Report(ctx context.Context, f *facts.Facts, p *rules.Plan, outcomes []action.Outcome) report.Outcome {
	memory := r.Reader.Of(f.Set)
	err := memory.Learn(f, p.GivenUp, outcomes)
	done := Results{Outcomes: outcomes, Refused: maps.Clone(memory.Refused)}
	to := memory.Decisions.Recorder(r.Events, f.Now)
	EmitActs(to, f.Set, done)
	for _, o := range memory.Undone.Learn(outcomes, f.Now) {
		to.Eventf(f.Set, o.Object, corev1.EventTypeWarning, v1alpha1.EventWriteUndone, "Write", "%s", excerpt.Message(undone.About(o)))
	}
	f.Undone = memory.Undone.Held(f.Set.Generation, f.Now)
	status := Summarize(f, p, done)
	r.measure(f, p, done, &status)
	due := p.Wait
	for _, refused := range done.Refused {
		due = report.Sooner(due, refused.Until.Sub(f.Now))
	}
	later, statusErr := r.writeStatus(ctx, f, p, status, done)
	if err = errors.Join(err, statusErr); err != nil {
		return report.Retry(err)
	}
	if memory.Hidden || len(memory.Foreign) > 0 {
		later = report.Sooner(later, spec.ForeignInterval)
	}
	if report.Sooner(due, later) == due {
		return report.Wait(due)
	}
	return report.Wait(later).Later()
}

// writeStatus patches the status if it differs, and then emits the events of EmitNews. A change that
// later passes do not rely on is delayed by at most StatusInterval if the pass made other writes, or
// if the status was written recently. later is the delay.
func (r *Reporter) writeStatus(ctx context.Context, f *facts.Facts, p *rules.Plan, status v1alpha1.StatefulClusterStatus, done Results) (later time.Duration, err error) {
	base := f.Set
	for _, o := range done.effective(action.PatchStatus) {
		base = o.Answer.(*v1alpha1.StatefulCluster)
	}
	isRecord := changesRecord(&base.Status, &status)
	if !isRecord && r.unstored.Same(&base.Status, &status, f.Now) {
		return 0, nil
	}
	memory := r.Reader.Of(f.Set)
	if !isRecord {
		if len(done.Outcomes) > 0 && len(done.Refused) == 0 {
			return spec.StatusInterval, nil
		}
		if since := f.Now.Sub(memory.Written); base.Status.ObservedGeneration == status.ObservedGeneration && since < spec.StatusInterval {
			return spec.StatusInterval - since, nil
		}
	}
	memory.Written = f.Now
	news := &decisions.Pending{Now: f.Now}
	EmitNews(news, f, p)
	set := base.DeepCopy()
	set.Status = status
	set.Status.Decisions = decisions.Append(base.Status.Decisions, slices.Concat(memory.Decisions.Of(f.Set.UID), news.Decisions())...)
	for _, o := range r.Runner.Run(ctx, client.ObjectKeyFromObject(set), action.Steps{{{
		{Verb: action.PatchStatus, Object: set, From: base, Rebase: true, Reason: "Observed"}}}}) {
		if apierrors.IsConflict(o.Err) {
			return spec.StatusInterval, nil // changed since it was read, so its watch event will arrive
		}
		if o.Err != nil {
			return 0, client.IgnoreNotFound(o.Err)
		}
		if answer, ok := o.Answer.(*v1alpha1.StatefulCluster); ok {
			r.unstored.Learn(&set.Status, &answer.Status, f.Now)
		}
		memory.Decisions.Clear()
		news.Send(r.Events)
	}
	return 0, nil
}

// changesRecord reports whether two statuses differ in the fields that later passes rely on.
func changesRecord(old, now *v1alpha1.StatefulClusterStatus) bool {
	return !apiequality.Semantic.DeepEqual(old.Lost, now.Lost) || !apiequality.Semantic.DeepEqual(old.Updating, now.Updating) ||
		!apiequality.Semantic.DeepEqual(old.Creating, now.Creating)
}

// acts are writes to pods that one event reports: they have the same reason, and at most namesInEvent
// pods.
type acts struct {
	// event is the reason of the event, and reason that of the writes.
	event, reason, detail string
	// first is the first of the pods.
	first client.Object
	names []string
}

// namesInEvent is the max number of members in one event, so that its text stays short.
const namesInEvent = 10

// EmitActs emits events for the writes of the pass, one for each kind of act and 10 members.
// Kubernetes aggregates events that differ only in their text, so each event is related to the
// first pod that it names.
func EmitActs(to events.EventRecorder, set *v1alpha1.StatefulCluster, done Results) {
	for _, a := range actsOf(done.Outcomes) {
		kind := corev1.EventTypeNormal
		if a.event == v1alpha1.EventMemberLost || a.event == v1alpha1.EventForeignPod {
			kind = corev1.EventTypeWarning
		}
		note := fmt.Sprintf("%s: %s", a.reason, strings.Join(a.names, ", "))
		if len(a.names) == 1 && a.detail != "" {
			note += "; " + a.detail
		}
		to.Eventf(set, a.first, kind, a.event, a.reason, "%s", excerpt.Message(note))
	}
	if o, refused := done.firstRefusal(); refused {
		to.Eventf(set, o.Object, corev1.EventTypeWarning, v1alpha1.EventWriteRefused, "Write", "%s", excerpt.Message(o.Err.Error()))
	}
}

// EmitNews emits events for facts that the status reports for the first time. They are sent after the
// status write, because a pass whose status write fails is retried and would send them again.
func EmitNews(to events.EventRecorder, f *facts.Facts, p *rules.Plan) {
	if f.Served() {
		emitLosses(to, f)
	}
	if len(p.Held) > 0 && !heldBefore(f.Set) {
		first := slices.IndexFunc(f.Members, func(m *facts.Member) bool { return m.Name() == p.Held[0] })
		to.Eventf(f.Set, f.Members[first].Pod, corev1.EventTypeWarning, v1alpha1.EventReplacementHeld, "Hold",
			"pending replacement, limited by replacement.maxConcurrent: %s", facts.SomeOf(p.Held))
	}
}

// heldBefore reports whether the status already reports that replacements are held back.
func heldBefore(set *v1alpha1.StatefulCluster) bool {
	return slices.ContainsFunc(set.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == v1alpha1.ConditionDegraded && c.Reason == v1alpha1.ReasonReplacementHeld
	})
}

// emitLosses emits events for the members whose pods were deleted by others.
func emitLosses(to events.EventRecorder, f *facts.Facts) {
	emit := func(reason v1alpha1.LossReason, first runtime.Object, names []string) {
		to.Eventf(f.Set, first, corev1.EventTypeWarning, v1alpha1.EventMemberLost, string(reason),
			"%s: %s; will not come back, and will be replaced under another name", reason, strings.Join(names, ", "))
	}
	for reason, members := range newDepartures(f) {
		for part := range slices.Chunk(members, namesInEvent) {
			emit(reason, part[0].Pod, facts.NamesOf(part))
		}
	}
	for names := range slices.Chunk(VanishedNow(f), namesInEvent) {
		emit(v1alpha1.LossDeleted, nil, names)
	}
}

// newDepartures returns, by loss reason, the members whose pod was deleted by others, that have no
// successor yet, and that status.lost does not list.
func newDepartures(f *facts.Facts) map[v1alpha1.LossReason][]*facts.Member {
	gone := map[v1alpha1.LossReason][]*facts.Member{}
	for _, m := range f.Unlisted() {
		if !f.HasSuccessor[m.Name()] {
			reason := facts.DepartureReason(m, false)
			gone[reason] = append(gone[reason], m)
		}
	}
	return gone
}

// VanishedNow returns the names of the vanished members that are not recreated and that status.lost does
// not list.
func VanishedNow(f *facts.Facts) []string {
	return slices.DeleteFunc(facts.LostVanished(f), func(name string) bool { return facts.Listed(f.Set.Status.Lost, name) })
}

// actsOf returns the acts that get an event, in the order of their first action.
func actsOf(outcomes []action.Outcome) []*acts {
	var all []*acts
	for _, o := range outcomes {
		event := eventOf(o)
		if event == "" || o.Err != nil {
			continue
		}
		i := slices.IndexFunc(all, func(a *acts) bool {
			return a.event == event && a.reason == o.Reason && len(a.names) < namesInEvent
		})
		if i < 0 {
			i = len(all)
			all = append(all, &acts{event: event, reason: o.Reason, detail: o.Detail, first: o.Answer})
		}
		all[i].names = append(all[i].names, o.Object.GetName())
	}
	return all
}

// eventOf returns the event reason for an action, or "" if it gets no event.
func eventOf(o action.Outcome) string {
	pod, isPod := o.Object.(*corev1.Pod)
	if !isPod {
		return ""
	}
	switch o.Verb {
	case action.Create:
		if o.Reason == facts.ReasonReturned {
			return v1alpha1.EventMemberUpdated
		}
		return v1alpha1.EventMemberCreated
	case action.Patch:
		switch {
		case o.Reason == facts.ReasonForeign:
			return v1alpha1.EventForeignPod
		case o.Reason == facts.ReasonUpdated && !finishes(o.From, pod):
			return v1alpha1.EventMemberUpdated
		}
	case action.Delete:
		return deletionEvent(o.Reason)
	}
	return ""
}

// deletionEvent returns the event reason for the deletion of a pod, or "" if the pod is recreated
// under its name.
func deletionEvent(reason string) string {
	switch reason {
	case facts.ReasonUpdate:
		return ""
	case facts.ReasonRetired:
		return v1alpha1.EventMemberRetired
	}
	return v1alpha1.EventMemberLost
}

// finishes reports whether a patch removes the in-place update annotation from a pod.
func finishes(from, to client.Object) bool {
	return from.GetAnnotations()[v1alpha1.AnnotationInPlace] != "" && to.GetAnnotations()[v1alpha1.AnnotationInPlace] == ""
}
