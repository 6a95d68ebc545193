package status

import (
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// The metrics rss_operator_* have the names of the original operator. There the label Reason was
// the complete error text; here it is the reason of the failed write.
var (
	ClustersGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "rss_operator_controller_clusters",
		Help: "ReplicatedStatefulSets, by phase.",
	}, []string{"namespace", "name", "phase"})
	DeletedTotal  = counter("rss_operator_controller_clusters_deleted", "ReplicatedStatefulSets that were deleted.")
	modifiedTotal = counter("rss_operator_controller_clusters_modified", "Observed new generations of ReplicatedStatefulSets.")
	failedTotal   = counter("rss_operator_controller_clusters_failed", "ReplicatedStatefulSets that entered phase Failed.")
	PassSeconds   = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "rss_operator_cluster_reconcile_duration",
		Help:    "Duration in seconds of one reconciliation of a ReplicatedStatefulSet, without its commands, which run in the background.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	})
	refusedTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rss_operator_cluster_reconcile_failed",
		Help: "Failed writes, by the reason of the write.",
	}, []string{"Reason"})
	actionsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "replicatedstatefulset_actions_total",
		Help: "Writes and commands for ReplicatedStatefulSets, by verb and reason.",
	}, []string{"verb", "reason"})
	membersGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "replicatedstatefulset_members",
		Help: "Members of a ReplicatedStatefulSet by state: primary, secondary, failed, unready.",
	}, []string{"namespace", "name", "state"})
	SequenceGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "replicatedstatefulset_member_sequence",
		Help: "Data version of a member: the last output of its command sequence, in the unit of the application.",
	}, []string{"namespace", "name", "member"})
)

// sequencesShown are the members by set that have a series of SequenceGauge.
var sequencesShown sync.Map // of types.NamespacedName to []string

// counter returns a counter without labels.
func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func init() {
	metrics.Registry.MustRegister(ClustersGauge, DeletedTotal, modifiedTotal, failedTotal, PassSeconds, refusedTotal, actionsTotal, membersGauge, SequenceGauge)
	for _, name := range spec.SentCommands() {
		// Start at 0: Prometheus sees no increase in the first sample, and a failover may be the
		// first.
		actionsTotal.WithLabelValues(action.Exec.Label(), facts.ReasonOf(name))
	}
}

// ForgetMetrics removes the series of a deleted set.
func ForgetMetrics(key types.NamespacedName) {
	labels := prometheus.Labels{"namespace": key.Namespace, "name": key.Name}
	ClustersGauge.DeletePartialMatch(labels)
	membersGauge.DeletePartialMatch(labels)
	SequenceGauge.DeletePartialMatch(labels)
	sequencesShown.Delete(key)
}

// Phases are all phases of a set.
var Phases = []v1alpha1.Phase{v1alpha1.PhaseNone, v1alpha1.PhaseCreating, v1alpha1.PhaseRunning, v1alpha1.PhasePaused, v1alpha1.PhaseFailed}

// SetGauges sets the series of a set from its status.
func SetGauges(key types.NamespacedName, s *v1alpha1.ReplicatedStatefulSetStatus) {
	for _, phase := range Phases { // by name, because a partial match of two labels would iterate over all sets
		if phase != s.Phase {
			ClustersGauge.DeleteLabelValues(key.Namespace, key.Name, string(phase))
		}
	}
	ClustersGauge.WithLabelValues(key.Namespace, key.Name, string(s.Phase)).Set(1)
	for state, names := range map[string][]string{"primary": s.Members.Primary, "secondary": s.Members.Secondary,
		"failed": s.Members.Failed, "unready": s.Members.Unready} {
		membersGauge.WithLabelValues(key.Namespace, key.Name, state).Set(float64(len(names)))
	}
	gaugeSequences(key, s.Sequences)
}

// gaugeSequences sets the series of the members with a known sequence, and removes those of members
// without one. A number above 2^53 is rounded, as are all Prometheus values.
func gaugeSequences(key types.NamespacedName, sequences []v1alpha1.Sequence) {
	shown := make([]string, 0, len(sequences))
	for _, s := range sequences {
		if n, err := strconv.ParseUint(s.Sequence, 10, 64); err == nil {
			SequenceGauge.WithLabelValues(key.Namespace, key.Name, s.Pod).Set(float64(n))
			shown = append(shown, s.Pod)
		}
	}
	before, _ := sequencesShown.Swap(key, shown)
	old, _ := before.([]string)
	for _, pod := range old {
		if !slices.Contains(shown, pod) {
			SequenceGauge.DeleteLabelValues(key.Namespace, key.Name, pod)
		}
	}
}
