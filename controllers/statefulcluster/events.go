package statefulcluster

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
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// reporter reports passes to users.
type reporter struct {
	// reader remembers the results of writes.
	reader *reader
	runner *action.Runner
	events events.EventRecorder
}

// report reports the pass to users, with events, metrics and at most one status patch. It returns
// the outcome of the pass.
func (r *reporter) report(ctx context.Context, f *facts, p *plan, outcomes []action.Outcome) report.Outcome {
	known := r.reader.of(f.set)
	err := known.learn(f, p.givenUp, outcomes)
	done := results{outcomes: outcomes, refused: maps.Clone(known.refused)}
	r.emitActs(f.set, done)
	for _, o := range known.undone.Learn(outcomes, f.now) {
		r.events.Eventf(f.set, o.Object, corev1.EventTypeWarning, v1alpha1.EventWriteUndone, "Write", "%s", excerpt.Message(undone.About(o)))
	}
	f.undone = known.undone.Held(f.set.Generation, f.now)
	status := summarize(f, p, done)
	r.measure(f, p, done, &status)
	due := p.Wait
	for _, refused := range done.refused {
		due = report.Sooner(due, refused.until.Sub(f.now))
	}
	wrote, later, statusErr := r.writeStatus(ctx, f, status, done)
	if wrote {
		r.emitNews(f, p)
	}
	if err = errors.Join(err, statusErr); err != nil {
		return report.Retry(err)
	}
	if known.hidden || len(known.foreign) > 0 {
		later = report.Sooner(later, foreignInterval)
	}
	if report.Sooner(due, later) == due {
		return report.Wait(due)
	}
	return report.Wait(later).Later()
}

// writeStatus patches the status if it differs, and reports whether it did. A change that later
// passes do not rely on is delayed by at most statusInterval if the pass made other writes, or if
// the status was written recently.
func (r *reporter) writeStatus(ctx context.Context, f *facts, status v1alpha1.StatefulClusterStatus, done results) (wrote bool, later time.Duration, err error) {
	base := f.set
	for _, o := range done.effective(action.PatchStatus) {
		base = o.Answer.(*v1alpha1.StatefulCluster)
	}
	if apiequality.Semantic.DeepEqual(base.Status, status) {
		return false, 0, nil
	}
	known := r.reader.of(f.set)
	if !changesRecord(&base.Status, &status) {
		if len(done.outcomes) > 0 && len(done.refused) == 0 {
			return false, statusInterval, nil
		}
		if since := f.now.Sub(known.written); base.Status.ObservedGeneration == status.ObservedGeneration && since < statusInterval {
			return false, statusInterval - since, nil
		}
	}
	known.written = f.now
	set := base.DeepCopy()
	set.Status = status
	for _, o := range r.runner.Run(ctx, client.ObjectKeyFromObject(set), action.Steps{{{
		{Verb: action.PatchStatus, Object: set, From: base, Rebase: true, Reason: "Observed"}}}}) {
		if apierrors.IsConflict(o.Err) {
			return false, statusInterval, nil // changed since it was read, so its watch event will arrive
		}
		if o.Err != nil {
			return false, 0, client.IgnoreNotFound(o.Err)
		}
		wrote = true
	}
	return wrote, 0, nil
}

// changesRecord reports whether two statuses differ in the fields that later passes rely on.
func changesRecord(old, now *v1alpha1.StatefulClusterStatus) bool {
	return !apiequality.Semantic.DeepEqual(old.Lost, now.Lost) || !apiequality.Semantic.DeepEqual(old.Updating, now.Updating) ||
		!apiequality.Semantic.DeepEqual(old.Creating, now.Creating)
}

// acts are the writes of one pass to pods, of one kind and for one reason.
type acts struct {
	event, reason, detail string
	first                 client.Object
	names                 []string
}

// namesInEvent is the max number of members in one event, so that its text stays short.
const namesInEvent = 10

