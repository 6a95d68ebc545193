package replicatedstatefulset

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
)

// The first six have the names of the original. Its label Reason was the whole
// text of an error; here it is the reason of the write that failed.
var (
	clustersGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "rss_operator_controller_clusters",
		Help: "ReplicatedStatefulSets, by phase.",
	}, []string{"namespace", "name", "phase"})
	createdTotal  = counter("rss_operator_controller_clusters_created", "ReplicatedStatefulSets that this process looked at for the first time.")
	deletedTotal  = counter("rss_operator_controller_clusters_deleted", "ReplicatedStatefulSets that went.")
	modifiedTotal = counter("rss_operator_controller_clusters_modified", "New generations of ReplicatedStatefulSets that were observed.")
	failedTotal   = counter("rss_operator_controller_clusters_failed", "ReplicatedStatefulSets that came to phase Failed.")
	passSeconds   = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "rss_operator_cluster_reconcile_duration",
		Help:    "Seconds of one look at a ReplicatedStatefulSet. Commands run beside it.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	})
	refusedTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rss_operator_cluster_reconcile_failed",
		Help: "Writes that failed, by the reason of the write.",
	}, []string{"Reason"})
	actionsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "replicatedstatefulset_actions_total",
		Help: "Writes and commands for ReplicatedStatefulSets, by verb and reason.",
	}, []string{"verb", "reason"})
	unknownTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "replicatedstatefulset_commands_unknown_total",
		Help: "Commands whose outcome nobody knows, by name. The log says why.",
	}, []string{"command"})
	membersGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "replicatedstatefulset_members",
		Help: "Members of a ReplicatedStatefulSet by state: primary, secondary, failed, unready.",
	}, []string{"namespace", "name", "state"})
)

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func init() {
	metrics.Registry.MustRegister(clustersGauge, createdTotal, deletedTotal, modifiedTotal, failedTotal, passSeconds, refusedTotal, actionsTotal, unknownTotal, membersGauge)
}

func forgetMetrics(key types.NamespacedName) {
	labels := prometheus.Labels{"namespace": key.Namespace, "name": key.Name}
	clustersGauge.DeletePartialMatch(labels)
	membersGauge.DeletePartialMatch(labels)
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

// remember notes of a write what the next plan has to know.
func (r *Reconciler) remember(w *world, o *action.Outcome) {
	known := r.of(w.set)
	switch {
	case o.Verb != action.Patch:
	case o.Reason == reasonRefused && o.Object.GetAnnotations()[v1alpha1.AnnotationSwitchoverTo] == "":
		known.wish = "" // the same one may be wanted again at once
	case o.Reason == reasonChild || o.Reason == reasonTemplate:
		was, now := known.mended[childKey(o.From)], mended{attemptOf(o.From, o.Object), o.Answer.GetResourceVersion() == o.From.GetResourceVersion(), w.now}
		known.mended[childKey(o.From)] = now
		if now.vain && (!was.vain || was.attempt != now.attempt) {
			r.event(w, o.Object, corev1.EventTypeWarning, v1alpha1.EventWriteUndone, "Keep",
				"%s: changed nothing; the API server, or a policy in it, takes back what is written there", o.String())
		}
	}
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

var phases = []v1alpha1.Phase{v1alpha1.PhaseNone, v1alpha1.PhaseCreating, v1alpha1.PhaseRunning, v1alpha1.PhasePaused, v1alpha1.PhaseFailed}

func gauge(key types.NamespacedName, s *v1alpha1.ReplicatedStatefulSetStatus) {
	for _, phase := range phases { // by name: a match of two labels would look at every set
		if phase != s.Phase {
			clustersGauge.DeleteLabelValues(key.Namespace, key.Name, string(phase))
		}
	}
	clustersGauge.WithLabelValues(key.Namespace, key.Name, string(s.Phase)).Set(1)
	for state, names := range map[string][]string{"primary": s.Members.Primary, "secondary": s.Members.Secondary,
		"failed": s.Members.Failed, "unready": s.Members.Unready} {
		membersGauge.WithLabelValues(key.Namespace, key.Name, state).Set(float64(len(names)))
	}
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

// remembered is what no object says. A restart asks all members again.
type remembered struct {
	// rules is a hash of ConfigMaps, versions of which, and excess why there is none.
	rules, versions, excess string
	grants                  []v1alpha1.Grant
	lossAt                  time.Time
	lossOf                  types.UID
	pods                    map[types.UID]*seen
	refused                 memory.Refusal
	mended                  map[string]mended // the last patches of children, by childKey
	wish                    string            // who a person wants to be primary
	wishAt                  time.Time
}

// of returns what is remembered of a set.
func (r *Reconciler) of(set *v1alpha1.ReplicatedStatefulSet) *remembered {
	known, isNew := r.memory.Get(client.ObjectKeyFromObject(set), set.UID)
	if isNew {
		known.pods, known.mended = map[types.UID]*seen{}, map[string]mended{}
		createdTotal.Inc()
	}
	return known
}

// recall puts what is remembered into a world, and remembers what is new in it.
func (r *Reconciler) recall(w *world) {
	known := r.of(w.set)
	w.refused, w.mended = known.refused.Text(), known.mended
	if wish := w.set.Annotations[v1alpha1.AnnotationSwitchoverTo]; wish != known.wish {
		known.wish, known.wishAt = wish, w.now
	}
	w.wishAt = known.wishAt
	lost := slices.DeleteFunc(slices.Clone(known.grants), func(g v1alpha1.Grant) bool {
		return slices.ContainsFunc(w.set.Status.Grants, func(o v1alpha1.Grant) bool { return o.UID == g.UID && o.ContainerID == g.ContainerID })
	})
	if known.lossAt.IsZero() || len(lost) > 0 {
		known.lossAt = w.now
	}
	if len(lost) > 0 {
		known.lossOf = lost[0].UID
	}
	if len(lost) > 1 {
		known.lossOf = "" // nobody knows whose data was the newest
	}
	known.grants, w.lossAt, w.lossOf = w.set.Status.Grants, known.lossAt, known.lossOf
	before := known.pods
	known.pods = map[types.UID]*seen{}
	for _, member := range w.members {
		s := before[member.pod.UID]
		if s == nil {
			s = &seen{touched: w.now, said: map[string]podexec.Result{}, counted: map[string]time.Time{}, tries: map[string]int{}}
		}
		known.pods[member.pod.UID] = s
		s.look(member, w.set.Status.Unanswered, w.now)
		if w.set.Spec.Paused && !s.unheard { // nobody asks
			s.askedAt, member.askedAt = time.Time{}, time.Time{}
		}
	}
}
