package statefulcluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
)

var (
	actionsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "statefulcluster_actions_total",
		Help: "Writes to children of StatefulClusters that took effect, by verb and reason.",
	}, []string{"verb", "reason"})
	membersGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "statefulcluster_members",
		Help: "Members of a StatefulCluster by state: ready, unready, lost, returning.",
	}, []string{"namespace", "name", "state"})
	replacementSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "statefulcluster_replacement_seconds",
		Help:    "Seconds from the evidence of a loss (its deadline passed) to the create of the replacement.",
		Buckets: prometheus.ExponentialBuckets(0.05, 2, 12),
	})
)

func init() {
	metrics.Registry.MustRegister(actionsTotal, membersGauge, replacementSeconds)
}

func forgetMetrics(key types.NamespacedName) {
	membersGauge.DeletePartialMatch(prometheus.Labels{"namespace": key.Namespace, "name": key.Name})
}

// A status that changes only in its counts is written at most this often.
const statusInterval = 500 * time.Millisecond

// Refused writes are tried again after this, doubling.
const (
	firstRefusal = time.Second
	maxRefusal   = 5 * time.Minute
)

// report tells users what happened and what is: events, metrics, one status
// patch. It turns the pass into an outcome.
func (r *Reconciler) report(ctx context.Context, w *world, p *plan, outcomes []action.Outcome) report.Outcome {
	err := r.of(w.set).learn(w, p, outcomes)
	r.emitDeeds(w, outcomes)
	status := summarize(w, p, outcomes)
	r.measure(w, p, outcomes, &status)
	due := p.Wait
	for _, refused := range w.refused {
		due = sooner(due, refused.until.Sub(w.now))
	}
	wrote, later, statusErr := r.writeStatus(ctx, w, status, outcomes)
	if wrote {
		r.emitNews(w, p)
	}
	if err = errors.Join(err, statusErr); err != nil {
		return report.Retry(err)
	}
	if known := r.of(w.set); len(w.foreign) > 0 || known.hidden {
		later = sooner(later, foreignInterval)
	}
	if sooner(due, later) == due {
		return report.Wait(due)
	}
	return report.Wait(later).Later()
}

func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// writeStatus patches the status if it differs, and reports whether it did. A
// pass that acted leaves what the next pass will see anyway to that pass; counts
// alone wait a moment.
func (r *Reconciler) writeStatus(ctx context.Context, w *world, status v1alpha1.StatefulClusterStatus, outcomes []action.Outcome) (wrote bool, later time.Duration, err error) {
	base := w.set
	for _, o := range outcomes {
		if o.Verb == action.PatchStatus && o.Err == nil {
			base = o.Answer.(*v1alpha1.StatefulCluster)
		}
	}
	old := &base.Status
	if apiequality.Semantic.DeepEqual(*old, status) {
		return false, 0, nil
	}
	facts := !apiequality.Semantic.DeepEqual(old.Lost, status.Lost) || !apiequality.Semantic.DeepEqual(old.Updating, status.Updating) ||
		!apiequality.Semantic.DeepEqual(old.Creating, status.Creating)
	if !facts && len(outcomes) > 0 && len(w.refused) == 0 {
		return false, statusInterval, nil
	}
	known := r.of(w.set)
	if since := w.now.Sub(known.written); !facts && old.ObservedGeneration == status.ObservedGeneration && since < statusInterval {
		return false, statusInterval - since, nil
	}
	known.written = w.now
	set := base.DeepCopy()
	set.Status = status
	for _, o := range r.Runner.Run(ctx, client.ObjectKeyFromObject(set), action.Steps{{{
		{Verb: action.PatchStatus, Object: set, From: base, Rebase: true, Reason: "Observed"}}}}) {
		if apierrors.IsConflict(o.Err) {
			return false, statusInterval, nil // somebody wrote meanwhile; its event is on the way
		}
		if o.Err != nil {
			return false, 0, client.IgnoreNotFound(o.Err)
		}
		wrote = true
	}
	return wrote, 0, nil
}

// timed are the reasons whose evidence has a time; the others are seen when
// they are seen.
var timed = map[v1alpha1.LossReason]bool{v1alpha1.LossNodeNotReady: true, v1alpha1.LossUnready: true,
	v1alpha1.LossStartup: true, v1alpha1.LossPending: true}