// emitActs emits events for the writes of the pass, one for each kind of act and 10 members.
// Kubernetes aggregates events that differ only in their text, so each event is related to the
// first pod that it names.
func (r *reporter) emitActs(set *v1alpha1.StatefulCluster, done results) {
	for _, a := range actsOf(done.outcomes) {
		kind := corev1.EventTypeNormal
		if a.event == v1alpha1.EventMemberLost || a.event == v1alpha1.EventForeignPod {
			kind = corev1.EventTypeWarning
		}
		note := fmt.Sprintf("%s: %s", a.reason, strings.Join(a.names, ", "))
		if len(a.names) == 1 && a.detail != "" {
			note += "; " + a.detail
		}
		r.events.Eventf(set, a.first, kind, a.event, a.reason, "%s", excerpt.Message(note))
	}
	if o, refused := done.firstRefusal(); refused {
		r.events.Eventf(set, o.Object, corev1.EventTypeWarning, v1alpha1.EventWriteRefused, "Write", "%s", excerpt.Message(o.Err.Error()))
	}
}

// firstRefusal returns the first write that was refused permanently, unless a refusal for the same
// reason was reported before.
func (r results) firstRefusal() (action.Outcome, bool) {
	for _, o := range r.outcomes {
		if !refusedForGood(o.Err) || hides(o) {
			continue
		}
		if r.refused[o.Reason].times <= 1 {
			return o, true
		}
	}
	return action.Outcome{}, false
}

// emitNews emits events for what the status reports for the first time. It is called after the
// status write, because a pass whose status write fails is retried and would emit them again.
func (r *reporter) emitNews(f *facts, p *plan) {
	if f.served() {
		r.emitLosses(f)
	}
	if len(p.held) > 0 && !heldBefore(f.set) {
		first := slices.IndexFunc(f.members, func(m *member) bool { return m.name() == p.held[0] })
		r.events.Eventf(f.set, f.members[first].pod, corev1.EventTypeWarning, v1alpha1.EventReplacementHeld, "Hold",
			"pending replacement, limited by replacement.maxConcurrent: %s", someOf(p.held))
	}
}

// heldBefore reports whether the status already reports that replacements are held back.
func heldBefore(set *v1alpha1.StatefulCluster) bool {
	return slices.ContainsFunc(set.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == v1alpha1.ConditionDegraded && c.Reason == v1alpha1.ReasonReplacementHeld
	})
}

// emitLosses emits events for the members whose pods were deleted by others.
func (r *reporter) emitLosses(f *facts) {
	emit := func(reason v1alpha1.LossReason, first runtime.Object, names []string) {
		r.events.Eventf(f.set, first, corev1.EventTypeWarning, v1alpha1.EventMemberLost, string(reason),
			"%s: %s; will not come back, and will be replaced under another name", reason, strings.Join(names, ", "))
	}
	for reason, members := range goneNow(f) {
		for part := range slices.Chunk(members, namesInEvent) {
			emit(reason, part[0].pod, namesOf(part))
		}
	}
	for names := range slices.Chunk(vanishedNow(f), namesInEvent) {
		emit(v1alpha1.LossDeleted, nil, names)
	}
}

// goneNow returns, by reason, the members whose pod was deleted by others, that have no successor
// yet, and that status.lost does not list.
func goneNow(f *facts) map[v1alpha1.LossReason][]*member {
	gone := map[v1alpha1.LossReason][]*member{}
	for _, m := range f.unlisted() {
		if !f.succeeded[m.name()] {
			reason := departureReason(m, false)
			gone[reason] = append(gone[reason], m)
		}
	}
	return gone
}

// vanishedNow returns the members whose pod disappeared unobserved, that do not come back, and that
// status.lost does not list.
func vanishedNow(f *facts) []string {
	return slices.DeleteFunc(lostUnseen(f), func(name string) bool { return listed(f.set.Status.Lost, name) })
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
		if o.Reason == reasonReturned {
			return v1alpha1.EventMemberUpdated
		}
		return v1alpha1.EventMemberCreated
	case action.Patch:
		switch {
		case o.Reason == reasonForeign:
			return v1alpha1.EventForeignPod
		case o.Reason == reasonUpdated && !finishes(o.From, pod):
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
	case reasonUpdate:
		return ""
	case reasonRetired:
		return v1alpha1.EventMemberRetired
	}
	return v1alpha1.EventMemberLost
}

// finishes reports whether a patch removes the in-place update annotation from a pod.
func finishes(from, to client.Object) bool {
	return from.GetAnnotations()[v1alpha1.AnnotationInPlace] != "" && to.GetAnnotations()[v1alpha1.AnnotationInPlace] == ""
}