// measure feeds the metrics.
func (r *Reconciler) measure(w *world, p *plan, outcomes []action.Outcome, s *v1alpha1.StatefulClusterStatus) {
	for _, o := range outcomes {
		if o.Err == nil {
			actionsTotal.WithLabelValues(string(o.Verb), o.Reason).Inc()
		}
	}
	for state, n := range map[string]int32{"ready": s.ReadyReplicas, "unready": s.Replicas - s.ReadyReplicas,
		"lost": s.LostReplicas, "returning": int32(len(p.updating))} {
		membersGauge.WithLabelValues(w.set.Namespace, w.set.Name, state).Set(float64(n))
	}
	for _, l := range p.losses {
		if !timed[l.reason] {
			continue
		}
		if slices.ContainsFunc(outcomes, func(o action.Outcome) bool {
			return o.Verb == action.Create && o.Err == nil && o.Object.GetAnnotations()[v1alpha1.AnnotationReplaces] == l.name()
		}) {
			replacementSeconds.Observe(r.Now().Sub(l.due).Seconds())
		}
	}
}

// deed is what a pass did, of one kind and for one reason, to pods.
type deed struct {
	event, reason, detail string
	first                 client.Object
	names                 []string
}

// emitDeeds writes one event for each kind of act of the pass, naming up to 10
// members. Events that differ in nothing but their text are folded into one, so
// each is related to the first pod that it names.
func (r *Reconciler) emitDeeds(w *world, outcomes []action.Outcome) {
	for _, d := range deedsOf(outcomes) {
		kind := corev1.EventTypeNormal
		if d.event == v1alpha1.EventMemberLost {
			kind = corev1.EventTypeWarning
		}
		note := fmt.Sprintf("%s: %s", d.reason, someOf(d.names))
		if len(d.names) == 1 && d.detail != "" {
			note += "; " + d.detail
		}
		r.Events.Eventf(w.set, d.first, kind, d.event, d.reason, "%s", short(note))
	}
	for _, o := range outcomes {
		if o.Err != nil && refusedForGood(o.Err) && !hides(o) && w.refused[o.Reason].times <= 1 {
			r.Events.Eventf(w.set, o.Object, corev1.EventTypeWarning, v1alpha1.EventWriteRefused, "Write", "%s", short(o.Err.Error()))
			break
		}
	}
}

// emitNews tells what the status says for the first time, once it is written: a
// pass whose status is refused is repeated, and would tell the same again.
func (r *Reconciler) emitNews(w *world, p *plan) {
	if w.served() {
		r.emitLosses(w)
	}
	if len(p.held) > 0 && !heldBefore(w) {
		first := slices.IndexFunc(w.members, func(m *member) bool { return m.name() == p.held[0] })
		r.Events.Eventf(w.set, w.members[first].pod, corev1.EventTypeWarning, v1alpha1.EventReplacementHeld, "Hold",
			"waiting until others are replaced, as replacement.maxConcurrent says: %s", someOf(p.held))
	}
}

// emitLosses tells of the members that were lost by somebody else's hand.
func (r *Reconciler) emitLosses(w *world) {
	emit := func(reason v1alpha1.LossReason, first runtime.Object, names []string) {
		r.Events.Eventf(w.set, first, corev1.EventTypeWarning, v1alpha1.EventMemberLost, string(reason),
			"%s: %s; will not come back, and will be replaced under another name", reason, someOf(names))
	}
	sorted := muster(w, &plan{})
	for reason, members := range goneNow(w, sorted) {
		emit(reason, members[0].pod, namesOf(members))
	}
	if names := vanishedNow(w, sorted); len(names) > 0 {
		emit(v1alpha1.LossDeleted, nil, names)
	}
}

// goneNow are the members whose pod somebody else deleted and that have no
// successor yet, by the reason, as long as the status does not list them.
func goneNow(w *world, r *roster) map[v1alpha1.LossReason][]*member {
	gone := map[v1alpha1.LossReason][]*member{}
	for _, m := range unrecorded(w, r) {
		if !r.succeeded[m.name()] {
			gone[departureReason(m, false)] = append(gone[departureReason(m, false)], m)
		}
	}
	return gone
}

// vanishedNow are the members whose pod is gone without a trace, as long as the
// status does not list them.
func vanishedNow(w *world, r *roster) []string {
	return slices.DeleteFunc(vanished(w, r), func(name string) bool { return listed(w.set.Status.Lost, name) })
}

// deedsOf are the deeds that are worth an event, in the order of their first
// action.
func deedsOf(outcomes []action.Outcome) []*deed {
	var deeds []*deed
	for _, o := range outcomes {
		event := eventOf(o)
		if event == "" || o.Err != nil {
			continue
		}
		i := slices.IndexFunc(deeds, func(d *deed) bool { return d.event == event && d.reason == o.Reason })
		if i < 0 {
			i = len(deeds)
			deeds = append(deeds, &deed{event: event, reason: o.Reason, detail: o.Detail, first: o.Answer})
		}
		deeds[i].names = append(deeds[i].names, o.Object.GetName())
	}
	return deeds
}

// eventOf is the event that an action is worth; "" for none.
func eventOf(o action.Outcome) string {
	_, isPod := o.Object.(*corev1.Pod)
	switch {
	case !isPod:
		return ""
	case o.Verb == action.Create && o.Reason == reasonReturned, o.Verb == action.Patch && o.Reason == reasonUpdated && o.Detail != "complete":
		return v1alpha1.EventMemberUpdated
	case o.Verb == action.Create:
		return v1alpha1.EventMemberCreated
	case o.Verb == action.Delete && o.Reason == reasonRetired:
		return v1alpha1.EventMemberRetired
	case o.Verb == action.Delete && o.Reason != reasonUpdate:
		return v1alpha1.EventMemberLost
	}
	return ""
}

func heldBefore(w *world) bool {
	return slices.ContainsFunc(w.set.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == v1alpha1.ConditionDegraded && c.Reason == v1alpha1.ReasonReplacementHeld
	})
}

// short fits a message into an event.
func short(s string) string { return strings.ToValidUTF8(s[:min(len(s), 1000)], "") }

// refusedForGood tells whether the API server understood the write and said
// no: the same write a moment later is refused again.
func refusedForGood(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsAlreadyExists(err)
}

// hides tells whether a create met an object that the cache does not show.
func hides(o action.Outcome) bool {
	return apierrors.IsAlreadyExists(o.Err) && (o.Reason == reasonRevision || o.Reason == reasonBudget)
}

// learn remembers what the API server answered, and returns the errors that
// are worth an immediate retry.
func (known *remembered) learn(w *world, p *plan, outcomes []action.Outcome) error {
	var retry error
	if slices.ContainsFunc(outcomes, wroteStatus) {
		for _, uid := range p.givenUp {
			known.retired[uid] = true
		}
	}
	if len(outcomes) == 0 { // what was refused is not wanted any more
		maps.DeleteFunc(known.refused, func(_ string, r refusal) bool { return !r.until.After(w.now) })
	}
	for _, o := range outcomes {
		if o.Verb == action.Delete && o.Reason == reasonRetired && (o.Err == nil || apierrors.IsNotFound(o.Err)) {
			known.retired[o.Object.GetUID()] = true
		}
		switch {
		case o.Err == nil:
			delete(known.refused, o.Reason)
		case apierrors.IsNotFound(o.Err) && o.Verb == action.Delete, apierrors.IsConflict(o.Err):
			// The world is another than we read; the next pass reads it anew.
		case hides(o):
			known.hidden = true
		case createsNew(o) && apierrors.IsAlreadyExists(o.Err):
			// Somebody else's pod has the name. It leaves the record, and the write
			// that does this wakes the key.
		case refusedForGood(o.Err), o.Verb == action.Resize && apierrors.IsNotFound(o.Err): // no such subresource before Kubernetes 1.33
			times := known.refused[o.Reason].times + 1
			known.refused[o.Reason] = refusal{o.Err.Error(), w.now.Add(min(firstRefusal<<min(times-1, 10), maxRefusal)), times}
		default:
			retry = errors.Join(retry, o.Err)
		}
	}
	maps.DeleteFunc(known.retired, func(uid types.UID, _ bool) bool {
		return !slices.ContainsFunc(w.members, func(m *member) bool { return m.pod.UID == uid })
	})
	w.refused = maps.Clone(known.refused)
	return retry
}
